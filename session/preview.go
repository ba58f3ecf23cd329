package session

import (
	"errors"
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// Preview is what is known of a question's answer before it is asked, from public facts and the training part alone.
type Preview struct {
	Result queries.Result // what the answer would be if the holdout were as the training part is
	Bound  string         // of its interval; "" where none is known
	// Selected says that the answer is a choice that the mechanism makes among all candidates at once.
	Selected bool
}

// Preview says what the answer would be, in this state, if the holdout were as the training part is: with the interval that it would get. training
// is what the training part says to the plan, or none: then every mean is taken to be one half, where intervals are widest. Under guess_and_check guesses are taken to pass at their narrowest width. Errors are
// *[NarrowError] where the question's own half_width cannot pass.
func (s *Session) Preview(state thresholdout.State, q *Question, training PartSums) (Preview, error) {
	f := &previewing{guarantee: s.Guarantee, state: state, q: q, training: training, price: s.Price(q.Plan).Questions}
	plan := s.Played(state, q.Plan)
	outcome, err := plan.Release(s.Guarantee.N, f)
	if err != nil {
		return Preview{}, s.narrow(err, state, q, training)
	}
	return Preview{Result: plan.Combine(outcome), Bound: f.bound, Selected: len(outcome.Choices) > 0}, nil
}

// Training is what the training part says to the plan of a [Question], without an interval.
func (s *Session) Training(plan *queries.Plan, training PartSums) (queries.Result, error) {
	outcome, err := plan.Release(s.Guarantee.N, &previewing{guarantee: s.Guarantee, training: training, exact: true})
	if err != nil {
		return queries.Result{}, fmt.Errorf("session: %w", err)
	}
	return plan.Combine(outcome), nil
}

// Passable returns a *[NarrowError] if no guess can pass in this state at the half_width that a question names. training is what the
// training part says to it. It reads no holdout row.
func (s *Session) Passable(state thresholdout.State, q *Question, training PartSums) error {
	if !q.OwnWidth() {
		return nil
	}
	_, _, err := s.expected(state, q, training, 0)
	return s.narrow(err, state, q, training)
}

// expected is the answer if its guess passes.
func (s *Session) expected(state thresholdout.State, q *Question, training PartSums, function int) (float64, *thresholdout.Interval, error) {
	g := training.compared(s.Guarantee)
	if q.Plan.Checked() {
		return g.ExpectedStatistic(state, thresholdout.StatisticInput{Training: training.Statistics[function], Guess: q.guessOf(function, training)})
	}
	return g.Expected(state, training.Means[function], q.guessOf(function, training))
}

// NarrowError is a half_width at which no guess can pass, in the query's own units.
type NarrowError struct {
	HalfWidth float64 // that was asked for
	Least     float64 // the least at which a guess can pass now
	Planned   float64 // what the question is checked at without a half_width of its own: it leaves room for a good guess
	Measured  bool    // it is measured, and no guess has to pass
	Price     int64   // in how many questions, and a token, it would have this half-width if it were measured; 0 where it would not
	Err       error
}

func (e *NarrowError) Error() string {
	if e.Measured {
		return fmt.Sprintf("no measured answer has the half-width %.4g: after the answers so far it is at least %.4g, and %.4g without a half_width", e.HalfWidth, e.Least, e.Planned)
	}
	detail := fmt.Sprintf("no guess can pass at the half-width %.4g: after the answers so far it must be at least %.4g; %.4g is enough for a good guess", e.HalfWidth, e.Least, e.Planned)
	if e.Price > 0 {
		questions := "questions"
		if e.Price == 1 {
			questions = "question"
		}
		detail += fmt.Sprintf(`; with "measure": true the answer has this half-width, whatever was guessed, for %d %s and a token`, e.Price, questions)
	}
	return detail
}

// Unwrap returns the *thresholdout.WidthError, in units of the row function's range.
func (e *NarrowError) Unwrap() error { return e.Err }

// narrow says a half-width that cannot pass in the query's own units.
func (s *Session) narrow(err error, state thresholdout.State, q *Question, training PartSums) error {
	var width *thresholdout.WidthError
	if !errors.As(err, &width) {
		return err
	}
	place, at := q.guess.places[0], q.guessedAt(training)
	narrow := &NarrowError{HalfWidth: q.guess.halfWidth, Least: place.HalfWidth(at, width.Least), Planned: place.HalfWidth(at, width.Planned), Measured: q.Plan.Measured, Err: err}
	if measured, ok := s.MeasuredForm(q); ok && s.Short(state, measured) == "" {
		measured.guess.halfWidth = q.guess.halfWidth
		if _, _, err := s.expected(state, measured, training, 0); err == nil {
			narrow.Price = s.Price(measured.Plan).Questions
		}
	}
	return narrow
}

// previewing releases what the mechanism would if the holdout were as the training part is.
type previewing struct {
	guarantee thresholdout.Guarantee
	state     thresholdout.State
	training  PartSums
	q         *Question // nil if exact
	exact     bool      // means alone, without intervals
	price     int64     // of the question
	bound     string
}

// Together implements queries.Releaser.
func (f *previewing) Together() bool { return f.guarantee.Together() }

// value is that of a row function's mean, or of a statistic, in the training part, in [0,1]; false where there is none, as where no unit satisfies a condition; one half
// without a training part.
func (f *previewing) value(function int) (float64, bool) {
	if f.training.None() {
		return 0.5, true
	}
	return f.training.value(function)
}

// mean is value, and one half where there is none.
func (f *previewing) mean(function int) float64 {
	if v, ok := f.value(function); ok {
		return v
	}
	return 0.5
}

// Number implements queries.Releaser.
func (f *previewing) Number(function int) (queries.Part, error) {
	value, defined := f.value(function)
	part := queries.Part{Value: f.mean(function)}
	switch {
	case f.exact:
		if !defined {
			part = queries.Part{Value: math.NaN(), Low: 0, High: 1, Bounded: true}
		}
	case f.state.Reporting() && f.training.Statistics != nil:
		return f.foreseeLast(function)
	case f.guarantee.TakesGuesses(), f.training.Statistics != nil && f.guarantee.ChecksStatistics():
		if f.training.None() {
			return part, errors.New("session: a preview of guess_and_check needs the means of the training part")
		}
		var interval *thresholdout.Interval
		var err error
		value, interval, err = (&Session{Guarantee: f.guarantee}).expected(f.state, f.q, f.training, function)
		if err != nil {
			return part, err
		}
		f.bound = interval.Bound
		part = queries.Part{Value: value, Low: interval.Low, High: interval.High, Bounded: true}
	case f.training.Statistics != nil:
		return f.foreseeLast(function)
	default:
		i := f.guarantee.Preview(f.state, part.Value)
		if p := f.q.Pledge; p != nil && f.guarantee.ChecksPromises(f.state) {
			i = f.guarantee.PreviewPledge(f.state, *p, part.Value)
		}
		if i != nil {
			f.bound = i.Bound
			part.Low, part.High, part.Bounded = i.Low, i.High, true
		}
	}
	f.state.Questions++
	return part, nil
}

// Vector implements queries.Releaser.
func (f *previewing) Vector(first, count int, variance float64) ([]queries.Part, error) {
	if !f.exact && f.guarantee.AsNumbers(f.state, count, variance) {
		return queries.OneByOne(first, count, f.Number)
	}
	parts := make([]queries.Part, count)
	width := 0.0
	if !f.exact {
		var err error
		if width, f.bound, err = f.guarantee.PreviewVector(f.state, count, variance); err != nil {
			return nil, err
		}
	}
	for i := range parts {
		parts[i] = queries.Part{Value: f.mean(first + i)}
		if !f.exact {
			parts[i] = around(parts[i].Value, width)
		}
	}
	f.state.Questions += f.guarantee.VectorPrice(count, variance)
	return parts, nil
}

// Select implements queries.Releaser.
func (f *previewing) Select(first, count int, questions int64) (queries.Choice, error) {
	best := 0
	for i := range count {
		if f.mean(first+i) > f.mean(first+best) {
			best = i
		}
	}
	choice := queries.Choice{Index: best}
	if !f.exact {
		choice.Regret, f.bound = f.guarantee.PreviewSelection(f.state, count, questions)
		choice.Bounded = true
	}
	f.state.Questions += questions
	return choice, nil
}

func around(value, width float64) queries.Part {
	return queries.Part{Value: value, Low: max(value-width, 0), High: min(value+width, 1), Bounded: true}
}
