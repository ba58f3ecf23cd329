package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// Verify recomputes the chains and the books of all holdouts of the ledger file at path, in the order of their
// creation. It reads only, needs no server key, and may run while a server uses the file: it sees one moment of it.
func Verify(ctx context.Context, path string, each ...ledger.Each) ([]ledger.Report, error) {
	db, done, err := openForVerify(ctx, path)
	if err != nil {
		return nil, err
	}
	reports, err := verifyDatabase(ctx, db.DB, each...)
	return reports, errors.Join(err, done())
}

// VerifySealed opens the sealed values of all holdouts of the ledger file at path with the server key. It fails with
// ledger.ErrWrongKey, or with a *ledger.CorruptError that names the first that does not open. It reads only.
func VerifySealed(ctx context.Context, path string, key [32]byte) error {
	db, done, err := openForVerify(ctx, path)
	if err != nil {
		return err
	}
	return errors.Join(verifySealed(ctx, db, ledger.Sealer{Key: key}), done())
}

func verifySealed(ctx context.Context, db *readers, s ledger.Sealer) error {
	var check []byte
	if err := db.QueryRowContext(ctx, "SELECT value FROM meta WHERE name = 'key-check'").Scan(&check); err != nil {
		return unreadable(err)
	}
	if _, err := s.Open(check, ledger.KeyCheck); err != nil {
		return fmt.Errorf("%w: the ledger was sealed with another server key", ledger.ErrWrongKey)
	}
	rows, err := db.QueryContext(ctx, "SELECT id, seq, secret, state FROM holdouts JOIN books ON holdout = number WHERE deleted = 0 ORDER BY number")
	if err != nil {
		return unreadable(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		var seq int64
		var secret, state []byte
		if err := rows.Scan(&id, &seq, &secret, &state); err != nil {
			return unreadable(err)
		}
		if _, err := s.Open(secret, ledger.SecretOf(id)); err != nil {
			return &ledger.CorruptError{Holdout: id, Seq: -1, Reason: "secret", Err: err}
		}
		if _, err := s.Open(state, ledger.StateAfter(seq, id)); err != nil {
			return &ledger.CorruptError{Holdout: id, Seq: seq, Reason: "mechanism state", Err: err}
		}
	}
	if err := rows.Err(); err != nil {
		return unreadable(err)
	}
	return nil
}

func verifyDatabase(ctx context.Context, db *sql.DB, each ...ledger.Each) ([]ledger.Report, error) {
	tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, fmt.Errorf("ledger: verify: %w", err)
	}
	defer tx.Rollback() // nothing was written
	return verifyMoment(ctx, tx, each...)
}

// verifyMoment verifies what one transaction sees.
func verifyMoment(ctx context.Context, tx *sql.Tx, each ...ledger.Each) ([]ledger.Report, error) {
	if err := checkIntegrity(ctx, tx); err != nil {
		return nil, err
	}
	rows, err := readRows(ctx, tx, "ORDER BY number")
	if err != nil {
		return nil, unreadable(err)
	}
	var reports []ledger.Report
	for i := range rows {
		chain := rows[i].chain(ctx, tx, math.MaxInt64)
		report, err := chain.Verify(each...)
		if err != nil {
			return nil, unreadable(err)
		}
		reports = append(reports, report)
	}
	return reports, nil
}

// checkIntegrity asks SQLite about the file's structure, and looks for rows without the rows that they belong to.
func checkIntegrity(ctx context.Context, tx *sql.Tx) error {
	var verdict string
	if err := tx.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&verdict); err != nil {
		return unreadable(err)
	}
	if verdict != "ok" {
		return &ledger.CorruptError{Seq: -1, Reason: "the database file is damaged: " + verdict}
	}
	if err := checkVersion(ctx, tx); err != nil {
		return err
	}
	for reason, count := range map[string]string{
		"%d entries belong to no holdout": "SELECT count(*) FROM entries WHERE holdout NOT IN (SELECT number FROM holdouts)",
		"%d books belong to no holdout":   "SELECT count(*) FROM books WHERE holdout NOT IN (SELECT number FROM holdouts)",
		"%d holdouts have no books":       "SELECT count(*) FROM holdouts WHERE number NOT IN (SELECT holdout FROM books)",
		"%d meters belong to no books":    "SELECT count(*) FROM meters WHERE holdout NOT IN (SELECT holdout FROM books)",
	} {
		var n int64
		if err := tx.QueryRowContext(ctx, count).Scan(&n); err != nil {
			return unreadable(err)
		}
		if n > 0 {
			return &ledger.CorruptError{Seq: -1, Reason: fmt.Sprintf(reason, n)}
		}
	}
	return nil
}

// unreadable says that the database could not be read, which is corruption unless it was the caller who stopped.
func unreadable(err error) error {
	var known *ledger.CorruptError
	if errors.As(err, &known) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &ledger.CorruptError{Seq: -1, Reason: "the database cannot be read", Err: err}
}
