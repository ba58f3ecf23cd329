package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// statements are the writer's prepared ones, on its one connection.
type statements struct {
	answer, void, idempotency, books, entry, debit, insertIdem *sql.Stmt
}

func (s *statements) prepare(ctx context.Context, db *sql.DB) error {
	for _, p := range []struct {
		stmt **sql.Stmt
		text string
	}{
		{&s.answer, "SELECT body FROM entries WHERE holdout = ? AND query = ? AND kind = 'answer'"},
		{&s.void, "SELECT 1 FROM entries WHERE holdout = ? AND query = ? AND kind = 'void' AND time = ?"},
		{&s.idempotency, "SELECT request, resource FROM idempotency WHERE principal = ? AND key = ?"},
		{&s.books, `SELECT number, questions, tokens, spent_questions, spent_tokens, seq, head, state, deleted
			FROM holdouts JOIN books ON holdout = number WHERE id = ?`},
		{&s.entry, `INSERT INTO entries (holdout, seq, kind, time, query, canonical, principal, questions, tokens,
			spent_questions, spent_tokens, body, head) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`},
		{&s.debit, `UPDATE books SET state = ?, spent_questions = ?, spent_tokens = ?, seq = ?, head = ?
			WHERE holdout = ? AND seq = ? AND deleted = 0`},
		{&s.insertIdem, "INSERT INTO idempotency (principal, key, request, resource, created) VALUES (?, ?, ?, ?, ?)"},
	} {
		stmt, err := db.PrepareContext(ctx, p.text)
		if err != nil {
			s.close()
			return fmt.Errorf("ledger: prepare: %w", err)
		}
		*p.stmt = stmt
	}
	return nil
}

func (s *statements) close() {
	for _, stmt := range []*sql.Stmt{s.answer, s.void, s.idempotency, s.books, s.entry, s.debit, s.insertIdem} {
		if stmt != nil {
			stmt.Close() // its connection is closed next
		}
	}
	*s = statements{}
}

func (s *statements) insertEntry(tx *sql.Tx, holdout int64, r *record) error {
	_, err := tx.Stmt(s.entry).Exec(holdout, r.Seq, r.Kind, r.Time.UnixNano(), r.Query, string(r.Canonical), r.Principal,
		r.Questions, r.Tokens, r.Spent.Questions, r.Spent.Tokens, string(r.Body), r.Head[:])
	return err
}

// readBooks reads a holdout's books from the disk.
func (l *Ledger) readBooks(id string) (*books, error) {
	if damage := l.damaged[id]; damage != nil {
		return nil, damage
	}
	b := &books{id: id}
	var head, state []byte
	err := l.writer.stmt.books.QueryRow(id).Scan(&b.number, &b.limits.Questions, &b.limits.Tokens,
		&b.spent.Questions, &b.spent.Tokens, &b.seq, &head, &state, &b.deleted)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("%w: holdout %q", ErrNotFound, id)
	}
	if err != nil {
		return nil, err
	}
	if copy(b.head[:], head) != len(head) || len(head) != len(b.head) {
		return nil, &CorruptError{Holdout: id, Seq: b.seq, Reason: "head is not 32 bytes"}
	}
	if b.state, err = l.sealer.open(state, purposeState(id, b.seq)); err != nil {
		return nil, &CorruptError{Holdout: id, Seq: b.seq, Reason: "mechanism state", Err: err}
	}
	return b, nil
}

// idempotencyLife is how long an idempotency key is remembered. Forgetting one is harmless: a question asked again is
// replayed by its id, and a table uploaded again is refused by its digest.
const (
	idempotencyLife = 7 * 24 * time.Hour
	pruneEvery      = time.Hour
)

func prune(ctx context.Context, tx *sql.Tx, now time.Time) error {
	_, err := tx.ExecContext(ctx, "DELETE FROM idempotency WHERE created < ?", now.Add(-idempotencyLife).UnixNano())
	return err
}

func (i *Idempotency) check() error {
	return errors.Join(checkText("principal", i.Principal, true), checkText("idempotency key", i.Key, false),
		checkText("resource", i.Resource, true))
}

func scanIdempotency(row *sql.Row, key idemKey) (Idempotency, bool, error) {
	i := Idempotency{Principal: key.principal, Key: key.key}
	var request []byte
	err := row.Scan(&request, &i.Resource)
	if errors.Is(err, sql.ErrNoRows) {
		return Idempotency{}, false, nil
	}
	if err != nil {
		return Idempotency{}, false, err
	}
	copy(i.Request[:], request) // 32 bytes by the table's CHECK
	return i, true, nil
}
