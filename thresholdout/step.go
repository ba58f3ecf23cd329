package thresholdout

import (
	"fmt"
)

// Step answers one question: it returns what may be released, and the state to be made durable before it is. It is a
// pure function: the same arguments give the same answer.
//
// Whether a question may be asked is decided by the state alone, before a sum is looked at: ErrNoQuestions, ErrNoRounds, and where a
// budget has tokens ErrNoTokens. So is, by the question and the training mean beside, a half-width that cannot pass: [*WidthError].
func Step(g Guarantee, s State, in Input, from Noise) (Output, State, error) {
	price, err := g.priceOf(in.Guess)
	if err != nil {
		return Output{}, s, err
	}
	if err := g.pays(s, price); err != nil {
		return Output{}, s, err
	}
	if err := g.fits(s, in); err != nil {
		return Output{}, s, err
	}
	out, memory, err := g.own.Release(s, in, from)
	if err != nil {
		return Output{}, s, err
	}
	next := g.Spend(s, price, out.Tokens)
	next.Memory = memory
	return out, next, nil
}

// StepVector answers with all means at once, for VectorPrice questions. variance is at most the sum of their variances over the units,
// for any table.
func StepVector(g Guarantee, s State, means []Mean, variance float64, from Noise) ([]Output, State, error) {
	m, ok := g.own.(Vectors)
	if !ok {
		return nil, s, g.cannot("releases means one by one")
	}
	price := m.VectorPrice(len(means), variance)
	if err := g.together(s, means, price); err != nil {
		return nil, s, err
	}
	outputs, err := m.ReleaseVector(s, means, variance, from)
	if err != nil {
		return nil, s, fmt.Errorf("thresholdout: vector: %w", err)
	}
	return outputs, g.Spend(s, price, 0), nil
}

// StepSelect answers which of the means is the largest, for so many questions, at least one: the more, the less regret. However many means there are,
// they cost no more.
func StepSelect(g Guarantee, s State, means []Mean, price int64, from Noise) (Choice, State, error) {
	m, ok := g.own.(Selections)
	if !ok {
		return Choice{}, s, g.cannot("releases means one by one")
	}
	if price < 1 {
		return Choice{}, s, fmt.Errorf("thresholdout: a selection for %d questions", price)
	}
	if err := g.together(s, means, price); err != nil {
		return Choice{}, s, err
	}
	choice, err := m.ReleaseSelection(s, means, price, from)
	if err != nil {
		return Choice{}, s, fmt.Errorf("thresholdout: selection: %w", err)
	}
	return choice, g.Spend(s, price, 0), nil
}

// StepLadder is one step of a mechanism that takes submissions: one that has this mean loss.
func StepLadder(g Guarantee, s State, loss Mean) (Standing, State, error) {
	m, ok := g.own.(Submissions)
	if !ok {
		return Standing{}, s, g.cannot("has no board")
	}
	if err := g.pays(s, 1); err != nil {
		return Standing{}, s, err
	}
	if err := loss.check(g.N); err != nil {
		return Standing{}, s, fmt.Errorf("thresholdout: losses: %w", err)
	}
	standing, memory := m.Submit(s, loss)
	next := g.Spend(s, 1, 0)
	next.Memory = memory
	return standing, next, nil
}

// fits refuses what is no input of the guarantee.
func (g Guarantee) fits(s State, in Input) error {
	from, to := g.Slice(s)
	if err := in.Holdout.check(to - from); err != nil {
		return fmt.Errorf("thresholdout: holdout: %w", err)
	}
	if g.UsesTraining() {
		if err := in.Training.check(g.Training); err != nil {
			return fmt.Errorf("thresholdout: training: %w", err)
		}
	}
	if in.Guess != nil && !g.TakesGuesses() {
		return g.cannot("takes no guess")
	}
	if in.Promise != nil && !g.TakesPromises() {
		return g.cannot("checks no promise")
	}
	return nil
}

// together checks a release of several means as one.
func (g Guarantee) together(s State, means []Mean, price int64) error {
	if len(means) == 0 {
		return fmt.Errorf("thresholdout: a release of no means")
	}
	if err := g.pays(s, price); err != nil {
		return err
	}
	for _, m := range means {
		if err := m.check(g.N); err != nil {
			return fmt.Errorf("thresholdout: holdout: %w", err)
		}
	}
	return nil
}

// VectorPrice is how many questions a vector costs under a guarantee that releases vectors; elsewhere each mean is a question.
func (g Guarantee) VectorPrice(count int, variance float64) int64 {
	if m, ok := g.own.(Vectors); ok {
		return m.VectorPrice(count, variance)
	}
	return int64(count)
}

// AsNumbers reports whether a vector is better released one by one, as plain answers: that costs as much, and they are no wider.
func (g Guarantee) AsNumbers(s State, count int, variance float64) bool {
	m, ok := g.own.(Vectors)
	return ok && m.AsNumbers(s, count, variance)
}

// FreshVectorNoise is FreshNoise for each answer of a vector.
func (g Guarantee) FreshVectorNoise(begun, s State, count int, variance float64) (units int64, sigma float64, ok bool) {
	if m, is := g.own.(Vectors); is {
		return m.FreshVector(begun, s, count, variance)
	}
	return 0, 0, false
}

// PreviewVector is the half-width of each mean of a vector that is released next, before it is cut off at 0 and 1, and the bound
// that says so.
func (g Guarantee) PreviewVector(s State, count int, variance float64) (halfWidth float64, bound string, err error) {
	m, ok := g.own.(Vectors)
	if !ok {
		return 0, "", g.cannot("releases means one by one")
	}
	return m.PreviewVector(s, count, variance)
}

// PreviewSelection is the regret of a selection among count means that is released next for so many questions, and the bound that says so; 1 under a
// guarantee that releases means one by one.
func (g Guarantee) PreviewSelection(s State, count int, price int64) (regret float64, bound string) {
	if m, ok := g.own.(Selections); ok {
		return m.PreviewSelection(s, count, price)
	}
	return 1, ""
}
