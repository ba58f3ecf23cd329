package thresholdout

import (
	"fmt"
	"slices"

	"github.com/holdoutd/holdoutd/thresholdout/moments"
)

// A question can be an estimating equation E(A - r·B) = 0 of two functions of a unit, 0 <= A <= B <= 1, B 0 or 1. Its root r = E A/E B is a mean over all
// units, where B is 1, or over the units in which a condition holds. It is checked as one question by two moments
// (docs/proofs/two-moments.md), for at most one token.

// RootSums are the exact sums of an equation over one part: a [Statistic].
type RootSums struct {
	All int64 // units of the part
	moments.Sums
	Partial bool    // B is a condition; false: 1 at every unit
	Binary  bool    // by its form A has no value but 0 and 1
	Higher  *Higher // where they are known: of the training part they plan narrower margins, of the holdout they are read in the last round
}

// Higher are the sums of A³ and A⁴ over the units with B = 1, in steps of 2^-60; A² may have been rounded to 2^-30 before. Margins are planned by them; what is promised
// never depends on them.
type Higher struct{ Third, Fourth moments.Wide }

// Fits implements [Statistic]. Sums that no units have are refused by package moments.
func (r RootSums) Fits(units int64) error {
	if r.All != units {
		return fmt.Errorf("sums over %d units, the guarantee is about %d", r.All, units)
	}
	if r.Units < 0 || r.Units > r.All || !r.Partial && r.Units != r.All {
		return fmt.Errorf("a condition that holds in %d units of %d", r.Units, r.All)
	}
	return r.Sums.Check()
}

// Value implements [Statistic].
func (r RootSums) Value() (float64, bool) {
	return float64(r.Sum) / (float64(r.Units) * float64(grid)), r.Units > 0
}

// Plan implements [Statistic].
func (r RootSums) Plan(by Planning) (Check, error) {
	guess, err := by.guessed(r.mean())
	if err != nil {
		return nil, err
	}
	training := r.training(guess)
	c, err := moments.PlanWith(training, by.N, by.Deviations)
	if err != nil {
		return nil, err
	}
	c.Tails, c.OneSide, c.Outward = by.Tails, by.OneSide, by.OneSide
	if !c.Partial && !c.Binary {
		// Where the planned variance is next to nothing to say, the check says nothing of it: then no share of the level is split.
		silent := c
		silent.Ranks = slices.Clone(c.Ranks)
		silent.Ranks[0].Variance = silent.Ranks[1].Variance
		if halfWidth(rootCheck{silent}.Expected(), by.Level) <= halfWidth(rootCheck{c}.Expected(), by.Level) {
			c = silent
		}
	}
	return withinOrTold(rootCheck{c}, testedRoot{c, training}, by)
}

// mean is the mean over the units with B = 1 in steps of the grid, rounded half up; one half where there are none.
func (r RootSums) mean() int64 {
	if r.Units == 0 {
		return grid / 2
	}
	return (r.Sum + r.Units/2) / r.Units
}

// training is what the part tells of a question. Without the higher moments the fourth is taken as large as it can be with this variance.
func (r RootSums) training(guess int64) moments.Training {
	t := moments.Training{All: r.All, Units: r.Units, Guess: float64(guess) / float64(grid), Binary: r.Binary, Partial: r.Partial}
	if r.Units == 0 {
		return t
	}
	t.Mean, t.Second = r.Moments()
	far := max(t.Mean, 1-t.Mean)
	t.Fourth = t.Second * far * far
	switch {
	case r.Binary:
		t.Fourth = t.Second * (1 - 3*t.Second)
	case r.Higher != nil:
		n := float64(r.Units)
		third, fourth := r.Higher.Third.Float()/n, r.Higher.Fourth.Float()/n
		g := t.Mean
		central := fourth - 4*g*third + 6*g*g*(t.Second+g*g) - 3*g*g*g*g
		t.Fourth = min(max(central, t.Second*t.Second), t.Fourth)
	}
	t.Fourth = max(t.Fourth, 0)
	return t
}

// rootCheck is the [Check] of a root.
type rootCheck struct{ moments.Check }

// narrowed implements [widthCheck].
func (c rootCheck) narrowed(halfWidth, level float64) (Check, bool) {
	at, ok := c.WithHalfWidth(halfWidth, level)
	return rootCheck{at}, ok
}

// testedRoot is a root's check as one for a test.
type testedRoot struct {
	moments.Check
	training moments.Training
}

