package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// CreateHoldout implements ledger.Ledger.
func (l *Ledger) CreateHoldout(ctx context.Context, h ledger.Holdout, idem *ledger.Idempotency) error {
	return l.createHoldout(ctx, h, idem, func(context.Context, pgx.Tx) error { return nil })
}

// createHoldout records a holdout after what comes first in the same transaction.
func (l *Ledger) createHoldout(ctx context.Context, h ledger.Holdout, idem *ledger.Idempotency, first func(context.Context, pgx.Tx) error) error {
	if h.Created.IsZero() {
		h.Created = time.Now()
	}
	if err := h.Check(); err != nil {
		return err
	}
	if idem != nil {
		if err := idem.Check(); err != nil {
			return err
		}
	}
	secret, err := l.sealer.Seal(h.Secret, ledger.SecretOf(h.ID))
	if err != nil {
		return err
	}
	state, err := l.sealer.Seal(h.State, ledger.StateAfter(int64(len(h.Opening)), h.ID)) // behind the entries that it begins with
	if err != nil {
		return err
	}
	return l.creating(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if idem != nil {
			if err := firstUse(ctx, tx, idem, h.ID); err != nil {
				return err
			}
		}
		if err := first(ctx, tx); err != nil {
			return err
		}
		return insertHoldout(ctx, tx, &h, secret, state)
	})
}

// creating is alone for what first looks whether it may: of several servers one does so at a time.
func (l *Ledger) creating(ctx context.Context, do func(context.Context, pgx.Tx) error) error {
	return l.alone(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT holdoutd.lock_creation()"); err != nil {
			return err
		}
		return do(ctx, tx)
	})
}

// ReplaceHoldout implements ledger.Ledger.
func (l *Ledger) ReplaceHoldout(ctx context.Context, old ledger.Replaced, h ledger.Holdout, idem *ledger.Idempotency) error {
	if err := l.damage(ctx, old.ID); err != nil && !errors.Is(err, ledger.ErrNotFound) {
		return err
	}
	return l.createHoldout(ctx, h, idem, func(ctx context.Context, tx pgx.Tx) error { return l.makeRoom(ctx, tx, old, h.Digest) })
}

// makeRoom deletes a holdout of which nothing was asked.
func (l *Ledger) makeRoom(ctx context.Context, tx pgx.Tx, old ledger.Replaced, successor [32]byte) error {
	b, draft, err := l.lockByID(ctx, tx, old.ID)
	if err != nil {
		return err
	}
	var digest []byte
	var asked bool
	err = tx.QueryRow(ctx, `SELECT digest, EXISTS (SELECT FROM holdoutd.entries WHERE holdout = number AND kind IN ('answer', 'void'))
		FROM holdoutd.holdouts WHERE number = $1`, b.number).Scan(&digest, &asked)
	switch {
	case err != nil:
		return err
	case len(digest) != len(successor) || ledger.Successor([32]byte(digest), old.ID) != successor:
		return fmt.Errorf("%w: the digest is not that of the successor of %q", ledger.ErrInvalid, old.ID)
	case b.restored && !b.Deleted:
		return ledger.ErrRestored
	case asked:
		return ledger.ErrAsked
	case !draft && (old.Draft || b.Deleted):
		return ledger.ErrSettled
	case b.Deleted:
		return nil
	}
	return l.endHoldout(ctx, tx, b, old.Principal)
}

// lockByID locks a holdout's books and reads them, or is ledger.ErrNotFound.
func (l *Ledger) lockByID(ctx context.Context, tx pgx.Tx, id string) (b *books, draft bool, err error) {
	var number int64
	err = tx.QueryRow(ctx, "SELECT number FROM holdoutd.holdouts WHERE id = $1", []byte(id)).Scan(&number)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, false, fmt.Errorf("%w: holdout %q", ledger.ErrNotFound, id)
	}
	if err != nil {
		return nil, false, err
	}
	return l.scanBooks(tx.QueryRow(ctx, lockBooks, number))
}

