package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// MaxAnswers is how many entries Answers returns at most; ask again after the last one.
const MaxAnswers = 1000

// Answer returns the recorded answer to a query: the bytes that were sent when it was asked first. An entry that is not what
// the chain says is ErrCorrupt.
func (l *Ledger) Answer(ctx context.Context, id, query string) (body []byte, ok bool, err error) {
	r, err := scanChained(l.readers.look(ctx, chained+"AND h.id = ? AND e.query = ?", id, query))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, wrapRead(err)
	}
	return r.Body, true, nil
}

// Answers returns the answers with a seq above after, in order, at most limit (MaxAnswers if it is 0 or more than that).
// With a principal, only those that it asked first. An unknown holdout is ErrNotFound, and an entry that is not what the
// chain says is ErrCorrupt.
func (l *Ledger) Answers(ctx context.Context, id, principal string, after int64, limit int) ([]Entry, error) {
	row, err := l.balance(ctx, id)
	if err != nil {
		return nil, err
	}
	text, args := chained+"AND e.holdout = ? AND e.seq > ? AND e.seq <= ? ", []any{row.number, after, row.seq}
	if principal != "" {
		text, args = text+"AND e.principal = ? ", append(args, principal)
	}
	rows, err := l.readers.QueryContext(ctx, text+"ORDER BY e.seq LIMIT ?", append(args, page(limit))...)
	if err != nil {
		return nil, wrapRead(err)
	}
	defer rows.Close()
	var entries []Entry
	for rows.Next() {
		r, err := scanChained(rows)
		if err != nil {
			return nil, wrapRead(err)
		}
		entries = append(entries, r.Entry)
	}
	return entries, wrapRead(rows.Err())
}

func page(limit int) int {
	if limit <= 0 || limit > MaxAnswers {
		return MaxAnswers
	}
	return limit
}

// Balance returns what a holdout has spent, or ErrNotFound.
func (l *Ledger) Balance(ctx context.Context, id string) (questions, tokens int64, err error) {
	row, err := l.balance(ctx, id)
	return row.spent.Questions, row.spent.Tokens, err
}

// balance is what a reader may know of a holdout's books.
func (l *Ledger) balance(ctx context.Context, id string) (b books, err error) {
	var head []byte
	err = l.readers.look(ctx, `SELECT number, id, questions, tokens, spent_questions, spent_tokens, seq, head, deleted
		FROM holdouts JOIN books ON holdout = number WHERE id = ?`, id).Scan(&b.number, &b.id, &b.limits.Questions, &b.limits.Tokens,
		&b.spent.Questions, &b.spent.Tokens, &b.seq, &head, &b.deleted)
	if errors.Is(err, sql.ErrNoRows) {
		return books{}, fmt.Errorf("%w: holdout %q", ErrNotFound, id)
	}
	copy(b.head[:], head)
	return b, wrapRead(err)
}

// Idempotency returns what an idempotency key was used for.
func (l *Ledger) Idempotency(ctx context.Context, principal, key string) (Idempotency, bool, error) {
	row := l.readers.look(ctx, "SELECT request, resource FROM idempotency WHERE principal = ? AND key = ?", principal, key)
	i, ok, err := scanIdempotency(row, idemKey{principal, key})
	return i, ok, wrapRead(err)
}

type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// readRecords reads chain entries after < seq <= last, in order.
func readRecords(ctx context.Context, db querier, number, after, last int64, limit int, where string, args ...any) ([]record, error) {
	rows, err := db.QueryContext(ctx, `SELECT seq, kind, time, query, canonical, principal, questions, tokens,
		spent_questions, spent_tokens, body, head FROM entries WHERE holdout = ? AND seq > ? AND seq <= ? `+where+
		` ORDER BY seq LIMIT ?`, append(append([]any{number, after, last}, args...), limit)...)
	if err != nil {
		return nil, wrapRead(err)
	}
	defer rows.Close()
	var records []record
	for rows.Next() {
		var r record
		var at int64
		var head []byte
		if err := rows.Scan(&r.Seq, &r.Kind, &at, &r.Query, &r.Canonical, &r.Principal, &r.Questions, &r.Tokens,
			&r.Spent.Questions, &r.Spent.Tokens, &r.Body, &head); err != nil {
			return nil, wrapRead(err)
		}
		r.Time = time.Unix(0, at).UTC()
		if len(head) != len(r.Head) {
			return nil, &CorruptError{Seq: r.Seq, Reason: "head is not 32 bytes"}
		}
		copy(r.Head[:], head)
		records = append(records, r)
	}
	return records, wrapRead(rows.Err())
}
