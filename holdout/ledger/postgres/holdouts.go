package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
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
	secret, state, err := l.sealer.Begin(&h, idem)
	if err != nil {
		return err
	}
	return l.oneByOne(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if idem != nil {
			if err := firstUse(ctx, tx, *idem, h.ID); err != nil {
				return err
			}
		}
		if err := first(ctx, tx); err != nil {
			return err
		}
		return insertHoldout(ctx, tx, &h, secret, state)
	})
}

// oneByOne is alone for those who create and end holdouts, and make keys: what one of them finds no other one changes before it has ended.
func (l *Ledger) oneByOne(ctx context.Context, do func(context.Context, pgx.Tx) error) error {
	return l.alone(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT serialize()"); err != nil {
			return err
		}
		return do(ctx, tx)
	})
}

// ReplaceHoldout implements ledger.Ledger.
func (l *Ledger) ReplaceHoldout(ctx context.Context, old ledger.Replaced, h ledger.Holdout, idem *ledger.Idempotency) error {
	if damage := l.damageOf(old.ID); damage != nil {
		return damage
	}
	return l.createHoldout(ctx, h, idem, func(ctx context.Context, tx pgx.Tx) error { return l.makeRoom(ctx, tx, old, h.Digest) })
}

// makeRoom deletes a holdout of which nothing was asked.
func (l *Ledger) makeRoom(ctx context.Context, tx pgx.Tx, old ledger.Replaced, successor [32]byte) error {
	b, err := findBooks(ctx, tx, old.ID)
	if err != nil {
		return err
	}
	var digest []byte
	var asked, draft bool
	err = tx.QueryRow(ctx, `SELECT digest, EXISTS (SELECT 1 FROM entries WHERE holdout = number AND kind IN ('answer', 'void', 'release', 'retired')), draft FROM holdouts WHERE number = $1`, b.number).
		Scan(&digest, &asked, &draft)
	if err != nil {
		return err
	}
	if gone, err := old.Room(digest, successor, asked, draft, b.Deleted); gone || err != nil {
		return err
	}
	return l.endHoldout(ctx, tx, b, old.Principal)
}

// SettleHoldout implements ledger.Ledger.
func (l *Ledger) SettleHoldout(ctx context.Context, id string) error {
	return l.oneByOne(ctx, func(ctx context.Context, tx pgx.Tx) error {
		b, err := findBooks(ctx, tx, id)
		switch {
		case err != nil:
			return err
		case b.Deleted:
			return ledger.ErrDeleted
		}
		_, err = tx.Exec(ctx, "SELECT settle_holdout($1)", b.number)
		return err
	})
}

// firstUse records an idempotency key, or says what it was used for.
func firstUse(ctx context.Context, tx pgx.Tx, i ledger.Idempotency, resource string) error {
	known, ok, err := scanIdempotency(tx.QueryRow(ctx, keyUse, i.Principal, []byte(i.Key)), i.Principal, i.Key)
	switch {
	case err != nil:
		return err
	case ok && known.Request != i.Request:
		return ledger.ErrIdempotencyMismatch
	case ok:
		return &ledger.ExistsError{ID: known.Resource}
	}
	if i.Resource == "" {
		i.Resource = resource
	}
	_, err = tx.Exec(ctx, "SELECT use_keys($1, $2, $3, $4, $5, $6)", []string{i.Principal}, [][]byte{[]byte(i.Key)}, [][]byte{i.Request[:]}, []string{i.Resource},
		[][]byte{[]byte(i.Outcome)}, time.Now().UnixNano())
	if code(err) == codeOtherKey {
		return ledger.ErrIdempotencyMismatch
	}
	return err
}

func insertHoldout(ctx context.Context, tx pgx.Tx, h *ledger.Holdout, secret, state []byte) error {
	var id string
	var same bool
	err := tx.QueryRow(ctx, "SELECT id, digest = $1 FROM holdouts WHERE digest = $1 OR id = $2 ORDER BY digest = $1 DESC LIMIT 1", h.Digest[:], h.ID).Scan(&id, &same)
	switch {
	case err == nil && same:
		return &ledger.ExistsError{ID: id}
	case err == nil:
		return fmt.Errorf("%w: holdout %q, for another table", ledger.ErrExists, id)
	case !errors.Is(err, pgx.ErrNoRows):
		return err
	}
	names := slices.Sorted(maps.Keys(h.Limits))
	caps := make([]int64, len(names))
	for i, name := range names {
		caps[i] = h.Limits[name]
	}
	first := h.Genesis()
	_, err = tx.Exec(ctx, "SELECT create_holdout($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)", h.ID, h.Created.UnixNano(), h.Digest[:], []byte(h.Public), secret, state, h.Draft,
		names, caps, int64(first.Version), first.Debit.Text(), first.Spent.Text(), first.Body, first.Head[:])
	return err
}

