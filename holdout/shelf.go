package holdout

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
)

// shelf keeps the holdouts whose files are mapped. A holdout in use is never unmapped; of those that are not, the one
// that was used longest ago makes room.
type shelf struct {
	limit int
	load  func(ctx context.Context, id string) (*opened, error)

	mu    sync.Mutex
	books map[string]*book
	tick  uint64
	ended bool
	idle  sync.WaitGroup // uses
}

// book is one holdout on the shelf.
type book struct {
	ready  chan struct{} // closed when opened and err are set
	opened *opened
	err    error
	uses   int
	last   uint64
	gone   func() // set by drop: called after the last use and after closing
}

func newShelf(limit int, load func(context.Context, string) (*opened, error)) *shelf {
	return &shelf{limit: limit, load: load, books: map[string]*book{}}
}

// take returns an open holdout, to be given back by calling release once. It waits for a load that others have begun, and
// no longer than its own context.
func (s *shelf) take(ctx context.Context, id string) (h *opened, release func(), err error) {
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		return nil, nil, fail(Unavailable, "the server is shutting down")
	}
	b, ok := s.books[id]
	if !ok {
		b = &book{ready: make(chan struct{})}
		s.books[id] = b
	}
	s.tick++
	b.uses, b.last = b.uses+1, s.tick
	s.idle.Add(1)
	if !ok {
		b.uses++ // the load's own, given back when it has ended
		s.idle.Add(1)
	}
	s.mu.Unlock()
	release = sync.OnceFunc(func() { s.giveBack(id, b) })
	if !ok {
		s.makeRoom()
		go s.fill(context.WithoutCancel(ctx), id, b) // others may wait for it
	}
	select {
	case <-b.ready:
	case <-ctx.Done():
		release()
		return nil, nil, &Error{Kind: Unavailable, Detail: "the request ended while the holdout's files were being opened", Err: ctx.Err()}
	}
	if b.err != nil {
		release()
		return nil, nil, b.err
	}
	return b.opened, release, nil
}

// has reports whether a holdout is open, or being opened.
func (s *shelf) has(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.books[id]
	return ok
}

// fill opens a holdout for whoever waits for it. A panic is theirs to hear of: it must not end the process.
func (s *shelf) fill(ctx context.Context, id string, b *book) {
	defer s.giveBack(id, b)
	defer close(b.ready)
	defer func() {
		if p := recover(); p != nil {
			b.err = fmt.Errorf("holdout: opening %s panicked: %v\n%s", id, p, debug.Stack())
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if b.err != nil && s.books[id] == b {
			delete(s.books, id) // a failed load is tried again by the next who asks
		}
	}()
	b.opened, b.err = s.load(ctx, id)
}

func (s *shelf) giveBack(id string, b *book) {
	defer s.idle.Done()
	s.mu.Lock()
	b.uses--
	last := b.uses == 0
	gone := b.gone
	s.mu.Unlock()
	if last && gone != nil {
		_ = b.close() // the files are about to be removed
		gone()
	}
}

// close unmaps; an error of it can only mean that the mapping was no mapping.
func (b *book) close() error {
	if b.opened == nil {
		return nil
	}
	return b.opened.close()
}

// makeRoom unmaps unused holdouts beyond the limit.
func (s *shelf) makeRoom() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.books) > s.limit {
		oldest := ""
		for id, b := range s.books {
			if b.uses == 0 && (oldest == "" || b.last < s.books[oldest].last) {
				oldest = id
			}
		}
		if oldest == "" {
			return // all are in use
		}
		_ = s.books[oldest].close() // see close
		delete(s.books, oldest)
	}
}

// drop takes a holdout off the shelf, and calls gone when nobody uses it any more.
func (s *shelf) drop(id string, gone func()) {
	s.mu.Lock()
	b, ok := s.books[id]
	delete(s.books, id)
	if ok && b.uses > 0 {
		b.gone = gone
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	if ok {
		_ = b.close() // the files are about to be removed
	}
	gone()
}

// close waits for all uses to end and unmaps everything.
func (s *shelf) close() error {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.idle.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, b := range s.books {
		errs = append(errs, b.close())
	}
	s.books = map[string]*book{}
	return errors.Join(errs...)
}
