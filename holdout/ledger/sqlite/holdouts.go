package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// CreateHoldout implements ledger.Ledger.
func (l *Ledger) CreateHoldout(ctx context.Context, h ledger.Holdout, idem *ledger.Idempotency) error {
	return l.createHoldout(ctx, h, idem, func(*sql.Tx) error { return nil })
}

// createHoldout records a holdout after what comes first in the same transaction.
func (l *Ledger) createHoldout(ctx context.Context, h ledger.Holdout, idem *ledger.Idempotency, first func(*sql.Tx) error) error {
	secret, state, err := l.sealer.Begin(&h, idem)
	if err != nil {
		return err
	}
	return l.lasting(ctx, func(ctx context.Context, tx *sql.Tx) error {
		if idem != nil {
			if err := firstUse(ctx, tx, idem, h.ID); err != nil {
				return err
			}
		}
		if err := first(tx); err != nil {
			return err
		}
		return insertHoldout(ctx, tx, &l.writer.stmt, &h, secret, state)
	})
}

// ReplaceHoldout implements ledger.Ledger.
func (l *Ledger) ReplaceHoldout(ctx context.Context, old ledger.Replaced, h ledger.Holdout, idem *ledger.Idempotency) error {
	if damage := l.damaged[old.ID]; damage != nil {
		return damage
	}
	return l.createHoldout(ctx, h, idem, func(tx *sql.Tx) error { return l.makeRoom(context.WithoutCancel(ctx), tx, old, h.Digest) })
}

// makeRoom deletes a holdout of which nothing was asked.
func (l *Ledger) makeRoom(ctx context.Context, tx *sql.Tx, old ledger.Replaced, successor [32]byte) error {
	b, err := findBooks(ctx, tx, old.ID)
	if err != nil {
		return err
	}
	var digest []byte
	var asked, draft bool
	err = tx.QueryRowContext(ctx, `SELECT digest, EXISTS (SELECT 1 FROM entries WHERE holdout = number AND kind IN ('answer', 'void', 'release', 'retired')), `+isDraft+`
		FROM holdouts WHERE number = ?`, b.number).Scan(&digest, &asked, &draft)
	if err != nil {
		return err
	}
	if gone, err := old.Room(digest, successor, asked, draft, b.Deleted); gone || err != nil {
		return err
	}
	return l.endHoldout(ctx, tx, b, old.Principal)
}

// Drafts are names of the table meta: draft and the holdout's id. An old ledger has none, so its holdouts are drafts no more.
const isDraft = "EXISTS (SELECT 1 FROM meta WHERE name = 'draft ' || id)"

func draftName(id string) string { return "draft " + id }

// SettleHoldout implements ledger.Ledger.
func (l *Ledger) SettleHoldout(ctx context.Context, id string) error {
	return l.lasting(ctx, func(ctx context.Context, tx *sql.Tx) error {
		b, err := findBooks(ctx, tx, id)
		switch {
		case err != nil:
			return err
		case b.Deleted:
			return ledger.ErrDeleted
		}
		_, err = tx.ExecContext(ctx, "DELETE FROM meta WHERE name = ?", draftName(id))
		return err
	})
}

// firstUse records an idempotency key, or says what it was used for.
func firstUse(ctx context.Context, tx *sql.Tx, i *ledger.Idempotency, resource string) error {
	row := tx.QueryRowContext(ctx, "SELECT request, resource, outcome FROM idempotency WHERE principal = ? AND key = ?", i.Principal, i.Key)
	known, ok, err := scanIdempotency(row, idemKey{i.Principal, i.Key})
	switch {
	case err != nil:
		return err
	case ok && known.Request != i.Request:
		return ledger.ErrIdempotencyMismatch
	case ok:
		return &ledger.ExistsError{ID: known.Resource}
	}
	if i.Resource != "" {
		resource = i.Resource
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO idempotency (principal, key, request, resource, created) VALUES (?, ?, ?, ?, ?)",
		i.Principal, i.Key, i.Request[:], resource, time.Now().UnixNano())
	return err
}

