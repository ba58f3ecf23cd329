package holdout

import (
	"context"
	"errors"
	"sync"
	"time"
)

// deletions tell what works on a holdout for seconds that it is deleted: whoever has asked for it is told so then, and not at the end.
type deletions struct {
	mu      sync.Mutex
	waiting map[string]map[*waiting]struct{} // by holdout
}

type waiting struct{ end context.CancelCauseFunc }

// errDeletedMeanwhile is the cause of a context that has ended because the holdout is deleted.
var errDeletedMeanwhile = errors.New("holdout: deleted meanwhile")

// tell ends the contexts of a holdout.
func (d *deletions) tell(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for w := range d.waiting[id] {
		w.end(errDeletedMeanwhile)
	}
}

func (d *deletions) add(id string, w *waiting) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waiting == nil {
		d.waiting = map[string]map[*waiting]struct{}{}
	}
	if d.waiting[id] == nil {
		d.waiting[id] = map[*waiting]struct{}{}
	}
	d.waiting[id][w] = struct{}{}
}

func (d *deletions) remove(id string, w *waiting) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if delete(d.waiting[id], w); len(d.waiting[id]) == 0 {
		delete(d.waiting, id)
	}
}

// deletedElsewhere is how often a server looks whether another one has deleted the holdout that it works on: a person does not notice a second.
var deletedElsewhere = time.Second

// untilDeleted is a context that ends when the holdout is deleted, here or at another server, with errDeletedMeanwhile as its cause. stop is called at the end of the work.
func (s *Service) untilDeleted(ctx context.Context, id string) (until context.Context, stop func()) {
	until, end := context.WithCancelCause(ctx)
	w := &waiting{end}
	s.deletions.add(id, w)
	var looking sync.WaitGroup
	if s.shared != nil {
		looking.Go(func() {
			tick := time.NewTicker(deletedElsewhere)
			defer tick.Stop()
			for {
				select {
				case <-until.Done():
					return
				case <-tick.C:
				}
				if deleted, err := s.shared.Deleted(until, id); err == nil && deleted {
					end(errDeletedMeanwhile)
				}
			}
		})
	}
	return until, func() {
		s.deletions.remove(id, w)
		end(nil)
		looking.Wait()
	}
}
