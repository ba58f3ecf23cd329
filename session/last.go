package session

import (
	"fmt"

	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/queries/shape"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// Last answers: where nothing is chosen after, a question that can be checked as one is read by its own sample. It costs what it costs in every
// round, and its numbers share what so many plain answers have of the probability of error.

// Played is the plan of a question as it is released in this state.
func (s *Session) Played(state thresholdout.State, plan *queries.Plan) *queries.Plan {
	if !s.Guarantee.Last(state) {
		return plan
	}
	return s.lastForm(plan)
}

// Forms are the plans as which a question may be released, in whatever state it is asked.
func (s *Session) Forms(plan *queries.Plan) []*queries.Plan {
	switch last := s.lastForm(plan); {
	case last == plan || !s.Guarantee.HasLast():
		return []*queries.Plan{plan}
	case s.Guarantee.AllLast():
		return []*queries.Plan{last}
	default:
		return []*queries.Plan{plan, last}
	}
}

// ReadsTraining reports whether a question may read the training part.
func (s *Session) ReadsTraining() bool {
	return s.Guarantee.UsesTraining() || (s.Guarantee.HasLast() || s.Guarantee.ChecksStatistics()) && s.Guarantee.Training > 0
}

// lastForm is a plan as its last answer is released: by its statistics, where each of them has such an answer. A selection remains one, for it names its
// candidate at the price of one question.
func (s *Session) lastForm(plan *queries.Plan) *queries.Plan {
	known := s.known(plan)
	if s.Unlike && known.Checks != nil && known.Checks.Alike {
		return plan
	}
	for _, r := range plan.Releases() {
		if r.Kind == shape.Select {
			return plan
		}
	}
	checked := known.AsChecked()
	for _, declared := range checked.Statistics() {
		if !hasLast(declared) {
			return plan
		}
	}
	return checked
}

// hasLast says whether the statistic that is declared is a thresholdout.LastStatistic.
func hasLast(declared shape.Statistic) bool {
	switch declared.(type) {
	case *shape.Equation, *shape.Difference, *shape.Tally, *shape.Clusters, *shape.Joint:
		return true
	}
	return false
}

// batchOnly reports whether a question can be asked where all questions are of one batch, and in no other rounds: a search, which there is none of where its points are
// all read at once, or what is known by its statistics alone.
func (s *Session) batchOnly(plan *queries.Plan) bool {
	return s.Guarantee.HasLast() && (plan.Sequential() || plan.Checked())
}

// askLast releases a question by its statistics, all at once.
func (s *Session) askLast(begun, state thresholdout.State, q *Question, sums Sums) (Answer, thresholdout.State, error) {
	price := s.Price(q.Plan).Questions
	played := *q
	played.Plan = s.Played(state, q.Plan)
	in := make([]thresholdout.LastInput, len(sums.Holdout.Statistics))
	for i, holdout := range sums.Holdout.Statistics {
		var ok bool
		if in[i].Holdout, ok = holdout.(thresholdout.LastStatistic); !ok {
			return Answer{}, state, fmt.Errorf("session: %T has no last answer", holdout)
		}
		if sums.Training.Statistics != nil {
			in[i].Training, _ = sums.Training.Statistics[i].(thresholdout.LastStatistic)
		}
	}
	outputs, next, err := thresholdout.StepLast(sums.Training.compared(s.Guarantee), state, in, price)
	if err != nil {
		return Answer{}, state, fmt.Errorf("session: step: %w", err)
	}
	r := &releasing{session: s, q: &played, sums: sums, begun: begun, state: state, lasts: outputs}
	outcome, err := played.Plan.Release(s.Guarantee.N, r)
	if err != nil {
		return Answer{}, state, err
	}
	outcome.Level = s.Guarantee.Level()
	return s.answer(&played, outcome, r, cost(state, next)), next, nil
}

// last is one number of a last answer.
func (r *releasing) last(function int) queries.Part {
	p, out, before := r.session.Guarantee, r.lasts[function], r.state
	part := partOf(out)
	if r.plain(len(r.lasts)) {
		part.Units, part.Sigma, part.Fresh = p.FreshNoise(r.begun, before)
	}
	part.At = func(level float64) (low, high float64, ok bool) { return p.IntervalAt(before, out, level) }
	part.Alone, _ = p.Alone(r.begun, before, out)
	r.outputs = append(r.outputs, out)
	return part
}

// plain reports whether each of so many statistics is the mean that the question's plain p-value is about.
func (r *releasing) plain(statistics int) bool {
	t := r.q.Plan.Test
	return t != nil && t.Plain != nil && len(t.Plain.Null) == statistics
}

// foreseeLast is what one number of a last answer would be if the holdout were as the training part is.
func (f *previewing) foreseeLast(function int) (queries.Part, error) {
	training, ok := f.training.Statistics[function].(thresholdout.LastStatistic)
	if !ok {
		return queries.Part{}, fmt.Errorf("session: %T has no last answer", f.training.Statistics[function])
	}
	out, err := f.training.compared(f.guarantee).ExpectedLast(f.state, training, f.price, len(f.training.Statistics))
	if err != nil {
		return queries.Part{}, fmt.Errorf("session: %w", err)
	}
	f.bound = out.Interval.Bound
	return partOf(out), nil
}
