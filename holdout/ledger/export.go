package ledger

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"math"
	"strconv"
	"strings"
)

// ExportFormat names the format of an export and its version.
const ExportFormat = exportName + "2"

const (
	exportName    = "holdoutd-ledger/"
	exportVersion = 2
)

// Chain is a holdout's whole history, as an implementation reads it from where it keeps it.
type Chain struct {
	Holdout Holdout // its public facts, what is spent, and whether it is deleted
	Seq     int64   // of the last entry, as the books say
	Head    [32]byte
	Grants  []Grant                 // in the order in which they were made; with what is recorded of each, also of those that expired and that no update has ended. Nil for an export, as is Entry.Grant
	Entries iter.Seq2[Entry, error] // from the genesis on; it ends after an error
}

// exportHeader is the first line of an export.
type exportHeader struct {
	Format  string `json:"format"`
	Holdout string `json:"holdout"`
	Created string `json:"created"`
	Digest  string `json:"digest"`
	Limits  Meters `json:"limits"`
	Public  string `json:"public"` // the card and settings as text: the genesis entry commits to these bytes
	Entries int64  `json:"entries"`
	Spent   Meters `json:"spent"`
	Head    string `json:"head"`
	Deleted bool   `json:"deleted"`
}

// exportRecord is every other line. Bodies and canonical queries are strings, so that any JSON parser gives back the
// exact bytes that were hashed.
type exportRecord struct {
	Version   int    `json:"version"`
	Seq       int64  `json:"seq"`
	Kind      string `json:"kind"`
	Time      string `json:"time"`
	Query     string `json:"query"`
	Canonical string `json:"canonical"`
	Principal string `json:"principal"`
	Debit     Meters `json:"debit"`
	Spent     Meters `json:"spent"`
	Body      string `json:"body"`
	Head      string `json:"head"`
}

// Export writes the chain as JSON Lines: a header, then its entries. It holds released bytes and public debits and no secret.
func (c *Chain) Export(w io.Writer) error {
	buffered := bufio.NewWriterSize(w, 1<<16)
	lines := newLines(buffered)
	h := &c.Holdout
	err := lines.Encode(exportHeader{
		Format: ExportFormat, Holdout: h.ID, Created: timeText(h.Created), Digest: hex.EncodeToString(h.Digest[:]),
		Limits: h.Limits, Public: string(h.Public), Entries: c.Seq + 1, Spent: h.Spent, Head: HeadText(c.Head), Deleted: h.Deleted,
	})
	if err != nil {
		return fmt.Errorf("ledger: export: %w", err)
	}
	next := int64(0)
	for e, err := range c.Entries {
		if err != nil {
			return err
		}
		if e.Seq != next {
			return &CorruptError{Holdout: h.ID, Seq: next, Reason: "entry is missing"}
		}
		if err := lines.Encode(e.exported()); err != nil {
			return fmt.Errorf("ledger: export: %w", err)
		}
		next++
	}
	if next != c.Seq+1 {
		return &CorruptError{Holdout: h.ID, Seq: next, Reason: "entry is missing"}
	}
	if err := buffered.Flush(); err != nil {
		return fmt.Errorf("ledger: export: %w", err)
	}
	return nil
}

func newLines(w io.Writer) *json.Encoder {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false) // fewer rules for other verifiers
	return e
}

func (e *Entry) exported() exportRecord {
	return exportRecord{
		Version: e.Version, Seq: e.Seq, Kind: e.Kind, Time: timeText(e.Time), Query: e.Query, Canonical: string(e.Canonical),
		Principal: e.Principal, Debit: e.Debit, Spent: e.Spent, Body: string(e.Body), Head: HeadText(e.Head),
	}
}

// entry is the inverse of exported.
func (r *exportRecord) entry() (Entry, error) {
	at, err := parseTime(r.Time)
	if err != nil {
		return Entry{}, fmt.Errorf("time: %w", err)
	}
	head, ok := parseHead(r.Head)
	if !ok {
		return Entry{}, fmt.Errorf("head %q is not sha256: and 64 hexadecimal digits", short(r.Head))
	}
	return Entry{Version: r.Version, Seq: r.Seq, Kind: r.Kind, Time: at, Query: r.Query, Canonical: []byte(r.Canonical),
		Principal: r.Principal, Debit: r.Debit, Spent: r.Spent, Body: []byte(r.Body), Head: head}, nil
}

// checkFormat refuses what is no export, and an export of another version.
func checkFormat(format string) error {
	if format == ExportFormat {
		return nil
	}
	digits, ok := strings.CutPrefix(format, exportName)
	version, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil {
		return fmt.Errorf("format is %q, not %q", short(format), ExportFormat)
	}
	return &VersionError{What: "the export", Got: version, Known: exportVersion}
}

// holdout is what the header says of the holdout.
func (h *exportHeader) holdout() (Holdout, error) {
	out := Holdout{ID: h.Holdout, Limits: h.Limits, Public: []byte(h.Public), Spent: h.Spent, Deleted: h.Deleted}
	var err error
	if out.Created, err = parseTime(h.Created); err != nil {
		return out, fmt.Errorf("created: %w", err)
	}
	digest, ok := parseHex(h.Digest)
	if !ok {
		return out, fmt.Errorf("digest %q is not 64 hexadecimal digits", short(h.Digest))
	}
	out.Digest = digest
	if h.Entries < 1 || h.Entries == math.MaxInt64 {
		return out, fmt.Errorf("%d entries: a chain has a genesis entry", h.Entries)
	}
	return out, h.Limits.checkLimits()
}

// short keeps foreign text in messages short.
func short(s string) string {
	if len(s) > 80 {
		return s[:80] + "…"
	}
	return s
}
