package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// Ledger is an open ledger in a database.
type Ledger struct {
	address
	replayOnly bool
	sealer     ledger.Sealer
	log        *slog.Logger
	server     uuid.UUID // of this open ledger; by it the database knows whether another one had a holdout

	readers, writers, terms *pgxpool.Pool

	mu     sync.Mutex
	closed bool
	work   sync.WaitGroup // writes that were accepted; added to under mu
	lanes  map[string]*lane
	books  map[string]*books // what is believed of holdouts
	ends   map[string]end    // where the chains were that this server has written to

	damaged map[string]error // holdouts whose books cannot be built on; guarded by mu

	committed atomic.Int64 // when the last commit succeeded, in nanoseconds since 1970; 0 after one that failed
	pruned    atomic.Int64 // when old idempotency keys were removed last

	told   func(id string, seq int64, head string) // Options.Committed
	halted func()                                  // Options.Halted
	fault  func(step string) error                 // Options.Fault
}

// end is where a chain was.
type end struct {
	seq  int64
	head [32]byte
}

// freshFor is how long a commit vouches for the next one in Ready.
const freshFor = time.Second

var (
	_ ledger.Ledger = (*Ledger)(nil)
	_ ledger.Shared = (*Ledger)(nil)
)

// Open opens the ledger at an address such as postgres://ROLE@HOST/DATABASE, whose tables Prepare has made. Others may have it open. Options.Disk is not for it. It
// fails with ErrWrongKey, ErrLost, ErrVersion, with an error that says how to prepare the tables or the role, or with what the database says.
func Open(ctx context.Context, dsn string, o ledger.Options) (*Ledger, error) {
	if o.Key == [32]byte{} && !o.ReplayOnly {
		return nil, fmt.Errorf("%w: the server key is all zeros", ledger.ErrInvalid)
	}
	a, err := parse(dsn)
	if err != nil {
		return nil, err
	}
	l := &Ledger{address: a, replayOnly: o.ReplayOnly, sealer: ledger.Sealer{Key: o.Key}, log: o.Logger, server: uuid.New(), told: o.Committed, halted: o.Halted, fault: o.Fault,
		lanes: map[string]*lane{}, books: map[string]*books{}, ends: map[string]end{}}
	if l.log == nil {
		l.log = slog.New(slog.DiscardHandler)
	}
	if err := l.start(ctx, o.MustExist); err != nil {
		l.release()
		return nil, err
	}
	return l, nil
}

func (l *Ledger) start(ctx context.Context, mustExist bool) (err error) {
	if l.readers, err = l.pool(ctx, maxReaders, confirmed, map[string]string{"default_transaction_read_only": "on"}); err != nil {
		return err
	}
	if l.writers, err = l.pool(ctx, maxWriters, checkDurable, nil); err != nil {
		return err
	}
	if l.terms, err = l.pool(ctx, maxTerms, checkDurable, nil); err != nil {
		return err
	}
	if err := l.checkVersion(ctx, l.readers); err != nil {
		return err
	}
	if err := errors.Join(l.checkRole(ctx, l.readers), l.checkTables(ctx, l.readers)); err != nil {
		return err
	}
	l.warn(ctx)
	if !l.replayOnly {
		if err := l.checkKey(ctx, mustExist); err != nil {
			return err
		}
		if err := l.alone(ctx, l.probe); err != nil {
			return fmt.Errorf("ledger: first commit: %w", err)
		}
	}
	return l.checkHoldouts(ctx)
}

// warn says what an operator may not have meant.
func (l *Ledger) warn(ctx context.Context) {
	conn, err := l.readers.Acquire(ctx)
	if err != nil {
		return // the next that reads says so
	}
	defer conn.Release()
	if host := l.config.Host; l.config.TLSConfig == nil && !isLocal(host) {
		l.log.Warn("the ledger's database is reached without TLS: answers and the role's password travel in clear; use sslmode=verify-full", "host", host)
	}
	var standbys, checksums string
	if err := conn.QueryRow(ctx, "SELECT current_setting('synchronous_standby_names'), current_setting('data_checksums')").Scan(&standbys, &checksums); err != nil {
		return
	}
	if standbys == "" {
		l.log.Info("the ledger's database has no synchronous standby: a failover to any other one can lose acknowledged debits")
	}
	if checksums != "on" {
		l.log.Warn("the ledger's database has no data checksums: damage on its disk is noticed by the chain alone")
	}
}

// keyCheckText is what is sealed to know the key again. Any text would do.
const keyCheckText = "holdoutd ledger"

