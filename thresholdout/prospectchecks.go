package thresholdout

import (
	"math"

	"github.com/holdoutd/holdoutd/thresholdout/moments"
	"github.com/holdoutd/holdoutd/thresholdout/pairs"
)

// What each kind of check can find, for [Guarantee.Prospects]. The planned failure is one whose holdout varies as the training part does, just beside the guess.

// Passes implements [Check].
func (c rootCheck) Passes() (all []Finding) {
	for l := range c.Ranks {
		all = append(all, rootFinding{c.Check, moments.Outcome{Rank: l + 1}})
	}
	return all
}

// Failure implements [Check].
func (c rootCheck) Failure() Finding {
	return rootFinding{c.Check, c.Missed()}
}

// Widest implements [Check].
func (c rootCheck) Widest(level float64) float64 { return c.Check.Widest(level) }

// Passes implements [Check].
func (c weightedCheck) Passes() (all []Finding) {
	for l := range c.Ranks {
		all = append(all, weightedFinding{c.WeightedCheck, moments.WeightedOutcome{Rank: l + 1}})
	}
	return all
}

// Failure implements [Check].
func (c weightedCheck) Failure() Finding {
	return weightedFinding{c.WeightedCheck, moments.WeightedOutcome{Cell: cellOf(c.Guess, c.Cells)}}
}

// Widest implements [Check]: the holdout's weights may be too small to say anything.
func (c weightedCheck) Widest(float64) float64 { return 1 }

// Passes implements [Check].
func (c differenceCheck) Passes() (all []Finding) {
	for l := range c.First.Ranks {
		all = append(all, differenceFinding{c.DifferenceCheck, moments.DifferenceOutcome{Rank: l + 1}})
	}
	return all
}

// Failure implements [Check].
func (c differenceCheck) Failure() Finding {
	return differenceFinding{c.DifferenceCheck, moments.DifferenceOutcome{Cells: [2]int64{cellOf(c.First.Guess, c.First.Cells), cellOf(c.Second.Guess, c.Second.Cells)}}}
}

// Widest implements [Check]: the holdout may have no units of a group.
func (c differenceCheck) Widest(float64) float64 { return 1 }

// Passes implements [Check].
func (c jointCheck) Passes() (all []Finding) {
	for l := range c.Checks[0].Ranks {
		all = append(all, jointFinding{c, moments.JointOutcome{Rank: l + 1}})
	}
	return all
}

// Failure implements [Check].
func (c jointCheck) Failure() Finding {
	o := moments.JointOutcome{}
	for _, one := range c.Checks {
		o.Cells = append(o.Cells, cellOf(one.Guess, one.Cells))
	}
	return jointFinding{c, o}
}

// Widest implements [Check]: what is made of the means is in units of its own.
func (c jointCheck) Widest(float64) float64 { return math.Inf(1) }

// Passes implements [Check].
func (c quantileCheck) Passes() (all []Finding) {
	for l, span := range c.Ranks {
		all = append(all, quantileFinding{c, pairs.QuantileOutcome{Rank: l + 1, Span: span}})
	}
	return all
}

// Failure implements [Check]: what it says is about as long as what a pass says.
func (c quantileCheck) Failure() Finding {
	return quantileFinding{c, pairs.QuantileOutcome{Span: c.Ranks[0]}}
}

// Widest implements [Check]: the holdout may have too few units to say anything.
func (c quantileCheck) Widest(float64) float64 { return 1 }

// Passes implements [Check].
func (c pairCheck) Passes() (all []Finding) {
	for l := range c.Ranks {
		all = append(all, pairFinding{c, pairs.Outcome{Rank: l + 1}})
	}
	return all
}

// Failure implements [Check].
func (c pairCheck) Failure() Finding {
	return pairFinding{c, pairs.Outcome{Cell: cellOf(c.Guess, c.Cells)}}
}

// Widest implements [Check]: the holdout may have no units of a class.
func (c pairCheck) Widest(float64) float64 { return 1 }

// cellOf is the cell of a guess, in steps of the grid.
func cellOf(guess, cells int64) int64 {
	return min(int64(float64(guess)/float64(grid)*float64(cells)), cells-1)
}

// Price implements [Check].
func (c rootCheck) Price(f Finding) moments.Nats { return c.Check.Price(f.(rootFinding).Outcome) }

// Of the others all failures are alike.

// Price implements [Check].
func (c weightedCheck) Price(Finding) moments.Nats { return c.Dearest() }

// Price implements [Check].
func (c differenceCheck) Price(Finding) moments.Nats { return c.Dearest() }

// Price implements [Check].
func (c jointCheck) Price(Finding) moments.Nats { return c.Dearest() }

// Price implements [Check].
func (c quantileCheck) Price(Finding) moments.Nats { return c.Dearest() }

// Price implements [Check].
func (c pairCheck) Price(Finding) moments.Nats { return c.Dearest() }
