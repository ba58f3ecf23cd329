package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

const (
	// maxGroup is how many updates share a commit at most. An fsync is then far below the work on the entries themselves.
	maxGroup = 256
	// Between failed recoveries the writer waits, longer each time, so that a full disk is not hammered.
	firstRecovery, lastRecovery = 50 * time.Millisecond, 2 * time.Second
	// maxBooks is how many holdouts' books are kept in memory; beyond it they are read again.
	maxBooks = 4096
)

// request is one caller's wish, in the writer's queue.
type request struct {
	*ledger.Call
	id string                    // of the holdout, for fn
	fn func(tx *ledger.Tx) error // an update; or
	do func(*sql.Tx) error       // anything else, in a transaction of its own

	lasting bool // what do makes must not vanish with the log
}

// submit queues a request and waits for it, or for the end of ctx.
func (l *Ledger) submit(ctx context.Context, r *request) error {
	if l.replayOnly {
		return ledger.ErrReplayOnly
	}
	r.Call = ledger.NewCall()
	if err := l.enqueue(ctx, r); err != nil {
		return err
	}
	return r.Wait(ctx)
}

func (l *Ledger) enqueue(ctx context.Context, r *request) error {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return ledger.ErrClosed
	}
	if ctx.Err() != nil {
		return ledger.NotBegun(ctx)
	}
	select {
	case l.queue <- r:
		return nil
	case <-ctx.Done():
		return ledger.NotBegun(ctx)
	}
}

// Waiting is how many updates and other writes wait for the writer.
func (l *Ledger) Waiting() int { return len(l.queue) }

// alone runs do in a transaction of its own and returns when it is durable.
func (l *Ledger) alone(ctx context.Context, do func(context.Context, *sql.Tx) error) error {
	return l.submit(ctx, &request{do: func(tx *sql.Tx) error { return do(context.WithoutCancel(ctx), tx) }})
}

// lasting is alone for what must not vanish with the log: it is copied into the database file before it is told. Where a reader or the disk is in the way it is in the log alone for a while,
// durable all the same; where the log is not what was written, it is not told.
func (l *Ledger) lasting(ctx context.Context, do func(context.Context, *sql.Tx) error) error {
	return l.submit(ctx, &request{do: func(tx *sql.Tx) error { return do(context.WithoutCancel(ctx), tx) }, lasting: true})
}

// writer is what the writer goroutine keeps between commits.
type writer struct {
	db     *sql.DB     // nil while it is down
	log    ledger.File // to compare with what was written; nil until there is something
	books  map[string]*books
	stmt   statements
	wait   time.Duration // until the next recovery
	next   time.Time     // of the next recovery
	cause  error         // why it is down
	pruned time.Time     // when old idempotency keys were removed last
	erased bool          // a holdout was deleted: its secrets must leave the write-ahead log too

	unsettled bool   // the log has commits that the database has not
	end       logEnd // of the log, after the last commit or copy
	lost      error  // the files are not what was opened and written: nothing is written until the next start
}

// write is the writer goroutine. It ends when the queue is closed and empty.
func (l *Ledger) write() {
	defer close(l.ended)
	for {
		var r *request
		var open bool
		if l.writer.db == nil {
			select {
			case r, open = <-l.queue:
			case <-time.After(time.Until(l.writer.next)):
				l.recover()
				continue
			}
		} else {
			var idle <-chan time.Time
			if l.writer.unsettled && l.writer.lost == nil {
				idle = time.After(idleAfter)
			}
			select {
			case r, open = <-l.queue:
			case <-idle:
				l.checkpoint()
				continue
			}
		}
		if !open {
			return
		}
		l.serve(l.gather(r))
		if w := &l.writer; w.db != nil && w.lost == nil && w.end.frames-w.end.copied >= logPages {
			l.checkpoint()
		}
	}
}

// gather takes what else is queued, without waiting for more.
func (l *Ledger) gather(first *request) []*request {
	group := []*request{first}
	for len(group) < maxGroup {
		select {
		case r, open := <-l.queue:
			if !open {
				return group
			}
			group = append(group, r)
		default:
			return group
		}
	}
	return group
}

