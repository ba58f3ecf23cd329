package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// CreateKey implements ledger.Ledger.
func (l *Ledger) CreateKey(ctx context.Context, k ledger.Key) error {
	return l.createKey(ctx, k, "id = $1 OR hash = $2", []byte(k.ID), k.Hash[:])
}

// FirstKey implements ledger.Ledger.
func (l *Ledger) FirstKey(ctx context.Context, k ledger.Key) error {
	return l.createKey(ctx, k, "true")
}

// createKey records a key if there is none that it must not stand beside.
func (l *Ledger) createKey(ctx context.Context, k ledger.Key, beside string, args ...any) error {
	if k.Created.IsZero() {
		k.Created = time.Now()
	}
	if err := k.Check(); err != nil {
		return err
	}
	var holdouts [][]byte // nil is NULL
	for _, id := range k.Holdouts {
		holdouts = append(holdouts, []byte(id))
	}
	return l.creating(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var known bool
		if err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM holdoutd.keys WHERE "+beside+")", args...).Scan(&known); err != nil {
			return err
		}
		if known {
			return fmt.Errorf("%w: key %q", ledger.ErrExists, k.ID)
		}
		_, err := tx.Exec(ctx, "SELECT holdoutd.insert_key($1, $2, $3, $4, $5, $6, $7, $8)",
			[]byte(k.ID), []byte(k.Name), []byte(k.Scope), k.Created.UnixNano(), k.Hash[:], k.Revoked, holdouts, k.OnlyGranted)
		return err
	})
}

// Keys implements ledger.Ledger.
func (l *Ledger) Keys(ctx context.Context) ([]ledger.Key, error) {
	return readAll(ctx, l.readers, scanKey, keyColumns+"ORDER BY created, id")
}

// KeyByHash implements ledger.Ledger.
func (l *Ledger) KeyByHash(ctx context.Context, hash [32]byte) (ledger.Key, bool, error) {
	return readOne(ctx, l.readers, scanKey, keyColumns+"WHERE hash = $1 AND NOT revoked", hash[:])
}

// RevokeKey implements ledger.Ledger.
func (l *Ledger) RevokeKey(ctx context.Context, id string) error {
	return l.alone(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var known bool
		err := tx.QueryRow(ctx, "SELECT holdoutd.revoke_key($1)", []byte(id)).Scan(&known)
		if err == nil && !known {
			return fmt.Errorf("%w: key %q", ledger.ErrNotFound, id)
		}
		return err
	})
}

const keyColumns = "SELECT id, name, scope, created, hash, revoked, holdouts, only_granted FROM holdoutd.keys "

func scanKey(row pgx.Row) (k ledger.Key, err error) {
	var created int64
	var id, name, scope, hash []byte
	var holdouts [][]byte
	if err := row.Scan(&id, &name, &scope, &created, &hash, &k.Revoked, &holdouts, &k.OnlyGranted); err != nil {
		return ledger.Key{}, err
	}
	for _, id := range holdouts {
		k.Holdouts = append(k.Holdouts, string(id))
	}
	k.ID, k.Name, k.Scope, k.Created = string(id), string(name), string(scope), time.Unix(0, created).UTC()
	copy(k.Hash[:], hash) // 32 bytes by the table's CHECK
	return k, nil
}

// EndSession implements ledger.Ledger.
func (l *Ledger) EndSession(ctx context.Context, id [32]byte, until time.Time) error {
	if !time.Unix(0, until.UnixNano()).Equal(until) {
		return fmt.Errorf("%w: time %v is before 1678 or after 2261", ledger.ErrInvalid, until)
	}
	return l.alone(ctx, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "SELECT holdoutd.end_session($1, $2)", id[:], until.UnixNano())
		return err
	})
}

// SessionEnded implements ledger.Ledger.
func (l *Ledger) SessionEnded(ctx context.Context, id [32]byte) (bool, error) {
	ended, _, err := readOne(ctx, l.readers, func(row pgx.Row) (ended bool, err error) { return ended, row.Scan(&ended) },
		"SELECT EXISTS (SELECT FROM holdoutd.ended_sessions WHERE id = $1)", id[:])
	return ended, err
}
