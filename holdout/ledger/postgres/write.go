package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/holdout/ledger/internal/stored"
)

// maxTries bounds how often a transaction is tried that PostgreSQL undid for another one's sake.
const maxTries = 8

// alone runs do in a transaction of its own and returns when it is durable. do may run more than once. It goes on when ctx has ended.
func (l *Ledger) alone(ctx context.Context, do func(context.Context, pgx.Tx) error) error {
	l.mu.Lock()
	err := l.mayBegin(ctx)
	if err == nil {
		l.running.Add(1)
	}
	l.mu.Unlock()
	if err != nil {
		return err
	}
	call := stored.BegunCall()
	go func() {
		defer l.running.Done()
		call.Finish(l.commitAlone(do))
	}()
	return call.Wait(ctx)
}

// mayBegin is why no write can begin now, or nil. Where one does, l.running counts it before l.mu is let go.
func (l *Ledger) mayBegin(ctx context.Context) error {
	switch {
	case l.replayOnly:
		return ledger.ErrReplayOnly
	case l.closed:
		return ledger.ErrClosed
	case ctx.Err() != nil:
		return fmt.Errorf("%w: not begun: %w", ledger.ErrUnavailable, ctx.Err())
	}
	return nil
}

func (l *Ledger) commitAlone(do func(context.Context, pgx.Tx) error) error {
	err := l.retried(func(ctx context.Context, conn *pgxpool.Conn) error {
		return l.transaction(ctx, conn, do)
	})
	switch {
	case err == nil || isOurs(err):
		return err
	case refused(err):
		return fmt.Errorf("ledger: refused by the database: %w", err)
	}
	l.down(err)
	return unavailable(err)
}

// retried runs do with a connection, and again where PostgreSQL undid it. A connection after which nothing is known is given up.
func (l *Ledger) retried(do func(context.Context, *pgxpool.Conn) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), l.patience)
	defer cancel()
	if err := l.rested(); err != nil {
		return err
	}
	for try := 1; ; try++ {
		conn, err := l.writers.Acquire(ctx)
		if err != nil {
			return err
		}
		err = do(ctx, conn)
		conn.Release() // destroys it where a transaction is open or the connection is broken
		if !again(err) || try == maxTries {
			return err
		}
	}
}

// transaction runs do between BEGIN and COMMIT.
func (l *Ledger) transaction(ctx context.Context, conn *pgxpool.Conn, do func(context.Context, pgx.Tx) error) error {
	if err := l.step(ledger.StepBegin); err != nil {
		return err
	}
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	if err := do(ctx, tx); err != nil {
		return errors.Join(err, tx.Rollback(ctx))
	}
	if err := l.step(ledger.StepCommit); err != nil {
		return errors.Join(err, tx.Rollback(ctx))
	}
	warning(conn.Conn()) // of what was before the commit
	if err := tx.Commit(ctx); err != nil {
		return err
	}
	return l.durable(conn.Conn())
}

// durable is what comes after every commit: it was one, unless the server warned.
func (l *Ledger) durable(conn *pgx.Conn) error {
	if err := warning(conn); err != nil {
		return err
	}
	if err := l.step(ledger.StepCommitted); err != nil {
		return err
	}
	l.committed.Store(time.Now().UnixNano())
	l.mu.Lock()
	l.rest = resting{}
	l.mu.Unlock()
	return nil
}

func (l *Ledger) step(name string) error {
	if l.fault == nil {
		return nil
	}
	return l.fault(name)
}
