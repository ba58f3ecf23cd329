package stored

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// history reads entries 0 to n-1.
func history(n int64) func(after int64, most int) ([]ledger.Entry, error) {
	return func(after int64, most int) (page []ledger.Entry, err error) {
		for seq := max(after+1, 0); seq < n && len(page) < most; seq++ {
			page = append(page, ledger.Entry{Seq: seq})
		}
		return page, nil
	}
}

// named adds to each entry of a page a name that says how often it was added to.
func named(page []ledger.Entry) error {
	for i := range page {
		page[i].Grant += "x"
	}
	return nil
}

// TestPages notices an entry that is left out, comes twice or is not completed where one page ends and the next begins, and a history that is read on when nobody wants more.
func TestPages(t *testing.T) {
	for _, n := range []int64{0, 1, pageSize - 1, pageSize, pageSize + 1, 3 * pageSize} {
		next := int64(0)
		for e, err := range Completed(Pages(history(n)), named) {
			if err != nil || e.Seq != next || e.Grant != "x" {
				t.Fatalf("%d entries: at %d comes %d, completed %q, %v", n, next, e.Seq, e.Grant, err)
			}
			next++
		}
		if next != n {
			t.Errorf("%d of %d entries", next, n)
		}
	}
	reads := 0
	counted := func(after int64, most int) ([]ledger.Entry, error) {
		reads++
		return history(1000)(after, most)
	}
	for range Completed(Pages(counted), named) {
		break
	}
	if reads != 1 {
		t.Errorf("%d pages are read for one entry", reads)
	}
}

// TestPagesThatFail notices an error that is dropped, and entries that are handed out as if they were complete.
func TestPagesThatFail(t *testing.T) {
	broken := errors.New("broken")
	later := func(after int64, most int) ([]ledger.Entry, error) {
		if after > 0 {
			return nil, broken
		}
		return history(1000)(after, most)
	}
	last := func(entries iter.Seq2[ledger.Entry, error]) (n int, err error) {
		for _, err = range entries {
			if err != nil {
				return n, err
			}
			n++
		}
		return n, nil
	}
	if n, err := last(Pages(later)); n != pageSize || !errors.Is(err, broken) {
		t.Errorf("%d entries before %v", n, err)
	}
	if n, err := last(Completed(Pages(history(1000)), func([]ledger.Entry) error { return broken })); n != 0 || !errors.Is(err, broken) {
		t.Errorf("%d entries before %v", n, err)
	}
}

// TestCall notices an update that runs for a caller who has left, one that is said not to have begun when it has, and a panic that does not reach its caller.
func TestCall(t *testing.T) {
	gone, leave := context.WithCancel(t.Context())
	leave()
	early, ran := NewCall(), false
	err := early.Wait(gone)
	early.Run(func() error { ran = true; return nil })
	if ran || !errors.Is(err, ledger.ErrUnavailable) || !strings.Contains(err.Error(), "not begun") || !errors.Is(early.Result(), context.Canceled) {
		t.Errorf("left before it began: ran %v, %v, %v", ran, err, early.Result())
	}

	late, runs := NewCall(), 0
	late.Run(func() error { runs++; return nil })
	late.Run(func() error { runs++; return nil }) // the books have moved
	err = late.Wait(gone)
	late.Run(func() error { runs++; return nil })
	if runs != 2 || !errors.Is(err, ledger.ErrUnavailable) || !strings.Contains(err.Error(), "outcome not known yet") {
		t.Errorf("left when it had begun: %d runs, %v", runs, err)
	}

	ended := BegunCall()
	ended.Finish(ledger.ErrExists)
	if err := ended.Wait(gone); !errors.Is(err, ledger.ErrExists) {
		t.Errorf("what was said before the caller left: %v", err)
	}

	defer func() {
		if p := recover(); p != "own fault" {
			t.Errorf("the caller's panic is %v", p)
		}
	}()
	failing := NewCall()
	failing.Run(func() error { panic("own fault") })
	failing.Finish(nil)
	failing.Wait(t.Context())
	t.Error("Wait returned")
}
