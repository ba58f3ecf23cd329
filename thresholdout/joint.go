package thresholdout

import (
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/thresholdout/moments"
)

// A question can be about several means of the same units, of which its answer is made: a variance is made of the means of x² and of x. They are checked together: one question, for at
// most one token, in which each mean has its share of the probability of error (docs/proofs/two-moments.md, section 12).

// JointSums are the exact sums of several means over one part: a [Statistic]. Its value and its intervals are those of what is made of the means, in units of its own.
type JointSums struct {
	Means  []RootSums
	Shares []float64 // of the probability of error, as the question's form says; positive, with a sum of at most 1
	// Make is the answer for a holdout of so many units, of what is known of each mean; a value that is no number is undefined. It is public, like the shares.
	Make func(means []Known, units int64) Known
}

// Known is what is known of a number: its value, and an interval that holds it.
type Known struct{ Value, Low, High float64 }

// Fits implements [Statistic].
func (j JointSums) Fits(units int64) error {
	if len(j.Means) == 0 || len(j.Means) != len(j.Shares) {
		return fmt.Errorf("sums of %d means with %d shares", len(j.Means), len(j.Shares))
	}
	for _, m := range j.Means {
		if err := m.Fits(units); err != nil {
			return err
		}
	}
	return nil
}

// Value implements [Statistic].
func (j JointSums) Value() (float64, bool) {
	means := make([]Known, len(j.Means))
	for i, m := range j.Means {
		v, ok := m.Value()
		if !ok {
			return 0, false
		}
		means[i] = Known{v, v, v}
	}
	v := j.Make(means, j.Means[0].All).Value
	return v, !math.IsNaN(v)
}

// coarser is how many times wider than another the cells of a mean are that has less than half of the error: it enters the answer less, and every cell is paid for.
const coarser = 4

// Plan implements [Statistic].
func (j JointSums) Plan(by Planning) (Check, error) {
	c := jointCheck{units: by.N, make: j.Make, JointCheck: moments.JointCheck{Shares: j.Shares}}
	for i, m := range j.Means {
		own := by
		own.Guess, own.Level = nil, by.Level-math.Log(j.Shares[i])
		planned, err := m.Plan(own)
		if err != nil {
			return nil, err
		}
		one := planned.(rootCheck).Check
		if j.Shares[i] < 0.5 {
			one.Cells = max(one.Cells/coarser, 1)
		}
		c.Checks = append(c.Checks, one)
	}
	return c, c.Valid()
}

// jointCheck is the [Check] of several means.
type jointCheck struct {
	moments.JointCheck
	units int64
	make  func([]Known, int64) Known
}

// Find implements [Check].
func (c jointCheck) Find(holdout Statistic) (Finding, error) {
	h, ok := holdout.(JointSums)
	if !ok {
		return nil, otherStatistic(c, holdout)
	}
	sums := make([]moments.Sums, len(h.Means))
	for i, m := range h.Means {
		sums[i] = m.Sums
	}
	o, err := c.Outcome(sums)
	return jointFinding{c, o}, err
}

// Expected implements [Check].
func (c jointCheck) Expected() Finding { return jointFinding{c, moments.JointOutcome{Rank: 1}} }

// jointFinding is the [Finding] of several means.
type jointFinding struct {
	check jointCheck
	moments.JointOutcome
}

// at is the answer at a level.
func (f jointFinding) at(level float64) Known {
	means := make([]Known, len(f.check.Checks))
	for i := range means {
		m := Known{Value: f.check.Value(i, f.JointOutcome)}
		m.Low, m.High = f.check.Interval(i, f.JointOutcome, level)
		means[i] = m
	}
	return f.check.make(means, f.check.units)
}

// Value implements [Finding].
func (f jointFinding) Value() float64 {
	// Which values the means have depends on no level, but whether the answer is defined does: at 0 their intervals are the narrowest.
	return f.at(0).Value
}

// Margin implements [Finding]. Each mean has its own; the answer, which is made of them, has none.
func (f jointFinding) Margin() float64 { return 0 }

// Interval implements [Finding]. The holdout's sums are not among its arguments.
func (f jointFinding) Interval(level float64) (*Interval, bool) {
	known := f.at(level)
	return &Interval{Low: known.Low, High: known.High, Bound: BoundTwoMoments}, true
}
