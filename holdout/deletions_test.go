package holdout

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// settling is a ledger that lets a test run something while a holdout is being opened for the first time, and counts the updates after it.
type settling struct {
	ledger.Ledger
	settled func()
	updates atomic.Int64
}

func (l *settling) SettleHoldout(ctx context.Context, id string) error {
	err := l.Ledger.SettleHoldout(ctx, id)
	if settled := l.settled; settled != nil {
		l.settled = nil
		settled()
	}
	return err
}

func (l *settling) Update(ctx context.Context, id string, fn func(*ledger.Tx) error) error {
	l.updates.Add(1)
	return l.Ledger.Update(ctx, id, fn)
}

// TestDeletedDuringARelease: who has asked for a release of a holdout that is deleted meanwhile is told so before it is made. It notices work that goes on to its end.
func TestDeletedDuringARelease(t *testing.T) {
	s := open(t, t.TempDir())
	id := create(t, s, Settings{Questions: 10}, visits(t, 400, 1)).ID
	l := &settling{Ledger: s.ledger}
	deleted := make(chan error, 1)
	l.settled = func() { deleted <- s.Delete(context.Background(), admin, id) }
	s.ledger = l
	t.Cleanup(func() { s.ledger = l.Ledger })
	_, err := s.Release(t.Context(), admin, id, aRelease(.5))
	wantKind(t, "a release of a holdout that was deleted meanwhile", err, NotFound)
	must(t, <-deleted)
	if l.updates.Load() != 0 {
		t.Errorf("the release was made to its end: %d commits", l.updates.Load())
	}
	if len(s.deletions.waiting) != 0 {
		t.Errorf("%d holdouts are waited for", len(s.deletions.waiting))
	}
}

// goneElsewhere is a shared ledger whose other server deletes a holdout when a test says so.
type goneElsewhere struct {
	numberedTerms
	gone atomic.Bool
}

func (l *goneElsewhere) Deleted(context.Context, string) (bool, error) { return l.gone.Load(), nil }

// TestDeletedElsewhere: what works on a holdout hears that another server has deleted it.
func TestDeletedElsewhere(t *testing.T) {
	defer func(was time.Duration) { deletedElsewhere = was }(deletedElsewhere)
	deletedElsewhere = time.Millisecond
	s := open(t, t.TempDir())
	shared := &goneElsewhere{numberedTerms: numberedTerms{Ledger: s.ledger}}
	s.shared = shared
	until, stop := s.untilDeleted(t.Context(), "ho_1")
	other, stopOther := s.untilDeleted(t.Context(), "ho_1")
	stopOther()
	if context.Cause(other) == errDeletedMeanwhile || until.Err() != nil {
		t.Error("nothing is deleted yet")
	}
	shared.gone.Store(true)
	<-until.Done()
	if context.Cause(until) != errDeletedMeanwhile {
		t.Errorf("it ended with %v", context.Cause(until))
	}
	stop()
}
