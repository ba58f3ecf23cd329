package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"
)

// CreateHoldout records a new holdout with its chain's genesis entry, and the idempotency key of the upload, if any.
// It fails with *ExistsError if the digest is known, also that of a deleted holdout, or if the same request has
// made a holdout before; with ErrIdempotencyMismatch if the key was used for another request.
func (l *Ledger) CreateHoldout(ctx context.Context, h Holdout, idem *Idempotency) error {
	if h.Created.IsZero() {
		h.Created = time.Now()
	}
	if err := h.check(); err != nil {
		return err
	}
	if idem != nil {
		if err := idem.check(); err != nil {
			return err
		}
	}
	secret, err := l.sealer.seal(h.Secret, purposeSecret(h.ID))
	if err != nil {
		return err
	}
	state, err := l.sealer.seal(h.State, purposeState(h.ID, 0))
	if err != nil {
		return err
	}
	return l.lasting(ctx, func(ctx context.Context, tx *sql.Tx) error {
		if idem != nil {
			if err := firstUse(ctx, tx, idem, h.ID); err != nil {
				return err
			}
		}
		return insertHoldout(ctx, tx, &l.writer.stmt, &h, secret, state)
	})
}

func (h *Holdout) check() error {
	switch {
	case h.Questions < 0 || h.Tokens < 0:
		return invalid("negative limits of %d questions and %d tokens", h.Questions, h.Tokens)
	case h.Deleted:
		return invalid("a holdout is not created deleted")
	case len(h.Public) > MaxPublicBytes || len(h.Secret) > MaxSecretBytes || len(h.State) > MaxStateBytes:
		return invalid("public, secret and state of %d, %d and %d bytes, at most %d, %d and %d",
			len(h.Public), len(h.Secret), len(h.State), MaxPublicBytes, MaxSecretBytes, MaxStateBytes)
	case !utf8.Valid(h.Public) || !json.Valid(h.Public):
		return invalid("public part is not JSON in UTF-8")
	}
	return errors.Join(checkText("holdout id", h.ID, false), checkTime(h.Created))
}

// firstUse records an idempotency key, or says what it was used for.
func firstUse(ctx context.Context, tx *sql.Tx, i *Idempotency, resource string) error {
	row := tx.QueryRowContext(ctx, "SELECT request, resource FROM idempotency WHERE principal = ? AND key = ?", i.Principal, i.Key)
	known, ok, err := scanIdempotency(row, idemKey{i.Principal, i.Key})
	switch {
	case err != nil:
		return err
	case ok && known.Request != i.Request:
		return ErrIdempotencyMismatch
	case ok:
		return &ExistsError{ID: known.Resource}
	}
	if i.Resource != "" {
		resource = i.Resource
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO idempotency (principal, key, request, resource, created) VALUES (?, ?, ?, ?, ?)",
		i.Principal, i.Key, i.Request[:], resource, time.Now().UnixNano())
	return err
}