// Holdout implements ledger.Ledger.
func (l *Ledger) Holdout(ctx context.Context, id string) (ledger.Holdout, error) {
	all, err := l.holdouts(ctx, "WHERE id = $1", id)
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
	err = l.readers.QueryRow(ctx, "SELECT id FROM holdouts WHERE digest = $1", digest[:]).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", false, nil
	}
	return id, err == nil, wrapRead(err)
}

func (l *Ledger) holdouts(ctx context.Context, which string, args ...any) ([]ledger.Holdout, error) {
	return readAll(ctx, l.readers, l.scanHoldout, `SELECT id, created, digest, public, secret, state, coalesce(seq, 0), coalesce(deleted, false), `+isEnded+`, draft, coalesce(released, ''),
		(SELECT json_object_agg(name, cap) FROM meters m WHERE m.holdout = number)::text,
		(SELECT json_object_agg(name, spent) FROM meters m WHERE m.holdout = number)::text
		FROM holdouts LEFT JOIN books ON holdout = number `+which, args...)
}

func (l *Ledger) scanHoldout(row pgx.Row) (h ledger.Holdout, err error) {
	var created, seq int64
	var digest, public, secret, state []byte
	var limits, spent *string
	var released string
	if err := row.Scan(&h.ID, &created, &digest, &public, &secret, &state, &seq, &h.Deleted, &h.Closed, &h.Retired, &h.Draft, &released, &limits, &spent); err != nil {
		return h, err
	}
	h.Created, h.Public = time.Unix(0, created).UTC(), public
	copy(h.Digest[:], digest) // 32 bytes by the table's CHECK
	h.Damage = l.damageOf(h.ID)
	if h.Limits, h.Spent, err = scanMeters(limits, spent); err != nil {
		h.Damage = &ledger.CorruptError{Holdout: h.ID, Seq: -1, Reason: "meters", Err: err}
	}
	if h.Released, err = ledger.ParseEpsilons(released); err != nil {
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
	return h, nil
}

// damageOf is why nothing can be built on a holdout, or nil.
func (l *Ledger) damageOf(id string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.damaged[id]
}

// DeleteHoldout implements ledger.Ledger.
func (l *Ledger) DeleteHoldout(ctx context.Context, id, principal string) error {
	if damage := l.damageOf(id); damage != nil {
		return damage // its last entry would go behind a wrong head
	}
	return l.oneByOne(ctx, func(ctx context.Context, tx pgx.Tx) error {
		b, err := findBooks(ctx, tx, id)
		if err != nil || b.Deleted {
			return err
		}
		return l.endHoldout(ctx, tx, b, principal)
	})
}

// findBooks reads a holdout's books in a transaction, or is ledger.ErrNotFound. The state stays where it is.
func findBooks(ctx context.Context, tx pgx.Tx, id string) (*books, error) {
	b := &books{Books: ledger.Books{ID: id}}
	var scan bookScan
	err := tx.QueryRow(ctx, "SELECT "+bookColumns+" FROM holdouts JOIN books ON holdout = number WHERE id = $1", id).Scan(scan.into(b)...)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, fmt.Errorf("%w: holdout %q", ledger.ErrNotFound, id)
	}
	if err != nil {
		return nil, err
	}
	return b, scan.finish(b)
}

// endHoldout ends a holdout's chain and erases its secret and its state. It is errMoved where something was recorded since the books were read.
func (l *Ledger) endHoldout(ctx context.Context, tx pgx.Tx, b *books, principal string) error {
	last, err := b.Deletion(principal, time.Now())
	if err != nil {
		return err
	}
	var ended bool
	err = tx.QueryRow(ctx, "SELECT end_holdout($1, $2, $3, $4, $5, $6, $7, $8, $9)", b.number, b.Seq, int64(last.Version), last.Time.UnixNano(), last.Principal,
		last.Debit.Text(), last.Spent.Text(), last.Body, last.Head[:]).Scan(&ended)
	if err == nil && !ended {
		err = errMoved
	}
	l.doubt(b.ID)
	return err
}
