package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// Answer implements ledger.Ledger.
func (l *Ledger) Answer(ctx context.Context, id, query string) (body []byte, ok bool, err error) {
	if err := l.ours(); err != nil {
		return nil, false, err
	}
	defer func() { l.distrust(err) }()
	r, err := scanChained(l.readers.QueryRowContext(ctx, chained+"AND h.id = ? AND e.query = ?", id, query))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, wrapRead(err)
	}
	return r.Body, true, nil
}

// Answers implements ledger.Ledger.
func (l *Ledger) Answers(ctx context.Context, id, principal string, after int64, limit int) (entries []ledger.Entry, err error) {
	if err := l.ours(); err != nil {
		return nil, err
	}
	defer func() { l.distrust(err) }()
	number, last, err := l.end(ctx, id)
	if err != nil {
		return nil, err
	}
	text, args := chained+"AND e.holdout = ? AND e.seq > ? AND e.seq <= ? ", []any{number, after, last}
	if principal != "" {
		text, args = text+"AND e.principal = ? ", append(args, principal)
	}
	entries, err = readAll(ctx, l.readers, scanChained, text+"ORDER BY e.seq LIMIT ?", append(args, page(limit))...)
	if err != nil || len(entries) == 0 {
		return entries, err
	}
	return entries, l.addNotes(ctx, number, entries)
}

// Closing implements ledger.Ledger.
func (l *Ledger) Closing(ctx context.Context, id string) (e ledger.Entry, ok bool, err error) {
	return l.only(ctx, id, ledger.KindClosed)
}

// Retirement implements ledger.Ledger.
func (l *Ledger) Retirement(ctx context.Context, id string) (e ledger.Entry, ok bool, err error) {
	return l.only(ctx, id, ledger.KindRetired)
}

// only is the entry of a kind of which a chain has one at most.
func (l *Ledger) only(ctx context.Context, id, kind string) (e ledger.Entry, ok bool, err error) {
	if err := l.ours(); err != nil {
		return e, false, err
	}
	defer func() { l.distrust(err) }()
	number, last, err := l.end(ctx, id)
	if err != nil {
		return e, false, err
	}
	e, err = scanChained(l.readers.QueryRowContext(ctx, chainedEntries+"WHERE e.kind = '"+kind+"' AND e.holdout = ? AND e.seq <= ?", number, last)) // the kind in the text, so that its index serves
	if errors.Is(err, sql.ErrNoRows) {
		return e, false, nil
	}
	return e, err == nil, wrapRead(err)
}

// Releases implements ledger.Ledger.
func (l *Ledger) Releases(ctx context.Context, id string, after int64, limit int) ([]ledger.Entry, error) {
	return l.releases(ctx, id, "AND e.seq > ? ORDER BY e.seq LIMIT ?", after, limit)
}

// ReleaseOf implements ledger.Ledger.
func (l *Ledger) ReleaseOf(ctx context.Context, id, query string) (e ledger.Entry, ok bool, err error) {
	found, err := l.releases(ctx, id, "AND e.query = ?", query)
	if err != nil || len(found) == 0 {
		return e, false, err
	}
	return found[0], true, nil
}

func (l *Ledger) releases(ctx context.Context, id, which string, args ...any) (releases []ledger.Entry, err error) {
	if err := l.ours(); err != nil {
		return nil, err
	}
	defer func() { l.distrust(err) }()
	number, last, err := l.end(ctx, id)
	if err != nil {
		return nil, err
	}
	return readAll(ctx, l.readers, scanChained, chainedEntries+"WHERE e.kind = 'release' AND e.holdout = ? AND e.seq <= ? "+which, append([]any{number, last}, args...)...)
}

