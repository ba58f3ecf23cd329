package thresholdout

import (
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/thresholdout/moments"
)

// DifferenceSums are the exact sums of two equations over one part, no unit of which satisfies both conditions: a [Statistic]. Its value is (1+r1-r2)/2, r1 and r2 the
// roots (docs/proofs/groups-and-weights.md, section 1).
type DifferenceSums struct{ First, Second RootSums }

// Fits implements [Statistic].
func (d DifferenceSums) Fits(units int64) error {
	for i, r := range []RootSums{d.First, d.Second} {
		if err := r.Fits(units); err != nil {
			return fmt.Errorf("group %d: %w", i+1, err)
		}
	}
	if d.First.Units+d.Second.Units > units {
		return fmt.Errorf("groups of %d and %d units of %d: they share units", d.First.Units, d.Second.Units, units)
	}
	return nil
}

// Value implements [Statistic].
func (d DifferenceSums) Value() (float64, bool) {
	a, ok := d.First.Value()
	b, both := d.Second.Value()
	return (1 + a - b) / 2, ok && both
}

// Plan implements [Statistic].
func (d DifferenceSums) Plan(by Planning) (Check, error) {
	first, second, err := d.guesses(by)
	if err != nil {
		return nil, err
	}
	groups := [2]moments.Training{d.First.training(first), d.Second.training(second)}
	apart, joint, err := moments.PlanDifference(groups[0], groups[1], by.N, by.Deviations)
	if err != nil {
		return nil, err
	}
	for _, c := range []*moments.Check{&apart.First, &apart.Second, &joint.First, &joint.Second} {
		c.Tails, c.OneSide = by.Tails, by.OneSide
	}
	if by.Guess != nil && by.Guess.HalfWidth != 0 {
		return within(differenceCheck{joint}, by)
	}
	c := differenceCheck{joint}
	if one := (differenceCheck{apart}); halfWidth(one.Expected(), by.Level) < halfWidth(c.Expected(), by.Level) {
		c = one
	}
	return told(c, testedDifference{joint, groups}, by), nil
}

// guesses are those of both groups, in steps: the training part's means, and where the analyst names a difference the likeliest means that have it.
func (d DifferenceSums) guesses(by Planning) (first, second int64, err error) {
	first, second = d.First.mean(), d.Second.mean()
	if by.Guess == nil || by.Guess.Value == nil {
		return first, second, nil
	}
	half, err := by.guessed(0)
	if err != nil {
		return 0, 0, err
	}
	named := 2*half - grid
	spread := func(r RootSums) float64 {
		if r.Units == 0 {
			return 1
		}
		_, variance := r.Moments()
		return variance / float64(r.Units)
	}
	a, b := spread(d.First), spread(d.Second)
	if a+b == 0 {
		a, b = 1, 1
	}
	first += int64(float64(named-first+second) * a / (a + b))
	first = min(max(first, named, 0), grid, grid+named)
	return first, first - named, nil
}

// differenceCheck is the [Check] of a difference.
type differenceCheck struct{ moments.DifferenceCheck }

// Find implements [Check].
func (c differenceCheck) Find(holdout Statistic) (Finding, error) {
	h, ok := holdout.(DifferenceSums)
	if !ok {
		return nil, otherStatistic(c, holdout)
	}
	o, err := c.Outcome(h.First.Sums, h.Second.Sums)
	return differenceFinding{c.DifferenceCheck, o}, err
}

// Expected implements [Check].
func (c differenceCheck) Expected() Finding {
	return differenceFinding{c.DifferenceCheck, moments.DifferenceOutcome{Rank: 1}}
}

// narrowed implements [widthCheck].
func (c differenceCheck) narrowed(halfWidth, level float64) (Check, bool) {
	at, ok := c.WithHalfWidth(2*halfWidth, level) // the value is half the difference
	return differenceCheck{at}, ok
}

// testedDifference is a difference's check as one for a test, by what is said of both groups together.
type testedDifference struct {
	moments.DifferenceCheck
	training [2]moments.Training
}

// planned implements [tested].
func (c testedDifference) planned() int64 { return c.Both[0].Away }

// at implements [tested].
func (c testedDifference) at(close bool, below, above int64) Check {
	first, both := [2]moments.Rank{c.First.Ranks[0], c.Second.Ranks[0]}, c.Both[0]
	if _, near, err := moments.PlanDifference(c.training[0], c.training[1], c.First.N, closeDeviations); close && err == nil {
		for i, r := range []moments.Rank{near.First.Ranks[0], near.Second.Ranks[0]} {
			all := first[i]
			first[i] = moments.Rank{Away: min(r.Away, all.Away), Variance: min(r.Variance, all.Variance), Units: max(r.Units, all.Units)}
			both.Most[i] = min(near.Both[0].Most[i], both.Most[i])
		}
	}
	both.Away, both.Shift = spanOf(below, above)
	c.First.Ranks = []moments.Rank{first[0], c.First.Ranks[0]}
	c.Second.Ranks = []moments.Rank{first[1], c.Second.Ranks[0]}
	c.Both = []moments.BothRank{both, c.Both[0]}
	return differenceCheck{c.DifferenceCheck}
}

// exact implements [widthCheck].
func (c differenceCheck) exact() Finding {
	none := c.DifferenceCheck
	none.First.Ranks, none.Second.Ranks = c.First.Ranks[:1:1], c.Second.Ranks[:1:1]
	none.Both = []moments.BothRank{{Most: c.Both[0].Most}}
	return differenceFinding{none, moments.DifferenceOutcome{Rank: 1}}
}

// differenceFinding is the [Finding] of a difference.
type differenceFinding struct {
	check moments.DifferenceCheck
	moments.DifferenceOutcome
}

// Silent implements [Finding].
func (f differenceFinding) Silent() bool { return f.check.Silent() }

// Value implements [Finding].
func (f differenceFinding) Value() float64 {
	return math.Floor((1+f.check.Value(f.DifferenceOutcome))/2*float64(grid)) / float64(grid)
}

// Margin implements [Finding]: both groups' together.
func (f differenceFinding) Margin() float64 {
	switch {
	case f.Failed():
		return 0
	case f.check.Both != nil:
		r := f.check.Both[f.Rank-1]
		return float64(reach(r.Away, r.Shift)) / 2 / float64(grid)
	}
	return float64(f.check.First.Ranks[f.Rank-1].Away+f.check.Second.Ranks[f.Rank-1].Away) / 2 / float64(grid)
}

// Interval implements [Finding].
func (f differenceFinding) Interval(level float64) (*Interval, bool) {
	low, high := f.check.Interval(f.DifferenceOutcome, level)
	near, reason := f.Margin(), fromAgreement
	if f.Failed() {
		near, reason = 0.25/float64(f.check.First.Cells)+0.25/float64(f.check.Second.Cells), fromRounding
	}
	return intervalOf(f.Value(), (1+low)/2, (1+high)/2, near, reason, BoundTwoMoments), true
}
