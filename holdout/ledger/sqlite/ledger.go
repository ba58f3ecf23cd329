package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// Ledger is an open ledger in a file.
type Ledger struct {
	path       string
	replayOnly bool
	mustExist  bool
	sealer     ledger.Sealer
	log        *slog.Logger
	disk       ledger.Disk
	locked     io.Closer
	own        *ownership // nil: replay only, or not yet taken
	readers    *readers
	keeper     *sql.Conn // is never used: the last connection to be closed would copy the log, and this is it while the ledger is open

	mu     sync.RWMutex // guards closed; held for reading while a request is queued
	closed bool
	queue  chan *request
	ended  chan struct{} // closed when the writer has ended

	damaged map[string]error // holdouts whose books cannot be built on; not changed once the ledger is open

	committed atomic.Int64 // when the last commit succeeded, in nanoseconds since 1970; 0 while the writer is down

	files atomic.Pointer[openFiles] // of the writer's connection; nil while it is down

	writer writer // the writer goroutine's own

	unread atomic.Pointer[error] // why a read failed after which the ledger was not read again; nil: it can be read

	told   func(id string, seq int64, head string) // Options.Committed
	halted func()                                  // Options.Halted

	// fault is asked before and after steps of a commit; tests make it fail. Nil outside of tests.
	fault func(step string) error
}

// queueSize is how many requests wait before their callers do; two groups keep the writer busy.
const queueSize = 2 * maxGroup

// freshFor is how long a commit vouches for the next one in Ready.
const freshFor = time.Second

var _ ledger.Ledger = (*Ledger)(nil)

// Open opens the ledger in the file at path, makes it if there is none, and takes it for this process alone. Beside the file live
// path-wal and path-shm (SQLite's), path.lock, path.owner and path.asks (ours). Where another process may have it that no lock reaches, Open asks that one, which takes seconds. Open fails with ErrInUse, ErrWrongKey, ErrLost, ErrVersion, or what
// the disk says.
func Open(ctx context.Context, path string, o ledger.Options) (*Ledger, error) {
	if path == "" {
		return nil, fmt.Errorf("%w: no path", ledger.ErrInvalid)
	}
	if o.Key == [32]byte{} && !o.ReplayOnly {
		return nil, fmt.Errorf("%w: the server key is all zeros", ledger.ErrInvalid)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	l := &Ledger{
		disk: o.Disk, path: path, replayOnly: o.ReplayOnly, sealer: ledger.Sealer{Key: o.Key}, log: o.Logger, fault: o.Fault, told: o.Committed, halted: o.Halted, mustExist: o.MustExist,
		queue: make(chan *request, queueSize), ended: make(chan struct{}),
	}
	if l.disk == nil {
		l.disk = machine{}
	}
	if l.log == nil {
		l.log = slog.New(slog.DiscardHandler)
	}
	if err := l.start(ctx); err != nil {
		return nil, errors.Join(err, l.release())
	}
	return l, nil
}

// start takes the lock and opens both pools. What it opened before it failed is closed by release.
func (l *Ledger) start(ctx context.Context) error {
	if l.replayOnly {
		if _, err := l.disk.Stat(l.path); err != nil {
			return fmt.Errorf("ledger: replay only: %w", err)
		}
	} else if l.mustExist && l.missing() {
		return fmt.Errorf("%w: %s is missing or empty", ledger.ErrLost, l.path)
	} else if err := l.disk.Create(l.path); err != nil {
		return err
	}
	var err error
	if l.locked, err = l.disk.Lock(l.path); err != nil {
		return err
	}
	if !l.replayOnly {
		if err := l.disk.CheckAccess(l.path); err != nil {
			return err
		}
		if l.own, err = newOwnership(l.path, l.disk, l.log); err != nil {
			return err
		}
		if err := l.own.take(ctx); err != nil && !noRoom(err) { // where there is none, the first commit that has room takes it
			return err
		}
		if err := l.startWriter(ctx); err != nil {
			if !noRoom(err) || l.writer.db == nil {
				return err
			}
			l.log.Error("the disk is full: recorded answers can be read, and the ledger goes on when there is room", "error", err)
			l.down(err)
		}
	}
	if l.readers, err = openReaders(l.path, l.vfs()...); err != nil {
		return err
	}
	if l.keeper, err = l.readers.Conn(ctx); err != nil {
		return wrapRead(err)
	}
	if err := l.keeper.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_master").Scan(new(int)); err != nil { // so that it has the files open
		return wrapRead(err)
	}
	if err := checkVersion(ctx, l.readers); err != nil {
		return err
	}
	if l.writer.db == nil && !l.replayOnly {
		if err := l.checkKey(ctx, l.readers.DB); err != nil {
			return err
		}
	}
	if err := l.checkHoldouts(ctx); err != nil {
		return err
	}
	if l.replayOnly {
		close(l.ended)
	} else {
		go l.write()
	}
	return nil
}

