package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

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
	issuer, claim, subject := []byte(k.Subject.Issuer), []byte(k.Subject.Claim), []byte(k.Subject.Value)
	return l.oneByOne(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var known, revoked bool
		if err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM keys WHERE id = $1 OR hash = $2 OR subject <> '' AND NOT revoked AND (issuer, claim, subject) = ($3, $4, $5)),
			EXISTS (SELECT 1 FROM keys WHERE id = $6 AND revoked)`,
			k.ID, k.Hash[:], issuer, claim, subject, k.By).Scan(&known, &revoked); err != nil {
			return err
		}
		if revoked {
			return ledger.ErrRevoked
		}
		if known {
			return fmt.Errorf("%w: key %q, or one of its subject", ledger.ErrExists, k.ID)
		}
		_, err := tx.Exec(ctx, "SELECT make_key($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)", k.ID, []byte(k.Name), k.Scope, k.Created.UnixNano(), k.Hash[:], k.Revoked, issuer, claim, subject, k.By)
		return err
	})
}

// Keys implements ledger.Ledger.
func (l *Ledger) Keys(ctx context.Context) ([]ledger.Key, error) {
	return readAll(ctx, l.readers, scanKey, keyColumns+"ORDER BY created, id")
}

// KeyByHash implements ledger.Ledger. No server remembers a key: one that was revoked at another server has no rights here from that moment on.
func (l *Ledger) KeyByHash(ctx context.Context, hash [32]byte) (k ledger.Key, ok bool, err error) {
	return l.key(ctx, "WHERE hash = $1 AND NOT revoked", hash[:])
}

// KeyBySubject implements ledger.Ledger. As with KeyByHash, nothing is remembered.
func (l *Ledger) KeyBySubject(ctx context.Context, s ledger.Subject) (k ledger.Key, ok bool, err error) {
	return l.key(ctx, "WHERE issuer = $1 AND claim = $2 AND subject = $3 AND subject <> '' AND NOT revoked", []byte(s.Issuer), []byte(s.Claim), []byte(s.Value))
}

func (l *Ledger) key(ctx context.Context, where string, args ...any) (k ledger.Key, ok bool, err error) {
	k, err = scanKey(l.readers.QueryRow(ctx, keyColumns+where, args...))
	if errors.Is(err, pgx.ErrNoRows) {
		return ledger.Key{}, false, nil
	}
	return k, err == nil, wrapRead(err)
}

// RevokeKey implements ledger.Ledger.
func (l *Ledger) RevokeKey(ctx context.Context, id string) error {
	return l.alone(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var known bool
		err := tx.QueryRow(ctx, "SELECT revoke_key($1)", id).Scan(&known)
		if err == nil && !known {
			return fmt.Errorf("%w: key %q", ledger.ErrNotFound, id)
		}
		return err
	})
}

const keyColumns = "SELECT id, name, scope, created, hash, revoked, issuer, claim, subject, maker FROM keys "

func scanKey(row pgx.Row) (k ledger.Key, err error) {
	var created int64
	var name, hash, issuer, claim, subject []byte
	if err := row.Scan(&k.ID, &name, &k.Scope, &created, &hash, &k.Revoked, &issuer, &claim, &subject, &k.By); err != nil {
		return ledger.Key{}, err
	}
	k.Name, k.Created = string(name), time.Unix(0, created).UTC()
	k.Subject = ledger.Subject{Issuer: string(issuer), Claim: string(claim), Value: string(subject)}
	copy(k.Hash[:], hash) // 32 bytes by the table's CHECK
	return k, nil
}
