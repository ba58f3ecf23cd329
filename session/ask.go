package session

import (
	"errors"
	"fmt"

	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// Ask releases what a question asks for: the answer, to be recorded and shown, and the state to be made durable before it is.
// It is a pure function. begun is the state before any question of the same request: plain p-values are about units of which
// nothing had been told before it.
//
// Whether a question may be asked is decided before its rows are read, by [Session.Short] and, for a half_width of its own, by
// [Session.Passable]. An error here is therefore a fault of the server, and what was reserved is spent: [Session.Void].
func (s *Session) Ask(begun, state thresholdout.State, q *Question, sums Sums) (Answer, thresholdout.State, error) {
	if err := s.check(state, q, sums); err != nil {
		return Answer{}, state, err
	}
	if s.Guarantee.TakesSubmissions() {
		return s.submit(state, q, sums)
	}
	if sums.Holdout.Statistics != nil && s.Guarantee.Last(state) {
		return s.askLast(begun, state, q, sums)
	}
	r := &releasing{session: s, q: q, sums: sums, begun: begun, state: state}
	outcome, err := q.Plan.Release(s.Guarantee.N, r)
	if err != nil {
		return Answer{}, state, err
	}
	outcome.Level = s.Guarantee.Level()
	return s.answer(q, outcome, r, cost(state, r.state)), r.state, nil
}

// EndRequest is the state after the last answer of a request: where questions are asked in rounds, the round is over.
func (s *Session) EndRequest(state thresholdout.State) thresholdout.State {
	return s.Guarantee.EndRound(state)
}

// releasing releases a question's means by the mechanism, each a step of its own.
//
// Under thresholdout and guess_and_check a question of two row functions can get one from the training part and one from the holdout. Each
// has its own valid interval whichever it is from, and the answer's interval is made of those by interval arithmetic,
// so it stays valid; the source is then "mixed". Forcing both to one source would need a release without a check, which
// the mechanism's proof does not have.
type releasing struct {
	session *Session
	q       *Question
	sums    Sums
	begun   thresholdout.State // before the request
	state   thresholdout.State // before the next step
	outputs []thresholdout.Output
	choice  *thresholdout.Choice
	lasts   []thresholdout.Output // of a last answer: its numbers, which are paid for
}

// Together implements queries.Releaser.
func (r *releasing) Together() bool { return r.session.Guarantee.Together() }

func (r *releasing) noise(function int) thresholdout.Noise { return r.session.Noise(r.q.ID, function) }

// Number implements queries.Releaser.
func (r *releasing) Number(function int) (queries.Part, error) {
	if r.lasts != nil {
		return r.last(function), nil
	}
	p := r.session.Guarantee
	out, next, err := r.step(function)
	if errors.Is(err, thresholdout.ErrNoTokens) {
		return queries.Part{}, fmt.Errorf("%w: %w", queries.ErrSpent, err)
	}
	if err != nil {
		return queries.Part{}, fmt.Errorf("session: step: %w", err)
	}
	part, before := partOf(out), r.state
	// The noise of an answer with a promise is another, and what it is says something by itself.
	if out.Promise == nil && (!r.q.Plan.Checked() || r.plain(r.q.Plan.Numbers())) {
		part.Units, part.Sigma, part.Fresh = p.FreshNoise(r.begun, before)
	}
	part.At = func(level float64) (low, high float64, ok bool) { return p.IntervalAt(before, out, level) }
	part.Alone, _ = p.Alone(r.begun, before, out)
	r.state = next
	r.outputs = append(r.outputs, out)
	return part, nil
}

// step is one step of the mechanism: a mean, or a statistic.
func (r *releasing) step(function int) (thresholdout.Output, thresholdout.State, error) {
	p := r.sums.Training.compared(r.session.Guarantee)
	if r.q.Plan.Checked() {
		in := thresholdout.StatisticInput{Holdout: r.sums.Holdout.Statistics[function], Guess: r.q.guessOf(function, r.sums.Training), Noise: r.noise(function)}
		if !r.sums.Training.None() {
			in.Training = r.sums.Training.Statistics[function]
		}
		return thresholdout.StepStatistic(p, r.state, in)
	}
	in := thresholdout.Input{Holdout: r.sums.Holdout.Means[function], Binary: r.q.Plan.Binary(function), Guess: r.q.guessOf(function, r.sums.Training)}
	if p.UsesTraining() {
		in.Training = r.sums.Training.Means[function]
	}
	if r.sums.pledge != nil {
		in.Promise = &thresholdout.Borne{Pledge: *r.sums.pledge}
		if b := r.sums.Holdout.Beside; b != nil {
			in.Promise.Sums = b.PledgeSums
		}
	}
	return thresholdout.Step(p, r.state, in, r.noise(function))
}

// Vector implements queries.Releaser.
func (r *releasing) Vector(first, count int, variance float64) ([]queries.Part, error) {
	p := r.session.Guarantee
	if p.AsNumbers(r.state, count, variance) {
		return queries.OneByOne(first, count, r.Number)
	}
	outputs, next, err := thresholdout.StepVector(p, r.state, r.sums.Holdout.Means[first:first+count], variance, r.noise(first))
	if err != nil {
		return nil, fmt.Errorf("session: vector: %w", err)
	}
	parts, before := make([]queries.Part, len(outputs)), r.state
	for i, o := range outputs {
		parts[i] = partOf(o)
		parts[i].Units, parts[i].Sigma, parts[i].Fresh = p.FreshVectorNoise(r.begun, before, count, variance)
		parts[i].At = func(level float64) (low, high float64, ok bool) {
			return p.VectorIntervalAt(before, o, count, variance, level)
		}
	}
	r.state = next
	r.outputs = append(r.outputs, outputs...)
	return parts, nil
}

// Select implements queries.Releaser.
func (r *releasing) Select(first, count int, questions int64) (queries.Choice, error) {
	choice, next, err := thresholdout.StepSelect(r.session.Guarantee, r.state, r.sums.Holdout.Means[first:first+count], questions, r.noise(first))
	if err != nil {
		return queries.Choice{}, fmt.Errorf("session: selection: %w", err)
	}
	r.state, r.choice = next, &choice
	return queries.Choice{Index: choice.Index, Regret: choice.Regret, Bounded: true}, nil
}

func partOf(o thresholdout.Output) queries.Part {
	part := queries.Part{Value: o.Value}
	if o.Interval != nil {
		part.Low, part.High, part.Bounded = o.Interval.Low, o.Interval.High, true
	}
	return part
}