func insertHoldout(ctx context.Context, tx *sql.Tx, stmt *statements, h *ledger.Holdout, secret, state []byte) error {
	var id string
	err := tx.QueryRowContext(ctx, "SELECT id FROM holdouts WHERE digest = ?", h.Digest[:]).Scan(&id)
	if err == nil {
		return &ledger.ExistsError{ID: id}
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	err = tx.QueryRowContext(ctx, "SELECT id FROM holdouts WHERE id = ?", h.ID).Scan(&id)
	if err == nil {
		return fmt.Errorf("%w: holdout %q, for another table", ledger.ErrExists, id)
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	first := h.Genesis()
	done, err := tx.ExecContext(ctx, "INSERT INTO holdouts (id, created, digest, public, secret) VALUES (?, ?, ?, ?, ?)",
		h.ID, h.Created.UnixNano(), h.Digest[:], []byte(h.Public), secret)
	if err != nil {
		return err
	}
	number, err := done.LastInsertId()
	if err != nil {
		return err
	}
	if _, err = tx.ExecContext(ctx, "INSERT INTO books (holdout, state, seq, head, deleted) VALUES (?, ?, 0, ?, 0)", number, state, first.Head[:]); err != nil {
		return err
	}
	for name, limit := range h.Limits {
		if _, err = tx.ExecContext(ctx, "INSERT INTO meters (holdout, name, cap, spent) VALUES (?, ?, ?, 0)", number, name, limit); err != nil {
			return err
		}
	}
	if h.Draft {
		if _, err = tx.ExecContext(ctx, "INSERT INTO meta (name, value) VALUES (?, x'')", draftName(h.ID)); err != nil {
			return err
		}
	}
	return stmt.insertEntry(tx, number, &first)
}

// Holdout implements ledger.Ledger.
func (l *Ledger) Holdout(ctx context.Context, id string) (ledger.Holdout, error) {
	all, err := l.holdouts(ctx, "WHERE id = ?", id)
	if err != nil {
		return ledger.Holdout{}, err
	}
	if len(all) == 0 {
		return ledger.Holdout{}, fmt.Errorf("%w: holdout %q", ledger.ErrNotFound, id)
	}
	return all[0], nil
}

// Holdouts implements ledger.Ledger.
func (l *Ledger) Holdouts(ctx context.Context) ([]ledger.Holdout, error) {
	return l.holdouts(ctx, "ORDER BY number")
}

// HoldoutByDigest implements ledger.Ledger.
func (l *Ledger) HoldoutByDigest(ctx context.Context, digest [32]byte) (id string, ok bool, err error) {
	if err := l.ours(); err != nil {
		return "", false, err
	}
	defer func() { l.distrust(err) }()
	err = l.readers.QueryRowContext(ctx, "SELECT id FROM holdouts WHERE digest = ?", digest[:]).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return "", false, nil
	}
	return id, err == nil, wrapRead(err)
}

func (l *Ledger) holdouts(ctx context.Context, which string, args ...any) (all []ledger.Holdout, err error) {
	if err := l.ours(); err != nil {
		return nil, err
	}
	defer func() { l.distrust(err) }()
	rows, err := l.readers.QueryContext(ctx, `SELECT id, created, digest, public, secret, state, coalesce(seq, 0), coalesce(deleted, 0), `+isEnded+`, `+isDraft+`, `+accountOfReleases+`,
		(SELECT json_group_object(name, cap) FROM meters WHERE meters.holdout = number),
		(SELECT json_group_object(name, spent) FROM meters WHERE meters.holdout = number)
		FROM holdouts LEFT JOIN books ON holdout = number `+which, args...)
	if err != nil {
		return nil, wrapRead(err)
	}
	defer rows.Close()
	for rows.Next() {
		var h ledger.Holdout
		var created, seq int64
		var digest, public, secret, state, released []byte
		var limits, spent string
		if err := rows.Scan(&h.ID, &created, &digest, &public, &secret, &state, &seq, &h.Deleted, &h.Closed, &h.Retired, &h.Draft, &released, &limits, &spent); err != nil {
			return nil, wrapRead(err)
		}
		h.Created, h.Public = time.Unix(0, created).UTC(), public
		copy(h.Digest[:], digest) // 32 bytes by the table's CHECK
		h.Damage = l.damaged[h.ID]
		if err := errors.Join(json.Unmarshal([]byte(limits), &h.Limits), json.Unmarshal([]byte(spent), &h.Spent)); err != nil {
			h.Damage = &ledger.CorruptError{Holdout: h.ID, Seq: -1, Reason: "meters", Err: err}
		}
		if h.Released, err = ledger.ParseEpsilons(string(released)); err != nil {
			h.Damage = &ledger.CorruptError{Holdout: h.ID, Seq: -1, Reason: "the account of releases", Err: err}
		}
		if !l.replayOnly {
			if h.Secret, err = l.sealer.Open(secret, ledger.SecretOf(h.ID)); err != nil {
				h.Damage = &ledger.CorruptError{Holdout: h.ID, Seq: -1, Reason: "secret", Err: err}
			}
			if h.State, err = l.sealer.Open(state, ledger.StateAfter(seq, h.ID)); err != nil {
				h.Damage = &ledger.CorruptError{Holdout: h.ID, Seq: seq, Reason: "mechanism state", Err: err}
			}
		}
		all = append(all, h)
	}
	return all, wrapRead(rows.Err())
}

// DeleteHoldout implements ledger.Ledger.
func (l *Ledger) DeleteHoldout(ctx context.Context, id, principal string) error {
	if damage := l.damaged[id]; damage != nil {
		return damage // its last entry would go behind a wrong head
	}
	return l.lasting(ctx, func(ctx context.Context, tx *sql.Tx) error {
		b, err := findBooks(ctx, tx, id)
		if err != nil || b.Deleted {
			return err
		}
		return l.endHoldout(ctx, tx, b, principal)
	})
}

// findBooks reads a holdout's books in a transaction, or is ledger.ErrNotFound. Of a deleted one it reads no more than that it is.
func findBooks(ctx context.Context, tx *sql.Tx, id string) (b books, err error) {
	b.Books.ID = id
	var scan bookScan
	err = tx.QueryRowContext(ctx, "SELECT number, "+bookColumns+" FROM holdouts JOIN books ON holdout = number WHERE id = ?", id).
		Scan(append([]any{&b.number}, scan.into(&b.Books)...)...)
	if errors.Is(err, sql.ErrNoRows) {
		return b, fmt.Errorf("%w: holdout %q", ledger.ErrNotFound, id)
	}
	if err != nil || b.Deleted {
		return b, err
	}
	return b, scan.finish(&b.Books)
}

// endHoldout ends a holdout's chain and erases its secret and its state.
func (l *Ledger) endHoldout(ctx context.Context, tx *sql.Tx, b books, principal string) error {
	last, err := b.Deletion(principal, time.Now())
	if err != nil {
		return err
	}
	if err := l.writer.stmt.insertEntry(tx, b.number, &last); err != nil {
		return err
	}
	done, err := tx.ExecContext(ctx, "UPDATE holdouts SET secret = NULL WHERE number = ?", b.number)
	if err := changedOne(done, err); err != nil {
		return err
	}
	done, err = tx.ExecContext(ctx, "UPDATE books SET state = NULL, deleted = 1, seq = ?, head = ? WHERE holdout = ?", last.Seq, last.Head[:], b.number)
	if err := changedOne(done, err); err != nil {
		return err
	}
	delete(l.writer.books, b.ID)
	l.writer.erased = true
	return nil
}

// wrapRead names the ledger in what a reader's connection says. What the database says is ledger.ErrUnavailable: it cannot be read now. Who still reads while the ledger is closed is told that.
func wrapRead(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errPoolClosed), errors.Is(err, sql.ErrConnDone):
		return fmt.Errorf("%w: read: %w", ledger.ErrClosed, err)
	case code(err) >= 0:
		return fmt.Errorf("%w: read: %w", ledger.ErrUnavailable, err)
	}
	return fmt.Errorf("ledger: read: %w", err)
}

// errPoolClosed is what database/sql says of a pool that was closed, which it has no name for.
var errPoolClosed = func() error {
	db := sql.OpenDB(nowhere{})
	db.Close() // of no connection
	return db.Ping()
}()

// nowhere connects to nothing.
type nowhere struct{}

func (nowhere) Connect(context.Context) (driver.Conn, error) { return nil, driver.ErrBadConn }
func (nowhere) Driver() driver.Driver                        { return nil }
