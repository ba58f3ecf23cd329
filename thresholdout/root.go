package thresholdout

import (
	"fmt"

	"github.com/holdoutd/holdoutd/thresholdout/moments"
)

// A question can be an estimating equation E(A - r·B) = 0 of two functions of a unit, 0 <= A <= B <= 1, B 0 or 1. Its root r = E A/E B is a mean over all
// units, where B is 1, or over the units in which a condition holds. A mechanism whose intervals follow the question's own
// variance releases the root as one question, for at most one token.

// Equations is a mechanism that releases the roots of such equations. It takes guesses of them as of means.
type Equations interface {
	// ReleaseRoot is Mechanism.Release for a root.
	ReleaseRoot(s State, in RootInput) (Output, Memory, error)
	// ExpectedRoot is Guesses.Expected for a root.
	ExpectedRoot(s State, in RootInput) (value float64, _ *Interval, err error)
}

// RootSums are the exact sums of an equation over one part.
type RootSums struct {
	All int64 // units of the part
	moments.Sums
	Higher *Higher // of the training part, where they are known: they plan narrower margins
}

// Higher are the sums of A³ and A⁴ over the units with B = 1, in steps of 2^-60; A² may have been rounded to 2^-30 before. Margins are planned by them; what is promised
// never depends on them.
type Higher struct{ Third, Fourth moments.Wide }

// RootInput is what one root reads. Of [Equations.ExpectedRoot] the holdout's sums are not looked at.
type RootInput struct {
	Training, Holdout RootSums
	Partial           bool   // B is a condition; false: 1 at every unit
	Binary            bool   // by its form A has no value but 0 and 1
	Guess             *Guess // the analyst's own, or nil
}

// StepRoot is Step for the root of an estimating equation.
func StepRoot(g Guarantee, s State, in RootInput) (Output, State, error) {
	m, ok := g.own.(Equations)
	if !ok {
		return Output{}, s, g.cannot("releases no roots of equations")
	}
	if err := g.pays(s, 1); err != nil {
		return Output{}, s, err
	}
	if err := in.Holdout.check(g.N, in.Partial); err != nil {
		return Output{}, s, fmt.Errorf("thresholdout: holdout: %w", err)
	}
	if err := in.Training.check(g.Training, in.Partial); err != nil {
		return Output{}, s, fmt.Errorf("thresholdout: training: %w", err)
	}
	out, memory, err := m.ReleaseRoot(s, in)
	if err != nil {
		return Output{}, s, err
	}
	next := g.Spend(s, 1, out.Tokens)
	next.Memory = memory
	return out, next, nil
}

// ReleasesRoots reports whether the root of an equation can be released as one question.
func (g Guarantee) ReleasesRoots() bool { _, ok := g.own.(Equations); return ok }

// ExpectedRoot is [Guarantee.Expected] for a root: in says what the training part has and the analyst guesses.
func (g Guarantee) ExpectedRoot(s State, in RootInput) (value float64, _ *Interval, err error) {
	m, ok := g.own.(Equations)
	if !ok {
		return 0, nil, g.cannot("releases no roots of equations")
	}
	if err := in.Training.check(g.Training, in.Partial); err != nil {
		return 0, nil, fmt.Errorf("thresholdout: training: %w", err)
	}
	return m.ExpectedRoot(s, in)
}

// check refuses sums that are not of so many units; those that no units have are refused by package moments.
func (r RootSums) check(units int64, partial bool) error {
	if r.All != units {
		return fmt.Errorf("sums over %d units, the guarantee is about %d", r.All, units)
	}
	if r.Units < 0 || r.Units > r.All || !partial && r.Units != r.All {
		return fmt.Errorf("a condition that holds in %d units of %d", r.Units, r.All)
	}
	return r.Sums.Check()
}

// mean is the mean over the units with B = 1 in steps of the grid, rounded half up; one half where there are none.
func (r RootSums) mean() int64 {
	if r.Units == 0 {
		return grid / 2
	}
	return (r.Sum + r.Units/2) / r.Units
}

// training is what the part tells of a question. Without the higher moments the fourth is taken as large as it can be with this variance.
func (in RootInput) training(guess int64) moments.Training {
	r := in.Training
	t := moments.Training{All: r.All, Units: r.Units, Guess: float64(guess) / float64(grid), Binary: in.Binary, Partial: in.Partial}
	if r.Units == 0 {
		return t
	}
	t.Mean, t.Second = r.Moments()
	far := max(t.Mean, 1-t.Mean)
	t.Fourth = t.Second * far * far
	switch {
	case in.Binary:
		t.Fourth = t.Second * (1 - 3*t.Second)
	case r.Higher != nil:
		n := float64(r.Units)
		third, fourth := r.Higher.Third.Float()/n, r.Higher.Fourth.Float()/n
		g := t.Mean
		central := fourth - 4*g*third + 6*g*g*(t.Second+g*g) - 3*g*g*g*g
		t.Fourth = min(max(central, t.Second*t.Second), t.Fourth)
	}
	t.Fourth = max(t.Fourth, 0)
	return t
}