// serve commits requests in their order: updates together, everything else alone.
func (l *Ledger) serve(requests []*request) {
	for len(requests) > 0 {
		n := 0
		for n < len(requests) && requests[n].fn != nil {
			n++
		}
		if n == 0 {
			l.commitAlone(requests[0])
			n = 1
		} else {
			l.commitGroup(requests[:n])
		}
		requests = requests[n:]
	}
}

// up reports whether the writer can try; it attempts a recovery that is due.
func (l *Ledger) up() bool {
	if l.writer.lost != nil {
		l.writer.cause = l.writer.lost
		return false
	}
	if l.writer.db == nil && !time.Now().Before(l.writer.next) {
		l.recover()
	}
	if l.writer.db != nil && l.unread.Load() != nil {
		if err := l.rescue(context.Background()); err != nil {
			l.down(err)
			l.writer.cause = err
			return false
		}
	}
	return l.writer.db != nil
}

func (l *Ledger) commitAlone(r *request) {
	if !l.up() {
		r.End(unavailable(l.writer.cause))
		return
	}
	var denied error // by do itself, as against a failure of the database
	err := l.transaction(func(tx *sql.Tx) error {
		r.Run(func() error { return r.do(tx) })
		if err := r.Result(); err != nil && isOurs(err) {
			denied = err
		}
		return r.Result()
	})
	switch {
	case err != nil && err == denied:
	case err != nil && !refused(err):
		l.down(err)
		err = unavailable(err)
	case err != nil:
		err = fmt.Errorf("ledger: refused by the database: %w", err)
	}
	if err == nil && l.writer.erased { // by a deletion, which is lasting too
		// The database is overwritten with zeros by secure_delete; this empties the log. A reader can be in the way for
		// a moment, and then the log is overwritten in its own time.
		l.writer.unsettled = false
		failed := l.settle(context.Background())
		switch why := final(failed); {
		case why != nil: // the log is not what was written, and with it what was to last
			l.abandon(why)
			err = unavailable(why)
		case failed != nil:
			l.log.Warn("the write-ahead log still holds the sealed secrets of a deleted holdout", "error", failed)
		}
	}
	if err == nil && r.lasting && l.writer.unsettled {
		l.checkpoint()
		if l.writer.lost != nil {
			err = unavailable(l.writer.lost)
		}
	}
	l.writer.erased = false
	r.End(err)
}

// isOurs tells an answer to the caller, or the caller's own end, from a failure of the database.
func isOurs(err error) bool { return ledger.IsAnswer(err) || errors.Is(err, context.Canceled) }

// commitGroup runs updates one after the other on the books in memory and commits what they did together. Refusals
// wait for the commit too: they can rest on what an earlier update of the group did, which is nobody's to know before.
func (l *Ledger) commitGroup(requests []*request) {
	if !l.up() {
		finish(requests, unavailable(l.writer.cause))
		return
	}
	g := newGroup(l)
	for _, r := range requests {
		r.Run(func() error { return g.run(r) })
		if g.err != nil {
			break // the books cannot be read
		}
	}
	err := g.err
	if err == nil && g.dirty() {
		err = l.transaction(g.flush)
	}
	switch {
	case err == nil:
		g.keep()
		l.tell(g)
		for _, r := range requests {
			r.End(r.Result())
		}
	case refused(err) && len(requests) > 1:
		// One of them is not what the database accepts, which is a bug of ours. The others shall not suffer from it.
		l.writer.books = map[string]*books{}
		for i := range requests {
			l.commitGroup(requests[i : i+1])
		}
	case refused(err):
		l.writer.books = map[string]*books{}
		l.log.Error("the ledger's database refused an update", "error", err)
		requests[0].End(fmt.Errorf("ledger: refused by the database: %w", err))
	default:
		l.down(err)
		finish(requests, unavailable(err))
	}
}

func finish(requests []*request, err error) {
	for _, r := range requests {
		r.End(err)
	}
}

func unavailable(cause error) error {
	if cause == nil {
		return ledger.ErrUnavailable
	}
	return fmt.Errorf("%w: %w", ledger.ErrUnavailable, cause)
}

