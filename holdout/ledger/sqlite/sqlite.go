package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/pressly/goose/v3"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

//go:embed migrations/*.sql
var migrations embed.FS

// busyTimeout in milliseconds: how long SQLite waits for a lock that another process (a backup, verify) holds.
const busyTimeout = 5000

// maxReaders are the connections of the reading pool: reads are short, and more of them only wait for the processors.
const maxReaders = 8

// schemaVersion is the number of the newest migration, firstSchema that of the first: what is older was never released.
const schemaVersion, firstSchema = 10, 2

// dsn names the file and the pragmas of every connection. secure_delete overwrites what is erased with zeros.
func dsn(path string, more ...string) string {
	q := append([]string{
		fmt.Sprintf("_pragma=busy_timeout(%d)", busyTimeout),
		"_pragma=foreign_keys(1)",
		"_pragma=secure_delete(1)",
		"_pragma=trusted_schema(0)",
		"_pragma=wal_autocheckpoint(0)", // the writer copies the log itself, once it has been checked
	}, more...)
	return "file://" + (&url.URL{Path: path}).EscapedPath() + "?" + strings.Join(q, "&")
}

// openWriter opens the one connection that writes.
func openWriter(ctx context.Context, path string, more ...string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", dsn(path, append(more, "_txlock=immediate", "_pragma=journal_mode(WAL)", "_pragma=synchronous(FULL)", "_pragma=fullfsync(1)", "_pragma=checkpoint_fullfsync(1)")...))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // the pragmas that are read back are those of the connection that commits
	if err := checkPragmas(ctx, db); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// readers is the pool of connections that cannot write.
type readers struct {
	*sql.DB
	prepared sync.Map // text -> *sql.Stmt; closed with the pool
}

// openReaders opens the pool.
func openReaders(path string, more ...string) (*readers, error) {
	db, err := sql.Open("sqlite", dsn(path, append(more, "mode=ro", "_pragma=query_only(1)")...))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(maxReaders + 1) // and the keeper
	db.SetMaxIdleConns(maxReaders + 1)
	return &readers{DB: db}, nil
}

// QueryRowContext reads one row, QueryContext rows, by a statement that is prepared once: parsing the SQL of every look-up was a sixth of an answer's time.
func (r *readers) QueryRowContext(ctx context.Context, text string, args ...any) *sql.Row {
	stmt, err := r.prepare(ctx, text)
	if err != nil {
		return r.DB.QueryRowContext(ctx, text, args...) // says the same
	}
	return stmt.QueryRowContext(ctx, args...)
}

func (r *readers) QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	stmt, err := r.prepare(ctx, text)
	if err != nil {
		return nil, err
	}
	return stmt.QueryContext(ctx, args...)
}

// prepare is the statement of a text. There are as many texts as this package has.
func (r *readers) prepare(ctx context.Context, text string) (*sql.Stmt, error) {
	if stmt, ok := r.prepared.Load(text); ok {
		return stmt.(*sql.Stmt), nil
	}
	stmt, err := r.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	if first, loaded := r.prepared.LoadOrStore(text, stmt); loaded {
		stmt.Close()
		stmt = first.(*sql.Stmt)
	}
	return stmt, nil
}

// checkPragmas reads back what durability rests on. A file system without shared memory, for one, leaves SQLite in
// another journal mode without an error.
func checkPragmas(ctx context.Context, db *sql.DB) error {
	for _, p := range []struct{ name, want string }{
		{"journal_mode", "wal"}, {"synchronous", "2"}, {"fullfsync", "1"}, {"checkpoint_fullfsync", "1"}, // macOS: fsync alone leaves data in the disk's own memory
		{"foreign_keys", "1"}, {"secure_delete", "1"},
	} {
		var got string
		if err := db.QueryRowContext(ctx, "PRAGMA "+p.name).Scan(&got); err != nil {
			return fmt.Errorf("ledger: read back %s: %w", p.name, err)
		}
		if got != p.want {
			return fmt.Errorf("ledger: SQLite runs with %s=%s, not %s: a debit would not be durable here; put the data directory on a local file system", p.name, got, p.want)
		}
	}
	return nil
}

// migrate brings the schema to schemaVersion, and refuses a ledger from the future.
func migrate(ctx context.Context, db *sql.DB) error {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	// The provider is not closed: that would close db.
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, files, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return fmt.Errorf("ledger: migrations: %w", err)
	}
	version, err := provider.GetDBVersion(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("ledger: schema version: %w", err)
	case version == schemaVersion:
		return nil
	}
	if version > schemaVersion || version > 0 && version < firstSchema { // 0: a new file
		return &ledger.VersionError{What: "the ledger's database", Got: version, Known: schemaVersion}
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("ledger: migrate: %w", err)
	}
	return nil
}

