package moments

import (
	"fmt"
	"math"
)

// Group is what an answer says of one group, for the interval of a difference.
type Group struct {
	From, To float64 // the holdout's mean in the group is between them
	Variance float64 // it varies at most so much
	Units    float64 // over at least so many units
}

func (g Group) low(level float64) float64  { return Low(g.From, g.Variance, g.Units, level) }
func (g Group) high(level float64) float64 { return High(g.To, g.Variance, g.Units, level) }

// DifferenceLow is a number below r1 - r2, the difference of two conditional means over disjoint groups, but for a probability of at most
// e^-level: a unit is in one group at most, so that bets on both multiply, and
//
//	low = min over t in [0,1] of low1(t level) - high2((1-t) level).
//
// That is convex in t. The search ends with the lower end of what may be between the last two places, by both terms' monotony.
func DifferenceLow(first, second Group, level float64) float64 {
	if !(level >= 0) || math.IsInf(level, 1) {
		return -1
	}
	at := func(t float64) float64 { return first.low(t*level) - second.high((1-t)*level) }
	const golden = 0.6180339887498949
	a, b := 0.0, 1.0
	x, y := b-golden*(b-a), a+golden*(b-a)
	fx, fy := at(x), at(y)
	for b-a > differencePrecision {
		if fx <= fy {
			b, y, fy = y, x, fx
			x = b - golden*(b-a)
			fx = at(x)
		} else {
			a, x, fx = x, y, fy
			y = a + golden*(b-a)
			fy = at(y)
		}
	}
	return max(-1, first.low(b*level)-second.high((1-a)*level)-endSlack)
}

// differencePrecision is how far the search for the shares of the level goes: below 1e-4 of the width of the steadier group, which is
// then narrower than the other by as much.
const differencePrecision = 1e-9

// DifferenceHigh is the mirror of [DifferenceLow].
func DifferenceHigh(first, second Group, level float64) float64 {
	return -DifferenceLow(second, first, level)
}

// DifferenceCheck is the check of one question about the difference of the means of two groups. No unit may be in both: the caller sees to
// it by the form of the conditions; sums cannot show it. The ranks of both groups are one chain, so that both pass at the same rank or
// the question fails.
type DifferenceCheck struct{ First, Second Check }

// DifferenceOutcome is what is known of the holdout after a question about a difference.
type DifferenceOutcome struct {
	Rank  int      // 1, 2: the pass of both groups; 0: a failure
	Cells [2]int64 // of a failure
	Loss  int      // of a failure: the least rank that both groups' sums satisfy
}

func (o DifferenceOutcome) Failed() bool { return o.Rank == 0 }
func (o DifferenceOutcome) Wide() bool   { return o.Rank > 1 }

// Valid says what is wrong with a check.
func (c DifferenceCheck) Valid() error {
	for _, g := range []Check{c.First, c.Second} {
		if err := g.Valid(); err != nil {
			return err
		}
		if !g.Partial {
			return fmt.Errorf("moments: a difference is of two means under disjoint conditions; one has no condition")
		}
	}
	if c.First.N != c.Second.N || len(c.First.Ranks) != len(c.Second.Ranks) {
		return fmt.Errorf("moments: groups of one holdout with as many ranks each are needed")
	}
	return nil
}

// Outcome compares both groups' sums with the margins.
func (c DifferenceCheck) Outcome(first, second Sums) (o DifferenceOutcome, err error) {
	if err := c.Valid(); err != nil {
		return o, err
	}
	if first.Units+second.Units > c.First.N {
		return o, fmt.Errorf("moments: %d and %d units of %d: a unit is in both groups, or the sums are of another holdout", first.Units, second.Units, c.First.N)
	}
	for _, s := range []Sums{first, second} {
		if err := s.check(); err != nil {
			return o, err
		}
	}
	holds := func(g Check, s Sums, r Rank) bool {
		return s.Units > 0 && s.Units >= r.Units && s.near(g.Guess, r.Away) && s.steady(r.Variance)
	}
	for l := range c.First.Ranks {
		if holds(c.First, first, c.First.Ranks[l]) && holds(c.Second, second, c.Second.Ranks[l]) {
			return DifferenceOutcome{Rank: l + 1}, nil
		}
	}
	if first.Units == 0 || second.Units == 0 {
		return DifferenceOutcome{Loss: failureRanks - 1}, nil
	}
	o.Cells = [2]int64{first.cell(c.First.Cells), second.cell(c.Second.Cells)}
	for o.Loss < failureRanks-1 && !(c.First.lost(first, o.Loss) && c.Second.lost(second, o.Loss)) {
		o.Loss++
	}
	return o, nil
}

// lost says whether the sums satisfy what a failure of rank t, not the last, says.
func (c Check) lost(s Sums, t int) bool { return s.Units >= c.unitsAt(t) && s.steady(c.varianceAt(t)) }

// Price is what a failure adds to later levels: ln(c1 c2 T).
func (c DifferenceCheck) Price() Nats {
	return nats(math.Log(float64(c.First.Cells) * float64(c.Second.Cells) * failureRanks))
}

// Interval is that of the difference, at the level E of [Urn.Level], rounded outward with a step of the grid for each group.
func (c DifferenceCheck) Interval(o DifferenceOutcome, level float64) (low, high float64) {
	first, second := c.First.group(o.Rank, o.Cells[0], o.Loss), c.Second.group(o.Rank, o.Cells[1], o.Loss)
	if level += passLevel; o.Failed() {
		// The cells of two groups are no chain. With the cell of the group that has fewer of them fixed, those of the other are one.
		level += failedLevel - passLevel + math.Log(failureRanks*float64(min(c.First.Cells, c.Second.Cells)))
	}
	return max(-1, DifferenceLow(first, second, level)-2*gridError), min(1, DifferenceHigh(first, second, level)+2*gridError)
}

func (c Check) group(rank int, cell int64, loss int) (g Group) {
	g.From, g.To, g.Variance, g.Units = c.said(Outcome{Rank: rank, Cell: cell, Loss: loss})
	return g
}

// Value is the difference of the guesses, or of the middles of the cells.
func (c DifferenceCheck) Value(o DifferenceOutcome) float64 {
	return c.First.Value(Outcome{Rank: o.Rank, Cell: o.Cells[0]}) - c.Second.Value(Outcome{Rank: o.Rank, Cell: o.Cells[1]})
}
