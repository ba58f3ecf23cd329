package session

import (
	"errors"
	"fmt"

	"github.com/holdoutd/holdoutd/thresholdout"
)

// Who asks may leave it to the mechanism whether a guess is checked or the holdout measured. The mechanism decides by what was answered before and by the training and the check part, of which no row is held out, so that the choice
// says nothing of the holdout and costs nothing.

// Open reports whether what was answered before decides how a question is asked: whether a guess can pass at its half-width, or whether it is checked or measured. No other answer may come between this decision
// and the question's own.
func (s *Session) Open(state thresholdout.State, q *Question) bool {
	return q.OwnWidth() || s.doubtful(q) && 2*state.Tokens < s.Guarantee.Tokens
}

// doubtful reports whether the training part's guess is the score of a model on rows that it may have been fitted to. Of two models that are compared, both were, and the difference of their scores is a fair guess.
func (s *Session) doubtful(q *Question) bool {
	return s.NoCheckPart && q.Plan.Fitted && q.Plan.Decision == nil && q.guessesNothing() && s.choosable(q)
}

// choosable reports whether it is left to the mechanism how a question is asked.
func (s *Session) choosable(q *Question) bool {
	_, ok := s.MeasuredForm(q)
	return ok && !q.checked
}

// guessesNothing reports whether the asker brings no guess, no half-width and no hypothesis of his own.
func (q *Question) guessesNothing() bool {
	return q.guess == nil || q.guess.values[0] == nil && q.guess.halfWidth == 0 && q.guess.null == nil
}

// Settle is a question in the form in which it is asked in this state, at the price of at most so many questions: measured
//   - where no guess is likely to pass at its half-width, and a measured answer has that half-width, in the widest cells that do;
//   - where the guess would be the score of a model on rows that it may have been fitted to, for the first half of the tokens: such a guess fails so often that to measure is cheaper.
//
// All other questions stay as they are, and so does one that says whether it is to be measured. training is what the training part says to it. Errors are *[NarrowError]: neither has the half-width.
// It reads no holdout row.
func (s *Session) Settle(state thresholdout.State, q *Question, training PartSums, most int64) (*Question, error) {
	if !s.Open(state, q) {
		return q, nil
	}
	err := s.Passable(state, q, training)
	var narrow *NarrowError
	if err != nil && !errors.As(err, &narrow) || !s.choosable(q) || err == nil && q.OwnWidth() && s.likely(state, q, training) {
		return q, err
	}
	measured, _ := s.MeasuredForm(q)
	if s.Price(measured.Plan).Questions > most || s.Short(state, measured) != "" {
		return q, err
	}
	if q.OwnWidth() {
		measured.guess.halfWidth = q.guess.halfWidth
	}
	if s.Passable(state, measured, training) != nil {
		return q, err
	}
	ways, _, failed := s.Prospects(state, measured, training)
	switch {
	case failed != nil:
		return q, fmt.Errorf("session: measured instead: %w", failed)
	case ways[0].Outcome == thresholdout.Unknown: // it would say nothing, and a check costs less
		return q, err
	}
	return measured, nil
}

// nothing is a half-width, as a part of the answer's range, that no answer has.
const nothing = 1e-15

// likely reports whether a guess that can pass at the question's half-width is likely to: the asker brings it, and knows why, or half of the usual margin is left between it and the ends of the interval. Guesses of the
// training or the check part fail there about once in eight times: more often, and to measure is cheaper.
func (s *Session) likely(state thresholdout.State, q *Question, training PartSums) bool {
	if q.guess.values[0] != nil {
		return true
	}
	least, own := *q, *q.guess
	own.halfWidth = nothing * (own.places[0].Range.High - own.places[0].Range.Low)
	least.guess = &own
	var narrow *NarrowError
	return !errors.As(s.Passable(state, &least, training), &narrow) || q.guess.halfWidth >= narrow.Least+(narrow.Planned-narrow.Least)/2
}
