package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// A terminal gets what moves and what is cut to its width. A pipe or a file gets everything, in plain lines.

// terminalWidth is how many characters a line of the terminal has that w is, and 0 where it is none.
func terminalWidth(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	if size.Col == 0 { // one that does not know
		return 80
	}
	return int(size.Col)
}

// cut shortens a text to so many characters; 0 is no limit.
func cut(text string, most int) string {
	if most <= 0 || utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:max(most-1, 0)]) + "…"
}

// printJSON writes a value in lines that a person can read; numbers and texts stay as they are.
func printJSON(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// A table has aligned columns. The column wide is cut where the terminal is too narrow.
type table struct {
	header []string
	rows   [][]string
	wide   int
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// write aligns the table; width is that of the terminal, 0 for none.
func (t *table) write(out io.Writer, width int) error {
	if width > 0 {
		others := 0
		for i := range t.header {
			if i == t.wide {
				continue
			}
			longest := 0
			for _, row := range append([][]string{t.header}, t.rows...) {
				longest = max(longest, utf8.RuneCountInString(row[i]))
			}
			others += longest + 2
		}
		for _, row := range t.rows {
			row[t.wide] = cut(row[t.wide], max(width-others-1, 12))
		}
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{t.header}, t.rows...) {
		fmt.Fprintln(w, strings.TrimRight(strings.Join(plainCells(row), "\t"), "\t"))
	}
	return w.Flush()
}

// plainCells are cells in which nothing moves a terminal or a column: names are of whoever uploaded the table.
func plainCells(row []string) []string {
	cells := make([]string, len(row))
	for i, cell := range row {
		cells[i] = printable(cell)
	}
	return cells
}

// printable is a text in one line without control characters.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || 0x80 <= r && r < 0xa0 || r == 0x2028 || r == 0x2029 || 0x202a <= r && r <= 0x202e || 0x2066 <= r && r <= 0x2069 {
			return ' '
		}
		return r
	}, text)
}

// An uploading line says how much of an upload has gone; it is drawn on terminals alone.
type uploading struct {
	io.ReadSeeker
	out         io.Writer
	done, total int64
	percent     int64
}

// watched is the reader itself where out is no terminal.
func watched(r io.ReadSeeker, total int64, out io.Writer) io.ReadSeeker {
	if terminalWidth(out) == 0 || total <= 0 {
		return r
	}
	return &uploading{ReadSeeker: r, out: out, total: total, percent: -1}
}

// Read counts, and draws each percent once.
func (p *uploading) Read(b []byte) (int, error) {
	n, err := p.ReadSeeker.Read(b)
	p.done += int64(n)
	if percent := 100 * p.done / p.total; percent != p.percent {
		p.percent = percent
		fmt.Fprintf(p.out, "\r\x1b[Kuploading %3d%% of %s", min(percent, 100), bytesText(p.total))
		if p.done >= p.total {
			fmt.Fprint(p.out, "\r\x1b[Kuploaded; the server splits and checks the table")
		}
	}
	return n, err
}

// Seek begins again, for another attempt.
func (p *uploading) Seek(offset int64, whence int) (int64, error) {
	at, err := p.ReadSeeker.Seek(offset, whence)
	if err == nil {
		p.done = at
	}
	return at, err
}

// clear takes the progress line away.
func clearLine(out io.Writer) {
	if terminalWidth(out) > 0 {
		fmt.Fprint(out, "\r\x1b[K")
	}
}

// bytesText is a size for a person.
func bytesText(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GB", float64(n)/1e9)
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.0f kB", max(float64(n)/1e3, 1))
}

// encodeLine writes a value as JSON in one line.
func encodeLine(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
