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

// CreateGrant implements ledger.Ledger.
func (l *Ledger) CreateGrant(ctx context.Context, g ledger.Grant) error {
	if g.Created.IsZero() {
		g.Created = time.Now()
	}
	if err := g.Check(); err != nil {
		return err
	}
	return l.lasting(ctx, func(ctx context.Context, tx *sql.Tx) error {
		var number int64
		var room ledger.Room
		err := tx.QueryRowContext(ctx, `SELECT number, deleted, EXISTS (SELECT 1 FROM keys WHERE id = ?), EXISTS (SELECT 1 FROM grants WHERE id = ? OR holdout = number AND key = ?)
			FROM holdouts JOIN books ON holdout = number WHERE id = ?`, g.Key, g.ID, g.Key, g.Holdout).Scan(&number, &room.Deleted, &room.Key, &room.Known)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return fmt.Errorf("%w: holdout %q", ledger.ErrNotFound, g.Holdout)
		case err != nil:
			return err
		}
		all, err := readAll(ctx, tx, scanGrant, grantColumns)
		if err != nil {
			return err
		}
		if err := g.Fits(room, all); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "INSERT INTO grants (id, key, holdout, parent, limits, shows, created, expires, revoked) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0)",
			g.ID, g.Key, number, sql.NullString{String: g.Parent, Valid: g.Parent != ""}, g.Limits.Text(), g.Shows, g.Created.UnixNano(), sql.NullInt64{Int64: g.Expires.UnixNano(), Valid: !g.Expires.IsZero()})
		return err
	})
}

// Grants implements ledger.Ledger. A ledger of the schema before grants, where it can only be read, has none.
func (l *Ledger) Grants(ctx context.Context, holdout string) (all []ledger.Grant, err error) {
	if err := l.ours(); err != nil {
		return nil, err
	}
	defer func() { l.distrust(err) }()
	if l.replayOnly {
		var kept bool
		if err := l.readers.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'grants'").Scan(&kept); err != nil || !kept {
			return nil, wrapRead(err)
		}
	}
	return readAll(ctx, l.readers, scanGrant, grantColumns+"WHERE ? IN ('', h.id) ORDER BY g.created, g.id", holdout)
}

// RevokeGrant implements ledger.Ledger.
func (l *Ledger) RevokeGrant(ctx context.Context, id string) error {
	return l.lasting(ctx, func(ctx context.Context, tx *sql.Tx) error {
		done, err := tx.ExecContext(ctx, "UPDATE grants SET revoked = 1 WHERE id = ?", id)
		if err != nil {
			return err
		}
		n, err := done.RowsAffected()
		if err == nil && n == 0 {
			return fmt.Errorf("%w: grant %q", ledger.ErrNotFound, id)
		}
		return err
	})
}

// Debits implements ledger.Ledger.
func (l *Ledger) Debits(ctx context.Context, id string, after int64) (by map[string]ledger.Meters, last int64, err error) {
	if err := l.ours(); err != nil {
		return nil, 0, err
	}
	defer func() { l.distrust(err) }()
	debits, err := readAll(ctx, l.readers, scanDebits, `SELECT e.principal, m.key, sum(m.value), max(e.seq) FROM entries e JOIN holdouts h ON h.number = e.holdout, json_each(e.debit) m
		WHERE h.id = ? AND e.seq > ? AND e.kind IN ('answer', 'void') GROUP BY e.principal, m.key`, id, after)
	if err != nil {
		return nil, 0, err
	}
	by, last = ledger.SumDebits(debits, after)
	return by, last, nil
}

func scanDebits(row scanner) (d ledger.DebitSum, err error) {
	err = row.Scan(&d.Principal, &d.Meter, &d.Amount, &d.Last)
	return d, err
}

const grantColumns = "SELECT g.id, g.key, h.id, coalesce(g.parent, ''), g.limits, g.shows, g.created, g.expires, g.revoked OR k.revoked FROM grants g JOIN holdouts h ON h.number = g.holdout JOIN keys k ON k.id = g.key "

func scanGrant(row scanner) (g ledger.Grant, err error) {
	var limits string
	var created int64
	var expires sql.NullInt64
	if err := row.Scan(&g.ID, &g.Key, &g.Holdout, &g.Parent, &limits, &g.Shows, &created, &expires, &g.Revoked); err != nil {
		return g, err
	}
	g.Created = time.Unix(0, created).UTC()
	if expires.Valid {
		g.Expires = time.Unix(0, expires.Int64).UTC()
	}
	return g, json.Unmarshal([]byte(limits), &g.Limits)
}
