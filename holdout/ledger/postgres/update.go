package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/holdout/ledger/internal/stored"
)

// maxGroup is how many updates of a holdout share a commit at most. Its flush is then far below the work on the entries themselves.
const maxGroup = 256

// request is an update that a caller waits for.
type request struct {
	*stored.Call
	fn      func(tx *ledger.Tx) error
	accepts bool // fn may run on a holdout that was restored from a backup, and ends that
}

// queue is the updates of a holdout that wait, in their order. There is one as long as a goroutine works on it.
type queue struct {
	id      string
	waiting []*request
}

// Update implements ledger.Ledger: together with other callers' updates of the same holdout, in one commit.
func (l *Ledger) Update(ctx context.Context, id string, fn func(tx *ledger.Tx) error) error {
	return l.update(ctx, id, &request{Call: stored.NewCall(), fn: fn})
}

// AcceptHoldout implements ledger.Ledger.
func (l *Ledger) AcceptHoldout(ctx context.Context, id string, fn func(tx *ledger.Tx) error) error {
	return l.update(ctx, id, &request{Call: stored.NewCall(), fn: fn, accepts: true})
}

func (l *Ledger) update(ctx context.Context, id string, r *request) error {
	l.mu.Lock()
	if err := l.mayBegin(ctx); err != nil {
		l.mu.Unlock()
		return err
	}
	q := l.queues[id]
	if q == nil {
		q = &queue{id: id}
		l.queues[id] = q
		l.running.Add(1)
		go l.work(q)
	}
	q.waiting = append(q.waiting, r)
	l.mu.Unlock()
	return r.Wait(ctx)
}

// work commits what waits in a queue until nothing does.
func (l *Ledger) work(q *queue) {
	defer l.running.Done()
	for {
		l.mu.Lock()
		n := min(len(q.waiting), maxGroup)
		if n == 0 {
			delete(l.queues, q.id)
			l.mu.Unlock()
			return
		}
		requests := q.waiting[:n:n]
		q.waiting = q.waiting[n:]
		l.mu.Unlock()
		l.serve(q.id, requests)
		l.prune()
	}
}

// prune lets the database forget old idempotency keys, once in a while. What it could not do now it does later.
func (l *Ledger) prune() {
	now := time.Now().UnixNano()
	if last := l.pruned.Load(); now-last < int64(pruneEvery) || !l.pruned.CompareAndSwap(last, now) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), commitTimeout)
	defer cancel()
	if _, err := l.writers.Exec(ctx, "SELECT holdoutd.prune()"); err != nil {
		l.log.Warn("old idempotency keys could not be removed", "error", err)
	}
}

// serve commits updates of a holdout and tells their callers. Refusals wait for the commit too: they can rest on what an earlier update of the group did,
// which is nobody's to know before, or on books that are not the newest.
func (l *Ledger) serve(id string, requests []*request) {
	err := l.commitGroup(id, requests)
	switch {
	case err == nil:
		for _, r := range requests {
			r.Finish(r.Result())
		}
	case isOurs(err): // of the holdout: it is none, or deleted, or damaged
		finish(requests, err)
	case refused(err) && len(requests) > 1:
		// One of them is not what the database accepts, which is a bug of ours. The others shall not suffer from it.
		l.forget(id)
		for i := range requests {
			l.serve(id, requests[i:i+1])
		}
	case refused(err):
		l.forget(id)
		l.log.Error("the ledger's database refused an update", "error", err)
		finish(requests, fmt.Errorf("ledger: refused by the database: %w", err))
	default:
		l.down(err)
		finish(requests, unavailable(err))
	}
}

func finish(requests []*request, err error) {
	for _, r := range requests {
		r.Finish(err)
	}
}

