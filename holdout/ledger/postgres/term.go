package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// Term implements ledger.Shared. A term is a lock of a session of its own, so that it ends with the process that has it, or with the way to it. Servers that wait get it in the order in which they came.
func (l *Ledger) Term(ctx context.Context, id string) (number int64, release func(), err error) {
	if l.replayOnly {
		return 0, nil, ledger.ErrReplayOnly
	}
	var holdout int64
	err = l.readers.QueryRow(ctx, "SELECT number FROM holdouts WHERE id = $1", id).Scan(&holdout)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil, fmt.Errorf("%w: holdout %q", ledger.ErrNotFound, id)
	}
	if err != nil {
		return 0, nil, wrapRead(err)
	}
	conn, err := l.terms.Acquire(ctx)
	if err != nil {
		return 0, nil, wrapRead(err)
	}
	if err := conn.QueryRow(ctx, "SELECT take($1, $2)", holdout, l.server).Scan(&number); err != nil {
		hangUp(conn) // it may have the lock
		return 0, nil, wrapRead(err)
	}
	l.mu.Lock()
	if b := l.books[id]; b != nil && b.Term != number { // another server had it: what is believed is old
		delete(l.books, id)
	}
	l.mu.Unlock()
	return number, sync.OnceFunc(func() {
		give := func() { giveBack(conn, holdout) }
		if l.accept(give) != nil { // it is closing
			give()
		}
	}), nil
}

// giveBack ends a term.
func giveBack(conn *pgxpool.Conn, holdout int64) {
	var had bool
	err := conn.QueryRow(context.Background(), "SELECT release($1)", holdout).Scan(&had)
	if err != nil || !had {
		hangUp(conn)
		return
	}
	conn.Release()
}

// hangUp closes a connection, and with it the locks that its session may have. What must not be kept for others is better ended so than given back.
func hangUp(conn *pgxpool.Conn) {
	_ = conn.Hijack().Close(context.Background()) // it is gone either way
}

// Deleted implements ledger.Shared.
func (l *Ledger) Deleted(ctx context.Context, id string) (deleted bool, err error) {
	err = l.readers.QueryRow(ctx, "SELECT deleted FROM holdouts JOIN books ON holdout = number WHERE id = $1", id).Scan(&deleted)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	return deleted, wrapRead(err)
}

// AddFiles implements ledger.Shared.
func (l *Ledger) AddFiles(ctx context.Context) (still func(ctx context.Context) error, release func(), err error) {
	conn, err := l.terms.Acquire(ctx)
	if err != nil {
		return nil, nil, wrapRead(err)
	}
	if _, err := conn.Exec(ctx, "SELECT add_files()"); err != nil {
		hangUp(conn)
		return nil, nil, wrapRead(err)
	}
	still = func(ctx context.Context) error { return wrapRead(conn.QueryRow(ctx, "SELECT 1").Scan(new(int))) }
	return still, sync.OnceFunc(func() { hangUp(conn) }), nil
}

// SweepFiles implements ledger.Shared.
func (l *Ledger) SweepFiles(ctx context.Context) (release func(), ok bool, err error) {
	conn, err := l.terms.Acquire(ctx)
	if err != nil {
		return nil, false, wrapRead(err)
	}
	if err := conn.QueryRow(ctx, "SELECT sweep_files()").Scan(&ok); err != nil {
		hangUp(conn)
		return nil, false, wrapRead(err)
	}
	return sync.OnceFunc(func() { hangUp(conn) }), ok, nil
}
