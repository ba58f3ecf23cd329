package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// CreateKey implements ledger.Ledger.
func (l *Ledger) CreateKey(ctx context.Context, k ledger.Key) error {
	if k.Created.IsZero() {
		k.Created = time.Now()
	}
	if err := k.Check(); err != nil {
		return err
	}
	return l.lasting(ctx, func(ctx context.Context, tx *sql.Tx) error {
		var known, revoked bool
		if err := tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM keys WHERE id = ? OR hash = ? OR subject <> '' AND revoked = 0 AND (issuer, claim, subject) = (?, ?, ?)),
			EXISTS (SELECT 1 FROM keys WHERE id = ? AND revoked <> 0)`,
			k.ID, k.Hash[:], k.Subject.Issuer, k.Subject.Claim, k.Subject.Value, k.By).Scan(&known, &revoked); err != nil {
			return err
		}
		if revoked {
			return ledger.ErrRevoked
		}
		if known {
			return fmt.Errorf("%w: key %q, or one of its subject", ledger.ErrExists, k.ID)
		}
		_, err := tx.ExecContext(ctx, "INSERT INTO keys (id, name, scope, created, hash, revoked, issuer, claim, subject, maker) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
			k.ID, k.Name, k.Scope, k.Created.UnixNano(), k.Hash[:], k.Revoked, k.Subject.Issuer, k.Subject.Claim, k.Subject.Value, k.By)
		return err
	})
}

// Keys implements ledger.Ledger.
func (l *Ledger) Keys(ctx context.Context) (keys []ledger.Key, err error) {
	if err := l.ours(); err != nil {
		return nil, err
	}
	defer func() { l.distrust(err) }()
	columns, err := l.keyColumns(ctx)
	if err != nil {
		return nil, err
	}
	return readAll(ctx, l.readers, scanKey, columns+"ORDER BY created, id")
}

// KeyByHash implements ledger.Ledger.
func (l *Ledger) KeyByHash(ctx context.Context, hash [32]byte) (k ledger.Key, ok bool, err error) {
	return l.key(ctx, "WHERE hash = ? AND revoked = 0", hash[:])
}

// KeyBySubject implements ledger.Ledger.
func (l *Ledger) KeyBySubject(ctx context.Context, s ledger.Subject) (k ledger.Key, ok bool, err error) {
	return l.key(ctx, "WHERE issuer = ? AND claim = ? AND subject = ? AND subject <> '' AND revoked = 0", s.Issuer, s.Claim, s.Value)
}

func (l *Ledger) key(ctx context.Context, where string, args ...any) (k ledger.Key, ok bool, err error) {
	if err := l.ours(); err != nil {
		return k, false, err
	}
	defer func() { l.distrust(err) }()
	columns, err := l.keyColumns(ctx)
	if err != nil {
		return k, false, err
	}
	k, err = scanKey(l.readers.QueryRowContext(ctx, columns+where, args...))
	if errors.Is(err, sql.ErrNoRows) {
		return ledger.Key{}, false, nil
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

const keyColumns = "SELECT id, name, scope, created, hash, revoked, issuer, claim, subject, maker FROM keys "

// keyColumns selects what scanKey reads. In a ledger of the schema before subjects, where it can only be read, each key has a secret; in one before makers nobody says who made it.
func (l *Ledger) keyColumns(ctx context.Context) (string, error) {
	subjects, makers := true, true
	if l.replayOnly {
		if err := l.readers.QueryRowContext(ctx, "SELECT coalesce(sum(name = 'subject'), 0), coalesce(sum(name = 'maker'), 0) FROM pragma_table_info('keys')").Scan(&subjects, &makers); err != nil {
			return "", wrapRead(err)
		}
	}
	switch {
	case makers:
		return keyColumns, nil
	case subjects:
		return "SELECT * FROM (SELECT id, name, scope, created, hash, revoked, issuer, claim, subject, '' AS maker FROM keys) ", nil
	}
	return "SELECT * FROM (SELECT id, name, scope, created, hash, revoked, '' AS issuer, '' AS claim, '' AS subject, '' AS maker FROM keys) ", nil
}

func scanKey(row scanner) (k ledger.Key, err error) {
	var created int64
	var hash []byte
	if err := row.Scan(&k.ID, &k.Name, &k.Scope, &created, &hash, &k.Revoked, &k.Subject.Issuer, &k.Subject.Claim, &k.Subject.Value, &k.By); err != nil {
		return ledger.Key{}, err
	}
	k.Created = time.Unix(0, created).UTC()
	copy(k.Hash[:], hash) // 32 bytes by the table's CHECK
	return k, nil
}
