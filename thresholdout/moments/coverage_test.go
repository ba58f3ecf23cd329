package moments

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/holdoutd/holdoutd/internal/stattest"
)

// run plays questions through the account as a mechanism would: level, outcome, interval, state.
type run struct {
	urn                 Urn
	asked, failed, wide int64
	paid                Nats
	forgetful           bool // the fault: failures and what they said are not paid for
}

func (r *run) ask(t *testing.T, c Check, s Sums) (o Outcome, low, high float64) {
	t.Helper()
	level := r.urn.Level(r.asked, r.failed, r.wide, r.paid)
	if r.forgetful {
		level = r.urn.Level(0, 0, 0, 0)
	}
	o, err := c.Outcome(s)
	if err != nil {
		t.Fatal(err)
	}
	low, high = c.Interval(o, level)
	r.asked++
	if o.Failed() {
		r.failed++
		r.paid += c.Price(o)
	} else if o.Wide() {
		r.wide++
	}
	return o, low, high
}

// planned is Plan, of a training part that is as it should be.
func planned(t *testing.T, training Training, n, k int64) Check {
	t.Helper()
	c, err := Plan(training, n, k)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// closer is a check with half of the planned margin, as one who is sure of the guess asks for.
func closer(c Check) Check {
	c.Ranks[0].Away /= 2
	return c
}

// analyst asks k questions about n units of noise and says whether an interval missed.
type analyst func(t *testing.T, r *rand.Rand, account *run, n, k int64) (missed bool)

// signs learns from failures, whose guesses are placed to miss, on which side each feature's holdout mean is, and asks for the mean of the
// features turned to the side where they are large; the last guess is what it has learnt.
func signs(t *testing.T, r *rand.Rand, account *run, n, k int64) (missed bool) {
	d := k - 1
	x := make([][]float64, d)
	turned := make([]float64, n)
	learnt := math.Sqrt(2/math.Pi) * math.Sqrt(1.0/12/float64(n)) // what the turned features' mean is in excess, about
	for j := range d {
		x[j] = make([]float64, n)
		values := make([]int64, n)
		for i := range values {
			values[i] = r.Int64N(grid + 1)
			x[j][i] = float64(values[i]) / grid
		}
		about := Training{All: 100 * n, Units: 100 * n, Mean: 0.5, Second: 1.0 / 12, Fourth: 1.0 / 80, Guess: 0.75}
		c := planned(t, about, n, k)
		o, low, high := account.ask(t, c, Of(values))
		missed = missed || low > 0.5 || high < 0.5
		side := 1.0
		if c.Value(o) < 0.5 {
			side = -1
		}
		for i := range turned {
			turned[i] += side * (x[j][i] - 0.5) / float64(d)
		}
	}
	values := make([]int64, n)
	deviation := math.Sqrt(1.0 / 12 / float64(d)) // of a unit's turned mean; six of them fill the range
	for i := range values {
		values[i] = int64(min(max(0.5+turned[i]/(6*deviation), 0), 1) * grid)
	}
	const v = 1.0 / 36
	last := planned(t, Training{All: 100 * n, Units: 100 * n, Mean: 0.5, Second: v, Fourth: 3 * v * v, Guess: 0.5 + learnt/(6*deviation)}, n, k)
	_, low, high := account.ask(t, closer(last), Of(values))
	return missed || low > 0.5 || high < 0.5
}

// steady looks for features that are seldom large and are large for unusually few units of the holdout, by the ranks and cells of failures and by
// passes, and asks how often any of those is large.
func steady(t *testing.T, r *rand.Rand, account *run, n, k int64) (missed bool) {
	d, rare := k-1, 8/float64(n)
	about := Training{All: 100 * n, Units: 100 * n, Mean: rare, Second: rare * (1 - rare), Fourth: rare * (1 - rare), Guess: 0}
	chosen := make([]int64, n)
	count := int64(0)
	for range d {
		values := make([]int64, n)
		for i := range values {
			if r.Float64() < rare {
				values[i] = grid
			}
		}
		c := planned(t, about, n, k)
		c.Ranks = []Rank{{Away: int64(rare / 2 * grid), Variance: int64(rare / 2 * squares), Units: n}}
		c.Cells = n / 4
		o, low, high := account.ask(t, c, Of(values))
		missed = missed || low > rare || high < rare
		if !o.Failed() || o.Cell == 0 {
			count++
			for i := range values {
				chosen[i] = max(chosen[i], values[i])
			}
		}
	}
	truth := -math.Expm1(float64(count) * math.Log1p(-rare)) // that any of the chosen is large
	v := truth * (1 - truth)
	last := planned(t, Training{All: 100 * n, Units: 100 * n, Mean: truth, Second: v, Fourth: v, Guess: 0.45 * truth}, n, k)
	_, low, high := account.ask(t, closer(last), Of(chosen))
	return missed || low > truth || high < truth
}

// groups asks for the mean of a coin where a feature is above its median, and last where most features point to the side on which it was large.
func groups(t *testing.T, r *rand.Rand, account *run, n, k int64) (missed bool) {
	d := k - 1
	coin, score := make([]int64, n), make([]int64, n)
	for i := range coin {
		coin[i] = grid * int64(r.IntN(2))
	}
	where := func(in func(i int) bool) (s Sums) {
		for i, x := range coin {
			if in(i) {
				s.Units++
				s.Sum += x
				s.Squares.AddSquare(x)
			}
		}
		return s
	}
	about := Training{All: 100 * n, Units: 50 * n, Mean: 0.5, Second: 0.25, Fourth: 1.0 / 16, Guess: 0.9, Partial: true}
	for range d {
		above := make([]bool, n)
		for i := range above {
			above[i] = r.IntN(2) == 0
		}
		c := planned(t, about, n, k)
		o, low, high := account.ask(t, c, where(func(i int) bool { return above[i] }))
		missed = missed || low > 0.5 || high < 0.5
		for i := range score {
			if above[i] == (c.Value(o) > 0.5) {
				score[i]++
			}
		}
	}
	about.Guess = 0.74
	_, low, high := account.ask(t, closer(planned(t, about, n, k)), where(func(i int) bool { return score[i] > d/2 }))
	return missed || low > 0.5 || high < 0.5
}

// TestCoversAdaptiveAnalysts: at confidence .5 and .95 analysts who learn from failures make an interval miss in no more runs than promised. A false
// alarm has a probability of 1e-6. At .95 each analyst must notice when failures are not paid for: then a third of the runs miss, and more.
// (The intervals leave room: most of a level pays for transcripts that no one analyst makes. What is exact is held by
// TestExactOneQuestion and TestTranscriptsArePaidFor.)
func TestCoversAdaptiveAnalysts(t *testing.T) {
	for _, a := range []struct {
		name string
		play analyst
		n, k int64
	}{{"signs", signs, 400, 150}, {"steady", steady, 400, 400}, {"groups", groups, 400, 200}} {
		for _, beta := range []float64{0.5, 0.05} {
			const runs = 40
			missed := map[bool]int{}
			for _, forgetful := range []bool{false, true} {
				r := rand.New(rand.NewChaCha8([32]byte{byte(len(a.name)), 5}))
				for range runs {
					if a.play(t, r, &run{urn: Urn{Questions: a.k, Beta: beta}, forgetful: forgetful}, a.n, a.k) {
						missed[forgetful]++
					}
				}
			}
			t.Logf("%s at %v: %d of %d runs miss; %d where failures are not paid for", a.name, 1-beta, missed[false], runs, missed[true])
			if err := stattest.AtMost(missed[false], runs, beta, 1e-6); err != nil {
				t.Errorf("%s: %v", a.name, err)
			}
			if beta < 0.5 && stattest.AtMost(missed[true], runs, beta, 1e-6) == nil {
				t.Errorf("%s: failures that are not paid for go unnoticed (%d of %d)", a.name, missed[true], runs)
			}
		}
	}
}
