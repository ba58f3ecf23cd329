package coverage

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/holdoutd/holdoutd/experiments/analysts"
	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/experiments/run/runtest"
	"github.com/holdoutd/holdoutd/experiments/seeds"
	"github.com/holdoutd/holdoutd/internal/stattest"
	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// testFalseAlarm is the probability with which one check fails without cause; seeds are fixed.
const testFalseAlarm = 1e-6

// testRuns of one analyst against one mechanism.
var testRuns = 40

func init() {
	if runtest.UnderRace {
		testRuns = 16
	}
}

// misses is how many of the runs have an interval that misses.
func misses(t *testing.T, a analysts.Analyst, n int64, oracle func(seed uint64) analysts.Oracle) int {
	t.Helper()
	count := 0
	for i := range uint64(testRuns) {
		game, err := analysts.Play(a, oracle(seeds.Of(i, 7)), seeds.Of(i, 8), n, n)
		if err != nil {
			t.Fatalf("%s: %v", a.Name, err)
		}
		if game.Missed {
			count++
		}
	}
	return count
}

func planned(t *testing.T, m method, n, k int64) thresholdout.Guarantee {
	t.Helper()
	p, err := thresholdout.Plan(m.spec(n, k, 0.95))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestCoverage: no mechanism misses in more than 5% of runs under any analyst (false alarm 1e-6 each).
func TestCoverage(t *testing.T) {
	const n, k = 400, 300
	for _, m := range methods {
		if m.name == naiveMethod {
			continue
		}
		p := planned(t, m, n, k)
		for _, a := range analysts.All {
			count := misses(t, a, n, func(seed uint64) analysts.Oracle { return m.oracle(p, seed) })
			if err := stattest.AtMost(count, testRuns, 0.05, testFalseAlarm); err != nil {
				t.Errorf("%s against %s: %v", a.Name, m.name, err)
			}
		}
	}
}

// forgetful is a planted fault: answers are not counted, so a guarantee for k questions is asked more of them.
type forgetful struct {
	analysts.Holdout
	asked, limit int64
}

func (o *forgetful) Ask(q analysts.Question) (float64, *thresholdout.Interval, error) {
	before := o.State
	value, interval, err := o.Holdout.Ask(q)
	o.asked++
	o.State = before
	o.Seed++ // or every question had the same noise
	return value, interval, err
}

func (o *forgetful) Remaining() int64 { return o.limit - o.asked }

// silent is a planted fault: noise is never added, intervals are those of the noisy answer.
type silent struct{ analysts.Holdout }

func (o *silent) Ask(q analysts.Question) (float64, *thresholdout.Interval, error) {
	mean := q.Holdout(0, o.Guarantee.N)
	o.State.Questions++
	value := float64(mean.Sum) / float64(mean.N*rowfn.One)
	return value, &thresholdout.Interval{Low: value - o.Guarantee.HalfWidth, High: value + o.Guarantee.HalfWidth}, nil
}

// TestPlantedFaults: the check of TestCoverage fails for a forgotten debit, for noise that is never added, and for naive
// reuse sold with the intervals of questions fixed beforehand.
func TestPlantedFaults(t *testing.T) {
	gaussian, naive := methods[0], methods[len(methods)-1]
	single := analysts.All[0]
	for _, c := range []struct {
		fault  string
		n      int64
		oracle func(seed uint64) analysts.Oracle
	}{
		{"non-adaptive intervals", 400, func(seed uint64) analysts.Oracle { return naive.oracle(planned(t, naive, 400, 300), seed) }},
		{"forgotten debit", 400, func(seed uint64) analysts.Oracle {
			return &forgetful{Holdout: *analysts.NewHoldout(planned(t, gaussian, 400, 50), seed<<20), limit: 3000}
		}},
		{"no noise", 1000, func(seed uint64) analysts.Oracle {
			return &silent{Holdout: *analysts.NewHoldout(planned(t, gaussian, 1000, 1500), seed)}
		}},
	} {
		count := misses(t, single, c.n, c.oracle)
		if err := stattest.AtMost(count, testRuns, 0.05, testFalseAlarm); err == nil {
			t.Errorf("%s: only %d of %d runs missed: coverage does not see it", c.fault, count, testRuns)
		}
	}
}

// TestEveryAttackBites: on exact answers every analyst gets farther from the truth than non-adaptive intervals allow.
func TestEveryAttackBites(t *testing.T) {
	naive := methods[len(methods)-1]
	p := planned(t, naive, 400, 900)
	for _, a := range analysts.All {
		count := misses(t, a, 400, func(seed uint64) analysts.Oracle { return naive.oracle(p, seed) })
		if err := stattest.AtMost(count, testRuns, 0.05, testFalseAlarm); err == nil {
			t.Errorf("%s: only %d of %d runs missed", a.Name, count, testRuns)
		}
	}
}

// TestReproducible: the same seed gives the same rows, in whatever order games end, and another seed others.
func TestReproducible(t *testing.T) {
	rows := func(seed uint64) []run.Row {
		r, err := measure(context.Background(), run.Options{Seed: seed, Quick: true, Repetitions: 1})
		if err != nil || !r.Complete {
			t.Fatal(r.Complete, err)
		}
		return r.Rows
	}
	a, b, c := rows(1), rows(1), rows(2)
	if !reflect.DeepEqual(a, b) {
		t.Error("two runs with one seed differ")
	}
	if reflect.DeepEqual(a, c) {
		t.Error("two seeds give the same rows")
	}
}

// TestInterrupted: an interruption returns the rows that are finished, and says that they are not all.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	r, err := measure(ctx, run.Options{Quick: true, Repetitions: 3, Progress: func(_ string, done, _ int) {
		if done == 30 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) || r.Complete || len(r.Rows) == 0 || len(r.Rows) >= 3*len(methods)*len(analysts.All) {
		t.Errorf("%d rows, complete %v, error %v", len(r.Rows), r.Complete, err)
	}
}
