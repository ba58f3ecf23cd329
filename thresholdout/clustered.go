package thresholdout

import (
	"fmt"
	"math"
	"slices"

	"github.com/holdoutd/holdoutd/thresholdout/moments"
	"github.com/holdoutd/holdoutd/thresholdout/pairs"
)

// ClusteredSums are the exact sums of an area under the ROC curve, or of the difference of two, over pairs of units of several rows, one of each half of the part's units. They
// are a [Statistic], whose value is the ratio of pairs of rows in order to all of them; of a difference, (1 + difference)/2. Units are alike.
type ClusteredSums struct {
	All int64 // units of the part
	pairs.ClusteredSums
	Difference bool // of two areas
	// Whole says that the training part's units are in both halves, each a pair with itself, too: where a holdout is cut into halves, they plan by all of their pairs.
	Whole bool
}

// Fits implements [Statistic].
func (p ClusteredSums) Fits(units int64) error {
	switch {
	case p.All != units:
		return fmt.Errorf("sums over %d units, the guarantee is about %d", p.All, units)
	case p.A == nil || p.Whole && (p.N1 != p.All || p.N0 != p.All) || !p.Whole && (p.N1 != p.All/2 || p.N0 != p.All-p.N1):
		return fmt.Errorf("halves of %d and %d units, of %d", p.N1, p.N0, p.All)
	}
	return nil
}

// Value implements [Statistic]. It is about pairs of different units.
func (p ClusteredSums) Value() (float64, bool) {
	if p.Whole {
		return p.Others()
	}
	ratio, _, ok := p.Ratio()
	return ratio, ok
}

// Plan implements [Statistic].
func (p ClusteredSums) Plan(by Planning) (Check, error) {
	c, err := p.planned(by)
	if err != nil {
		return nil, err
	}
	return within(c, by)
}

func (p ClusteredSums) planned(by Planning) (clusteredCheck, error) {
	training, ok := p.Value()
	if !ok {
		training = 0.5
	}
	guess, err := by.guessed(int64(math.Floor(training*float64(grid) + 0.5)))
	if err != nil {
		return clusteredCheck{}, err
	}
	c := clusteredCheck{difference: p.Difference}
	if c.ClusteredCheck, err = pairs.PlanClustered(p.ClusteredSums, guess, by.N, by.Deviations); err != nil {
		c.ClusteredCheck = pairs.SilentClustered(by.N) // too few units with rows of both labels: nothing can be said, and that is known before
		if by.Guess != nil && by.Guess.Value != nil {
			c.Guess = guess
		}
	}
	c.OneSide, c.OneEvent = by.OneSide, by.OneEvent
	return c, nil
}

// clusteredCheck is how such a statistic is checked.
type clusteredCheck struct {
	pairs.ClusteredCheck
	difference bool
}

// Find implements [Check].
func (c clusteredCheck) Find(holdout Statistic) (Finding, error) {
	p, ok := holdout.(ClusteredSums)
	if !ok || p.Difference != c.difference || p.Whole {
		return nil, otherStatistic(c, holdout)
	}
	o, err := c.Outcome(p.ClusteredSums)
	return clusteredFinding{c, o}, err
}

// narrowed implements [widthCheck].
func (c clusteredCheck) narrowed(halfWidth, level float64) (Check, bool) {
	at, ok := c.WithHalfWidth(halfWidth, level)
	c.ClusteredCheck = at
	return c, ok
}

// exact implements [widthCheck].
func (c clusteredCheck) exact() Finding {
	c.Ranks = slices.Clone(c.Ranks[:1])
	c.Ranks[0].Away = 0
	return clusteredFinding{c, pairs.Outcome{Rank: 1}}
}

// Expected implements [Check].
func (c clusteredCheck) Expected() Finding { return clusteredFinding{c, pairs.Outcome{Rank: 1}} }

// Passes implements [Check].
func (c clusteredCheck) Passes() (all []Finding) {
	for l := range c.Ranks {
		all = append(all, clusteredFinding{c, pairs.Outcome{Rank: l + 1}})
	}
	return all
}

// Failure implements [Check].
func (c clusteredCheck) Failure() Finding {
	return clusteredFinding{c, pairs.Outcome{Cell: cellOf(c.Guess, c.Cells)}}
}

// Widest implements [Check]: the holdout may have no rows of a label.
func (c clusteredCheck) Widest(float64) float64 { return 1 }

// Price implements [Check]: all failures are alike.
func (c clusteredCheck) Price(Finding) moments.Nats { return c.Dearest() }

// clusteredFinding is what is known of the holdout after it.
type clusteredFinding struct {
	check clusteredCheck
	pairs.Outcome
}

// Silent implements [Finding].
func (f clusteredFinding) Silent() bool { return f.check.Silent() }

// Value implements [Finding].
func (f clusteredFinding) Value() float64 { return f.check.Value(f.Outcome) }

// Margin implements [Finding]: how far the ratio may be from the guess where the pairs are the fewest that the check allows.
func (f clusteredFinding) Margin() float64 {
	if f.Failed() {
		return 0
	}
	r := f.check.Ranks[f.Rank-1]
	if r.Size == 0 {
		return 1
	}
	return min(1, float64(r.Away)/float64(r.Size))
}

// Interval implements [Finding]. What an outcome says is a fact at every level.
func (f clusteredFinding) Interval(level float64) (*Interval, bool) {
	low, high := f.check.Interval(f.Outcome, level)
	near, reason := f.Margin(), fromAgreement
	if f.Failed() {
		near, reason = 0.5/float64(f.check.Cells), fromRounding
	}
	return intervalOf(f.Value(), low, high, near, reason, BoundPairs), true
}

func (f clusteredFinding) eachSide() Finding { f.check.OneSide = false; return f }

// ReadLast implements [LastStatistic]: by the spreads that the training part plans, where the holdout's are no larger, and by matchings.
func (p ClusteredSums) ReadLast(training LastStatistic, by LastPlanning) (Reading, error) {
	check := clusteredCheck{ClusteredCheck: pairs.SilentClustered(by.N), difference: p.Difference}
	if training != nil {
		t, ok := training.(ClusteredSums)
		if !ok || t.Difference != p.Difference {
			return Reading{}, otherLast(p, training)
		}
		var err error
		if check, err = t.lastPlanned(by); err != nil {
			return Reading{}, err
		}
	}
	if p.Whole {
		return Reading{}, otherLast(p, training)
	}
	if _, _, err := check.Exact(p.ClusteredSums, by.Level); err != nil {
		return Reading{}, fmt.Errorf("thresholdout: %w", err)
	}
	return p.reading(func(level float64) (low, high float64) {
		low, high, err := check.Exact(p.ClusteredSums, level)
		if err != nil {
			return 0, 1
		}
		return low, high
	}), nil
}

// ExpectLast implements [LastStatistic].
func (p ClusteredSums) ExpectLast(by LastPlanning) (Reading, error) {
	check, err := p.lastPlanned(by)
	if err != nil {
		return Reading{}, err
	}
	value, _ := p.Value()
	return p.reading(func(level float64) (low, high float64) { return check.Foreseen(value, level) }), nil
}

func (p ClusteredSums) lastPlanned(by LastPlanning) (clusteredCheck, error) {
	return p.planned(Planning{N: by.N, Questions: by.Questions, Deviations: moments.Deviations(by.Questions), OneEvent: by.OneEvent})
}

func (p ClusteredSums) reading(interval func(level float64) (low, high float64)) Reading {
	value, ok := p.Value()
	if !ok {
		value = 0.5
	}
	return Reading{Value: value, Bound: BoundSamplePairs, Interval: interval}
}