// SettleHoldout implements ledger.Ledger.
func (l *Ledger) SettleHoldout(ctx context.Context, id string) error {
	return l.alone(ctx, func(ctx context.Context, tx pgx.Tx) error {
		b, _, err := l.lockByID(ctx, tx, id)
		switch {
		case err != nil:
			return err
		case b.Deleted:
			return ledger.ErrDeleted
		}
		_, err = tx.Exec(ctx, "SELECT holdoutd.settle_holdout($1)", b.number)
		return err
	})
}

// firstUse records an idempotency key, or says what it was used for.
func firstUse(ctx context.Context, tx pgx.Tx, i *ledger.Idempotency, resource string) error {
	known, ok, err := findIdempotency(ctx, tx, i.Principal, i.Key)
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
	_, err = tx.Exec(ctx, "SELECT holdoutd.use_idempotency($1, $2, $3, $4)", []byte(i.Principal), []byte(i.Key), i.Request[:], []byte(resource))
	return err
}

func insertHoldout(ctx context.Context, tx pgx.Tx, h *ledger.Holdout, secret, state []byte) error {
	var id []byte
	err := tx.QueryRow(ctx, "SELECT id FROM holdoutd.holdouts WHERE digest = $1", h.Digest[:]).Scan(&id)
	if err == nil {
		return &ledger.ExistsError{ID: string(id)}
	}
	if !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	err = tx.QueryRow(ctx, "SELECT id FROM holdoutd.holdouts WHERE id = $1", []byte(h.ID)).Scan(&id)
	if err == nil {
		return fmt.Errorf("%w: holdout %q, for another table", ledger.ErrExists, id)
	}
	if !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	begun, entries := h.Begin()
	var names []string
	var caps, spent []int64
	for name, limit := range h.Limits {
		names, caps, spent = append(names, name), append(caps, limit), append(spent, begun.Spent[name])
	}
	e := columnsOf(entries)
	_, err = tx.Exec(ctx, "SELECT holdoutd.insert_holdout($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)",
		[]byte(h.ID), h.Created.UnixNano(), h.Digest[:], []byte(h.Public), secret, state, h.Draft, names, caps, spent,
		e.versions, e.kinds, e.times, e.queries, e.canonicals, e.principals, e.debits, e.spents, e.bodies, e.heads)
	return err
}

// Holdout implements ledger.Ledger.
func (l *Ledger) Holdout(ctx context.Context, id string) (ledger.Holdout, error) {
	all, err := l.holdouts(ctx, "WHERE h.id = $2", []byte(id))
	if err != nil {
		return ledger.Holdout{}, err
	}
	if len(all) == 0 {
		return ledger.Holdout{}, fmt.Errorf("%w: holdout %q", ledger.ErrNotFound, id)
	}
	return all[0], nil
}

// Books implements ledger.Ledger.
func (l *Ledger) Books(ctx context.Context, id string) (ledger.Books, error) {
	if err := l.damage(ctx, id); err != nil {
		return ledger.Books{}, err
	}
	b, ok, err := readOne(ctx, l.readers, func(row pgx.Row) (*books, error) {
		var held string
		b, _, err := l.scanBooks(behind{row, []any{&held}})
		if err == nil {
			err = readHeld(held, &b.Held)
		}
		return b, err
	}, strings.Replace(standing, " FROM", ", holdoutd.held_now(number, $2) FROM", 1)+"standing WHERE id = $1", []byte(id), l.now().UnixNano())
	switch {
	case err != nil:
		return ledger.Books{}, err
	case !ok:
		return ledger.Books{}, fmt.Errorf("%w: holdout %q", ledger.ErrNotFound, id)
	case l.replayOnly:
		b.State = nil
	}
	return b.Books, nil
}

// Holdouts implements ledger.Ledger.
func (l *Ledger) Holdouts(ctx context.Context) ([]ledger.Holdout, error) {
	return l.holdouts(ctx, "ORDER BY h.number")
}