// transaction runs do in BEGIN IMMEDIATE … COMMIT. After any error that is not the database's refusal or do's own
// nothing is known about the connection, and the caller takes it down.
func (l *Ledger) transaction(do func(tx *sql.Tx) error) error {
	if err := l.step(ledger.StepBegin); err != nil {
		return err
	}
	if err := l.checkFiles(); err != nil {
		return err
	}
	if _, err := l.checkLog(context.Background(), false); err != nil {
		return err
	}
	tx, err := l.writer.db.BeginTx(context.Background(), nil)
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		if rollback := tx.Rollback(); rollback != nil {
			return fmt.Errorf("ledger: roll back: %w, after: %v", rollback, err) // the connection is what matters now
		}
		return err
	}
	if err := l.step(ledger.StepCommit); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	if err := l.step(ledger.StepCommitted); err != nil {
		return err
	}
	if err := l.own.check(); err != nil {
		return err
	}
	if l.writer.end, err = l.checkLog(context.Background(), false); err != nil {
		return err
	}
	l.committed.Store(time.Now().UnixNano())
	l.writer.unsettled = true
	return nil
}

func (l *Ledger) step(name string) error {
	if l.fault == nil {
		return nil
	}
	return l.fault(name)
}

// down drops all that was believed: the connection, its statements and the books.
func (l *Ledger) down(cause error) {
	if why := final(cause); why != nil {
		l.abandon(why) // the connection stays: it holds what the names do not lead to any more
		return
	}
	l.files.Store(nil)
	l.committed.Store(0)
	l.halt()
	w := &l.writer
	l.log.Error("the ledger cannot commit", "error", cause)
	w.stmt.close()
	if err := l.closeWriter(); err != nil {
		l.log.Error("closing the ledger's connection", "error", err)
	}
	w.books, w.cause = nil, cause
	w.wait = firstRecovery
	w.next = time.Now().Add(w.wait)
}

// closeWriter closes the writer's connection.
func (l *Ledger) closeWriter() error {
	w := &l.writer
	err := w.db.Close()
	if w.log != nil {
		err = errors.Join(err, w.log.Close())
	}
	w.db, w.log = nil, nil
	return err
}

// recover opens the connection again; on success everything that can be read is durable.
func (l *Ledger) recover() {
	ctx := context.Background()
	w := &l.writer
	db, err := openWriter(ctx, l.path, l.vfs()...)
	if err == nil {
		w.db = db
		err = l.settle(ctx)
	}
	if err == nil && l.unread.Load() != nil {
		err = l.rescue(ctx)
	}
	if err == nil {
		err = migrate(ctx, w.db) // a start on a full disk may not have
	}
	if err == nil {
		err = l.resume(ctx)
	}
	if why := final(err); why != nil {
		l.abandon(why)
		return
	}
	if err == nil {
		l.log.Info("the ledger can commit again")
		w.cause = nil
		return
	}
	if w.db != nil {
		w.stmt.close()
		l.closeWriter() // its error adds nothing to the one that is kept
	}
	w.cause = err
	w.wait = min(2*w.wait, lastRecovery)
	w.next = time.Now().Add(w.wait)
}

// resume makes a connection the writer's: statements, empty books, and a first durable commit.
func (l *Ledger) resume(ctx context.Context) error {
	w := &l.writer
	w.books = map[string]*books{}
	if err := w.stmt.prepare(ctx, w.db); err != nil {
		return err
	}
	err := l.transaction(func(tx *sql.Tx) error {
		if err := probe(ctx, tx); err != nil {
			return err
		}
		return prune(ctx, tx, time.Now())
	})
	if err != nil {
		return fmt.Errorf("ledger: first commit: %w", err)
	}
	w.pruned = time.Now()
	files, err := l.identify()
	if err != nil {
		return err
	}
	l.files.Store(files)
	return nil
}

// halt says that nothing is committed now, to whoever asked to hear of it.
func (l *Ledger) halt() {
	if l.halted != nil {
		l.halted()
	}
}

// tell reports the new ends of chains to whoever asked to hear of them.
func (l *Ledger) tell(g *group) {
	if l.told == nil {
		return
	}
	for id := range g.changed {
		l.told(id, g.books[id].Seq, ledger.HeadText(g.books[id].Head))
	}
}
