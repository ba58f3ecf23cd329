package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// Snapshot is one moment of a ledger file, which a server may be writing meanwhile: no later commit is in what it says. As long as it is open the
// server's log grows, for what it reads must stay.
type Snapshot struct {
	done  func() error // closes the database
	tx    *sql.Tx
	pages int64
	page  int64 // bytes of each
}

// OpenSnapshot opens the ledger file at path for reading, at this moment.
func OpenSnapshot(ctx context.Context, path string) (s *Snapshot, err error) {
	db, done, err := openForVerify(ctx, path)
	if err != nil {
		return nil, err
	}
	s = &Snapshot{done: done}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
			s = nil
		}
	}()
	if s.tx, err = db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true}); err != nil {
		return s, fmt.Errorf("ledger: snapshot: %w", err)
	}
	if err := checkVersion(ctx, s.tx); err != nil { // the first read: it fixes the moment
		return s, err
	}
	for name, value := range map[string]*int64{"page_count": &s.pages, "page_size": &s.page} {
		if err := s.tx.QueryRowContext(ctx, "PRAGMA "+name).Scan(value); err != nil {
			return s, unreadable(err)
		}
	}
	return s, nil
}

// Verify recomputes the chains and the books of this moment, in the order of the holdouts' creation.
func (s *Snapshot) Verify(ctx context.Context, each ...ledger.Each) ([]ledger.Report, error) {
	return verifyMoment(ctx, s.tx, each...)
}

// Size is the length of the file that Copy writes, in bytes.
func (s *Snapshot) Size() int64 { return s.pages * s.page }

// Copy writes the ledger of this moment as one database file that needs no log beside it.
func (s *Snapshot) Copy(ctx context.Context, w io.Writer) error {
	rows, err := s.tx.QueryContext(ctx, "SELECT pgno, data FROM sqlite_dbpage ORDER BY pgno")
	if err != nil {
		return unreadable(err)
	}
	defer rows.Close()
	next := int64(1)
	for ; rows.Next(); next++ {
		var number int64
		var page sql.RawBytes
		if err := rows.Scan(&number, &page); err != nil {
			return unreadable(err)
		}
		if number != next || int64(len(page)) != s.page {
			return &ledger.CorruptError{Seq: -1, Reason: fmt.Sprintf("page %d of the database cannot be read", next)}
		}
		if _, err := w.Write(page); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return unreadable(err)
	}
	if next-1 != s.pages {
		return &ledger.CorruptError{Seq: -1, Reason: fmt.Sprintf("the database has %d pages that can be read, and not %d", next-1, s.pages)}
	}
	return nil
}

// Close gives the moment up.
func (s *Snapshot) Close() error {
	var err error
	if s.tx != nil {
		if err = s.tx.Rollback(); errors.Is(err, sql.ErrTxDone) { // nothing was written; a context that ended has done it
			err = nil
		}
	}
	return errors.Join(err, s.done())
}
