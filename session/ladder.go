package session

import (
	"fmt"
	"math/big"

	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/queries/expr"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// Under the mechanism ladder a question is a submission: the zero_one loss of a model. What is compared are the losses row by row of
// the submission and of its rival, the best one so far, so that the rows are summed for both.

// maxSubmission bounds a submission's canonical form in bytes. The best one is kept in the state, which a ledger bounds at
// a megabyte, in JSON that can make six bytes of one.
const maxSubmission = 1 << 17

// checkSubmission refuses under ladder what is no submission.
func (s *Session) checkSubmission(q *queries.Query, plan *queries.Plan) error {
	switch {
	case s.Guarantee.Mechanism != thresholdout.Leaderboard:
		return nil
	case !plan.ZeroOne:
		return wrong("/type", `a ladder takes submissions: {"type":"loss","loss":"zero_one",…} over all rows, without range and where`)
	case len(q.Canonical()) > maxSubmission:
		return &WrongError{TooLarge: true, Detail: fmt.Sprintf("the submission has %d bytes in canonical form; a ladder takes at most %d", len(q.Canonical()), maxSubmission)}
	case plan.HoldoutOnly():
		return wrong("/predictions", "a ladder has to know the best submission again, and keeps no predictions row by row; send the model")
	}
	return nil
}

// Rival is the canonical query of the submission that the next one is compared with; "" where there is none. Who asks compiles it
// and sets Question.Rival.
func (s *Session) Rival(state thresholdout.State) string {
	if s.Guarantee.Mechanism != thresholdout.Leaderboard {
		return ""
	}
	return state.Best
}

// both is the row function of rows in which a submission and its rival are both wrong.
func both(q *Question) queries.RowFunction {
	a, b := q.Plan.Functions[0].Value, q.Rival.Functions[0].Value
	return queries.RowFunction{Lo: 0, Hi: 1, Value: &expr.Node{Op: expr.OpMul, Type: expr.Number, Args: []*expr.Node{a, b}}}
}

// submit is Ask for a ladder.
func (s *Session) submit(state thresholdout.State, q *Question, sums Sums) (Answer, thresholdout.State, error) {
	squares := func(m thresholdout.Mean) *big.Int { // of numbers that are 0 or 1, in steps of 2^-60
		return new(big.Int).Lsh(big.NewInt(m.Sum), queries.GridBits)
	}
	in := thresholdout.Losses{N: sums.Holdout[0].N, Sum: sums.Holdout[0].Sum, Square: squares(sums.Holdout[0])}
	if len(sums.Both) > 0 {
		in.Cross = squares(sums.Both[0])
	}
	standing, next, err := thresholdout.StepLadder(s.Guarantee, state, in, string(q.Canonical))
	if err != nil {
		return Answer{}, state, fmt.Errorf("session: submission: %w", err)
	}
	return Answer{ID: s.answerID(q.ID), Holdout: s.Holdout, Query: q.ID, Value: &standing.Loss, Best: &standing.Best,
		Mechanism: s.Guarantee.Mechanism, Source: thresholdout.FromHoldout, Cost: s.cost(state, next)}, next, nil
}
