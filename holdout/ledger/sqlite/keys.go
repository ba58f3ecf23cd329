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

// CreateKey implements ledger.Ledger.
func (l *Ledger) CreateKey(ctx context.Context, k ledger.Key) error {
	return l.createKey(ctx, k, "id = ? OR hash = ?", k.ID, k.Hash[:])
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
	holdouts := ""
	if len(k.Holdouts) > 0 {
		list, err := json.Marshal(k.Holdouts)
		if err != nil {
			return err
		}
		holdouts = string(list)
	}
	return l.lasting(ctx, func(ctx context.Context, tx *sql.Tx) error {
		var known bool
		if err := tx.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM keys WHERE "+beside+")", args...).Scan(&known); err != nil {
			return err
		}
		if known {
			return fmt.Errorf("%w: key %q", ledger.ErrExists, k.ID)
		}
		_, err := tx.ExecContext(ctx, "INSERT INTO keys (id, name, scope, created, hash, revoked, holdouts, only_granted) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
			k.ID, k.Name, k.Scope, k.Created.UnixNano(), k.Hash[:], k.Revoked, holdouts, k.OnlyGranted)
		return err
	})
}

// Keys implements ledger.Ledger.
func (l *Ledger) Keys(ctx context.Context) ([]ledger.Key, error) {
	return readAll(ctx, l.readers, scanKey, l.schema.keyColumns()+"ORDER BY created, id")
}

// KeyByHash implements ledger.Ledger.
func (l *Ledger) KeyByHash(ctx context.Context, hash [32]byte) (ledger.Key, bool, error) {
	known, ok, epoch := l.memory.key(hash)
	if ok && ctx.Err() == nil {
		return known, true, nil
	}
	k, err := scanKey(l.readers.look(ctx, l.schema.keyColumns()+"WHERE hash = ? AND revoked = 0", hash[:]))
	if errors.Is(err, sql.ErrNoRows) {
		return ledger.Key{}, false, nil
	}
	if err == nil && !l.replayOnly { // nobody would forget it
		l.memory.keepKey(k, epoch)
	}
	return k, err == nil, wrapRead(err)
}

// RevokeKey implements ledger.Ledger.
func (l *Ledger) RevokeKey(ctx context.Context, id string) error {
	return l.lasting(ctx, func(ctx context.Context, tx *sql.Tx) error {
		done, err := tx.ExecContext(ctx, "UPDATE keys SET revoked = 1 WHERE id = ?", id)
		if err != nil {
			return err
		}
		n, err := done.RowsAffected()
		if err == nil && n == 0 {
			return fmt.Errorf("%w: key %q", ledger.ErrNotFound, id)
		}
		return err
	})
}

func (v schema) keyColumns() string {
	if v < withGrants {
		return "SELECT id, name, scope, created, hash, revoked, '', 0 FROM keys "
	}
	return "SELECT id, name, scope, created, hash, revoked, holdouts, only_granted FROM keys "
}

func scanKey(row scanner) (k ledger.Key, err error) {
	var created int64
	var hash []byte
	var holdouts string
	if err := row.Scan(&k.ID, &k.Name, &k.Scope, &created, &hash, &k.Revoked, &holdouts, &k.OnlyGranted); err != nil {
		return ledger.Key{}, err
	}
	if holdouts != "" { // of a list that cannot be read nobody may guess what it allowed
		if err := json.Unmarshal([]byte(holdouts), &k.Holdouts); err != nil || len(k.Holdouts) == 0 {
			return ledger.Key{}, &ledger.CorruptError{Seq: -1, Reason: "the holdouts of key " + k.ID, Err: err}
		}
	}
	k.Created = time.Unix(0, created).UTC()
	copy(k.Hash[:], hash) // 32 bytes by the table's CHECK
	return k, nil
}