// checkVersion refuses to read a schema that this program does not know. All known ones can be read where nothing can be written, so that an old
// backup is verified and replayed as it lies: the second has no notes, the third no outcomes, the fourth no closings, the fifth no grants, the sixth no retirements,
// the seventh no subjects of keys, the eighth no releases, the ninth nobody who made a key.
func checkVersion(ctx context.Context, db interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}) error {
	var version int64
	if err := db.QueryRowContext(ctx, "SELECT max(version_id) FROM goose_db_version").Scan(&version); err != nil {
		return fmt.Errorf("ledger: not a ledger, or it cannot be read: %w", err)
	}
	if version > schemaVersion || version < firstSchema {
		return &ledger.VersionError{What: "the ledger's database", Got: version, Known: schemaVersion}
	}
	return nil
}

// settle makes what an earlier run or a failed commit left in the write-ahead log durable, or fails: with a *brokenLog where it is not what was written.
//
// After a failed fsync Linux calls the pages clean that it could not write. Frames of the log can then be readable
// (from the page cache) and yet not be on the disk, and a later fsync would not write them: commits behind them, though
// synced, would be lost with the machine. So before anything is built on the log its frames are copied into the
// database, which is synced, and the log is cut to nothing; the next commit writes it anew from its first byte.
func (l *Ledger) settle(ctx context.Context) error {
	if err := l.checkFiles(); err != nil {
		return err
	}
	if _, err := l.checkLog(ctx, true); err != nil {
		return err
	}
	if err := truncateLog(ctx, l.writer.db); err != nil || !l.own.asked {
		return err
	}
	// What the owner before may still have open shall be files without a name: SQLite removes the log and its index with its last connection.
	if err := l.closeWriter(); err != nil {
		return err
	}
	db, err := openWriter(ctx, l.path, l.vfs()...)
	if err != nil {
		return err
	}
	l.writer.db, l.own.asked = db, false
	return nil
}

// truncateLog copies the log into the database, and cuts it to nothing.
func truncateLog(ctx context.Context, db *sql.DB) error {
	var busy, frames, copied int
	if err := db.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &frames, &copied); err != nil {
		return fmt.Errorf("ledger: checkpoint: %w", err)
	}
	if busy != 0 {
		return errors.New("ledger: checkpoint: another program reads the database; wait until it has finished (verify, a backup)")
	}
	return nil
}

// create makes an empty file that only its owner can read, if there is none, and makes its name durable. SQLite gives
// its -wal and -shm files the same mode, and syncs the directory for them itself.
func create(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return errors.Join(fmt.Errorf("ledger: %w", err), f.Close())
	}
	if err := errors.Join(f.Sync(), f.Close(), dir.Sync(), dir.Close()); err != nil {
		return fmt.Errorf("ledger: make %s durable: %w", path, err)
	}
	return nil
}

// code is the class of SQLite's error, or -1.
func code(err error) int {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return -1
	}
	return e.Code() & 0xff
}

// cannotOpen reports whether SQLite could not open or write a file that it needs.
func cannotOpen(err error) bool {
	switch code(err) {
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_PERM:
		return true
	}
	return false
}

// noRoom reports whether a write failed where reading may still do.
func noRoom(err error) bool {
	var e *sqlite.Error
	return code(err) == sqlite3.SQLITE_FULL || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.As(err, &e) && (e.Code() == sqlite3.SQLITE_IOERR_WRITE || e.Code() == sqlite3.SQLITE_IOERR_FSYNC)
}

// checkAccess looks at the files before SQLite does: it would make a log with the mode of a database that cannot be written,
// and the next start would fail for that. Files that are not there yet are made in the directory, if that can be written.
func checkAccess(path string) error {
	for _, suffix := range fileSuffixes {
		f, err := os.OpenFile(path+suffix, os.O_RDWR, 0)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return inaccessible(path+suffix, err)
		}
		if err := f.Close(); err != nil {
			return inaccessible(path+suffix, err)
		}
	}
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, ".access-*")
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return inaccessible(dir, err)
	case err == nil:
		err = errors.Join(f.Close(), os.Remove(f.Name()))
	}
	if err != nil && !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) { // recorded answers need no room
		return inaccessible(dir, err)
	}
	return nil
}

// inaccessible names the file, its mode, and what the system says.
func inaccessible(name string, err error) error {
	mode := "not there"
	if info, stat := os.Stat(name); stat == nil {
		mode = fmt.Sprintf("mode %04o", info.Mode().Perm())
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return fmt.Errorf("ledger: %s (%s) cannot be read and written by this user: %w", name, mode, err)
}

// outOfOrder reports whether the machine failed, and not the database: the same may succeed later.
func outOfOrder(err error) bool {
	switch code(err) {
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_INTERRUPT:
		return true
	}
	return cannotOpen(err)
}

// failedRead reports whether a read failed because of the database's files. A failing disk can look like a malformed database.
func failedRead(err error) bool {
	switch code(err) {
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return true
	}
	return false
}

// malformed reports whether what was read is no database, or no part of one.
func malformed(err error) bool {
	return code(err) == sqlite3.SQLITE_CORRUPT || code(err) == sqlite3.SQLITE_NOTADB
}

// refused reports whether the database itself refused a statement (a CHECK, a UNIQUE, a trigger) and is otherwise well.
func refused(err error) bool {
	return code(err) == sqlite3.SQLITE_CONSTRAINT
}
