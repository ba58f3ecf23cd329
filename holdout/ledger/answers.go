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

// Answer returns the recorded answer to a query: the bytes that were sent when it was asked first.
func (l *Ledger) Answer(ctx context.Context, id, query string) (body []byte, ok bool, err error) {
	err = l.readers.look(ctx, `SELECT e.body FROM entries e JOIN holdouts h ON h.number = e.holdout
		WHERE h.id = ? AND e.query = ? AND e.kind = 'answer'`, id, query).Scan(&body)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, false, nil
	}
	return body, err == nil, wrapRead(err)
}

// Answers returns the answers with a seq above after, in order, at most limit (MaxAnswers if it is 0 or more than that).
// With a principal, only those that it asked first. An unknown holdout is ErrNotFound.
func (l *Ledger) Answers(ctx context.Context, id, principal string, after int64, limit int) ([]Entry, error) {
	row, err := l.balance(ctx, id)
	if err != nil {
		return nil, err
	}
	where, args := "AND kind = 'answer'", []any{}
	if principal != "" {
		where, args = where+" AND principal = ?", append(args, principal)
	}
	records, err := readRecords(ctx, l.readers, row.number, after, row.seq, page(limit), where, args...)
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, len(records))
	for i := range records {
		entries[i] = records[i].Entry
	}
	return entries, nil
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
