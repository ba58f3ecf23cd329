package thresholdout

import (
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/thresholdout/moments"
)

// WeightedSums are the exact sums, over one part, of an equation whose B is any number in [0,1], a weight or the share of a unit's rows that satisfy a condition: a [Statistic]. Its
// value is the root r = sum A/sum B (docs/proofs/groups-and-weights.md, section 2).
type WeightedSums struct{ moments.WeightedSums }

// Fits implements [Statistic].
func (w WeightedSums) Fits(units int64) error {
	if w.Units != units {
		return fmt.Errorf("sums over %d units, the guarantee is about %d", w.Units, units)
	}
	if w.A < 0 || w.A > w.B || w.B > units*grid {
		return fmt.Errorf("the sums %d of A and %d of B are those of no %d units", w.A, w.B, units)
	}
	return nil
}

// Value implements [Statistic].
func (w WeightedSums) Value() (float64, bool) { return float64(w.A) / float64(w.B), w.B > 0 }

// mean is the root in steps of the grid; one half where there is none.
func (w WeightedSums) mean() int64 {
	if w.B == 0 {
		return grid / 2
	}
	v, _ := w.Value()
	return int64(math.Floor(v*float64(grid) + 0.5))
}

// Plan implements [Statistic].
func (w WeightedSums) Plan(by Planning) (Check, error) {
	guess, err := by.guessed(w.mean())
	if err != nil {
		return nil, err
	}
	if w.B == 0 {
		unknown := moments.WeightsUnknown(by.N)
		unknown.Guess = guess
		return within(weightedCheck{unknown}, by)
	}
	training := w.training(float64(guess) / float64(grid))
	c, err := moments.PlanWeightedWith(training, by.N, by.Deviations)
	if err != nil {
		return nil, err
	}
	c.Tails, c.OneSide = by.Tails, by.OneSide
	return withinOrTold(weightedCheck{c}, testedWeighted{c, training}, by)
}

// training is what the part tells of a question with the guess g. Fourth moments are not summed: in their place is what is as large as they can be, given the second
// ones. Margins are planned by it; what is promised never depends on it.
func (w WeightedSums) training(g float64) moments.WeightedTraining {
	n := float64(w.Units)
	a, b := float64(w.A)/float64(grid)/n, float64(w.B)/float64(grid)/n
	aa, ab, bb := w.SquareA.Float()/n, w.Mixed.Float()/n, w.SquareB.Float()/n
	off, spread := a-g*b, max(0, aa-2*g*ab+g*g*bb) // of A-gB, which is within ±far B
	far := max(g, 1-g)
	variance := func(v float64) float64 { return max(0, v) }
	return moments.WeightedTraining{Units: w.Units, Guess: g,
		Off: moments.Moment{Mean: off, Variance: variance(spread - off*off)},
		B:   moments.Moment{Mean: b, Variance: variance(bb - b*b)},
		// X² within [0,m] has at most the variance mean (m - mean); |x²-y²| <= 2 max|x| |x-y|; (A-gB)B is at most |A-gB|.
		Spread:  moments.Moment{Mean: spread, Variance: variance(min(spread*(far*far-spread), 4*far*far*(spread-off*off)))},
		Mixed:   moments.Moment{Mean: ab - g*bb, Variance: variance(min(spread, far*far*bb) - (ab-g*bb)*(ab-g*bb))},
		SquareB: moments.Moment{Mean: bb, Variance: variance(min(bb*(1-bb), 4*(bb-b*b)))},
	}
}

// weightedCheck is the [Check] of a weighted root.
type weightedCheck struct{ moments.WeightedCheck }

// Find implements [Check].
func (c weightedCheck) Find(holdout Statistic) (Finding, error) {
	h, ok := holdout.(WeightedSums)
	if !ok {
		return nil, otherStatistic(c, holdout)
	}
	o, err := c.Outcome(h.WeightedSums)
	return weightedFinding{c.WeightedCheck, o}, err
}

// Expected implements [Check].
func (c weightedCheck) Expected() Finding {
	return weightedFinding{c.WeightedCheck, moments.WeightedOutcome{Rank: 1}}
}

// narrowed implements [widthCheck].
func (c weightedCheck) narrowed(halfWidth, level float64) (Check, bool) {
	at, ok := c.WithHalfWidth(halfWidth, level)
	return weightedCheck{at}, ok
}

// testedWeighted is a weighted root's check as one for a test.
type testedWeighted struct {
	moments.WeightedCheck
	training moments.WeightedTraining
}

// planned implements [tested].
func (c testedWeighted) planned() int64 { return c.Ranks[0].Away }

// at implements [tested].
func (c testedWeighted) at(close bool, below, above int64) Check {
	first, all := c.Ranks[0], c.Ranks[0]
	if near, err := moments.PlanWeightedWith(c.training, c.N, closeDeviations); close && err == nil {
		r := near.Ranks[0]
		first = moments.WeightedRank{Size: max(r.Size, all.Size), Spread: min(r.Spread, all.Spread), SizeSquare: min(r.SizeSquare, all.SizeSquare),
			MixedLow: max(r.MixedLow, all.MixedLow), MixedHigh: min(r.MixedHigh, all.MixedHigh)}
	}
	first.Away, first.Shift = spanOf(below, above)
	c.Ranks = []moments.WeightedRank{first, all}
	return weightedCheck{c.WeightedCheck}
}

// exact implements [widthCheck].
func (c weightedCheck) exact() Finding {
	none := c.WeightedCheck
	none.Ranks = []moments.WeightedRank{c.Ranks[0]}
	none.Ranks[0].Away = 0
	return weightedFinding{none, moments.WeightedOutcome{Rank: 1}}
}

// weightedFinding is the [Finding] of a weighted root.
type weightedFinding struct {
	check moments.WeightedCheck
	moments.WeightedOutcome
}

// Silent implements [Finding].
func (f weightedFinding) Silent() bool { return f.check.Silent() }

// Value implements [Finding].
func (f weightedFinding) Value() float64 { return f.check.Value(f.WeightedOutcome) }

// Margin implements [Finding]: how far the ratio may be from the guess where the weights are the least that the check allows.
func (f weightedFinding) Margin() float64 {
	if f.Failed() {
		return 0
	}
	r := f.check.Ranks[f.Rank-1]
	if r.Size == 0 {
		return 1
	}
	return min(1, float64(reach(r.Away, r.Shift))/float64(r.Size))
}

// Interval implements [Finding].
func (f weightedFinding) Interval(level float64) (*Interval, bool) {
	low, high := f.check.Interval(f.WeightedOutcome, level)
	near, reason := f.Margin(), fromAgreement
	if f.Failed() {
		near, reason = 0.5/float64(f.check.Cells), fromRounding
	}
	return intervalOf(f.Value(), low, high, near, reason, BoundTwoMoments), true
}
