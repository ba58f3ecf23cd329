package thresholdout

import (
	"errors"
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/thresholdout/moments"
)

// Forgets is a mechanism whose later answers depend on what earlier ones said, and that can go on when it does not know what they said.
type Forgets interface {
	// Forget is what the mechanism is to remember after answers that are not known any more: s is the state with their questions and tokens spent already, and lost is how many there were at most. The level that it leads to is
	// at least the one that the true memory would.
	Forget(s State, lost Amounts) (Memory, error)
}

// Unseen is the state after answers that were given and are not known any more, such as those that a restored backup does not have: at most so many questions, tokens and rounds. Every
// later interval holds as if they were known; it may be wider. The error says why the guarantee cannot go on after them, and wraps [ErrUnseen], or that they are more than is left.
func (g Guarantee) Unseen(s State, lost Amounts) (State, error) {
	if lost.Questions < 0 || lost.Tokens < 0 || lost.Rounds < 0 || lost.Tokens > lost.Questions {
		return s, fmt.Errorf("%w: %d questions with %d tokens and %d rounds: each token is one of a question", ErrUnseen, lost.Questions, lost.Tokens, lost.Rounds)
	}
	left := g.Limits().Minus(s.Spent())
	if lost.Questions > left.Questions || lost.Tokens > left.Tokens || lost.Rounds > left.Rounds {
		return s, fmt.Errorf("%w: %d questions, %d tokens and %d rounds are more than is left: %d, %d and %d", ErrUnseen,
			lost.Questions, lost.Tokens, lost.Rounds, left.Questions, left.Tokens, left.Rounds)
	}
	if lost == (Amounts{}) {
		return s, nil
	}
	if g.Rounds > 0 {
		s = g.EndRound(s)
		room := int64(0)
		for r := s.Rounds; r < s.Rounds+lost.Rounds; r++ {
			room += g.RoundSize(r)
		}
		if lost.Questions > room {
			return s, fmt.Errorf("%w: %d questions do not fit into %d rounds", ErrUnseen, lost.Questions, lost.Rounds)
		}
		s.Rounds += lost.Rounds
	}
	s.Questions += lost.Questions
	s.Tokens += lost.Tokens
	if g.NeedsTokens() && s.Tokens == g.Tokens || s.Questions == g.Questions {
		return s, nil // nothing new is answered, so that nothing is left to hold
	}
	_, remembers := g.own.(Remembers)
	m, forgets := g.own.(Forgets)
	switch {
	case forgets:
		var err error
		s.Memory, err = m.Forget(s, lost)
		return s, err
	case remembers:
		return s, fmt.Errorf("%w: %s says what is best so far, and that is not known any more", ErrUnseen, g.Mechanism)
	}
	return s, nil
}

// ErrUnseen: a guarantee cannot go on after answers that are not known.
var ErrUnseen = errors.New("thresholdout: after answers that are not known")

// errUnseenTokens: a failure said which cell the holdout's value is in, one of a number that depends on its question.
func errUnseenTokens(tokens int64) error {
	return fmt.Errorf("%w: what %d tokens told is not a matter of their number", ErrUnseen, tokens)
}

// unseenPasses is what so many answers that spent no token may have said, in nats beside what they would have said as plain passes. The level of a run is minus the logarithm of its probability under an urn, and an
// urn's draws may be taken in any order. So put the answers that are not known last: whatever each of them was, it adds at most [moments.Urn.Rarest] to the level of what is known,
// with which the counters' plain passes in their place agree at least. Fewer answers than said add less.
func unseenPasses(u moments.Urn, questions int64) moments.Nats {
	most := u.Rarest(0, 0, 0, u.Questions, 0) // no outcome is known to have been drawn, and as many others as there can be
	return moments.Nats(questions) * moments.PriceOf(math.Exp(most))
}

// Forget implements [Forgets].
func (m *guessAndCheck) Forget(s State, lost Amounts) (Memory, error) {
	if lost.Tokens > 0 {
		return nil, errUnseenTokens(lost.Tokens)
	}
	a := accountOf(s)
	a.Paid += unseenPasses(m.urn(), lost.Questions)
	return a, nil
}

// Forget implements [Forgets].
func (m *comparedRuns) Forget(s State, lost Amounts) (Memory, error) {
	if lost.Tokens > 0 {
		return nil, errUnseenTokens(lost.Tokens)
	}
	b := booksOf(s)
	b.Paid += unseenPasses(m.urn(), lost.Questions)
	return b, nil
}

// Forget implements [Forgets]: the level follows the number of strings of outcomes, which grows with the number of failures as long as at most half have failed.
func (m *forcedRuns) Forget(s State, lost Amounts) (Memory, error) {
	if lost.Tokens > 0 && 2*s.Tokens > s.Questions {
		return nil, errUnseenTokens(lost.Tokens)
	}
	return s.Memory, nil
}
