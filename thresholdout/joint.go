package thresholdout

import (
	"fmt"
	"math"
	"slices"

	"github.com/holdoutd/holdoutd/thresholdout/moments"
)

// A question can be about several means of the same units, of which its answer is made: a variance is made of the means of x² and of x. They are checked together: one question, for at
// most one token, in which each mean has its share of the probability of error (docs/proofs/several-means.md, section 1).

// JointSums are the exact sums of several means over one part: a [Statistic]. Its value and its intervals are those of what is made of the means, in units of its own.
type JointSums struct {
	Means     []RootSums
	Shares    []float64 // of the probability of error, as the question's form says; positive, with a sum of at most 1
	Low, High float64   // the answer's range, in its own units, as are guesses of it
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

// Plan implements [Statistic]. A guess of the answer is one of the mean that has most of the error, whose own it has in full: the others keep the training part's.
func (j JointSums) Plan(by Planning) (Check, error) {
	c := jointCheck{units: by.N, make: j.Make, JointCheck: moments.JointCheck{Shares: j.Shares}}
	guess, err := j.guessed(by.Guess)
	if err != nil {
		return nil, err
	}
	trained := make([]moments.Training, len(j.Means))
	for i, m := range j.Means {
		trained[i] = m.training(m.mean())
		own := by
		own.Guess, own.Level = nil, by.Level-math.Log(j.Shares[i])
		if guess != nil && i == j.main() {
			own.Guess = &Guess{Value: guess}
		}
		planned, err := m.Plan(own)
		if err != nil {
			return nil, err
		}
		one := planned.(rootCheck).Check
		one.Outward = false // another mean's failure is one of this, wherever it is
		if j.Shares[i] < 0.5 {
			one.Cells = max(one.Cells/coarser, 1)
		}
		c.Checks = append(c.Checks, one)
	}
	if err := c.Valid(); err != nil {
		return nil, err
	}
	at, err := j.within(c, by)
	if err != nil {
		return nil, err
	}
	return told(at, testedJoint{c, j.main(), trained}, by), nil
}

// testedJoint is a joint check as one for a test, by the main mean: the one whose margin is narrowed.
type testedJoint struct {
	jointCheck
	main     int
	training []moments.Training // of each mean
}

// planned implements [tested].
func (f testedJoint) planned() int64 { return f.Checks[f.main].Ranks[0].Away }

// at implements [tested].
func (f testedJoint) at(close bool, below, above int64) Check {
	c := f.jointCheck
	c.Checks = slices.Clone(f.Checks)
	for i, one := range f.Checks {
		first, all := one.Ranks[0], one.Ranks[0]
		if near, err := moments.PlanWith(f.training[i], one.N, closeDeviations); close && err == nil {
			r := near.Ranks[0]
			first = moments.Rank{Away: min(r.Away, all.Away), Variance: min(r.Variance, all.Variance), Units: max(r.Units, all.Units)}
		}
		if i == f.main {
			first.Away, first.Shift = spanOf(below, above)
		}
		c.Checks[i].Ranks = []moments.Rank{first, all}
	}
	return c
}

// main is the mean that has most of the probability of error.
func (j JointSums) main() int {
	most := 0
	for i, s := range j.Shares {
		if s > j.Shares[most] {
			most = i
		}
	}
	return most
}

// guessed is the main mean, in [0,1], with which the answer is the analyst's guess where the other means are the training part's; nil without a guess. The answer is monotone in the main
// mean. A guess that no value of it makes is taken for the nearest that one does.
func (j JointSums) guessed(own *Guess) (*float64, error) {
	if own == nil || own.Value == nil {
		return nil, nil
	}
	want, main := *own.Value, j.main()
	if !(want >= j.Low && want <= j.High) {
		return nil, fmt.Errorf("thresholdout: guess %v is not within %v and %v", want, j.Low, j.High)
	}
	means := make([]Known, len(j.Means))
	for i, m := range j.Means {
		v := float64(m.mean()) / float64(grid)
		means[i] = Known{v, v, v}
	}
	makes := func(v float64) float64 {
		means[main] = Known{v, v, v}
		return j.Make(means, j.Means[0].All).Value
	}
	low, high := 0.0, 1.0
	first, last := makes(low), makes(high)
	if !(first != last) { // or no number: the answer does not depend on it
		return nil, nil
	}
	if first > last {
		low, high = high, low
	}
	for range guessSteps {
		if mid := low + (high-low)/2; makes(mid) < want {
			low = mid
		} else {
			high = mid
		}
	}
	nearest := high
	if math.Abs(makes(low)-want) < math.Abs(makes(high)-want) {
		nearest = low
	}
	return &nearest, nil
}

// guessSteps are enough halvings of [0,1] for every step of the grid.
const guessSteps = 40

// within is a check at the half-width that the analyst asks for, if he does: the largest margin of the main mean with which the answer's interval is within it. The other means keep
// the margins of rank 1. As [moments.Check.WithHalfWidth] has it, the main mean's variance is not asked about where even so there is room for its planned margin.
func (j JointSums) within(c jointCheck, by Planning) (Check, error) {
	if by.Guess == nil || by.Guess.HalfWidth == 0 {
		return c, nil
	}
	want, main := by.Guess.HalfWidth, j.main()
	if !(want > 0 && want <= j.High-j.Low) {
		return nil, fmt.Errorf("thresholdout: half_width %v is not between 0 and the width %v of the range", want, j.High-j.Low)
	}
	at := func(away int64, silent bool) jointCheck {
		one := c
		one.Checks = slices.Clone(c.Checks)
		for i := range one.Checks {
			one.Checks[i].Ranks = slices.Clone(c.Checks[i].Ranks[:1])
		}
		rank := &one.Checks[main].Ranks[0]
		rank.Away = away
		if silent {
			rank.Variance = c.Checks[main].Ranks[1].Variance
		}
		return one
	}
	room := func(silent bool) int64 {
		holds := func(away int64) bool { return halfWidth(at(away, silent).Expected(), by.Level) <= want }
		most, beyond := int64(-1), int64(grid+1)
		for beyond-most > 1 {
			if mid := most + (beyond-most)/2; holds(mid) {
				most = mid
			} else {
				beyond = mid
			}
		}
		return most
	}
	if away := room(true); away >= c.Checks[main].Ranks[0].Away {
		return at(away, true), nil
	}
	away := room(false)
	if away < 0 {
		known := func(f Finding) float64 { // where the answer has no value, its interval is the whole range
			w := halfWidth(f, by.Level)
			if math.IsNaN(w) {
				return j.High - j.Low
			}
			return w
		}
		return nil, &WidthError{HalfWidth: want, Least: known(at(0, false).Expected()), Planned: known(c.Expected())}
	}
	return at(away, false), nil
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

// Silent implements [Finding].
func (f jointFinding) Silent() bool { return f.check.Silent() }

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