// planned implements [tested].
func (c testedRoot) planned() int64 { return c.Ranks[0].Away }

// at implements [tested].
func (c testedRoot) at(close bool, below, above int64) Check {
	first, all := c.Ranks[0], c.Ranks[0]
	first.Away, first.Shift = spanOf(below, above)
	if near, err := moments.PlanWith(c.training, c.N, closeDeviations); close && err == nil {
		first.Variance, first.Units = min(near.Ranks[0].Variance, all.Variance), max(near.Ranks[0].Units, all.Units)
	}
	c.Ranks = []moments.Rank{first, all}
	return rootCheck{c.Check}
}

// exact implements [widthCheck].
func (c rootCheck) exact() Finding {
	none := c.Check
	none.Ranks = []moments.Rank{c.Ranks[0]}
	none.Ranks[0].Away = 0
	return rootFinding{none, moments.Outcome{Rank: 1}}
}

// Find implements [Check].
func (c rootCheck) Find(holdout Statistic) (Finding, error) {
	sums, err := sumsOf(holdout)
	if err != nil {
		return nil, err
	}
	o, err := c.Outcome(sums)
	return rootFinding{c.Check, o}, err
}

// sumsOf are the holdout's sums of a root, or of a mean.
func sumsOf(holdout Statistic) (moments.Sums, error) {
	switch h := holdout.(type) {
	case RootSums:
		return h.Sums, nil
	case Mean:
		// The squares are not asked about. They are as large as they can be.
		sums := moments.Sums{Units: h.N, Sum: h.Sum}
		sums.Squares.AddSums(h.Sum, grid)
		return sums, nil
	}
	return moments.Sums{}, otherStatistic(rootCheck{}, holdout)
}

// Expected implements [Check].
func (c rootCheck) Expected() Finding { return rootFinding{c.Check, moments.Outcome{Rank: 1}} }

// rootFinding is the [Finding] of a root.
type rootFinding struct {
	check moments.Check
	moments.Outcome
}

// Silent implements [Finding].
func (f rootFinding) Silent() bool { return f.check.Silent() }

// Value implements [Finding].
func (f rootFinding) Value() float64 { return f.check.Value(f.Outcome) }

// Margin implements [Finding].
func (f rootFinding) Margin() float64 {
	if f.Failed() {
		return 0
	}
	r := f.check.Ranks[f.Rank-1]
	return float64(reach(r.Away, r.Shift)) / float64(grid)
}

// Interval implements [Finding]. The holdout's sums are not among its arguments.
func (f rootFinding) Interval(level float64) (*Interval, bool) {
	low, high := f.check.Interval(f.Outcome, level)
	near, reason, bound := f.Margin(), fromAgreement, BoundTwoMoments
	if f.Failed() {
		near, reason = f.check.HalfCell(f.Outcome), fromRounding
	}
	if f.check.OneChain() {
		bound = MethodGuessCheck
	}
	return intervalOf(f.Value(), low, high, near, reason, bound), true
}

// Fits, Value and Plan make a [Mean] a [Statistic]: one of which nothing is known but the training mean. Its variance is at most that of a 0/1 variable, and the check says
// nothing of it.

// Fits implements [Statistic].
func (m Mean) Fits(units int64) error { return m.check(units) }

// Value implements [Statistic].
func (m Mean) Value() (float64, bool) {
	return float64(m.Sum) / (float64(m.N) * float64(grid)), m.N > 0
}

// Plan implements [Statistic].
func (m Mean) Plan(by Planning) (Check, error) {
	guess, err := by.guessed((m.Sum + m.N/2) / m.N)
	if err != nil {
		return nil, err
	}
	training := m.training(guess)
	c, err := moments.PlanWith(training, by.N, by.Deviations)
	if err != nil {
		return nil, err
	}
	c.Tails, c.OneSide, c.Outward = by.Tails, by.OneSide, by.OneSide
	c.Binary = false // it need not be: the exact tail is for what is 0/1 by its form
	return withinOrTold(rootCheck{c}, testedRoot{c, training}, by)
}

// training is what the part tells of a mean of which nothing else is known.
func (m Mean) training(guess int64) moments.Training {
	p := float64(m.Sum) / float64(m.N) / float64(grid)
	v := p * (1 - p)
	return moments.Training{All: m.N, Units: m.N, Mean: p, Second: v, Fourth: max(0, v*(1-3*v)), Guess: float64(guess) / float64(grid), Binary: true}
}
