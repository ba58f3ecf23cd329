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
	e, ok, err := readOne(ctx, l.readers, scanChained, chained+"AND h.id = $1 AND e.query = $2", []byte(id), []byte(query))
	return e.Body, ok, err
}

// Answers implements ledger.Ledger.
func (l *Ledger) Answers(ctx context.Context, id, principal string, after int64, limit int) ([]ledger.Entry, error) {
	number, last, err := l.end(ctx, id)
	if err != nil {
		return nil, err
	}
	text, args := chained+"AND e.holdout = $1 AND e.seq > $2 AND e.seq <= $3 ", []any{number, after, last}
	if principal != "" {
		text, args = text+"AND e.principal = $4 ", append(args, []byte(principal))
	}
	entries, err := readAll(ctx, l.readers, scanChained, fmt.Sprintf("%sORDER BY e.seq LIMIT %d", text, page(limit)), args...)
	if err != nil || len(entries) == 0 {
		return entries, err
	}
	return entries, errors.Join(l.addNotes(ctx, number, entries), addPayers(ctx, l.readers, number, entries))
}

// addNotes gives entries, which are in order, the notes that they have.
func (l *Ledger) addNotes(ctx context.Context, number int64, entries []ledger.Entry) error {
	type note struct {
		seq  int64
		text []byte
	}
	scan := func(row pgx.Row) (n note, err error) { return n, row.Scan(&n.seq, &n.text) }
	notes, err := readAll(ctx, l.readers, scan, "SELECT seq, note FROM holdoutd.notes WHERE holdout = $1 AND seq >= $2 AND seq <= $3",
		number, entries[0].Seq, entries[len(entries)-1].Seq)
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
	type end struct{ number, seq int64 }
	e, ok, err := readOne(ctx, l.readers, func(row pgx.Row) (e end, err error) { return e, row.Scan(&e.number, &e.seq) },
		"SELECT h.number, b.seq FROM holdoutd.holdouts h JOIN holdoutd.books b ON b.holdout = h.number WHERE h.id = $1", []byte(id))
	if err == nil && !ok {
		err = fmt.Errorf("%w: holdout %q", ledger.ErrNotFound, id)
	}
	return e.number, e.seq, err
}

func page(limit int) int {
	if limit <= 0 || limit > ledger.MaxAnswers {
		return ledger.MaxAnswers
	}
	return limit
}

// Idempotency implements ledger.Ledger.
func (l *Ledger) Idempotency(ctx context.Context, principal, key string) (ledger.Idempotency, bool, error) {
	i, ok, err := findIdempotency(ctx, l.readers, principal, key)
	return i, ok, wrapRead(err)
}

func findIdempotency(ctx context.Context, db rower, principal, key string) (ledger.Idempotency, bool, error) {
	i := ledger.Idempotency{Principal: principal, Key: key}
	var request, resource []byte
	err := db.QueryRow(ctx, "SELECT request, resource FROM holdoutd.idempotency WHERE principal = $1 AND key = $2", []byte(principal), []byte(key)).Scan(&request, &resource)
	if errors.Is(err, pgx.ErrNoRows) {
		return ledger.Idempotency{}, false, nil
	}
	if err != nil {
		return ledger.Idempotency{}, false, err
	}
	copy(i.Request[:], request) // 32 bytes by the table's CHECK
	i.Resource = string(resource)
	return i, true, nil
}

// entryColumns are what scanEntry scans.
const entryColumns = "e.version, e.seq, e.kind, e.time, e.query, e.canonical, e.principal, e.debit, e.spent, e.body, e.head"

// scanEntry reads an entry, and what else was selected after it. Meters that are not in their one spelling are a *CorruptError.
func scanEntry(row pgx.Row, more ...any) (e ledger.Entry, err error) {
	var at int64
	var query, principal, head []byte
	var debit, spent string
	if err := row.Scan(append([]any{&e.Version, &e.Seq, &e.Kind, &at, &query, &e.Canonical, &principal, &debit, &spent, &e.Body, &head}, more...)...); err != nil {
		return e, err
	}
	e.Time, e.Query, e.Principal = time.Unix(0, at).UTC(), string(query), string(principal)
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
func readEntries(ctx context.Context, db rower, number, after, last int64, limit int) ([]ledger.Entry, error) {
	scan := func(row pgx.Row) (ledger.Entry, error) { return scanEntry(row) }
	return readAll(ctx, db, scan, "SELECT "+entryColumns+" FROM holdoutd.entries e WHERE e.holdout = $1 AND e.seq > $2 AND e.seq <= $3 ORDER BY e.seq LIMIT $4",
		number, after, last, limit)
}

// chained selects answers with the head of the entry before each.
const chained = "SELECT " + entryColumns + `, p.head, h.id
	FROM holdoutd.entries e JOIN holdoutd.holdouts h ON h.number = e.holdout LEFT JOIN holdoutd.entries p ON p.holdout = e.holdout AND p.seq = e.seq - 1
	WHERE e.kind = 'answer' `

// scanChained reads what chained selects and recomputes the entry's head: what is replayed is what was recorded.
func scanChained(row pgx.Row) (e ledger.Entry, err error) {
	var id, prev []byte
	e, err = scanEntry(row, &prev, &id)
	if err == nil {
		if len(prev) != len(e.Head) {
			return e, &ledger.CorruptError{Holdout: string(id), Seq: e.Seq, Reason: "the head of the entry before is missing"}
		}
		err = e.CheckHead([32]byte(prev))
	}
	var corrupt *ledger.CorruptError
	if errors.As(err, &corrupt) {
		corrupt.Holdout = string(id)
	}
	return e, err
}

// HeadAt implements ledger.Ledger.
func (l *Ledger) HeadAt(ctx context.Context, id string, seq int64) (head string, ok bool, err error) {
	raw, ok, err := readOne(ctx, l.readers, func(row pgx.Row) (raw []byte, err error) { return raw, row.Scan(&raw) },
		"SELECT e.head FROM holdoutd.entries e JOIN holdoutd.holdouts h ON h.number = e.holdout WHERE h.id = $1 AND e.seq = $2", []byte(id), seq)
	if err != nil || !ok || len(raw) != 32 {
		return "", false, err
	}
	return ledger.HeadText([32]byte(raw)), true, nil
}

// readTries is how often a read is tried whose connection turns out to be dead: the server was started again, or another one took over.
const readTries = 3

// readOne reads a row, or none.
func readOne[T any](ctx context.Context, db rower, scan func(pgx.Row) (T, error), query string, args ...any) (v T, ok bool, err error) {
	all, err := readAll(ctx, db, scan, query, args...)
	if err != nil || len(all) == 0 {
		return v, false, err
	}
	return all[0], true, nil
}

// readAll is every row of an answer.
func readAll[T any](ctx context.Context, db rower, scan func(pgx.Row) (T, error), query string, args ...any) (all []T, err error) {
	for range readTries {
		all, err = pgxRows(ctx, db, scan, query, args...)
		err = wrapRead(err)
		if _, single := db.(pgx.Tx); single || ctx.Err() != nil || !errors.Is(err, ledger.ErrUnavailable) {
			break
		}
	}
	return all, err
}

func pgxRows[T any](ctx context.Context, db rower, scan func(pgx.Row) (T, error), query string, args ...any) ([]T, error) {
	rows, err := db.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []T
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, rows.Err()
}
