package holdout

import (
	"errors"
	"fmt"

	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// price is how many questions a plan costs: one for each mean, or less for means that are released as one.
func (h *opened) price(plan *queries.Plan) int {
	if !h.params.Together() {
		return plan.Numbers()
	}
	total := 0
	for _, r := range plan.Releases() {
		switch r.Kind {
		case queries.Vector:
			total += int(h.params.VectorPrice(r.Count, r.Variance))
		case queries.Selection:
			total++
		default:
			total += r.Count
		}
	}
	return total
}

// tokensAtRisk is how many tokens a plan can need: one for each mean that is checked, but of optional ones, which end where
// tokens do, one is enough.
func (h *opened) tokensAtRisk(plan *queries.Plan) (total int) {
	if !h.params.HasTokens() {
		return 0
	}
	for _, r := range plan.Releases() {
		if r.Optional {
			total++
		} else {
			total += r.Count
		}
	}
	return total
}

// stepping releases a question's means by the holdout's mechanism, each a step of its own.
//
// Under thresholdout and guess_and_check a question of two row functions can get one from the training part and one from the holdout. Each
// has its own valid interval whichever it is from, and the answer's interval is made of those by interval arithmetic,
// so it stays valid; the source is then "mixed". Forcing both to one source would need a release without a check, which
// the mechanism's proof does not have.
type stepping struct {
	asking  *asking
	q       *question
	state   thresholdout.State
	outputs []thresholdout.Output // of the numbers and the vectors
	choice  *thresholdout.Choice
}

// Together implements queries.Releaser.
func (s *stepping) Together() bool { return s.asking.holdout.params.Together() }

// Number implements queries.Releaser.
func (s *stepping) Number(function int) (queries.Part, error) {
	in, err := s.asking.input(s.q.first+function, s.state)
	if err != nil {
		return queries.Part{}, err
	}
	in.Guess = s.q.guess
	h := s.asking.holdout
	out, next, err := thresholdout.Step(h.params, s.state, in, h.noise(s.q, function))
	if errors.Is(err, thresholdout.ErrNoTokens) {
		return queries.Part{}, fmt.Errorf("%w: %w", queries.ErrSpent, err)
	}
	if err != nil {
		return queries.Part{}, fmt.Errorf("holdout: step: %w", err)
	}
	part, before := partOf(out), s.state
	part.Units, part.Sigma, part.Fresh = h.params.FreshNoise(s.asking.begun, before)
	part.At = func(level float64) (low, high float64, ok bool) { return h.params.IntervalAt(before, out, level) }
	s.state = next
	s.outputs = append(s.outputs, out)
	return part, nil
}

// Vector implements queries.Releaser.
func (s *stepping) Vector(first, count int, variance float64) ([]queries.Part, error) {
	h := s.asking.holdout
	outputs, next, err := thresholdout.StepVector(h.params, s.state, s.asking.means(s.q.first+first, count), variance, h.noise(s.q, first))
	if err != nil {
		return nil, fmt.Errorf("holdout: step: %w", err)
	}
	parts, before := make([]queries.Part, len(outputs)), s.state
	for i, o := range outputs {
		parts[i] = partOf(o)
		parts[i].Units, parts[i].Sigma, parts[i].Fresh = h.params.FreshNoise(s.asking.begun, before)
		parts[i].At = func(level float64) (low, high float64, ok bool) {
			return h.params.VectorIntervalAt(before, o, count, variance, level)
		}
	}
	s.state = next
	s.outputs = append(s.outputs, outputs...)
	return parts, nil
}

// Select implements queries.Releaser.
func (s *stepping) Select(first, count int) (queries.Choice, error) {
	h := s.asking.holdout
	choice, next, err := thresholdout.StepSelect(h.params, s.state, s.asking.means(s.q.first+first, count), h.noise(s.q, first))
	if err != nil {
		return queries.Choice{}, fmt.Errorf("holdout: step: %w", err)
	}
	s.state, s.choice = next, &choice
	return queries.Choice{Index: choice.Index, Regret: choice.Regret, Bounded: true}, nil
}

func partOf(o thresholdout.Output) queries.Part {
	part := queries.Part{Value: o.Value}
	if o.Interval != nil {
		part.Low, part.High, part.Bounded = o.Interval.Low, o.Interval.High, true
	}
	return part
}

// foreseeing releases what the mechanism would if the holdout were as the training part is, for an explanation.
type foreseeing struct {
	params thresholdout.Params
	state  thresholdout.State
	means  []thresholdout.Mean // of the training part
	guess  *thresholdout.Guess
	exact  bool // means alone, without intervals
	bound  string
}

// Together implements queries.Releaser.
func (f *foreseeing) Together() bool { return f.params.Together() }

// mean is that of a row function in the training part; one half without one, where intervals are widest.
func (f *foreseeing) mean(function int) float64 {
	if f.means == nil {
		return 0.5
	}
	m := f.means[function]
	return float64(m.Sum) / (float64(m.N) * float64(queries.One))
}

// Number implements queries.Releaser.
func (f *foreseeing) Number(function int) (queries.Part, error) {
	part := queries.Part{Value: f.mean(function)}
	switch {
	case f.exact:
	case f.params.Mechanism == thresholdout.GuessAndCheck:
		value, interval, err := f.params.Expected(f.state, f.means[function], f.guess)
		if err != nil {
			return part, err
		}
		f.bound = interval.Bound
		part = queries.Part{Value: value, Low: interval.Low, High: interval.High, Bounded: true}
	default:
		if i := f.params.Preview(f.state, part.Value); i != nil {
			f.bound = i.Bound
			part.Low, part.High, part.Bounded = i.Low, i.High, true
		}
	}
	f.state.Questions++
	return part, nil
}

// Vector implements queries.Releaser.
func (f *foreseeing) Vector(first, count int, variance float64) ([]queries.Part, error) {
	parts := make([]queries.Part, count)
	width, bound := 0.0, ""
	if !f.exact {
		var err error
		if width, bound, err = f.params.PreviewVector(f.state, count, variance); err != nil {
			return nil, err
		}
		f.bound = bound
	}
	for i := range parts {
		parts[i] = queries.Part{Value: f.mean(first + i)}
		if !f.exact {
			parts[i] = around(parts[i].Value, width)
		}
	}
	f.state.Questions += f.params.VectorPrice(count, variance)
	return parts, nil
}

// Select implements queries.Releaser.
func (f *foreseeing) Select(first, count int) (queries.Choice, error) {
	best := 0
	for i := range count {
		if f.mean(first+i) > f.mean(first+best) {
			best = i
		}
	}
	choice := queries.Choice{Index: best}
	if !f.exact {
		choice.Regret, f.bound = f.params.PreviewSelection(f.state, count)
		choice.Bounded = true
	}
	f.state.Questions++
	return choice, nil
}

func around(value, width float64) queries.Part {
	return queries.Part{Value: value, Low: max(value-width, 0), High: min(value+width, 1), Bounded: true}
}
