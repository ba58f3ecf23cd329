package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// Ledger is an open ledger in a database. Other processes may have the same one open.
type Ledger struct {
	replayOnly bool
	sealer     ledger.Sealer
	log        *slog.Logger
	told       func(id string, seq int64, head string)
	fault      func(step string) error
	now        func() time.Time // by which grants expire

	patience time.Duration // commitTimeout

	sessions sessions
	writers  *pgxpool.Pool // nil for replay only
	readers  *pgxpool.Pool

	mu      sync.Mutex // guards what follows
	closed  bool
	queues  map[string]*queue // of holdouts with updates that wait or are under way
	believe map[string]*books // what the books were when we heard of them last
	checked map[string]error  // holdouts whose books were compared with their chains: nil, or why nothing can be built on them
	running sync.WaitGroup    // writes under way; its Add is called under mu

	rest resting // after a failure

	telling   sync.Mutex   // Committed is called by one goroutine at a time
	committed atomic.Int64 // when the last commit succeeded, in nanoseconds since 1970; 0 after one that failed
	pruned    atomic.Int64 // when old idempotency keys were removed last, likewise
}

const (
	// freshFor is how long a commit vouches for the next one in Ready.
	freshFor = time.Second
	// maxBooks is how many holdouts' books are kept in memory; beyond it they are read again.
	maxBooks = 4096
	// After a failure nothing is tried for a moment, longer each time, so that a server that comes up is not hammered.
	firstRest, lastRest = 20 * time.Millisecond, time.Second
	// pruneEvery is how often this process asks the database to forget idempotency keys that are older than they are remembered.
	pruneEvery = time.Hour
)

var _ ledger.Ledger = (*Ledger)(nil)

// Open opens the ledger in the database that a URL names (postgres://user@host:port/database, as libpq has them; several hosts with commas
// between them). Where the role of the URL owns the schema, or there is none and the role may make it, it is brought up to date first; a
// service role needs that done for it (Migrate). Open fails with ErrWrongKey, ErrLost, ErrVersion, or what the server says; also where the server would not
// make debits durable.
func Open(ctx context.Context, url string, o ledger.Options) (*Ledger, error) {
	if o.Key == [32]byte{} && !o.ReplayOnly {
		return nil, fmt.Errorf("%w: the server key is all zeros", ledger.ErrInvalid)
	}
	l := &Ledger{replayOnly: o.ReplayOnly, sealer: ledger.Sealer{Key: o.Key}, log: o.Logger, told: o.Committed, fault: o.Fault, now: o.Now, patience: commitTimeout,
		queues: map[string]*queue{}, believe: map[string]*books{}, checked: map[string]error{}}
	if l.now == nil {
		l.now = time.Now
	}
	if l.log == nil {
		l.log = slog.New(slog.DiscardHandler)
	}
	if err := l.start(ctx, url, o.MustExist); err != nil {
		l.release()
		return nil, err
	}
	return l, nil
}

// start opens both pools. What it opened before it failed is closed by release.
func (l *Ledger) start(ctx context.Context, url string, mustExist bool) error {
	accept := l.sessions.accept
	if l.replayOnly {
		accept = nil
	}
	var err error
	if l.readers, err = openPool(url, maxReaders, accept); err != nil {
		return err
	}
	if !l.replayOnly {
		if l.writers, err = openPool(url, maxWriters, accept); err != nil {
			return err
		}
	}
	version, ours, err := l.firstLook(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("ledger: open: %w", err)
	case l.replayOnly && version == 0:
		return errors.New("ledger: replay only: the database has no ledger")
	case mustExist && version == 0:
		return fmt.Errorf("%w: the database has no ledger", ledger.ErrLost)
	case version < schemaVersion && ours && !l.replayOnly:
		if err := Migrate(ctx, url, ""); err != nil {
			return err
		}
		version = schemaVersion
	case version == 0:
		return errors.New("ledger: the database has no ledger, and this role may not make one: let its owner do it: holdoutd migrate")
	case version < schemaVersion && !l.replayOnly:
		return fmt.Errorf("ledger: the database's schema is %d, and this program needs %d: let its owner migrate it", version, schemaVersion)
	}
	if err := checkVersion(version); err != nil {
		return err
	}
	if err := l.knowKey(ctx, mustExist); err != nil {
		return err
	}
	return l.checkAll(ctx)
}

// firstLook is the first connection: it says what the server is, and what is in the database.
func (l *Ledger) firstLook(ctx context.Context) (version int64, ours bool, err error) {
	conn, err := l.readers.Acquire(ctx)
	if err != nil {
		return 0, false, err
	}
	defer conn.Release()
	if !l.replayOnly {
		said, err := readSettings(ctx, conn.Conn().PgConn())
		if err == nil {
			err = said.check(hosts(&conn.Conn().Config().Config) > 1)
		}
		if err != nil {
			return 0, false, err
		}
	}
	return schemaOf(ctx, conn)
}

// keyCheckText is what is sealed to know the key again. Any text would do.
const keyCheckText = "holdoutd ledger"