// HoldoutByDigest implements ledger.Ledger.
func (l *Ledger) HoldoutByDigest(ctx context.Context, digest [32]byte) (id string, ok bool, err error) {
	return readOne(ctx, l.readers, func(row pgx.Row) (string, error) {
		var id []byte
		err := row.Scan(&id)
		return string(id), err
	}, "SELECT id FROM holdoutd.holdouts WHERE digest = $1", digest[:])
}

func (l *Ledger) holdouts(ctx context.Context, which string, args ...any) ([]ledger.Holdout, error) {
	all, err := readAll(ctx, l.readers, func(row pgx.Row) (h ledger.Holdout, err error) {
		var created, seq int64
		var id, digest, public, secret, state, ended []byte
		var limits, spent, held string
		if err := row.Scan(&id, &created, &digest, &public, &secret, &state, &seq, &h.Deleted, &h.Draft, &h.Restored, &ended, &limits, &spent, &held); err != nil {
			return h, err
		}
		h.ID, h.Created, h.Public, h.End = string(id), time.Unix(0, created).UTC(), public, ledger.EndOf(string(ended))
		copy(h.Digest[:], digest) // 32 bytes by the table's CHECK
		if err := errors.Join(json.Unmarshal([]byte(limits), &h.Limits), json.Unmarshal([]byte(spent), &h.Spent), readHeld(held, &h.Held)); err != nil {
			h.Damage = &ledger.CorruptError{Holdout: h.ID, Seq: -1, Reason: "meters", Err: err}
		}
		if !l.replayOnly {
			if h.Secret, err = l.sealer.Open(secret, ledger.SecretOf(h.ID)); err != nil {
				h.Damage = &ledger.CorruptError{Holdout: h.ID, Seq: -1, Reason: "secret", Err: err}
			}
			if h.State, err = l.sealer.Open(state, ledger.StateAfter(seq, h.ID)); err != nil {
				h.Damage = &ledger.CorruptError{Holdout: h.ID, Seq: seq, Reason: "mechanism state", Err: err}
			}
		}
		return h, nil
	}, `SELECT h.id, h.created, h.digest, h.public, h.secret, s.state, coalesce(s.seq, 0), coalesce(s.deleted, false), coalesce(s.draft, false), coalesce(s.restored, false),
		coalesce(s.ended, ''), coalesce(s.limits, '{}'), coalesce(s.spent, '{}'), holdoutd.held_now(h.number, $1)
		FROM holdoutd.holdouts h LEFT JOIN holdoutd.standing s ON s.number = h.number `+which, append([]any{l.now().UnixNano()}, args...)...)
	for i := range all {
		if h := &all[i]; h.Damage == nil {
			damage := l.damage(ctx, h.ID)
			if errors.Is(damage, ledger.ErrUnavailable) {
				return nil, damage
			}
			h.Damage = damage
		}
	}
	return all, err
}

// DeleteHoldout implements ledger.Ledger.
func (l *Ledger) DeleteHoldout(ctx context.Context, id, principal string) error {
	if err := l.damage(ctx, id); err != nil {
		return err // its last entry would go behind a wrong head
	}
	return l.creating(ctx, func(ctx context.Context, tx pgx.Tx) error {
		b, _, err := l.lockByID(ctx, tx, id)
		if err != nil || b.Deleted {
			return err
		}
		return l.endHoldout(ctx, tx, b, principal)
	})
}

// endHoldout ends a holdout's chain and erases its secret and its state.
func (l *Ledger) endHoldout(ctx context.Context, tx pgx.Tx, b *books, principal string) error {
	e, err := b.Deletion(principal, time.Now())
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, "SELECT holdoutd.end_holdout($1, $2, $3, $4, $5, $6, $7, $8, $9)",
		b.number, e.Seq, e.Version, e.Time.UnixNano(), []byte(e.Principal), e.Debit.Text(), e.Spent.Text(), e.Body, e.Head[:])
	return err
}
