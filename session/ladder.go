package session

import (
	"fmt"

	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// Under the mechanism ladder a question is a submission: the zero_one loss of a model. Its answer is what the board shows then.

// checkSubmission refuses under ladder what is no submission.
func (s *Session) checkSubmission(plan *queries.Plan) error {
	if !s.Guarantee.TakesSubmissions() || plan.ZeroOne {
		return nil
	}
	return wrong("/type", `a ladder takes submissions: {"type":"loss","loss":"zero_one",…} over all rows, without range and where`)
}

// submit is Ask for a ladder. The interval is about the submission that the board shows, whichever that is.
func (s *Session) submit(state thresholdout.State, q *Question, sums Sums) (Answer, thresholdout.State, error) {
	standing, next, err := thresholdout.StepLadder(s.Guarantee, state, sums.Holdout.Means[0])
	if err != nil {
		return Answer{}, state, fmt.Errorf("session: submission: %w", err)
	}
	a := Answer{ID: s.answerID(q.ID), Holdout: s.Holdout, Query: q.ID, Value: &standing.Loss, Best: &standing.Best,
		Mechanism: s.Guarantee.Mechanism, Source: thresholdout.FromHoldout, ValueFrom: ValueFromHoldout, Cost: cost(state, next), Outcome: standing.Outcome()}
	if i := standing.Interval; i != nil {
		a.Interval = &Interval{Low: &i.Low, High: &i.High, Confidence: s.Guarantee.Confidence, Scope: s.scope(state),
			Target: "the loss, in the population that the units were drawn from, of the submission that the board shows", Bound: i.Bound, Parts: i.Parts}
	}
	return a, next, nil
}
