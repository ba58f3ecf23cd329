package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// statements are the writer's prepared ones, on its one connection.
type statements struct {
	answer, void, release, released, idempotency, books, entry, note, move, debit, insertIdem *sql.Stmt
}

func (s *statements) prepare(ctx context.Context, db *sql.DB) error {
	for _, p := range []struct {
		stmt **sql.Stmt
		text string
	}{
		{&s.answer, "SELECT body FROM entries WHERE holdout = ? AND query = ? AND kind = 'answer'"},
		{&s.void, "SELECT 1 FROM entries WHERE holdout = ? AND query = ? AND kind = 'void' AND time = ?"},
		{&s.release, "SELECT EXISTS (SELECT 1 FROM entries WHERE holdout = ? AND query = ? AND kind = 'release')"},
		{&s.released, "INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"},
		{&s.idempotency, "SELECT request, resource, outcome FROM idempotency WHERE principal = ? AND key = ?"},
		{&s.books, "SELECT number, " + bookColumns + ", state FROM holdouts JOIN books ON holdout = number WHERE id = ?"},
		{&s.entry, "INSERT INTO entries (holdout, " + entryColumns + ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"},
		{&s.note, "INSERT INTO notes (holdout, seq, note) VALUES (?, ?, ?)"},
		{&s.move, "UPDATE books SET state = ?, seq = ?, head = ? WHERE holdout = ? AND seq = ? AND deleted = 0"},
		{&s.debit, "UPDATE meters SET spent = ? WHERE holdout = ? AND name = ? AND spent = ?"},
		{&s.insertIdem, "INSERT INTO idempotency (principal, key, request, resource, outcome, created) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (principal, key) DO UPDATE SET outcome = excluded.outcome"},
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
	for _, stmt := range []*sql.Stmt{s.answer, s.void, s.release, s.released, s.idempotency, s.books, s.entry, s.note, s.move, s.debit, s.insertIdem} {
		if stmt != nil {
			stmt.Close() // its connection is closed next
		}
	}
	*s = statements{}
}

func (s *statements) insertEntry(tx *sql.Tx, holdout int64, e *ledger.Entry) error {
	_, err := tx.Stmt(s.entry).Exec(holdout, e.Version, e.Seq, e.Kind, e.Time.UnixNano(), e.Query, string(e.Canonical), e.Principal,
		e.Debit.Text(), e.Spent.Text(), string(e.Body), e.Head[:])
	if err == nil && e.Note != "" {
		_, err = tx.Stmt(s.note).Exec(holdout, e.Seq, e.Note)
	}
	return err
}

// updateBooks moves a holdout's books. What is on the disk must be as the books had it before.
func (s *statements) updateBooks(tx *sql.Tx, sealer *ledger.Sealer, before, after *books) error {
	state, err := sealer.Seal(after.State, ledger.StateAfter(after.Seq, after.ID))
	if err != nil {
		return err
	}
	done, err := tx.Stmt(s.move).Exec(state, after.Seq, after.Head[:], after.number, before.Seq)
	if err := changedOne(done, err); err != nil {
		return err
	}
	if text := after.Released.Text(); text != before.Released.Text() {
		if _, err := tx.Stmt(s.released).Exec(releasedName(after.ID), []byte(text)); err != nil {
			return err
		}
	}
	for name, spent := range after.Spent {
		if spent == before.Spent[name] {
			continue
		}
		done, err := tx.Stmt(s.debit).Exec(spent, after.number, name, before.Spent[name])
		if err := changedOne(done, err); err != nil {
			return err
		}
	}
	return nil
}

// isEnded says of books, joined with their holdout, whether there is a closing, where they are not deleted, and whether there is a retirement: nothing but a retirement and a deletion follows these. By their places and
// not by their kinds: ledgers of the schemas before them have no indexes for that.
const isEnded = "EXISTS (SELECT 1 FROM entries WHERE entries.holdout = number AND entries.seq >= books.seq - 1 AND entries.kind = 'closed') AND NOT coalesce(deleted, 0), " +
	"EXISTS (SELECT 1 FROM entries WHERE entries.holdout = number AND entries.seq >= books.seq - 1 AND entries.kind = 'retired')"

// bookColumns are what readBook scans, of books joined with their holdout: also the meters, in the same statement, so that all is of
// one moment.
const bookColumns = `seq, head, deleted, ` + isEnded + `, ` + accountOfReleases + `,
	(SELECT json_group_object(name, cap) FROM meters WHERE meters.holdout = number),
	(SELECT json_group_object(name, spent) FROM meters WHERE meters.holdout = number)`

// Accounts of releases are in the table meta, too, by the holdout's id: old ledgers, which are read as they lie, have that table and no account.
const accountOfReleases = "coalesce((SELECT value FROM meta WHERE name = 'releases ' || id), x'')"

func releasedName(id string) string { return "releases " + id }

// bookScan takes what bookColumns selects.
type bookScan struct {
	head          []byte
	released      []byte
	limits, spent string
}

func (s *bookScan) into(b *ledger.Books) []any {
	return []any{&b.Seq, &s.head, &b.Deleted, &b.Closed, &b.Retired, &s.released, &s.limits, &s.spent}
}

// finish fills what could not be scanned at once.
func (s *bookScan) finish(b *ledger.Books) error {
	if copy(b.Head[:], s.head) != len(s.head) || len(s.head) != len(b.Head) {
		return &ledger.CorruptError{Holdout: b.ID, Seq: b.Seq, Reason: "head is not 32 bytes"}
	}
	if err := errors.Join(json.Unmarshal([]byte(s.limits), &b.Limits), json.Unmarshal([]byte(s.spent), &b.Spent)); err != nil {
		return &ledger.CorruptError{Holdout: b.ID, Seq: -1, Reason: "meters", Err: err}
	}
	var err error
	if b.Released, err = ledger.ParseEpsilons(string(s.released)); err != nil {
		return &ledger.CorruptError{Holdout: b.ID, Seq: -1, Reason: "the account of releases", Err: err}
	}
	return nil
}

// readBooks reads a holdout's books from the disk.
func (l *Ledger) readBooks(id string) (*books, error) {
	if damage := l.damaged[id]; damage != nil {
		return nil, damage
	}
	b := &books{Books: ledger.Books{ID: id}}
	var scan bookScan
	var state []byte
	err := l.writer.stmt.books.QueryRow(id).Scan(append(append([]any{&b.number}, scan.into(&b.Books)...), &state)...)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("%w: holdout %q", ledger.ErrNotFound, id)
	}
	if err != nil {
		return nil, err
	}
	if err := scan.finish(&b.Books); err != nil {
		return nil, err
	}
	if b.State, err = l.sealer.Open(state, ledger.StateAfter(b.Seq, id)); err != nil {
		return nil, &ledger.CorruptError{Holdout: id, Seq: b.Seq, Reason: "mechanism state", Err: err}
	}
	return b, nil
}

// pruneEvery is how often idempotency keys are removed that are older than they are remembered.
const pruneEvery = time.Hour

func prune(ctx context.Context, tx *sql.Tx, now time.Time) error {
	_, err := tx.ExecContext(ctx, "DELETE FROM idempotency WHERE created < ?", now.Add(-ledger.IdempotencyLife).UnixNano())
	return err
}

func scanIdempotency(row *sql.Row, key idemKey) (ledger.Idempotency, bool, error) {
	i := ledger.Idempotency{Principal: key.principal, Key: key.key}
	var request []byte
	err := row.Scan(&request, &i.Resource, &i.Outcome)
	if errors.Is(err, sql.ErrNoRows) {
		return ledger.Idempotency{}, false, nil
	}
	if err != nil {
		return ledger.Idempotency{}, false, err
	}
	copy(i.Request[:], request) // 32 bytes by the table's CHECK
	return i, true, nil
}
