package ledger

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"time"
)

// ExportFormat names the format of an export and its version.
const ExportFormat = "holdoutd-ledger/1"

// exportPage is how many entries are read at a time: a slow receiver must not hold a read transaction open, for that
// would keep the write-ahead log from being emptied.
const exportPage = 64

// exportHeader is the first line of an export.
type exportHeader struct {
	Format  string `json:"format"`
	Holdout string `json:"holdout"`
	Created string `json:"created"`
	Digest  string `json:"digest"`
	Limits  Amount `json:"limits"`
	Public  string `json:"public"` // the card and settings as text: the genesis entry commits to these bytes
	Entries int64  `json:"entries"`
	Spent   Amount `json:"spent"`
	Head    string `json:"head"`
	Deleted bool   `json:"deleted"`
}

// exportRecord is every other line. Bodies and canonical queries are strings, so that any JSON parser gives back the
// exact bytes that were hashed.
type exportRecord struct {
	Seq       int64  `json:"seq"`
	Kind      string `json:"kind"`
	Time      string `json:"time"`
	Query     string `json:"query"`
	Canonical string `json:"canonical"`
	Principal string `json:"principal"`
	Questions int64  `json:"questions"`
	Tokens    int64  `json:"tokens"`
	Spent     Amount `json:"spent"`
	Body      string `json:"body"`
	Head      string `json:"head"`
}

// Export writes a holdout's ledger as JSON Lines: a header, then its chain. It holds released bytes and public debits
// and no secret. It is consistent although others go on writing: entries never change, and it ends where the books
// stood when it began.
func (l *Ledger) Export(ctx context.Context, id string, w io.Writer) error {
	row, f, err := l.exported(ctx, id)
	if err != nil {
		return err
	}
	buffered := bufio.NewWriterSize(w, 1<<16)
	lines := newLines(buffered)
	err = lines.Encode(exportHeader{
		Format: ExportFormat, Holdout: f.ID, Created: timeText(f.Created), Digest: hex.EncodeToString(f.Digest[:]),
		Limits: f.Limits, Public: string(f.Public), Entries: row.seq + 1, Spent: row.spent, Head: headText(row.head), Deleted: row.deleted,
	})
	for next := int64(0); err == nil && next <= row.seq; {
		var records []record
		if records, err = readRecords(ctx, l.readers, row.number, next-1, row.seq, exportPage, ""); err != nil {
			return err
		}
		if len(records) == 0 {
			return &CorruptError{Holdout: id, Seq: next, Reason: "entry is missing"}
		}
		for i := range records {
			if err = lines.Encode(records[i].exported()); err != nil {
				break
			}
		}
		next = records[len(records)-1].Seq + 1
	}
	if err == nil {
		err = buffered.Flush()
	}
	if err != nil {
		return fmt.Errorf("ledger: export: %w", err)
	}
	return nil
}

// exported reads the books and the public facts in one statement, so that they agree.
func (l *Ledger) exported(ctx context.Context, id string) (books, facts, error) {
	if _, err := l.balance(ctx, id); err != nil {
		return books{}, facts{}, err // ErrNotFound, above all
	}
	all, err := readRows(ctx, l.readers, "WHERE id = ?", id)
	if err != nil {
		return books{}, facts{}, err
	}
	return all[0].books, all[0].facts, nil
}

// row is a holdout's row without what is sealed.
type row struct {
	books
	facts
}

func readRows(ctx context.Context, db querier, which string, args ...any) ([]row, error) {
	rows, err := db.QueryContext(ctx, `SELECT number, id, created, digest, public, questions, tokens, spent_questions, spent_tokens,
		seq, head, deleted FROM holdouts JOIN books ON holdout = number `+which, args...)
	if err != nil {
		return nil, wrapRead(err)
	}
	defer rows.Close()
	var all []row
	for rows.Next() {
		var r row
		var created int64
		var digest, head []byte
		if err := rows.Scan(&r.number, &r.books.id, &created, &digest, &r.Public, &r.limits.Questions, &r.limits.Tokens,
			&r.spent.Questions, &r.spent.Tokens, &r.seq, &head, &r.deleted); err != nil {
			return nil, wrapRead(err)
		}
		if len(digest) != len(r.Digest) || len(head) != len(r.head) {
			return nil, &CorruptError{Holdout: r.books.id, Seq: -1, Reason: "digest or head is not 32 bytes"}
		}
		copy(r.Digest[:], digest)
		copy(r.head[:], head)
		r.ID, r.Created, r.Limits = r.books.id, time.Unix(0, created).UTC(), r.limits
		all = append(all, r)
	}
	return all, wrapRead(rows.Err())
}

func newLines(w io.Writer) *json.Encoder {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false) // fewer rules for other verifiers
	return e
}

func (r *record) exported() exportRecord {
	return exportRecord{
		Seq: r.Seq, Kind: r.Kind, Time: timeText(r.Time), Query: r.Query, Canonical: string(r.Canonical), Principal: r.Principal,
		Questions: r.Questions, Tokens: r.Tokens, Spent: r.Spent, Body: string(r.Body), Head: headText(r.Head),
	}
}

// record is the inverse of exported.
func (e *exportRecord) record() (record, error) {
	at, err := parseTime(e.Time)
	if err != nil {
		return record{}, fmt.Errorf("time: %w", err)
	}
	head, ok := parseHead(e.Head)
	if !ok {
		return record{}, fmt.Errorf("head %q is not sha256: and 64 hexadecimal digits", short(e.Head))
	}
	return record{
		Entry: Entry{Seq: e.Seq, Kind: e.Kind, Time: at, Query: e.Query, Canonical: []byte(e.Canonical), Principal: e.Principal,
			Questions: e.Questions, Tokens: e.Tokens, Body: []byte(e.Body)},
		Spent: e.Spent, Head: head,
	}, nil
}

// facts is what the header says of the holdout.
func (h *exportHeader) facts() (facts, error) {
	f := facts{ID: h.Holdout, Limits: h.Limits, Public: []byte(h.Public)}
	if h.Format != ExportFormat {
		return f, fmt.Errorf("format is %q, not %q", short(h.Format), ExportFormat)
	}
	var err error
	if f.Created, err = parseTime(h.Created); err != nil {
		return f, fmt.Errorf("created: %w", err)
	}
	var ok bool
	if f.Digest, ok = parseHex(h.Digest); !ok {
		return f, fmt.Errorf("digest %q is not 64 hexadecimal digits", short(h.Digest))
	}
	if h.Entries < 1 || h.Entries == math.MaxInt64 {
		return f, fmt.Errorf("%d entries: a chain has a genesis entry", h.Entries)
	}
	return f, nil
}

// short keeps foreign text in messages short.
func short(s string) string {
	if len(s) > 80 {
		return s[:80] + "…"
	}
	return s
}
