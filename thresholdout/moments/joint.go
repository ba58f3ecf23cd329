package moments

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// JointCheck is the check of one question about several means at once, of which an answer is made: as a variance is of the means of x² and of x. They pass at the same
// rank, or the question fails. Each has its share of the question's probability of error, and its own interval.
//
// An interval of one of them is missed with probability at most its share of e^-level on each side, over all outcomes of the question together: what an outcome says
// of it is what an outcome of its own check would, and those are chains as before (docs/proofs/several-means.md, section 1).
type JointCheck struct {
	Checks []Check
	Shares []float64 // positive, with a sum of at most 1
}

// JointOutcome is what is known of the holdout after a question about several means.
type JointOutcome struct {
	Rank  int     // 1, 2: the pass of all of them; 0: a failure
	Cells []int64 // of a failure, of each of them
	Loss  int     // of a failure: the least rank that the sums of all of them satisfy
}

func (o JointOutcome) Failed() bool { return o.Rank == 0 }
func (o JointOutcome) Wide() bool   { return o.Rank > 1 }

// errOutward refuses cells that no price of a failure of several means, or of two groups, is for: those pay for equal cells of [0,1], wherever each mean is.
var errOutward = errors.New("moments: the cells of several means are counted from 0 on, not outward")

// shareSlack is more than the rounding of a sum of shares.
const shareSlack = 1e-9

// Valid says what is wrong with a check.
func (c JointCheck) Valid() error {
	if len(c.Checks) == 0 || len(c.Checks) != len(c.Shares) {
		return fmt.Errorf("moments: %d means with %d shares; each has one", len(c.Checks), len(c.Shares))
	}
	sum := 0.0
	for i, one := range c.Checks {
		if err := one.Valid(); err != nil {
			return err
		}
		if one.Outward {
			return errOutward
		}
		if one.N != c.Checks[0].N || len(one.Ranks) != len(c.Checks[0].Ranks) {
			return fmt.Errorf("moments: means of one holdout with as many ranks each are needed")
		}
		if !(c.Shares[i] > 0) {
			return fmt.Errorf("moments: a share of %v; it must be positive", c.Shares[i])
		}
		sum += c.Shares[i]
	}
	if !(sum <= 1+shareSlack) {
		return fmt.Errorf("moments: shares add up to %v, and at most to 1", sum)
	}
	return nil
}

// Silent is [Check.Silent] of several means.
func (c JointCheck) Silent() bool {
	return !slices.ContainsFunc(c.Checks, func(one Check) bool { return !one.Silent() })
}

// losses is T of this question: the most that any of its means has.
func (c JointCheck) losses() int {
	t := 1
	for _, one := range c.Checks {
		t = max(t, one.losses())
	}
	return t
}

// Outcome compares the sums of each with the margins, in integers.
func (c JointCheck) Outcome(sums []Sums) (o JointOutcome, err error) {
	if err := c.Valid(); err != nil {
		return o, err
	}
	if len(sums) != len(c.Checks) {
		return o, fmt.Errorf("moments: sums of %d means for a check of %d", len(sums), len(c.Checks))
	}
	some := true
	for i, s := range sums {
		if err := c.Checks[i].fits(s); err != nil {
			return o, err
		}
		some = some && s.Units > 0
	}
	if c.Silent() {
		return JointOutcome{Rank: 1}, nil
	}
	for l := range c.Checks[0].Ranks {
		if some && c.all(sums, func(one Check, s Sums) bool { return one.holds(s, one.Ranks[l]) }) {
			return JointOutcome{Rank: l + 1}, nil
		}
	}
	o.Cells = make([]int64, len(sums))
	for i, s := range sums {
		if s.Units > 0 { // no mean is in no cell; the last rank says nothing of it
			o.Cells[i] = c.Checks[i].cell(s)
		}
	}
	last := c.losses() - 1
	if !some {
		o.Loss = last
		return o, nil
	}
	for o.Loss < last && !c.all(sums, func(one Check, s Sums) bool { return o.Loss >= one.losses()-1 || one.lost(s, o.Loss) }) {
		o.Loss++
	}
	return o, nil
}

func (c JointCheck) all(sums []Sums, holds func(Check, Sums) bool) bool {
	for i, s := range sums {
		if !holds(c.Checks[i], s) {
			return false
		}
	}
	return true
}

// Dearest is what a failure adds to later levels: ln T and the logarithm of the cells of each.
func (c JointCheck) Dearest() Nats {
	price := math.Log(float64(c.losses()))
	for _, one := range c.Checks { // of which none counts its cells outward
		price += math.Log(float64(one.Cells))
	}
	return nats(price)
}

// Of is the outcome of one of the means: what o says of it.
func (o JointOutcome) Of(i int, c Check) Outcome {
	if !o.Failed() {
		return Outcome{Rank: o.Rank}
	}
	return Outcome{Cell: o.Cells[i], Loss: min(o.Loss, c.losses()-1)}
}

// Value is that of one of the means: its guess, or the middle of its cell.
func (c JointCheck) Value(i int, o JointOutcome) float64 {
	return c.Checks[i].Value(o.Of(i, c.Checks[i]))
}

// Interval is that of one of the means, at the level E of [Urn.Level] of the question.
func (c JointCheck) Interval(i int, o JointOutcome, level float64) (low, high float64) {
	return c.Checks[i].Interval(o.Of(i, c.Checks[i]), level-math.Log(c.Shares[i]))
}