// commitGroup runs updates on the books that are believed in and commits what they did in one round trip, or under the lock of the books.
func (l *Ledger) commitGroup(id string, requests []*request) error {
	known := newFacts()
	return l.retried(func(ctx context.Context, conn *pgxpool.Conn) error {
		b, err := l.believed(ctx, conn, id)
		if err != nil {
			return err
		}
		for {
			contended := b.contended
			g, outcome, err := l.attempt(ctx, conn, b, known, requests)
			switch {
			case err != nil:
				return err
			case outcome == moved:
				b.contended = true
			case outcome == answered || outcome == used:
				if err := known.find(ctx, conn, g); err != nil {
					return err
				}
			default:
				next := g.next()
				// Where nobody else has moved the books since our last look, the lock need not be taken first.
				next.contended = contended && g.before.moves != b.moves
				l.keep(next)
				l.tell(g)
				return nil
			}
		}
	})
}

// attempt runs the updates and sends what they did. On an outcome other than 0 nothing is written.
func (l *Ledger) attempt(ctx context.Context, conn *pgxpool.Conn, b *books, known *facts, requests []*request) (g *group, outcome int, err error) {
	locked := b.contended
	if locked {
		if b, err = l.lock(ctx, conn, b); err != nil {
			return nil, 0, err
		}
	}
	if b.Deleted {
		return nil, 0, ledger.ErrDeleted
	}
	g = newGroup(b, known, lookUp{ctx, conn, b, l.now})
	for _, r := range requests {
		r.Run(func() error { return g.run(r.fn, r.accepts) })
		if g.err != nil {
			return nil, 0, g.err
		}
	}
	arguments, err := g.arguments(&l.sealer)
	if err != nil {
		return nil, 0, err
	}
	if g.dirty() {
		if err := l.step(ledger.StepBegin); err != nil {
			return nil, 0, err
		}
		if err := l.step(ledger.StepCommit); err != nil {
			return nil, 0, err
		}
	}
	warning(conn.Conn()) // of what was before the commit
	if locked {
		outcome, err = moveLocked(ctx, conn, arguments)
	} else {
		err = conn.QueryRow(ctx, moveBooks, arguments...).Scan(&outcome)
	}
	if err == nil && outcome == 0 && g.dirty() {
		err = l.durable(conn.Conn())
	}
	return g, outcome, err
}

// lock begins a transaction with the lock of the books, and reads them.
func (l *Ledger) lock(ctx context.Context, conn *pgxpool.Conn, b *books) (newest *books, err error) {
	batch := &pgx.Batch{}
	batch.Queue("BEGIN")
	batch.Queue(lockBooks, b.number)
	results := conn.SendBatch(ctx, batch)
	defer func() {
		if closing := results.Close(); err == nil {
			err = closing
		}
	}()
	if _, err := results.Exec(); err != nil {
		return nil, err
	}
	newest, _, err = l.scanBooks(results.QueryRow())
	return newest, err
}

// moveLocked sends the end of an update with the COMMIT behind it.
func moveLocked(ctx context.Context, conn *pgxpool.Conn, arguments []any) (outcome int, err error) {
	batch := &pgx.Batch{}
	batch.Queue(moveBooks, arguments...)
	batch.Queue("COMMIT")
	results := conn.SendBatch(ctx, batch)
	if err := results.QueryRow().Scan(&outcome); err != nil {
		results.Close() // says the same
		return 0, err
	}
	if _, err := results.Exec(); err != nil {
		results.Close()
		return 0, err
	}
	return outcome, results.Close()
}

// believed are the books as they were when we heard of them last, or as they are now.
func (l *Ledger) believed(ctx context.Context, db rower, id string) (*books, error) {
	if err := l.damage(ctx, id); err != nil {
		return nil, err
	}
	l.mu.Lock()
	b := l.believe[id]
	l.mu.Unlock()
	if b != nil {
		copied := *b
		return &copied, nil
	}
	return l.findBooks(ctx, db, id)
}

// tell reports the new end of a chain to whoever asked to hear of it.
func (l *Ledger) tell(g *group) {
	if l.told == nil || !g.changed {
		return
	}
	l.telling.Lock()
	defer l.telling.Unlock()
	l.told(g.after.ID, g.after.Seq, ledger.HeadText(g.after.Head))
}