// addNotes gives entries, which are in order, the notes that they have. A ledger of the schema before notes, where it can only be read, has none.
func (l *Ledger) addNotes(ctx context.Context, number int64, entries []ledger.Entry) error {
	var kept bool
	if err := l.readers.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'notes'").Scan(&kept); err != nil || !kept {
		return wrapRead(err)
	}
	type note struct {
		seq  int64
		text string
	}
	scan := func(row scanner) (n note, err error) { return n, row.Scan(&n.seq, &n.text) }
	notes, err := readAll(ctx, l.readers, scan, "SELECT seq, note FROM notes WHERE holdout = ? AND seq >= ? AND seq <= ?",
		number, entries[0].Seq, entries[len(entries)-1].Seq)
	for _, n := range notes {
		i, found := slices.BinarySearchFunc(entries, n.seq, func(e ledger.Entry, seq int64) int { return cmp.Compare(e.Seq, seq) })
		if found {
			entries[i].Note = n.text
		}
	}
	return err
}

// end is where a holdout's chain ends, and the number of its row.
func (l *Ledger) end(ctx context.Context, id string) (number, seq int64, err error) {
	err = l.readers.QueryRowContext(ctx, "SELECT number, seq FROM holdouts JOIN books ON holdout = number WHERE id = ?", id).Scan(&number, &seq)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, 0, fmt.Errorf("%w: holdout %q", ledger.ErrNotFound, id)
	}
	return number, seq, wrapRead(err)
}

func page(limit int) int {
	if limit <= 0 || limit > ledger.MaxAnswers {
		return ledger.MaxAnswers
	}
	return limit
}

// Idempotency implements ledger.Ledger.
func (l *Ledger) Idempotency(ctx context.Context, principal, key string) (i ledger.Idempotency, ok bool, err error) {
	if err := l.ours(); err != nil {
		return i, false, err
	}
	defer func() { l.distrust(err) }()
	var kept bool // a ledger of the schema before outcomes, where it can only be read, has none
	if err := l.readers.QueryRowContext(ctx, "SELECT count(*) FROM pragma_table_info('idempotency') WHERE name = 'outcome'").Scan(&kept); err != nil {
		return i, false, wrapRead(err)
	}
	outcome := "outcome"
	if !kept {
		outcome = "''"
	}
	row := l.readers.QueryRowContext(ctx, "SELECT request, resource, "+outcome+" FROM idempotency WHERE principal = ? AND key = ?", principal, key)
	i, ok, err = scanIdempotency(row, idemKey{principal, key})
	return i, ok, wrapRead(err)
}

// entryColumns are what scanEntry scans.
const entryColumns = "version, seq, kind, time, query, canonical, principal, debit, spent, body, head"

// scanEntry reads an entry, and what else was selected after it. Meters that are not in their one spelling are a *CorruptError.
func scanEntry(row scanner, more ...any) (e ledger.Entry, err error) {
	var at int64
	var head []byte
	var debit, spent string
	if err := row.Scan(append([]any{&e.Version, &e.Seq, &e.Kind, &at, &e.Query, &e.Canonical, &e.Principal, &debit, &spent, &e.Body, &head}, more...)...); err != nil {
		return e, err
	}
	e.Time = time.Unix(0, at).UTC()
	if len(head) != len(e.Head) {
		return e, &ledger.CorruptError{Seq: e.Seq, Reason: "head is not 32 bytes"}
	}
	e.Head = [32]byte(head)
	var errDebit, errSpent error
	e.Debit, errDebit = ledger.ParseMeters(debit)
	e.Spent, errSpent = ledger.ParseMeters(spent)
	if err := errors.Join(errDebit, errSpent); err != nil {
		return e, &ledger.CorruptError{Seq: e.Seq, Reason: "debit or spent", Err: err}
	}
	return e, nil
}

// readEntries reads chain entries after < seq <= last, in order.
func readEntries(ctx context.Context, db querier, number, after, last int64, limit int) ([]ledger.Entry, error) {
	scan := func(r scanner) (ledger.Entry, error) { return scanEntry(r) }
	return readAll(ctx, db, scan, "SELECT "+entryColumns+" FROM entries WHERE holdout = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?",
		number, after, last, limit)
}

type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// scanner is a row of what a query found.
type scanner interface{ Scan(into ...any) error }

// readAll is every row of an answer.
func readAll[T any](ctx context.Context, db querier, scan func(scanner) (T, error), query string, args ...any) (all []T, err error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, wrapRead(err)
	}
	defer rows.Close()
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, wrapRead(err)
		}
		all = append(all, v)
	}
	return all, wrapRead(rows.Err())
}
