package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

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
	return l.oneByOne(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var number int64
		var room ledger.Room
		err := tx.QueryRow(ctx, `SELECT number, deleted, EXISTS (SELECT 1 FROM keys WHERE id = $1), EXISTS (SELECT 1 FROM grants WHERE id = $2 OR holdout = number AND key = $1)
			FROM holdouts JOIN books ON holdout = number WHERE id = $3`, g.Key, g.ID, g.Holdout).Scan(&number, &room.Deleted, &room.Key, &room.Known)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
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
		var parent *string
		if g.Parent != "" {
			parent = &g.Parent
		}
		var expires *int64
		if !g.Expires.IsZero() {
			expires = new(g.Expires.UnixNano())
		}
		_, err = tx.Exec(ctx, "SELECT create_grant($1, $2, $3, $4, $5, $6, $7, $8)", g.ID, g.Key, number, parent, g.Limits.Text(), g.Shows, g.Created.UnixNano(), expires)
		return err
	})
}

// Grants implements ledger.Ledger. No server remembers a grant: one that was revoked at another server has no rights here from that moment on.
func (l *Ledger) Grants(ctx context.Context, holdout string) ([]ledger.Grant, error) {
	return readAll(ctx, l.readers, scanGrant, grantColumns+"WHERE $1 IN ('', h.id) ORDER BY g.created, g.id", holdout)
}

// RevokeGrant implements ledger.Ledger.
func (l *Ledger) RevokeGrant(ctx context.Context, id string) error {
	return l.alone(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var known bool
		err := tx.QueryRow(ctx, "SELECT revoke_grant($1)", id).Scan(&known)
		if err == nil && !known {
			return fmt.Errorf("%w: grant %q", ledger.ErrNotFound, id)
		}
		return err
	})
}

// Debits implements ledger.Ledger.
func (l *Ledger) Debits(ctx context.Context, id string, after int64) (by map[string]ledger.Meters, last int64, err error) {
	debits, err := readAll(ctx, l.readers, scanDebits, `SELECT e.principal, m.key, sum(m.value::bigint)::bigint, max(e.seq) FROM entries e JOIN holdouts h ON h.number = e.holdout, json_each_text(e.debit::json) m
		WHERE h.id = $1 AND e.seq > $2 AND e.kind IN ('answer', 'void') GROUP BY e.principal, m.key`, id, after)
	if err != nil {
		return nil, 0, err
	}
	by, last = ledger.SumDebits(debits, after)
	return by, last, nil
}

func scanDebits(row pgx.Row) (d ledger.DebitSum, err error) {
	err = row.Scan(&d.Principal, &d.Meter, &d.Amount, &d.Last)
	return d, err
}

const grantColumns = "SELECT g.id, g.key, h.id, coalesce(g.parent, ''), g.limits, g.shows, g.created, g.expires, g.revoked OR k.revoked FROM grants g JOIN holdouts h ON h.number = g.holdout JOIN keys k ON k.id = g.key "

func scanGrant(row pgx.Row) (g ledger.Grant, err error) {
	var limits string
	var created int64
	var expires *int64
	if err := row.Scan(&g.ID, &g.Key, &g.Holdout, &g.Parent, &limits, &g.Shows, &created, &expires, &g.Revoked); err != nil {
		return g, err
	}
	g.Created = time.Unix(0, created).UTC()
	if expires != nil {
		g.Expires = time.Unix(0, *expires).UTC()
	}
	return g, json.Unmarshal([]byte(limits), &g.Limits)
}