func insertHoldout(ctx context.Context, tx *sql.Tx, stmt *statements, h *Holdout, secret, state []byte) error {
	var id string
	err := tx.QueryRowContext(ctx, "SELECT id FROM holdouts WHERE digest = ?", h.Digest[:]).Scan(&id)
	if err == nil {
		return &ExistsError{ID: id}
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	err = tx.QueryRowContext(ctx, "SELECT id FROM holdouts WHERE id = ?", h.ID).Scan(&id)
	if err == nil {
		return fmt.Errorf("%w: holdout %q, for another table", ErrExists, id)
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	f := h.facts()
	first := f.first()
	done, err := tx.ExecContext(ctx, "INSERT INTO holdouts (id, created, digest, public, secret) VALUES (?, ?, ?, ?, ?)",
		h.ID, h.Created.UnixNano(), h.Digest[:], []byte(h.Public), secret)
	if err != nil {
		return err
	}
	number, err := done.LastInsertId()
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO books (holdout, state, questions, tokens, spent_questions, spent_tokens, seq, head, deleted)
		VALUES (?, ?, ?, ?, 0, 0, 0, ?, 0)`, number, state, h.Questions, h.Tokens, first.Head[:])
	if err != nil {
		return err
	}
	return stmt.insertEntry(tx, number, &first)
}

func (h *Holdout) facts() facts {
	return facts{ID: h.ID, Created: h.Created.UTC(), Digest: h.Digest, Limits: Amount{h.Questions, h.Tokens}, Public: h.Public}
}

// Holdout returns a holdout, also a deleted or a damaged one, or ErrNotFound.
func (l *Ledger) Holdout(ctx context.Context, id string) (Holdout, error) {
	all, err := l.holdouts(ctx, "WHERE id = ?", id)
	if err != nil {
		return Holdout{}, err
	}
	if len(all) == 0 {
		return Holdout{}, fmt.Errorf("%w: holdout %q", ErrNotFound, id)
	}
	return all[0], nil
}

// Holdouts returns all holdouts in the order of their creation, deleted and damaged ones included.
func (l *Ledger) Holdouts(ctx context.Context) ([]Holdout, error) {
	return l.holdouts(ctx, "ORDER BY number")
}

// HoldoutByDigest returns the id under which a table is known; ok is false if it is not.
func (l *Ledger) HoldoutByDigest(ctx context.Context, digest [32]byte) (id string, ok bool, err error) {
	err = l.readers.QueryRowContext(ctx, "SELECT id FROM holdouts WHERE digest = ?", digest[:]).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return "", false, nil
	}
	return id, err == nil, wrapRead(err)
}

func (l *Ledger) holdouts(ctx context.Context, which string, args ...any) ([]Holdout, error) {
	rows, err := l.readers.QueryContext(ctx,
		`SELECT id, created, digest, public, secret, state, coalesce(questions, 0), coalesce(tokens, 0), coalesce(seq, 0), coalesce(deleted, 0)
		FROM holdouts LEFT JOIN books ON holdout = number `+which, args...)
	if err != nil {
		return nil, wrapRead(err)
	}
	defer rows.Close()
	var all []Holdout
	for rows.Next() {
		var h Holdout
		var created, seq int64
		var digest, public, secret, state []byte
		if err := rows.Scan(&h.ID, &created, &digest, &public, &secret, &state, &h.Questions, &h.Tokens, &seq, &h.Deleted); err != nil {
			return nil, wrapRead(err)
		}
		h.Created, h.Public = time.Unix(0, created).UTC(), public
		copy(h.Digest[:], digest) // 32 bytes by the table's CHECK
		h.Damage = l.damaged[h.ID]
		if !l.replayOnly {
			if h.Secret, err = l.sealer.open(secret, purposeSecret(h.ID)); err != nil {
				h.Damage = &CorruptError{Holdout: h.ID, Seq: -1, Reason: "secret", Err: err}
			}
			if h.State, err = l.sealer.open(state, purposeState(h.ID, seq)); err != nil {
				h.Damage = &CorruptError{Holdout: h.ID, Seq: seq, Reason: "mechanism state", Err: err}
			}
		}
		all = append(all, h)
	}
	return all, wrapRead(rows.Err())
}

// deletion is the core of a chain's last entry.
type deletion struct {
	Deleted string `json:"deleted"` // the holdout's id
}

// DeleteHoldout erases a holdout's secret and state for good and ends its chain with an entry that says who did it.
// What was answered stays, and so does the digest: the same table is refused for ever. Deleting again does nothing.
func (l *Ledger) DeleteHoldout(ctx context.Context, id, principal string) error {
	if err := checkText("principal", principal, true); err != nil {
		return err
	}
	if damage := l.damaged[id]; damage != nil {
		return damage // its last entry would go behind a wrong head
	}
	return l.lasting(ctx, func(ctx context.Context, tx *sql.Tx) error {
		var number int64
		var deleted bool
		r := record{Entry: Entry{Kind: KindDeleted, Time: time.Now().UTC(), Principal: principal}}
		var head []byte
		err := tx.QueryRowContext(ctx, "SELECT number, seq, head, spent_questions, spent_tokens, deleted FROM holdouts JOIN books ON holdout = number WHERE id = ?", id).
			Scan(&number, &r.Seq, &head, &r.Spent.Questions, &r.Spent.Tokens, &deleted)
		if errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("%w: holdout %q", ErrNotFound, id)
		}
		if err != nil || deleted {
			return err
		}
		core, err := json.Marshal(deletion{Deleted: id})
		if err != nil {
			return err
		}
		r.Seq++
		r.seal(digest(head), core)
		if err := l.writer.stmt.insertEntry(tx, number, &r); err != nil {
			return err
		}
		done, err := tx.ExecContext(ctx, "UPDATE holdouts SET secret = NULL WHERE number = ?", number)
		if err := changedOne(done, err); err != nil {
			return err
		}
		done, err = tx.ExecContext(ctx, "UPDATE books SET state = NULL, deleted = 1, seq = ?, head = ? WHERE holdout = ?", r.Seq, r.Head[:], number)
		if err := changedOne(done, err); err != nil {
			return err
		}
		delete(l.writer.books, id)
		l.writer.erased = true
		return nil
	})
}

// wrapRead names the ledger in what a reader's connection says. A machine that cannot read now is ErrUnavailable.
func wrapRead(err error) error {
	switch {
	case err == nil:
		return nil
	case outOfOrder(err):
		return fmt.Errorf("%w: read: %w", ErrUnavailable, err)
	}
	return fmt.Errorf("ledger: read: %w", err)
}
