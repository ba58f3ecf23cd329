package thresholdout

import (
	"math/rand/v2"
	"testing"

	"github.com/holdoutd/holdoutd/internal/stattest"
	"github.com/holdoutd/holdoutd/thresholdout/bounds"
)

// rareAttack asks in how many units a rare mark and a fair coin meet, for one coin after the other, and at last in how many the mark meets what the answers together suggest. All true means
// are half of the mark's share, where Chernoff's cut is what makes an interval narrow. It returns whether any interval misses, and whether the cut of an answer before which nothing was
// released would have missed the last one.
func rareAttack(t *testing.T, p Guarantee, run uint64) (missed, naiveMissed bool) {
	t.Helper()
	const share = 0.06
	r := rand.New(rand.NewPCG(run, 31))
	marked := make([][]int8, 0, p.N)
	for range p.N {
		if r.Float64() < share {
			row := make([]int8, p.Questions-1)
			for j := range row {
				row[j] = int8(2*r.IntN(2) - 1)
			}
			marked = append(marked, row)
		}
	}
	count := func(yes func(row []int8) bool) Mean {
		m := Mean{N: p.N}
		for _, row := range marked {
			if yes(row) {
				m.Sum += grid
			}
		}
		return m
	}
	s, weights := State{}, make([]float64, p.Questions-1)
	var last Output
	for j := range int(p.Questions) {
		in := Input{Holdout: count(func(row []int8) bool {
			if j < len(row) {
				return row[j] > 0
			}
			score := 0.0
			for i, v := range row {
				score += weights[i] * float64(v)
			}
			return score > 0
		})}
		before := s
		out, next, err := Step(p, s, in, Seeded{Seed: run, Question: int64(j)})
		if err != nil {
			t.Fatal(err)
		}
		s, last = next, out
		missed = missed || out.Interval.Low > share/2 || out.Interval.High < share/2
		if j < len(weights) {
			sigma := p.gaussian().sigmaOf(before)
			weights[j] = (out.Value - share/2) / (sigma*sigma + share/2/float64(p.N))
		}
	}
	fresh := bounds.NewCut(float64(p.N), cutsShare*p.gaussian().Capped*p.Beta(), 0, 0)
	low, high := fresh.Within(last.Value, gridError, cutsShare*p.gaussian().Capped*p.Beta()/float64(p.Questions), 0, 1)
	return missed, low > share/2 || high < share/2
}

// TestCutsCover: under that attack, with little noise, no more than half of runs have a miss at a confidence of one half (false alarm 1e-6), while a last cut that forgets what was released misses more often than all cuts together may.
func TestCutsCover(t *testing.T) {
	const runs = 30
	p := must(t, Spec{Mechanism: Gaussian, N: 1000, Questions: 201, Confidence: 0.5, Sigma: 0.002})
	missed, naive := 0, 0
	for run := range uint64(runs) {
		m, n := rareAttack(t, p, run)
		if m {
			missed++
		}
		if n {
			naive++
		}
	}
	if err := stattest.AtMost(missed, runs, 0.5, falseAlarm); err != nil {
		t.Error(err)
	}
	if budget := cutsShare * p.gaussian().Capped * p.Beta(); stattest.AtMost(naive, runs, budget, falseAlarm) == nil {
		t.Errorf("a cut that forgets what was released missed only %d times of %d", naive, runs)
	}
	t.Logf("of %d runs %d missed, with a fresh cut %d", runs, missed, naive)
}
