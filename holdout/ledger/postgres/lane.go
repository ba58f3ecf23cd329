package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// maxGroup is how many updates of a holdout share a commit at most.
const maxGroup = 256

// lane is the line of a holdout's updates: while one commit is under way, those that come wait, and the next commit takes all of them. The row of a holdout's books is locked for as long as a commit
// takes, so without this the updates of a hot holdout would each wait for an fsync of their own.
type lane struct{ queue []*request }

// request is one caller's update.
type request struct {
	*ledger.Call
	fn func(tx *ledger.Tx) error
}

// Update implements ledger.Ledger: together with other callers' updates of the holdout, in one commit.
func (l *Ledger) Update(ctx context.Context, id string, fn func(tx *ledger.Tx) error) error {
	if l.replayOnly {
		return ledger.ErrReplayOnly
	}
	r := &request{ledger.NewCall(), fn}
	if err := l.enqueue(ctx, id, r); err != nil {
		return err
	}
	return r.Wait(ctx)
}

func (l *Ledger) enqueue(ctx context.Context, id string, r *request) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return ledger.ErrClosed
	}
	if ctx.Err() != nil {
		return ledger.NotBegun(ctx)
	}
	if waiting := l.lanes[id]; waiting != nil {
		waiting.queue = append(waiting.queue, r)
		return nil
	}
	l.lanes[id] = &lane{queue: []*request{r}}
	l.work.Go(func() { l.drive(id) })
	return nil
}

// drive commits what is in a holdout's lane until it is empty.
func (l *Ledger) drive(id string) {
	for {
		l.mu.Lock()
		lane := l.lanes[id]
		if len(lane.queue) == 0 {
			delete(l.lanes, id)
			l.mu.Unlock()
			return
		}
		n := min(len(lane.queue), maxGroup)
		group := lane.queue[:n:n]
		lane.queue = lane.queue[n:]
		l.mu.Unlock()
		l.commitGroup(context.Background(), id, group)
	}
}

// commitGroup runs updates one after the other on the books that are believed in, and sends what they did together. Refusals wait for the commit, too: they can rest on what an
// earlier update of the group did, or on books that are not the newest.
func (l *Ledger) commitGroup(ctx context.Context, id string, requests []*request) {
	g, err := l.settleGroup(ctx, id, requests)
	switch {
	case err == nil:
		if len(g.entries) > 0 {
			l.tell(id, g.after.Seq, g.after.Head)
		}
		for _, r := range requests {
			r.End(r.Result())
		}
	case ledger.IsAnswer(err): // about the holdout
		finish(requests, err)
	case refused(err) && len(requests) > 1:
		// One of them is not what the database accepts, which is a bug of ours. The others shall not suffer from it.
		for i := range requests {
			l.commitGroup(ctx, id, requests[i:i+1])
		}
	case refused(err):
		l.log.Error("the ledger's database refused an update", "error", err)
		finish(requests, fmt.Errorf("ledger: refused by the database: %w", err))
	default:
		finish(requests, l.failed(err))
	}
}

func finish(requests []*request, err error) {
	for _, r := range requests {
		r.End(err)
	}
}

// settleGroup runs the updates until they have run on the books that the database has.
func (l *Ledger) settleGroup(ctx context.Context, id string, requests []*request) (*group, error) {
	exact := false // look up what is recorded, instead of believing that a question is new
	for {
		b, err := l.believed(ctx, id)
		if err != nil {
			return nil, err
		}
		g := newGroup(l, b, exact)
		for _, r := range requests {
			r.Run(func() error { return g.run(ctx, r.fn) })
			if g.err != nil {
				return nil, g.err // what is recorded cannot be read
			}
		}
		stands, err := g.send(ctx)
		switch {
		case err == nil && stands:
			l.believe(g.after)
			return g, nil
		case err == nil: // another server has recorded something since
			l.doubt(id)
		case again(err):
		case code(err) == codeOtherKey: // by an update of another holdout, meanwhile or before
			exact = true
		case code(err) == codeUnique && !exact:
			l.doubt(id)
			exact = true
		default:
			l.doubt(id)
			return nil, err
		}
	}
}

// tell reports the new end of a chain to whoever asked to hear of it.
func (l *Ledger) tell(id string, seq int64, head [32]byte) {
	if l.told != nil {
		l.told(id, seq, ledger.HeadText(head))
	}
}

// errMoved says that the books have moved since a transaction read them: it is tried again.
var errMoved = errors.New("ledger: the books have moved")
