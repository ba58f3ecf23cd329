package postgres

import (
	"context"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/holdout/ledger/internal/stored"
)

// Verify recomputes the chains and the books of all holdouts of the ledger that a URL names, in the order of their creation. It reads only, needs no
// server key, and may run while servers use the ledger: it sees one moment of it. A standby will do, too.
func Verify(ctx context.Context, url string) (reports []ledger.Report, err error) {
	err = reading(ctx, url, func(tx pgx.Tx) error {
		reports, err = verifyMoment(ctx, tx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return reports, nil
}

// verifyMoment is Verify in a transaction.
func verifyMoment(ctx context.Context, tx pgx.Tx) (reports []ledger.Report, err error) {
	rows, err := readRows(ctx, tx, "ORDER BY h.number")
	if err != nil {
		return nil, err
	}
	for i := range rows {
		chain := rows[i].chain(ctx, tx, math.MaxInt64)
		if chain.Grants, err = readGrants(ctx, tx, math.MinInt64, "WHERE g.holdout = $2", rows[i].number); err != nil {
			return nil, err
		}
		chain.Entries = stored.Completed(chain.Entries, func(page []ledger.Entry) error { return addPayers(ctx, tx, rows[i].number, page) })
		report, err := chain.Verify()
		if err != nil {
			return nil, err
		}
		reports = append(reports, report)
	}
	return reports, nil
}

// VerifySealed opens the sealed values of all holdouts of the ledger that a URL names with the server key. It fails with
// ledger.ErrWrongKey, or with a *ledger.CorruptError that names the first that does not open. It reads only.
func VerifySealed(ctx context.Context, url string, key [32]byte) error {
	return reading(ctx, url, func(tx pgx.Tx) error { return verifySealed(ctx, tx, key) })
}

// verifySealed is VerifySealed in a transaction.
func verifySealed(ctx context.Context, tx pgx.Tx, key [32]byte) error {
	s := ledger.Sealer{Key: key}
	var check []byte
	if err := tx.QueryRow(ctx, "SELECT value FROM holdoutd.meta WHERE name = 'key-check'").Scan(&check); err != nil {
		return wrapRead(err)
	}
	if _, err := s.Open(check, ledger.KeyCheck); err != nil {
		return fmt.Errorf("%w: the ledger was sealed with another one", ledger.ErrWrongKey)
	}
	type sealed struct {
		id, secret, state []byte
		seq               int64
	}
	all, err := readAll(ctx, tx, func(row pgx.Row) (v sealed, err error) { return v, row.Scan(&v.id, &v.seq, &v.secret, &v.state) },
		"SELECT h.id, b.seq, h.secret, b.state FROM holdoutd.holdouts h JOIN holdoutd.books b ON b.holdout = h.number WHERE NOT b.deleted ORDER BY h.number")
	if err != nil {
		return err
	}
	for _, v := range all {
		if _, err := s.Open(v.secret, ledger.SecretOf(string(v.id))); err != nil {
			return &ledger.CorruptError{Holdout: string(v.id), Seq: -1, Reason: "secret", Err: err}
		}
		if _, err := s.Open(v.state, ledger.StateAfter(v.seq, string(v.id))); err != nil {
			return &ledger.CorruptError{Holdout: string(v.id), Seq: v.seq, Reason: "mechanism state", Err: err}
		}
	}
	return nil
}

// reading runs do on one moment of a ledger that this program knows, after a look for rows without the rows that they belong to.
func reading(ctx context.Context, url string, do func(tx pgx.Tx) error) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return fmt.Errorf("ledger: verify: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		version, _, err := schemaOf(ctx, tx)
		if err == nil {
			err = checkVersion(version)
		}
		if err != nil {
			return wrapRead(err)
		}
		for reason, count := range map[string]string{
			"%d entries belong to no holdout":   "SELECT count(*) FROM holdoutd.entries WHERE holdout NOT IN (SELECT number FROM holdoutd.holdouts)",
			"%d books belong to no holdout":     "SELECT count(*) FROM holdoutd.books WHERE holdout NOT IN (SELECT number FROM holdoutd.holdouts)",
			"%d holdouts have no books":         "SELECT count(*) FROM holdoutd.holdouts WHERE number NOT IN (SELECT holdout FROM holdoutd.books)",
			"%d grants belong to no books":      "SELECT count(*) FROM holdoutd.grants WHERE holdout NOT IN (SELECT holdout FROM holdoutd.books)",
			"%d amounts belong to no grant":     "SELECT count(*) FROM holdoutd.grant_meters WHERE owner NOT IN (SELECT id FROM holdoutd.grants)",
			"%d entries are paid and not there": "SELECT count(*) FROM holdoutd.payers p WHERE NOT EXISTS (SELECT FROM holdoutd.entries e WHERE e.holdout = p.holdout AND e.seq = p.seq)",
			"%d meters belong to no books":      "SELECT count(*) FROM holdoutd.meters WHERE holdout NOT IN (SELECT holdout FROM holdoutd.books)",
		} {
			var n int64
			if err := tx.QueryRow(ctx, count).Scan(&n); err != nil {
				return wrapRead(err)
			}
			if n > 0 {
				return &ledger.CorruptError{Seq: -1, Reason: fmt.Sprintf(reason, n)}
			}
		}
		return do(tx)
	})
}
