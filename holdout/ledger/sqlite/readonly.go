package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// openForVerify opens a ledger for reading where it lies, also where nothing can be written, such as a snapshot or a
// mounted backup: SQLite wants to make an index beside a database in WAL mode. There a database without a log is opened
// as one that nobody changes, and one with a log is copied. done closes it and removes the copy.
func openForVerify(ctx context.Context, path string) (db *readers, done func() error, err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return nil, nil, fmt.Errorf("ledger: %w", err)
	}
	if _, err := os.Stat(path); err != nil {
		return nil, nil, fmt.Errorf("ledger: verify: %w", err)
	}
	db, err = tryReaders(ctx, path)
	if err == nil {
		return db, db.Close, nil
	}
	if !cannotOpen(err) {
		return nil, nil, unreadable(err)
	}
	if log, stat := os.Stat(path + "-wal"); errors.Is(stat, fs.ErrNotExist) || stat == nil && log.Size() == 0 {
		if db, again := tryReaders(ctx, path, "immutable=1"); again == nil {
			return db, db.Close, nil
		}
	}
	work, failed := os.MkdirTemp("", "holdoutd-verify-") // made with mode 0700
	if failed != nil {
		return nil, nil, fmt.Errorf("ledger: verify: %w", errors.Join(err, failed))
	}
	copied := filepath.Join(work, filepath.Base(path))
	failed = errors.Join(copyFile(copied, path), copyFile(copied+"-wal", path+"-wal"))
	if failed == nil {
		db, failed = tryReaders(ctx, copied)
	}
	if failed != nil {
		return nil, nil, fmt.Errorf("ledger: verify: %s cannot be opened (%w), nor a copy of it: %w", path, err, errors.Join(failed, os.RemoveAll(work)))
	}
	return db, func() error { return errors.Join(db.Close(), os.RemoveAll(work)) }, nil
}

// tryReaders opens the pool and reads something: SQLite opens files when it needs them.
func tryReaders(ctx context.Context, path string, more ...string) (*readers, error) {
	db, err := sql.Open("sqlite", dsn(path, append([]string{"mode=ro", "_pragma=query_only(1)"}, more...)...))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(maxReaders)
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_master").Scan(new(int)); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &readers{DB: db}, nil
}

// copyFile copies a file that may not be there.
func copyFile(to, from string) error {
	src, err := os.Open(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	return errors.Join(err, dst.Close())
}
