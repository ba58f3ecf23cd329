package thresholdout

import (
	"fmt"
	"math"
	"slices"

	"github.com/holdoutd/holdoutd/thresholdout/pairs"
)

// BoundPairs is the bound of statistics of pairs of units.
const BoundPairs = "guess-and-check-pairs"

// PairSums are the exact sums of a pair kernel over one part: an area under the ROC curve, the difference of two, or Kendall's tau between two halves of the units.
// They are a [Statistic], whose value is the kernel's mean over all pairs. Units are alike in their class.
type PairSums struct {
	All int64 // units of the part, in both classes and in neither
	pairs.Sums
	Monotone   bool // an AUC
	Difference bool // of two AUCs
	// Whole says that the training part's units are in both classes, each pair of units counted twice: where a holdout is cut into halves, they plan
	// by all of their pairs.
	Whole bool
}

// Fits implements [Statistic]. What no units have is refused by package pairs.
func (p PairSums) Fits(units int64) error {
	switch n := p.N1 + p.N0; {
	case p.All != units:
		return fmt.Errorf("sums over %d units, the guarantee is about %d", p.All, units)
	case p.Sum == nil || p.N1 < 0 || p.N0 < 0 || n > p.All && !p.Whole || p.Whole && (p.N1 != p.N0 || p.N1 > p.All):
		return fmt.Errorf("classes of %d and %d units, of %d", p.N1, p.N0, p.All)
	}
	return nil
}

// Value implements [Statistic].
func (p PairSums) Value() (float64, bool) {
	h, _, _, _ := p.Moments()
	return h, p.N1 > 0 && p.N0 > 0
}

// Plan implements [Statistic]. The class that is smaller in the training part is the first one of the check.
func (p PairSums) Plan(by Planning) (Check, error) {
	training, _ := p.Value()
	guess, err := by.guessed(int64(math.Floor(training*float64(grid) + 0.5)))
	if err != nil {
		return nil, err
	}
	c := pairCheck{swapped: p.N1 > p.N0, monotone: p.Monotone, difference: p.Difference}
	sums := p.Sums
	if c.swapped {
		sums = sums.Swapped()
	}
	t := pairs.Training{N1: sums.N1, N0: sums.N0, All: p.All, Monotone: p.Monotone, Difference: p.Difference}
	t.H, t.V1, t.V0, t.V = sums.Moments()
	if p.Whole { // half of them are in each half
		t.N1, t.N0 = t.N1/2, t.N0/2
	}
	if c.Check, err = pairs.Plan(t, by.N, by.Deviations); err != nil {
		c.Check = pairs.Silent() // too few units of a class: nothing can be said, and that is known before
	}
	c.OneSide = by.OneSide
	if by.Guess != nil && by.Guess.Value != nil {
		c.Guess = guess
	}
	return within(c, by)
}

// pairCheck is how a statistic of pairs is checked.
type pairCheck struct {
	pairs.Check
	swapped              bool // class 1 of the check is class 0 of the sums
	monotone, difference bool
}

// Find implements [Check].
func (c pairCheck) Find(holdout Statistic) (Finding, error) {
	p, ok := holdout.(PairSums)
	if !ok || p.Monotone != c.monotone || p.Difference != c.difference || p.Whole {
		return nil, otherStatistic(c, holdout)
	}
	sums := p.Sums
	if c.swapped {
		sums = sums.Swapped()
	}
	o, err := c.Outcome(sums)
	return pairFinding{c, o}, err
}

// narrowed implements [widthCheck].
func (c pairCheck) narrowed(halfWidth, level float64) (Check, bool) {
	at, ok := c.WithHalfWidth(halfWidth, level)
	c.Check = at
	return c, ok
}

// exact implements [widthCheck].
func (c pairCheck) exact() Finding {
	c.Ranks = slices.Clone(c.Ranks[:1])
	c.Ranks[0].Away = 0
	return pairFinding{c, pairs.Outcome{Rank: 1}}
}

// Expected implements [Check].
func (c pairCheck) Expected() Finding { return pairFinding{c, pairs.Outcome{Rank: 1}} }

// pairFinding is what is known of the holdout after it.
type pairFinding struct {
	check pairCheck
	pairs.Outcome
}

// Silent implements [Finding].
func (f pairFinding) Silent() bool { return f.check.Silent() }

// Value implements [Finding].
func (f pairFinding) Value() float64 { return f.check.Value(f.Outcome) }

// Margin implements [Finding].
func (f pairFinding) Margin() float64 {
	if f.Failed() {
		return 0
	}
	return float64(f.check.Ranks[f.Rank-1].Away) / float64(grid)
}

// Interval implements [Finding]. What an outcome says is a fact at every level.
func (f pairFinding) Interval(level float64) (*Interval, bool) {
	low, high := f.check.Interval(f.Outcome, level)
	near, reason := f.Margin(), fromAgreement
	if f.Failed() {
		near, reason = 0.5/float64(f.check.Cells), fromRounding
	}
	return intervalOf(f.Value(), low, high, near, reason, BoundPairs), true
}
