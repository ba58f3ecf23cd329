package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// Answer implements ledger.Ledger.
func (l *Ledger) Answer(ctx context.Context, id, query string) (body []byte, ok bool, err error) {
	e, err := scanChained(l.readers.QueryRow(ctx, chained+"AND e.holdout = (SELECT number FROM holdouts WHERE id = $1) AND e.query = $2", id, query))
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, wrapRead(err)
	}
	return e.Body, true, nil
}

// Answers implements ledger.Ledger.
func (l *Ledger) Answers(ctx context.Context, id, principal string, after int64, limit int) ([]ledger.Entry, error) {
	number, last, err := l.end(ctx, id)
	if err != nil {
		return nil, err
	}
	text, args := chained+"AND e.holdout = $1 AND e.seq > $2 AND e.seq <= $3 ", []any{number, after, last}
	if principal != "" {
		text, args = text+"AND e.principal = $4 ", append(args, principal)
	}
	if limit <= 0 || limit > ledger.MaxAnswers {
		limit = ledger.MaxAnswers
	}
	entries, err := readAll(ctx, l.readers, scanChained, fmt.Sprintf("%sORDER BY e.seq LIMIT %d", text, limit), args...)
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
	number, last, err := l.end(ctx, id)
	if err != nil {
		return e, false, err
	}
	e, err = scanChained(l.readers.QueryRow(ctx, chainedEntries+"WHERE e.kind = '"+kind+"' AND e.holdout = $1 AND e.seq <= $2", number, last)) // the kind in the text, so that its index serves
	if errors.Is(err, pgx.ErrNoRows) {
		return e, false, nil
	}
	return e, err == nil, wrapRead(err)
}

// Releases implements ledger.Ledger.
func (l *Ledger) Releases(ctx context.Context, id string, after int64, limit int) ([]ledger.Entry, error) {
	return l.releases(ctx, id, "AND e.seq > $3 ORDER BY e.seq LIMIT $4", after, limit)
}

// ReleaseOf implements ledger.Ledger.
func (l *Ledger) ReleaseOf(ctx context.Context, id, query string) (e ledger.Entry, ok bool, err error) {
	found, err := l.releases(ctx, id, "AND e.query = $3", query)
	if err != nil || len(found) == 0 {
		return e, false, err
	}
	return found[0], true, nil
}

func (l *Ledger) releases(ctx context.Context, id, which string, args ...any) ([]ledger.Entry, error) {
	number, last, err := l.end(ctx, id)
	if err != nil {
		return nil, err
	}
	return readAll(ctx, l.readers, scanChained, chainedEntries+"WHERE e.kind = 'release' AND e.holdout = $1 AND e.seq <= $2 "+which, append([]any{number, last}, args...)...)
}

// addNotes gives entries, which are in order, the notes that they have.
func (l *Ledger) addNotes(ctx context.Context, number int64, entries []ledger.Entry) error {
	type note struct {
		seq  int64
		text []byte
	}
	scan := func(row pgx.Row) (n note, err error) { return n, row.Scan(&n.seq, &n.text) }
	notes, err := readAll(ctx, l.readers, scan, "SELECT seq, note FROM notes WHERE holdout = $1 AND seq >= $2 AND seq <= $3", number, entries[0].Seq, entries[len(entries)-1].Seq)
	for _, n := range notes {
		i, found := slices.BinarySearchFunc(entries, n.seq, func(e ledger.Entry, seq int64) int { return cmp.Compare(e.Seq, seq) })
		if found {
			entries[i].Note = string(n.text)
		}
	}
	return err
}

// end is where a holdout's chain ends, and the number of its row.
func (l *Ledger) end(ctx context.Context, id string) (number, seq int64, err error) {
	err = l.readers.QueryRow(ctx, "SELECT number, seq FROM holdouts JOIN books ON holdout = number WHERE id = $1", id).Scan(&number, &seq)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, 0, fmt.Errorf("%w: holdout %q", ledger.ErrNotFound, id)
	}
	return number, seq, wrapRead(err)
}

// Idempotency implements ledger.Ledger.
func (l *Ledger) Idempotency(ctx context.Context, principal, key string) (ledger.Idempotency, bool, error) {
	i, ok, err := scanIdempotency(l.readers.QueryRow(ctx, keyUse, principal, []byte(key)), principal, key)
	return i, ok, wrapRead(err)
}

// entryColumns are what scanEntry scans.
const entryColumns = "version, seq, kind, time, query, canonical, principal, debit, spent, body, head"

// scanEntry reads an entry, and what else was selected after it. Meters that are not in their one spelling are a *CorruptError.
func scanEntry(row pgx.Row, more ...any) (e ledger.Entry, err error) {
	var version, at int64
	var head []byte
	var debit, spent string
	if err := row.Scan(append([]any{&version, &e.Seq, &e.Kind, &at, &e.Query, &e.Canonical, &e.Principal, &debit, &spent, &e.Body, &head}, more...)...); err != nil {
		return e, err
	}
	e.Version, e.Time = int(version), time.Unix(0, at).UTC()
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

// chained selects answers, and chainedEntries entries of any kind, with the head of the entry before each: no join, of which a plan for an empty table would read all entries of the holdout.
const (
	chained        = chainedEntries + "WHERE e.kind = 'answer' "
	chainedEntries = `SELECT e.version, e.seq, e.kind, e.time, e.query, e.canonical, e.principal, e.debit, e.spent, e.body, e.head,
	(SELECT p.head FROM entries p WHERE p.holdout = e.holdout AND p.seq = e.seq - 1), h.id FROM entries e JOIN holdouts h ON h.number = e.holdout `
)

// scanChained reads what chained selects and recomputes the entry's head: what is replayed is what was recorded.
func scanChained(row pgx.Row) (e ledger.Entry, err error) {
	var id string
	var prev []byte
	e, err = scanEntry(row, &prev, &id)
	if err == nil {
		if len(prev) != len(e.Head) {
			return e, &ledger.CorruptError{Holdout: id, Seq: e.Seq, Reason: "the head of the entry before is missing"}
		}
		err = e.CheckHead([32]byte(prev))
	}
	var corrupt *ledger.CorruptError
	if errors.As(err, &corrupt) {
		corrupt.Holdout = id
	}
	return e, err
}

// HeadAt implements ledger.Ledger.
func (l *Ledger) HeadAt(ctx context.Context, id string, seq int64) (head string, ok bool, err error) {
	var raw []byte
	err = l.readers.QueryRow(ctx, "SELECT e.head FROM entries e JOIN holdouts h ON h.number = e.holdout WHERE h.id = $1 AND e.seq = $2", id, seq).Scan(&raw)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", false, nil
	}
	if err != nil || len(raw) != 32 {
		return "", false, wrapRead(err)
	}
	return ledger.HeadText([32]byte(raw)), true, nil
}

// querier is a pool or a transaction.
type querier interface {
	rower
	Query(ctx context.Context, text string, args ...any) (pgx.Rows, error)
}

// readAll is every row of an answer.
func readAll[T any](ctx context.Context, db querier, scan func(pgx.Row) (T, error), text string, args ...any) (all []T, err error) {
	rows, err := db.Query(ctx, text, args...)
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
