package holdout

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/queries/engine"
	"github.com/holdoutd/holdoutd/rowfn"
)

// manualClock is a clock that a test moves.
type manualClock struct {
	now   time.Time
	slept []time.Duration
}

func (c *manualClock) pace(step float64) *pace {
	return &pace{step: step, now: func() time.Time { return c.now }, sleep: func(d time.Duration) { c.slept = append(c.slept, d); c.now = c.now.Add(d) }}
}

func TestUntilPublic(t *testing.T) {
	const s = time.Second
	for _, c := range []struct{ passed, public, want time.Duration }{
		{0, s, s}, {s, s, 0}, {s / 4, s, s * 3 / 4}, {s + 1, s, s - 1}, {3 * s, s, s}, {5 * s, s, 3 * s}, {4 * s, s, 0},
	} {
		if got := untilPublic(c.passed, c.public); got != c.want {
			t.Errorf("%v of %v: %v more, want %v", c.passed, c.public, got, c.want)
		}
	}
}

// TestAnswerTime: with public times a reply to a new question leaves at a time that public facts determine, whatever its literals are in
// the rows and also where it fails after it was admitted; a replay, and a question that is refused before a row is read, do not wait.
func TestAnswerTime(t *testing.T) {
	s := open(t, t.TempDir())
	card := create(t, s, Settings{Questions: 20}, visits(t, 2000, 1))
	clock := &manualClock{now: time.Unix(1e9, 0)}
	s.pace = clock.pace(1)
	recorded := func() int {
		page, err := s.Answers(t.Context(), admin, card.ID, 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		return len(page.Answers)
	}
	before, sleep := 0, s.pace.sleep
	s.pace.sleep = func(d time.Duration) {
		if recorded() != before {
			t.Error("the answer can be read before its time")
		}
		if s.Working() != 0 {
			t.Error("a reply that is kept holds a place")
		}
		sleep(d)
	}
	waits := func(query string) time.Duration {
		t.Helper()
		clock.slept, before = nil, recorded()
		_, _ = s.Ask(t.Context(), analyst, card.ID, []byte(query), "") // errors wait too
		if len(clock.slept) > 1 {
			t.Fatalf("%s waits %v", query, clock.slept)
		}
		if len(clock.slept) == 0 {
			return 0
		}
		return clock.slept[0]
	}
	there, absent := waits(`{"type":"fraction","of":"clinic == 'clinic 1'"}`), waits(`{"type":"fraction","of":"clinic == 'clinic 9'"}`)
	if there < paceCommit || there != absent {
		t.Errorf("a text that is held out waits %v, one that is not %v", there, absent)
	}
	if longer := waits(`{"type":"fraction","of":"log(score * score + 1.0) > 3.0 || clinic.contains('3')"}`); longer <= there {
		t.Errorf("more work waits %v, less %v", longer, there)
	}
	if again := waits(`{"type":"fraction","of":"clinic == 'clinic 1'"}`); again != 0 {
		t.Errorf("a replay waits %v", again)
	}
	if refused := waits(`{"type":"fraction","of":"nowhere == 'x'"}`); refused != 0 {
		t.Errorf("what is refused by the schema waits %v", refused)
	}
	h, release, err := s.tables.take(t.Context(), card.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	h.holdout = failing{h.holdout}
	if failed := waits(`{"type":"fraction","of":"clinic == 'clinic 3'"}`); failed != there {
		t.Errorf("a scan that fails waits %v, one that does not %v", failed, there)
	}
}

// failing is a part whose rows cannot be read.
type failing struct{ engine.MomentSource }

func (failing) Sums(context.Context, []queries.RowFunction, int64, int64) ([]int64, error) {
	return nil, errors.New("a fault")
}

func (failing) Moments(context.Context, rowfn.Batch, int64, int64) (rowfn.Sums, error) {
	return rowfn.Sums{}, errors.New("a fault")
}

func TestNewPace(t *testing.T) {
	if p, err := newPace(""); p != nil || err != nil {
		t.Error(p, err)
	}
	if _, err := newPace("later"); err == nil {
		t.Error("later is an answer time")
	}
	p, err := newPace(AnswerPublic)
	if err != nil || !(p.step > 0) {
		t.Error(p, err)
	}
}
