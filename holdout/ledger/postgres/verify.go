package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// Verify recomputes the chains and the books of all holdouts of the ledger at an address, in the order of their creation. It reads only, needs no server key, and may run while servers use the
// ledger: it sees one moment of it.
func Verify(ctx context.Context, dsn string, each ...ledger.Each) (reports []ledger.Report, err error) {
	err = snapshot(ctx, dsn, func(tx pgx.Tx) error {
		rows, err := readRows(ctx, tx, "ORDER BY number")
		if err != nil {
			return unreadable(err)
		}
		if err := countOrphans(ctx, tx); err != nil {
			return err
		}
		for i := range rows {
			chain := rows[i].chain(ctx, tx, math.MaxInt64)
			report, err := chain.Verify(each...)
			if err != nil {
				return unreadable(err)
			}
			reports = append(reports, report)
		}
		return nil
	})
	return reports, err
}

// VerifySealed opens the sealed values of all holdouts of the ledger at an address with the server key. It fails with ledger.ErrWrongKey, or with a *ledger.CorruptError that names the first
// that does not open. It reads only.
func VerifySealed(ctx context.Context, dsn string, key [32]byte) error {
	s := ledger.Sealer{Key: key}
	return snapshot(ctx, dsn, func(tx pgx.Tx) error {
		var check []byte
		if err := tx.QueryRow(ctx, "SELECT value FROM meta WHERE name = 'key-check'").Scan(&check); err != nil {
			return unreadable(err)
		}
		if _, err := s.Open(check, ledger.KeyCheck); err != nil {
			return fmt.Errorf("%w: the ledger was sealed with another one", ledger.ErrWrongKey)
		}
		type sealed struct{}
		_, err := readAll(ctx, tx, func(row pgx.Row) (none sealed, err error) {
			var id string
			var seq int64
			var secret, state []byte
			if err := row.Scan(&id, &seq, &secret, &state); err != nil {
				return none, err
			}
			if _, err := s.Open(secret, ledger.SecretOf(id)); err != nil {
				return none, &ledger.CorruptError{Holdout: id, Seq: -1, Reason: "secret", Err: err}
			}
			if _, err := s.Open(state, ledger.StateAfter(seq, id)); err != nil {
				return none, &ledger.CorruptError{Holdout: id, Seq: seq, Reason: "mechanism state", Err: err}
			}
			return none, nil
		}, "SELECT id, seq, secret, state FROM holdouts JOIN books ON holdout = number WHERE NOT deleted ORDER BY number")
		return unreadable(err)
	})
}

// snapshot runs do on one moment of the ledger.
func snapshot(ctx context.Context, dsn string, do func(tx pgx.Tx) error) error {
	a, err := parse(dsn)
	if err != nil {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, a.config)
	if err != nil {
		return fmt.Errorf("ledger: connect: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := a.checkVersion(ctx, conn); err != nil {
		return err
	}
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return fmt.Errorf("ledger: verify: %w", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // nothing was written
	return do(tx)
}

// countOrphans looks for rows without the rows that they belong to: the database keeps them together, unless someone has told it not to.
func countOrphans(ctx context.Context, tx pgx.Tx) error {
	for _, c := range []struct{ reason, count string }{
		{"%d entries belong to no holdout", "SELECT count(*) FROM entries WHERE holdout NOT IN (SELECT number FROM holdouts)"},
		{"%d books belong to no holdout", "SELECT count(*) FROM books WHERE holdout NOT IN (SELECT number FROM holdouts)"},
		{"%d holdouts have no books", "SELECT count(*) FROM holdouts WHERE number NOT IN (SELECT holdout FROM books)"},
		{"%d meters belong to no books", "SELECT count(*) FROM meters WHERE holdout NOT IN (SELECT holdout FROM books)"},
	} {
		var n int64
		if err := tx.QueryRow(ctx, c.count).Scan(&n); err != nil {
			return unreadable(err)
		}
		if n > 0 {
			return &ledger.CorruptError{Seq: -1, Reason: fmt.Sprintf(c.reason, n)}
		}
	}
	return nil
}

// unreadable says that the ledger could not be read. Of a database that is only away, or whose caller stopped, it does not say that it is corrupt.
func unreadable(err error) error {
	var known *ledger.CorruptError
	switch {
	case err == nil, errors.As(err, &known), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	return fmt.Errorf("ledger: verify: %w", err)
}
