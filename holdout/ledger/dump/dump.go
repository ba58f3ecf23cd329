// Package dump is the rows of a ledger as text: what every implementation writes and reads again, in whatever database it keeps them. A backup has it, and
// by it a ledger moves from one kind of database to another.
//
// It is JSON Lines. The first line says the format and the schema. A line with the name of a table and of its columns is followed by the rows of the table,
// as arrays in the order of the columns. The last line says how many rows there were, so that a text that was cut off is known. Values are integers, strings of
// UTF-8, null, and bytes in base64 as {"b64":"…"}; there is one spelling for each. docs/format/backup.md has an example.
//
// The package knows no table: an implementation writes all tables that it has, so that a new one is never forgotten.
package dump

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// Format names the format and its version.
const (
	formatName    = "holdoutd-rows/"
	formatVersion = 1
	Format        = formatName + "1"
)

// Limits of what is read: far above what a ledger writes, and far below what would hurt.
const (
	maxColumns = 64
	// maxLine is the longest line: a card as base64, and a body and a query of which every byte is escaped as six.
	maxLine = 6*(ledger.MaxCoreBytes+ledger.MaxCanonicalBytes) + 2*ledger.MaxPublicBytes + 1<<20
)

// name is how tables and columns are called.
var name = regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`)

// Header is the first line.
type Header struct {
	Format string `json:"format"`
	// Kind is the kind of database whose schema it is, such as "sqlite". Schema is the number of the schema's newest migration.
	Kind   string `json:"kind"`
	Schema int64  `json:"schema"`
}

// Table is the line before a table's rows.
type Table struct {
	Table   string   `json:"table"`
	Columns []string `json:"columns"`
}

// end is the last line.
type end struct {
	End  bool  `json:"end"`
	Rows int64 `json:"rows"`
}

// check says what no table can be called.
func (t *Table) check() error {
	if !name.MatchString(t.Table) || len(t.Columns) == 0 || len(t.Columns) > maxColumns {
		return fmt.Errorf("table %q of %d columns", short(t.Table), len(t.Columns))
	}
	seen := map[string]bool{}
	for _, c := range t.Columns {
		if !name.MatchString(c) || seen[c] {
			return fmt.Errorf("table %s: column %q", t.Table, short(c))
		}
		seen[c] = true
	}
	return nil
}

// Writer writes a dump.
type Writer struct {
	w       *bufio.Writer
	columns int
	rows    int64
	line    []byte
}

// NewWriter begins a dump.
func NewWriter(w io.Writer, kind string, schema int64) (*Writer, error) {
	d := &Writer{w: bufio.NewWriterSize(w, 1<<16)}
	return d, d.object(Header{Format, kind, schema})
}

// Table begins the rows of a table.
func (w *Writer) Table(t Table) error {
	if err := t.check(); err != nil {
		return fmt.Errorf("dump: %w", err)
	}
	w.columns = len(t.Columns)
	return w.object(t)
}

// Row writes one row: values of the types int64, string, []byte, bool and nil, one for each column. A bool is written as 0 or 1.
func (w *Writer) Row(values []any) error {
	if len(values) != w.columns {
		return fmt.Errorf("dump: a row of %d values, not %d", len(values), w.columns)
	}
	line := append(w.line[:0], '[')
	for i, v := range values {
		if i > 0 {
			line = append(line, ',')
		}
		var err error
		if line, err = spell(line, v); err != nil {
			return err
		}
	}
	w.line = append(line, ']', '\n')
	if len(w.line) > maxLine {
		return fmt.Errorf("dump: a row of %d bytes, at most %d", len(w.line), maxLine)
	}
	w.rows++
	_, err := w.w.Write(w.line)
	return err
}

// spell appends the one spelling of a value.
func spell(line []byte, v any) ([]byte, error) {
	switch x := v.(type) {
	case nil:
		return append(line, "null"...), nil
	case int64:
		return strconv.AppendInt(line, x, 10), nil
	case bool:
		if x {
			return append(line, '1'), nil
		}
		return append(line, '0'), nil
	case []byte:
		return append(base64.StdEncoding.AppendEncode(append(line, `{"b64":"`...), x), `"}`...), nil
	case string:
		if !utf8.ValidString(x) {
			return nil, &ledger.CorruptError{Seq: -1, Reason: "a text is not UTF-8"}
		}
		var text bytes.Buffer
		e := json.NewEncoder(&text)
		e.SetEscapeHTML(false)
		if err := e.Encode(x); err != nil {
			return nil, err
		}
		return append(line, bytes.TrimSuffix(text.Bytes(), []byte("\n"))...), nil
	}
	return nil, fmt.Errorf("dump: a value of the type %T", v)
}

// End writes the last line.
func (w *Writer) End() error {
	if err := w.object(end{true, w.rows}); err != nil {
		return err
	}
	return w.w.Flush()
}

func (w *Writer) object(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.w.Write(append(text, '\n'))
	return err
}

// Reader reads a dump. Its errors are *ledger.CorruptError with the line, *ledger.VersionError, or those of the text's own reader.
type Reader struct {
	Header Header
	r      *bufio.Reader
	line   int64
	rows   int64
	table  *Table
	over   bool
}

// NewReader reads the first line.
func NewReader(r io.Reader) (*Reader, error) {
	d := &Reader{r: bufio.NewReaderSize(r, 1<<16)}
	line, err := d.read()
	if err != nil {
		return nil, d.cut(err)
	}
	var what struct{ Format string } // before everything else about the line, which is another version's to say
	if err := json.Unmarshal(line, &what); err != nil {
		return nil, d.wrong("not the first line of a dump: %v", err)
	}
	if digits, ok := strings.CutPrefix(what.Format, formatName); ok && what.Format != Format {
		if version, err := strconv.ParseInt(digits, 10, 64); err == nil {
			return nil, &ledger.VersionError{What: "the ledger in the backup", Got: version, Known: formatVersion}
		}
	}
	if what.Format != Format {
		return nil, d.wrong("the format is %q, not %q", short(what.Format), Format)
	}
	if err := d.strict(line, &d.Header); err != nil {
		return nil, err
	}
	if !name.MatchString(d.Header.Kind) || d.Header.Schema < 0 {
		return nil, d.wrong("a schema %q %d", short(d.Header.Kind), d.Header.Schema)
	}
	return d, nil
}

// Next reads the next line. It returns a table with no values where one begins, the table and the values of each of its rows, and io.EOF at the end. Values are as Writer.Row takes them, without bool,
// and belong to the caller.
func (d *Reader) Next() (t *Table, values []any, err error) {
	if d.over {
		return nil, nil, io.EOF
	}
	line, err := d.read()
	if err != nil {
		return nil, nil, d.cut(err)
	}
	if line[0] == '[' {
		if d.table == nil {
			return nil, nil, d.wrong("a row before the first table")
		}
		values, err := d.row(line)
		d.rows++
		return d.table, values, err
	}
	var last end
	if err := d.strict(line, &last); err == nil && last.End {
		if last.Rows != d.rows {
			return nil, nil, d.wrong("%d rows, not %d", d.rows, last.Rows)
		}
		if _, err := d.r.ReadByte(); !errors.Is(err, io.EOF) {
			return nil, nil, d.wrong("something follows the last line")
		}
		d.over = true
		return nil, nil, io.EOF
	}
	var next Table
	if err := d.strict(line, &next); err != nil {
		return nil, nil, err
	}
	if err := next.check(); err != nil {
		return nil, nil, d.wrong("%v", err)
	}
	d.table = &next
	return d.table, nil, nil
}

// row reads the values of a line, which must be in their one spelling.
func (d *Reader) row(line []byte) ([]any, error) {
	var raw []json.RawMessage
	if err := json.Unmarshal(line, &raw); err != nil {
		return nil, d.wrong("not a row: %v", err)
	}
	if len(raw) != len(d.table.Columns) {
		return nil, d.wrong("a row of %d values in a table of %d columns", len(raw), len(d.table.Columns))
	}
	values := make([]any, len(raw))
	again := []byte{'['}
	for i, text := range raw {
		v, err := read(text)
		if err != nil {
			return nil, d.wrong("column %s: %v", d.table.Columns[i], err)
		}
		values[i] = v
		if i > 0 {
			again = append(again, ',')
		}
		if again, err = spell(again, v); err != nil {
			return nil, d.wrong("column %s: %v", d.table.Columns[i], err)
		}
	}
	if !bytes.Equal(append(again, ']', '\n'), line) {
		return nil, d.wrong("a row that is not spelled as a dump spells it")
	}
	return values, nil
}

// read is the value of a text of JSON.
func read(text json.RawMessage) (any, error) {
	switch text[0] {
	case 'n':
		return nil, nil
	case '"':
		var s string
		err := json.Unmarshal(text, &s)
		return s, err
	case '{':
		var bytes struct {
			B64 string `json:"b64"`
		}
		if err := json.Unmarshal(text, &bytes); err != nil {
			return nil, err
		}
		return base64.StdEncoding.Strict().DecodeString(bytes.B64)
	}
	return strconv.ParseInt(string(text), 10, 64)
}

// cut says of the text's end that it came too early.
func (d *Reader) cut(err error) error {
	if errors.Is(err, io.EOF) {
		return d.wrong("the ledger is cut off")
	}
	return err
}

func (d *Reader) wrong(format string, args ...any) error {
	return &ledger.CorruptError{Line: d.line, Seq: -1, Reason: fmt.Sprintf(format, args...)}
}

// strict reads an object that is spelled as a Writer spells it.
func (d *Reader) strict(line []byte, v any) error {
	if err := json.Unmarshal(line, v); err != nil {
		return d.wrong("not a line of a dump: %v", err)
	}
	again, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if !bytes.Equal(append(again, '\n'), line) {
		return d.wrong("a line that is not spelled as a dump spells it")
	}
	return nil
}

// read returns the next line with its newline, or io.EOF where none is left.
func (d *Reader) read() ([]byte, error) {
	d.line++
	var line []byte
	for {
		part, err := d.r.ReadSlice('\n')
		if len(line)+len(part) > maxLine {
			return nil, d.wrong("a line of more than %d bytes", maxLine)
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return line, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(line) > 0:
			return nil, d.wrong("the last line is cut off")
		default:
			return nil, err
		}
	}
}

// short keeps foreign text in messages short.
func short(s string) string {
	if len(s) > 80 {
		return s[:80] + "…"
	}
	return s
}
