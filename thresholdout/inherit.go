package thresholdout

import (
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/thresholdout/moments"
)

// Heir is a mechanism whose intervals hold for questions that were chosen knowing other holdouts' answers, if it counts those answers as its own
// (docs/proofs/inheritance.md).
type Heir interface {
	// Inherit is the state that counts everything that was told by runs of these mechanisms, which are of the same kind, and ended in these states.
	Inherit(others []Mechanism, states []State) State
}

// Inherit is the state that a new holdout of the guarantee begins with, where rows of its holdout were held out by others before: their guarantees and their last states, each of its own. The error says why there is none: the
// mechanism has no such theorem, one of the others is of another mechanism or version, or nothing would be left.
func (g Guarantee) Inherit(others []Guarantee, states []State) (State, error) {
	heir, ok := g.own.(Heir)
	if !ok {
		return State{}, fmt.Errorf("thresholdout: nothing is proved of a holdout under %s that goes on from another one", g.Mechanism)
	}
	runs := make([]Mechanism, len(others))
	for i, other := range others {
		if other.Mechanism != g.Mechanism || other.Version != g.Version {
			return State{}, fmt.Errorf("thresholdout: a holdout under %s cannot go on from one under %s", g.Mechanism, other.Mechanism)
		}
		if err := other.holds(states[i]); err != nil {
			return State{}, err
		}
		runs[i] = other.own
	}
	s := heir.Inherit(runs, states)
	if err := g.holds(s); err != nil || g.Questions-s.Questions < 1 || g.NeedsTokens() && g.Tokens-s.Tokens < 1 {
		return State{}, fmt.Errorf("thresholdout: %d questions and %d tokens were spent on these rows, which is all of the %d and %d of the new holdout or more", s.Questions, s.Tokens, g.Questions, g.Tokens)
	}
	return s, nil
}

// Inherit implements [Heir]: transcripts are united by their counts, in whichever holdout an outcome was seen. The heir's own urn may make what was told likelier than the
// urns that told it: it was chosen knowing what was told. The difference is paid for, so that over all that could have been told probabilities still add up to 1.
func (m *guessAndCheck) Inherit(others []Mechanism, states []State) State {
	var sum State
	var books account
	told := 0.0
	for i, s := range states {
		a := accountOf(s)
		told += others[i].(*guessAndCheck).told(s)
		sum.Questions = saturated(sum.Questions, s.Questions)
		sum.Tokens = saturated(sum.Tokens, s.Tokens)
		books.Wide, books.Paid = saturated(books.Wide, a.Wide), saturated(books.Paid, a.Paid)
	}
	sum.Memory = books
	if sum.Questions > 0 && sum.Questions <= m.Questions { // of more there is no heir
		books.Paid = saturated(books.Paid, moments.NatsOf(told-m.told(sum)))
	}
	if sum.Memory = books; books == (account{}) {
		sum.Memory = nil
	}
	return sum
}

// told is minus the logarithm of the probability that the account gives to what has led to a state.
func (m *guessAndCheck) told(s State) float64 {
	a := accountOf(s)
	return m.urn().Told(s.Questions, s.Tokens, a.Wide, a.Paid)
}

// saturated is a sum of two numbers that are not negative.
func saturated[T ~int64](a, b T) T {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