// startWriter opens the connection that writes, brings the schema up to date and checks the key.
func (l *Ledger) startWriter(ctx context.Context) error {
	db, err := openWriter(ctx, l.path, l.vfs()...)
	if err != nil {
		return err
	}
	l.writer.db = db
	if err := l.settle(ctx); err != nil {
		return err
	}
	db = l.writer.db // settle may have opened another one
	if l.mustExist {
		if err := db.QueryRowContext(ctx, "SELECT 1 FROM meta WHERE name = 'key-check'").Scan(new(int)); err != nil {
			return fmt.Errorf("%w: %s has nothing in it (%v)", ledger.ErrLost, l.path, err)
		}
	}
	if err := migrate(ctx, db); err != nil {
		return err
	}
	if err := l.checkKey(ctx, db); err != nil {
		return err
	}
	return l.resume(ctx)
}

// keyCheckText is what is sealed to know the key again. Any text would do.
const keyCheckText = "holdoutd ledger"

// checkKey opens the sealed check value, or makes it in a new ledger.
func (l *Ledger) checkKey(ctx context.Context, db *sql.DB) error {
	var sealed []byte
	err := db.QueryRowContext(ctx, "SELECT value FROM meta WHERE name = 'key-check'").Scan(&sealed)
	if errors.Is(err, sql.ErrNoRows) {
		if sealed, err = l.sealer.Seal([]byte(keyCheckText), ledger.KeyCheck); err == nil {
			_, err = db.ExecContext(ctx, "INSERT INTO meta (name, value) VALUES ('key-check', ?)", sealed)
		}
		if err != nil {
			return fmt.Errorf("ledger: key check: %w", err)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("ledger: key check: %w", err)
	}
	if _, err := l.sealer.Open(sealed, ledger.KeyCheck); err != nil {
		return fmt.Errorf("%w: %s was sealed with another one; put back the server.key that belongs to it (a backup has both), "+
			"or open it for replay only: recorded answers can then be read, and no new one given", ledger.ErrWrongKey, l.path)
	}
	return nil
}

// missing reports whether there is no ledger: no file, or one without a byte and without a log.
func (l *Ledger) missing() bool {
	for _, suffix := range []string{"", "-wal"} {
		if info, err := l.disk.Stat(l.path + suffix); err == nil && info.Size() > 0 {
			return false
		}
	}
	return true
}

// Close implements ledger.Ledger.
func (l *Ledger) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		<-l.ended
		return nil
	}
	l.closed = true
	close(l.queue)
	l.mu.Unlock()
	<-l.ended
	return l.release()
}

// release closes what is open: the writer last, for the last connection empties the write-ahead log, and then the lock.
func (l *Ledger) release() error {
	l.files.Store(nil)
	var errs []error
	if l.writer.db != nil {
		err := l.own.check()
		if err == nil {
			_, err = l.checkLog(context.Background(), true)
		}
		if final(err) != nil {
			l.log.Error("the ledger is closed without its log", "error", err)
			errs = append(errs, l.closeWriter()) // before those that cannot write: the last one copies the log
		}
	}
	if l.keeper != nil {
		errs = append(errs, l.keeper.Close())
	}
	if l.readers != nil {
		errs = append(errs, l.readers.Close())
	}
	if l.writer.db != nil {
		errs = append(errs, l.closeWriter())
	}
	errs = append(errs, l.own.release())
	if l.locked != nil {
		errs = append(errs, l.locked.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("ledger: close: %w", err)
	}
	return nil
}

// Ready implements ledger.Ledger. It believes a commit of the last second, and no read but its own.
func (l *Ledger) Ready(ctx context.Context) error {
	if l.replayOnly {
		return ledger.ErrReplayOnly
	}
	if err := l.ours(); err != nil {
		return err
	}
	if err := l.sameFiles(); err != nil {
		return unavailable(err)
	}
	if err := l.open(func() error { return l.readAgain(ctx) }); err != nil {
		return err
	}
	if at := l.committed.Load(); at != 0 && l.unread.Load() == nil && time.Since(time.Unix(0, at)) < freshFor {
		return nil
	}
	return l.alone(ctx, probe)
}

// open runs do while the ledger is open, and cannot be closed.
func (l *Ledger) open(do func() error) error {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return ledger.ErrClosed
	}
	return do()
}

// probe is the smallest durable change.
func probe(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, "INSERT INTO meta (name, value) VALUES ('probe', ?1) ON CONFLICT (name) DO UPDATE SET value = ?1",
		[]byte(time.Now().UTC().Format(time.RFC3339Nano)))
	return err
}