// knowKey opens the sealed check value, or makes it in a new ledger: of several processes one does, and the others must have the same key. From
// then on connections begin with a probe; those that are open are made anew.
func (l *Ledger) knowKey(ctx context.Context, mustExist bool) error {
	if l.replayOnly {
		return nil
	}
	var sealed []byte
	err := l.readers.QueryRow(ctx, "SELECT value FROM holdoutd.meta WHERE name = 'key-check'").Scan(&sealed)
	if errors.Is(err, pgx.ErrNoRows) {
		if mustExist {
			return fmt.Errorf("%w: the database's ledger has nothing in it", ledger.ErrLost)
		}
		mine, errSeal := l.sealer.Seal([]byte(keyCheckText), ledger.KeyCheck)
		if errSeal != nil {
			return errSeal
		}
		err = l.writers.QueryRow(ctx, "SELECT holdoutd.key_check($1)", mine).Scan(&sealed)
	}
	if err != nil {
		return fmt.Errorf("ledger: key check: %w", err)
	}
	if _, err := l.sealer.Open(sealed, ledger.KeyCheck); err != nil {
		return fmt.Errorf("%w: the ledger was sealed with another one; give this server the key that the others have, or the backup of it, "+
			"or open the ledger for replay only: recorded answers can then be read, and no new one given", ledger.ErrWrongKey)
	}
	sealed = bytes.Clone(sealed)
	l.sessions.identity.Store(&sealed)
	l.readers.Reset()
	l.writers.Reset()
	return nil
}

// Close implements ledger.Ledger.
func (l *Ledger) Close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.running.Wait()
	l.release()
	return nil
}

// release closes what is open. Closing twice does nothing.
func (l *Ledger) release() {
	if l.writers != nil {
		l.writers.Close()
	}
	if l.readers != nil {
		l.readers.Close()
	}
}

// Ready implements ledger.Ledger. It believes a commit of the last second.
func (l *Ledger) Ready(ctx context.Context) error {
	if l.replayOnly {
		return ledger.ErrReplayOnly
	}
	if at := l.committed.Load(); at != 0 && time.Since(time.Unix(0, at)) < freshFor {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.closed {
			return ledger.ErrClosed
		}
		return nil
	}
	return l.alone(ctx, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "SELECT holdoutd.probe()")
		return err
	})
}

// down drops all that was believed: the books, and the connections, for the server that comes next may be another one.
func (l *Ledger) down(cause error) {
	var again *restingError
	if errors.As(cause, &again) {
		return
	}
	l.log.Error("the ledger cannot commit", "error", cause)
	l.committed.Store(0)
	l.mu.Lock()
	clear(l.believe)
	l.rest.wait = min(max(2*l.rest.wait, firstRest), lastRest)
	l.rest.until, l.rest.cause = time.Now().Add(l.rest.wait), cause
	l.mu.Unlock()
	l.writers.Reset()
	l.readers.Reset()
}

// resting is why nothing is tried, and until when.
type resting struct {
	wait  time.Duration
	until time.Time
	cause error
}

type restingError struct{ cause error }

func (e *restingError) Error() string { return "tried a moment ago: " + e.cause.Error() }
func (e *restingError) Unwrap() error { return e.cause }

// rested is an error while nothing is to be tried.
func (l *Ledger) rested() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Now().Before(l.rest.until) {
		return &restingError{l.rest.cause}
	}
	return nil
}

func unavailable(cause error) error { return fmt.Errorf("%w: %w", ledger.ErrUnavailable, cause) }

// isOurs tells an answer to the caller from a failure of the database.
func isOurs(err error) bool {
	for _, e := range []error{ledger.ErrNotFound, ledger.ErrExists, ledger.ErrInvalid, ledger.ErrIdempotencyMismatch, ledger.ErrDeleted, ledger.ErrAsked, ledger.ErrSettled,
		ledger.ErrRestored, ledger.ErrCorrupt, context.Canceled} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// code is PostgreSQL's for an error, or "".
func code(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// again reports whether PostgreSQL undid a transaction that can simply be tried again: it could not be put in order with another one (40001), they
// waited for each other (40P01), or both came with the same new idempotency key or name (23505).
func again(err error) bool {
	switch code(err) {
	case "40001", "40P01", "23505":
		return true
	}
	return false
}

// refused reports whether the database itself refused what was to be written (a CHECK, a trigger, a UNIQUE, a value), and is otherwise well.
func refused(err error) bool {
	c := code(err)
	return len(c) == 5 && (c[:2] == "23" || c[:2] == "22" || c == "P0001")
}

// wrapRead names the ledger in what a reader's connection says.
func wrapRead(err error) error {
	var corrupt *ledger.CorruptError
	var version *ledger.VersionError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &corrupt), errors.As(err, &version):
		return err
	case code(err) == "" || isDisconnected(code(err)):
		return fmt.Errorf("%w: read: %w", ledger.ErrUnavailable, err)
	}
	return fmt.Errorf("ledger: read: %w", err)
}
