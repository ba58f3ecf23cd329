package experiments

import (
	"context"
	"errors"
	"math"
	"reflect"
	"testing"

	"github.com/holdoutd/holdoutd/internal/stattest"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// falseAlarm is the probability with which one check fails without cause; seeds are fixed.
const falseAlarm = 1e-6

// runs of one analyst against one mechanism.
var runs = 40

func init() {
	if underRace {
		runs = 16
	}
}

// misses is how many of the runs have an interval that misses.
func misses(t *testing.T, a Analyst, n int64, oracle func(seed uint64) Oracle) int {
	t.Helper()
	count := 0
	for run := range uint64(runs) {
		game, err := Play(a, oracle(seedOf(run, 7)), seedOf(run, 8), n, n)
		if err != nil {
			t.Fatalf("%s: %v", a.Name, err)
		}
		if game.Missed {
			count++
		}
	}
	return count
}

func params(t *testing.T, m Method, n, k int64) thresholdout.Params {
	t.Helper()
	p, err := thresholdout.New(m.Params(n, k, 0.95))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestCoverage: no mechanism misses in more than 5% of runs under any analyst (false alarm 1e-6 each).
func TestCoverage(t *testing.T) {
	const n, k = 400, 300
	for _, m := range Methods {
		if m.Name == NaiveMethod {
			continue
		}
		p := params(t, m, n, k)
		for _, a := range Analysts {
			count := misses(t, a, n, func(seed uint64) Oracle { return m.oracle(p, seed) })
			if err := stattest.AtMost(count, runs, 0.05, falseAlarm); err != nil {
				t.Errorf("%s against %s: %v", a.Name, m.Name, err)
			}
		}
	}
}

// forgetful is a planted fault: answers are not counted, so a guarantee for k questions is asked more of them.
type forgetful struct {
	Holdout
	asked, limit int64
}

func (o *forgetful) Ask(q Question) (float64, *thresholdout.Interval, error) {
	before := o.State
	value, interval, err := o.Holdout.Ask(q)
	o.asked++
	o.State = before
	o.Seed++ // or every question had the same noise
	return value, interval, err
}

func (o *forgetful) Remaining() int64 { return o.limit - o.asked }

// silent is a planted fault: noise is never added, intervals are those of the noisy answer.
type silent struct{ Holdout }

func (o *silent) Ask(q Question) (float64, *thresholdout.Interval, error) {
	mean := q.Holdout(0, o.Guarantee.N)
	o.State.Questions++
	value := float64(mean.Sum) / float64(mean.N*grid)
	return value, &thresholdout.Interval{Low: value - o.Guarantee.HalfWidth, High: value + o.Guarantee.HalfWidth}, nil
}

// TestPlantedFaults: the check of TestCoverage fails for a forgotten debit, for noise that is never added, and for naive
// reuse sold with the intervals of questions fixed beforehand.
func TestPlantedFaults(t *testing.T) {
	gaussian, naive := Methods[0], Methods[len(Methods)-1]
	single := Analysts[0]
	for _, c := range []struct {
		fault  string
		n      int64
		oracle func(seed uint64) Oracle
	}{
		{"non-adaptive intervals", 400, func(seed uint64) Oracle { return naive.oracle(params(t, naive, 400, 300), seed) }},
		{"forgotten debit", 400, func(seed uint64) Oracle {
			return &forgetful{Holdout: *newHoldout(params(t, gaussian, 400, 50), seed<<20), limit: 8000}
		}},
		{"no noise", 1000, func(seed uint64) Oracle {
			return &silent{*newHoldout(params(t, gaussian, 1000, 1500), seed)}
		}},
	} {
		count := misses(t, single, c.n, c.oracle)
		if err := stattest.AtMost(count, runs, 0.05, falseAlarm); err == nil {
			t.Errorf("%s: only %d of %d runs missed: coverage does not see it", c.fault, count, runs)
		}
	}
}

// TestAttackReaches: on exact answers the last one is right as often as in theory, Phi(sqrt(k/n)) for log-odds weights and
// Phi(sqrt(2k/(pi n))) for signs, and the boosting attack's loss is 1-Phi(sqrt(k/(pi n))). The standard error of a mean of 40 runs
// with n = 1000 is 0.0025, so that 0.0125 and 0.004 for the formula's own error are five of them.
func TestAttackReaches(t *testing.T) {
	const n, k, runs = 1000, 1000, 40
	phi := func(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }
	for name, want := range map[string]float64{
		"single-adaptive":       phi(1) - 0.5,
		"single-adaptive, sign": phi(math.Sqrt(2/math.Pi)) - 0.5,
		"boosting":              phi(math.Sqrt(1/math.Pi)) - 0.5,
	} {
		p, err := thresholdout.New(thresholdout.Params{Mechanism: thresholdout.Naive, N: n, Questions: k + 1})
		if err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for run := range uint64(runs) {
			game, err := Play(named(t, name), newHoldout(p, 0), run, n, 0)
			if err != nil {
				t.Fatal(err)
			}
			sum += game.Last
		}
		if got := sum / runs; math.Abs(got-want) > 0.0165 {
			t.Errorf("%s moves the last answer by %.4f, theory says %.4f", name, got, want)
		}
	}
}

// TestEveryAttackBites: on exact answers every analyst gets farther from the truth than non-adaptive intervals allow.
func TestEveryAttackBites(t *testing.T) {
	naive := Methods[len(Methods)-1]
	p := params(t, naive, 400, 900)
	for _, a := range Analysts {
		count := misses(t, a, 400, func(seed uint64) Oracle { return naive.oracle(p, seed) })
		if err := stattest.AtMost(count, runs, 0.05, falseAlarm); err == nil {
			t.Errorf("%s: only %d of %d runs missed", a.Name, count, runs)
		}
	}
}

func named(t *testing.T, name string) Analyst {
	t.Helper()
	for _, a := range Analysts {
		if a.Name == name {
			return a
		}
	}
	t.Fatalf("no analyst %q", name)
	return Analyst{}
}

// TestOnesAndRanges: counts by words are those of single bits, for every range.
func TestOnesAndRanges(t *testing.T) {
	c := newCoins(3, 37, 5)
	q := c.column(11)
	q.Holdout(0, 37)
	for from := range int64(37) {
		for to := from + 1; to <= 37; to++ {
			want := int64(0)
			for _, b := range c.holdout.agree[from:to] {
				want += int64(b >> 3 & 1)
			}
			if got := q.Holdout(from, to); got.Sum != want*grid || got.N != to-from {
				t.Fatalf("units %d to %d: %+v, want a sum of %d", from, to, got, want)
			}
		}
	}
}

// TestScores: the table of eight votes gives the scores that adding one column after another gives, also when columns are
// returned to.
func TestScores(t *testing.T) {
	c := newCoins(5, 50, 50)
	want := make([]float64, 50)
	for _, column := range []int{0, 1, 7, 8, 30, 1, 8} {
		c.weigh(column, float64(column+1))
		for i, b := range c.holdout.agree[:50] {
			want[i] += float64(column+1) * float64(2*int(b>>(column%8)&1)-1)
		}
	}
	c.vote()
	if !reflect.DeepEqual(c.holdout.score, want) {
		t.Errorf("scores %v, want %v", c.holdout.score, want)
	}
}

// TestReproducible: the same seed gives the same rows, in whatever order games end, and another seed others.
func TestReproducible(t *testing.T) {
	measure := func(seed uint64) []Row {
		r, err := Coverage(context.Background(), Options{Seed: seed, Quick: true, Repetitions: 2})
		if err != nil || !r.Complete {
			t.Fatal(r.Complete, err)
		}
		return r.Rows
	}
	a, b, c := measure(1), measure(1), measure(2)
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
	r, err := Coverage(ctx, Options{Quick: true, Repetitions: 3, Progress: func(_ string, done, _ int) {
		if done == 30 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) || r.Complete || len(r.Rows) == 0 || len(r.Rows) >= 3*len(Methods)*len(Analysts) {
		t.Errorf("%d rows, complete %v, error %v", len(r.Rows), r.Complete, err)
	}
}

// TestFitExponent: a power law's exponent is found exactly, and one with scatter is within its interval.
func TestFitExponent(t *testing.T) {
	x := []float64{1, 2, 4, 8}
	if f := fitExponent("", "", x, []float64{3, 12, 48, 192}); math.Abs(f.Exponent-2) > 1e-12 || f.High-f.Low > 1e-6 {
		t.Errorf("of 3 x^2: %+v", f)
	}
	if f := fitExponent("", "", x, []float64{3.3, 11, 50, 188}); f.Low > 2 || f.High < 2 || f.High-f.Low < 0.01 {
		t.Errorf("of about 3 x^2: %+v", f)
	}
}