// checkKey opens the sealed check value, or makes it in a new ledger. Of two servers that begin it together the first one's counts.
func (l *Ledger) checkKey(ctx context.Context, mustExist bool) error {
	for made := false; ; made = true {
		var sealed []byte
		err := l.readers.QueryRow(ctx, "SELECT value FROM meta WHERE name = 'key-check'").Scan(&sealed)
		if errors.Is(err, pgx.ErrNoRows) && !made {
			if mustExist {
				return fmt.Errorf("%w: the schema %s has no ledger in it", ledger.ErrLost, l.schema)
			}
			if sealed, err = l.sealer.Seal([]byte(keyCheckText), ledger.KeyCheck); err == nil {
				_, err = l.writers.Exec(ctx, "SELECT begin_ledger($1)", sealed)
			}
			if err != nil {
				return fmt.Errorf("ledger: key check: %w", err)
			}
			continue
		}
		if err != nil {
			return fmt.Errorf("ledger: key check: %w", wrapRead(err))
		}
		if _, err := l.sealer.Open(sealed, ledger.KeyCheck); err != nil {
			return fmt.Errorf("%w: the schema %s was sealed with another one; every server of a ledger needs the same server.key. "+
				"Without it, open it for replay only: recorded answers can then be read, and no new one given", ledger.ErrWrongKey, l.schema)
		}
		return nil
	}
}

// Close implements ledger.Ledger.
func (l *Ledger) Close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.work.Wait()
	l.release()
	return nil
}

// release closes what is open. A second time does nothing.
func (l *Ledger) release() {
	for _, pool := range []*pgxpool.Pool{l.readers, l.writers, l.terms} {
		if pool != nil {
			pool.Close()
		}
	}
}

// Ready implements ledger.Ledger. It believes a commit of the last second.
func (l *Ledger) Ready(ctx context.Context) error {
	l.mu.Lock()
	closed := l.closed
	l.mu.Unlock()
	switch {
	case closed:
		return ledger.ErrClosed
	case l.replayOnly:
		return ledger.ErrReplayOnly
	}
	if at := l.committed.Load(); at != 0 && time.Since(time.Unix(0, at)) < freshFor {
		return nil
	}
	if err := l.alone(ctx, l.probe); err != nil {
		return err
	}
	return wrapRead(l.readers.QueryRow(ctx, "SELECT 1").Scan(new(int)))
}

// Waiting is how many updates wait for a commit.
func (l *Ledger) Waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, lane := range l.lanes {
		n += len(lane.queue)
	}
	return n
}

// probe is the smallest durable change.
func (l *Ledger) probe(ctx context.Context, tx pgx.Tx) error {
	now := time.Now()
	_, err := tx.Exec(ctx, "SELECT probe($1, $2)", []byte(now.UTC().Format(time.RFC3339Nano)), now.Add(-ledger.IdempotencyLife).UnixNano())
	return err
}

// accept lets do go on in the background, unless the ledger is closed: Close waits for it.
func (l *Ledger) accept(do func()) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return ledger.ErrClosed
	}
	l.work.Go(do)
	return nil
}

// alone runs do in a transaction of its own and returns when it is durable. It may run more than once.
func (l *Ledger) alone(ctx context.Context, do func(context.Context, pgx.Tx) error) error {
	switch {
	case l.replayOnly:
		return ledger.ErrReplayOnly
	case ctx.Err() != nil:
		return ledger.NotBegun(ctx)
	}
	done := make(chan error, 1)
	if err := l.accept(func() { done <- l.transaction(context.WithoutCancel(ctx), do) }); err != nil {
		return err
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("%w: outcome not known yet: %w", ledger.ErrUnavailable, ctx.Err())
	}
}

// transaction runs do between BEGIN and COMMIT, again where the database gives way to another transaction.
func (l *Ledger) transaction(ctx context.Context, do func(context.Context, pgx.Tx) error) error {
	for {
		err := l.try(ctx, do)
		switch {
		case err == nil:
			l.committed.Store(time.Now().UnixNano())
			return nil
		case again(err), errors.Is(err, errMoved):
		case ledger.IsAnswer(err):
			return err
		case refused(err):
			return fmt.Errorf("ledger: refused by the database: %w", err)
		default:
			return l.failed(err)
		}
	}
}

func (l *Ledger) try(ctx context.Context, do func(context.Context, pgx.Tx) error) error {
	if err := l.step(ledger.StepBegin); err != nil {
		return err
	}
	tx, err := l.writers.Begin(ctx)
	if err != nil {
		return err
	}
	if err := do(ctx, tx); err != nil {
		_ = tx.Rollback(ctx) // where it fails the connection is closed, and nothing of it is kept
		return err
	}
	if err := l.step(ledger.StepCommit); err != nil {
		_ = tx.Rollback(ctx)
		return err
	}
	conn := tx.Conn()
	if err := tx.Commit(ctx); err != nil {
		return err
	}
	if err := waited(conn); err != nil {
		return err
	}
	return l.step(ledger.StepCommitted)
}

// failed says that a commit failed whose outcome is not known.
func (l *Ledger) failed(cause error) error {
	l.committed.Store(0)
	if errors.Is(cause, errCancelled) {
		l.readers.Reset() // connections that are new are used once the standbys have it
	}
	l.log.Error("the ledger cannot commit", "error", cause)
	if l.halted != nil {
		l.halted()
	}
	return fmt.Errorf("%w: %w", ledger.ErrUnavailable, cause)
}

func (l *Ledger) step(name string) error {
	if l.fault == nil {
		return nil
	}
	return l.fault(name)
}
