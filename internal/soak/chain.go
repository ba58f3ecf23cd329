package soak

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// A Chain is an exported ledger, as docs/format/ledger.md writes it, added up by this package alone. It takes nothing from the package that
// wrote it: a fault of that one must not hide itself.
type Chain struct {
	Holdout string
	Limits  map[string]int64
	Spent   map[string]int64 // as the header says
	Entries []Entry          // the genesis is the first one
}

// An Entry is one line of the chain.
type Entry struct {
	Version   int              `json:"version"`
	Seq       int64            `json:"seq"`
	Kind      string           `json:"kind"`
	Time      string           `json:"time"`
	Query     string           `json:"query"`
	Canonical string           `json:"canonical"`
	Principal string           `json:"principal"`
	Debit     map[string]int64 `json:"debit"`
	Spent     map[string]int64 `json:"spent"`
	Body      string           `json:"body"`
	Head      string           `json:"head"`
}

// exportFormat and entryTag are of the one version that is known here.
const (
	exportFormat = "holdoutd-ledger/2"
	entryVersion = 2
	entryTag     = "holdoutd ledger entry 2\n"
)

// ReadChain reads an export. It looks at its form only: [Books.Check] says whether it is in order.
func ReadChain(r io.Reader) (*Chain, error) {
	lines := bufio.NewReaderSize(r, 1<<20)
	var header struct {
		Format  string           `json:"format"`
		Holdout string           `json:"holdout"`
		Limits  map[string]int64 `json:"limits"`
		Spent   map[string]int64 `json:"spent"`
		Entries int              `json:"entries"`
	}
	if err := nextLine(lines, &header); err != nil {
		return nil, fmt.Errorf("soak: the header of an export: %w", err)
	}
	if header.Format != exportFormat {
		return nil, fmt.Errorf("soak: the export has the format %q, and %q is known", header.Format, exportFormat)
	}
	c := &Chain{Holdout: header.Holdout, Limits: header.Limits, Spent: header.Spent}
	for {
		var e Entry
		err := nextLine(lines, &e)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("soak: line %d of the export of %s: %w", len(c.Entries)+2, c.Holdout, err)
		}
		c.Entries = append(c.Entries, e)
	}
	if len(c.Entries) != header.Entries {
		return nil, fmt.Errorf("soak: the export of %s has %d entries, and its header says %d", c.Holdout, len(c.Entries), header.Entries)
	}
	return c, nil
}

// nextLine decodes one line; io.EOF is the end between two of them.
func nextLine(lines *bufio.Reader, into any) error {
	line, err := lines.ReadBytes('\n')
	switch {
	case errors.Is(err, io.EOF) && len(line) == 0:
		return io.EOF
	case err != nil:
		return errors.Join(err, errors.New("it is cut off"))
	}
	return json.Unmarshal(line, into)
}

// check adds the chain up: seqs, hashes, sums, limits, and that no query was answered twice. It says what is wrong.
func (c *Chain) check() (wrong []string) {
	say := func(format string, args ...any) { wrong = append(wrong, c.Holdout+": "+fmt.Sprintf(format, args...)) }
	sum, answered := map[string]int64{}, map[string]int64{}
	meters := slices.Sorted(maps.Keys(c.Limits))
	var before [sha256.Size]byte
	for i, e := range c.Entries {
		if e.Version != entryVersion || e.Seq != int64(i) || (e.Kind == "genesis") != (i == 0) {
			say("entry %d says version %d, seq %d, kind %q", i, e.Version, e.Seq, e.Kind)
		}
		place := fmt.Sprintf(`,"ledger":{"seq":%d,"head":"%s"}}`, e.Seq, e.Head)
		core, placed := strings.CutSuffix(e.Body, place)
		if !placed {
			say("the body of entry %d does not end with its place", i)
		}
		head := e.hash(before, meters, core+"}")
		if e.Head != "sha256:"+hex.EncodeToString(head[:]) {
			say("the head of entry %d does not follow", i)
		}
		before = head
		for _, m := range meters {
			sum[m] += e.Debit[m]
			if e.Debit[m] < 0 || e.Spent[m] != sum[m] {
				say("entry %d debits %d %s and says that %d are spent; the debits so far come to %d", i, e.Debit[m], m, e.Spent[m], sum[m])
			}
			if sum[m] > c.Limits[m] {
				say("%d %s are spent by entry %d, of %d", sum[m], m, i, c.Limits[m])
			}
		}
		switch e.Kind {
		case "answer":
			if first, twice := answered[e.Query]; twice {
				say("the query %s is answered and charged twice, by the entries %d and %d", e.Query, first, i)
			}
			answered[e.Query] = e.Seq
		case "void":
			say("entry %d is void: a question failed after its rows were read", i)
		}
	}
	for _, m := range meters {
		if c.Spent[m] != sum[m] {
			say("the header says that %d %s are spent; the debits come to %d", c.Spent[m], m, sum[m])
		}
	}
	return wrong
}

// hash is the head of the chain with the entry.
func (e *Entry) hash(before [sha256.Size]byte, meters []string, core string) [sha256.Size]byte {
	var b bytes.Buffer
	number := func(n int64) { binary.Write(&b, binary.BigEndian, n) }
	text := func(s string) { number(int64(len(s))); b.WriteString(s) }
	b.WriteString(entryTag)
	b.Write(before[:])
	number(e.Seq)
	for _, s := range []string{e.Kind, e.Time, e.Query, e.Canonical, e.Principal} {
		text(s)
	}
	number(int64(len(meters)))
	for _, m := range meters {
		text(m)
		number(e.Debit[m])
		number(e.Spent[m])
	}
	digest := sha256.Sum256([]byte(core))
	b.Write(digest[:])
	return sha256.Sum256(b.Bytes())
}
