package holdout

import (
	"context"
	"sync"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// tenureTime is how long questions may join a server's term of a holdout that others may wait for. Those that have joined land; then the next server has it. Within it a busy server answers many questions for one change of
// hands, and another server's question waits for little longer.
const tenureTime = 50 * time.Millisecond

// tenures are the terms that this server has of holdouts, or waits for, among those that share its ledger. All questions of a holdout that are in flight share one. Without a shared ledger
// this server has all holdouts for good.
type tenures struct {
	shared ledger.Shared                              // nil: one server
	look   func(ctx context.Context, id string) error // at a holdout when a term of it begins; an error ends the term

	mu   sync.Mutex
	byID map[string]*tenure
}

// tenure is one of them.
type tenure struct {
	ready  chan struct{} // closed when the term has come, or err is set
	number int64
	err    error
	give   func() // ends the term

	users  int
	full   bool          // nobody joins any more
	ended  chan struct{} // closed when another one can begin
	cancel func()        // of the wait for the term
}

// enter waits until this server has a holdout to itself, which it has until leave is called. The number is the term's.
func (t *tenures) enter(ctx context.Context, id string) (number int64, leave func(), err error) {
	if t.shared == nil {
		return 0, func() {}, nil
	}
	for {
		own, joined := t.join(ctx, id)
		wait := own.ended
		if joined {
			wait = own.ready
		}
		select {
		case <-wait:
		case <-ctx.Done():
			if joined {
				t.leave(id, own)
			}
			return 0, nil, leftWaiting(ctx)
		}
		switch {
		case !joined:
		case own.err != nil:
			t.leave(id, own)
			return 0, nil, own.err
		default:
			return own.number, sync.OnceFunc(func() { t.leave(id, own) }), nil
		}
	}
}

// join is the holdout's tenure, begun if there is none. joined is false where it takes no more questions.
func (t *tenures) join(ctx context.Context, id string) (own *tenure, joined bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if own := t.byID[id]; own != nil {
		if !own.full {
			own.users++
		}
		return own, !own.full
	}
	wait, cancel := context.WithCancel(context.WithoutCancel(ctx)) // others may join before the term has come
	own = &tenure{ready: make(chan struct{}), ended: make(chan struct{}), users: 1, cancel: cancel}
	if t.byID == nil {
		t.byID = map[string]*tenure{}
	}
	t.byID[id] = own
	go t.wait(wait, id, own)
	return own, true
}

// wait waits for the term.
func (t *tenures) wait(ctx context.Context, id string, own *tenure) {
	defer own.cancel()
	number, give, err := t.shared.Term(ctx, id)
	if err == nil {
		if err = t.look(ctx, id); err != nil {
			give()
			give = nil
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	own.number, own.give, own.err = number, give, err
	close(own.ready)
	if err != nil {
		own.full = true
	} else {
		time.AfterFunc(tenureTime, func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			own.full = true
		})
	}
	t.endUnused(id, own)
}

func (t *tenures) leave(id string, own *tenure) {
	t.mu.Lock()
	defer t.mu.Unlock()
	own.users--
	t.endUnused(id, own)
}

// endUnused ends a tenure that nobody is in any more. The lock is held.
func (t *tenures) endUnused(id string, own *tenure) {
	if own.users > 0 {
		return
	}
	own.full = true
	select {
	case <-own.ready:
	default:
		own.cancel() // wait ends it, whether the term comes all the same or not
		return
	}
	if own.give != nil {
		own.give()
	}
	if t.byID[id] == own {
		delete(t.byID, id)
		close(own.ended)
	}
}

// take opens a holdout, and drops what was kept of one that another server has deleted.
func (s *Service) take(ctx context.Context, id string) (*opened, func(), error) {
	if s.shared != nil {
		deleted, err := s.shared.Deleted(ctx, id)
		if err != nil {
			return nil, nil, s.ledgerError(err)
		}
		if deleted {
			s.tables.drop(id, func() {})
			s.accounts.forget(id)
			s.deletions.tell(id)
		}
	}
	return s.tables.take(ctx, id)
}

// addFiles keeps other servers that have this data directory from removing what is being put there. still says before it counts that they have not.
func (s *Service) addFiles(ctx context.Context) (still func() error, release func(), err error) {
	if s.shared == nil {
		return func() error { return nil }, func() {}, nil
	}
	wait, cancel := withDeadline(ctx)
	defer cancel()
	certain, release, err := s.shared.AddFiles(wait)
	if err != nil {
		return nil, nil, s.ledgerError(err)
	}
	return func() error {
		wait, cancel := withDeadline(ctx)
		defer cancel()
		if err := certain(wait); err != nil {
			return s.ledgerError(err)
		}
		return nil
	}, release, nil
}
