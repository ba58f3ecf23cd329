package holdout

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
)

// TestShelfWaitsNoLongerThanItsCaller: a caller whose request has ended does not wait for another's load, nor for its own,
// and what it took is given back. It would catch a wait without the context.
func TestShelfWaitsNoLongerThanItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		goOn := make(chan struct{})
		loads := 0
		s := newShelf(1, func(context.Context, string) (*opened, error) {
			loads++
			<-goOn
			return &opened{}, nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error, 2)
		for range 2 { // the first of them begins the load
			go func() {
				_, _, err := s.take(ctx, "ho_1")
				left <- err
			}()
		}
		synctest.Wait()
		cancel()
		for range 2 {
			if err := <-left; KindOf(err) != Unavailable || !errors.Is(err, context.Canceled) {
				t.Errorf("a caller that left: %v", err)
			}
		}
		close(goOn)
		h, release, err := s.take(t.Context(), "ho_1") // the load was not for nothing
		if err != nil || h == nil || loads != 1 {
			t.Fatalf("%v %v after %d loads", h, err, loads)
		}
		release()
		if _, release, err = s.take(t.Context(), "ho_2"); err != nil {
			t.Fatal(err)
		}
		release()
		if len(s.books) != 1 {
			t.Errorf("%d holdouts are open, the limit is 1: a use was not given back", len(s.books))
		}
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
}

// TestShelfSurvivesAPanic: a load that panics fails for those who wait, and is tried again.
func TestShelfSurvivesAPanic(t *testing.T) {
	fails := true
	s := newShelf(1, func(context.Context, string) (*opened, error) {
		if fails {
			panic("a bug")
		}
		return &opened{}, nil
	})
	if _, _, err := s.take(t.Context(), "ho_1"); err == nil || !strings.Contains(err.Error(), "a bug") {
		t.Errorf("a load that panics: %v", err)
	}
	if err := s.close(); err != nil { // waits for all uses
		t.Error(err)
	}
	s.ended, fails = false, false
	_, release, err := s.take(t.Context(), "ho_1")
	if err != nil {
		t.Fatal(err)
	}
	release()
}
