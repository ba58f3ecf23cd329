package thresholdout

import (
	"fmt"
	"testing"

	"github.com/holdoutd/holdoutd/thresholdout/moments"
)

// shareOf is a part of n units in a share of which something holds.
func shareOf(n int64, share float64) RootSums {
	ones := int64(share*float64(n) + 0.5)
	r := RootSums{All: n, Binary: true, Sums: moments.Sums{Units: n, Sum: ones * grid}}
	r.Squares.AddSums(r.Sum, grid)
	return r
}

// firstShare is the first answer about a share.
func firstShare(g Guarantee, training, holdout float64, guess *Guess, seed uint64) (Output, error) {
	from, to := g.Slice(State{})
	t, h, noise := shareOf(max(1, g.Training), training), shareOf(to-from, holdout), Seeded{Seed: seed}
	switch {
	case g.Last(State{}):
		out, _, err := StepLast(g, State{}, []LastInput{{Training: t, Holdout: h}}, 1)
		if err != nil {
			return Output{}, err
		}
		return out[0], nil
	case g.ChecksStatistics():
		out, _, err := StepStatistic(g, State{}, StatisticInput{Training: t, Holdout: h, Guess: guess, Noise: noise})
		return out, err
	}
	in := Input{Training: Mean{Sum: t.Sum, N: t.Units}, Holdout: Mean{Sum: h.Sum, N: h.Units}, Binary: true, Guess: guess}
	if seed%2 == 1 && g.ChecksPromises(State{}) {
		in.Promise = &Borne{Pledge: Pledge{Kind: AtMost, Bound: grid / 4}} // kept or broken
	}
	out, _, err := Step(g, State{}, in, noise)
	return out, err
}

// TestNoShareIsWider: no first answer about a share is wider than the guarantee says, whatever the training part, the holdout and the guess have and a promise turns out, and one comes near to it. It would notice a widest
// half-width that is the planned one, that of another outcome than the widest, or that of the training part's own guess alone, and one that is much too wide.
func TestNoShareIsWider(t *testing.T) {
	for _, spec := range []Spec{
		{Mechanism: GuessAndCheck, Tokens: 20, Questions: 1000}, {Mechanism: GuessAndCheck, Tokens: 1, Questions: 1}, {Mechanism: Gaussian, Questions: 200, Tokens: 2}, {Mechanism: Gaussian, Questions: 200, Tokens: 20},
		{Mechanism: Gaussian, Questions: 100, Rounds: 1}, {Mechanism: Gaussian, Questions: 100, Rounds: 3}, {Mechanism: Gaussian, Questions: 50, Published: true}, {Mechanism: Split, Questions: 10},
		{Mechanism: Thresholdout, Questions: 200, Tokens: 10}, {Mechanism: Thresholdout, Form: FormLaplace, Questions: 50, Tokens: 10},
	} {
		for _, n := range []int64{60, 900, 20_000} {
			spec := spec
			spec.N, spec.Training = n, 2*n
			name := fmt.Sprintf("%s questions=%d tokens=%d rounds=%d n=%d", spec.Mechanism, spec.Questions, spec.Tokens, spec.Rounds, n)
			g, err := Plan(spec)
			if err != nil {
				continue // too few units for it
			}
			widest, ok := g.WidestShare()
			if !ok {
				t.Errorf("%s: nothing is said", name)
				continue
			}
			seen := 0.0
			shares := []float64{0, 0.01, 0.1, 0.3, 0.42, 0.48, 0.5, 0.515, 0.55, 0.7, 0.9, 1}
			for _, training := range shares {
				for _, holdout := range shares {
					for i, guess := range []*Guess{nil, {Value: &holdout}, {Value: &training}, {Value: new(holdout + 0.02*(0.5-holdout))}} {
						if !g.TakesGuesses() {
							guess = nil
						}
						out, err := firstShare(g, training, holdout, guess, uint64(i))
						if err != nil {
							t.Fatalf("%s: %v", name, err)
						}
						seen = max(seen, out.Interval.High-out.Value, out.Value-out.Interval.Low)
					}
				}
			}
			if seen > widest || seen < 0.6*widest {
				t.Errorf("%s: ±%v was seen, and at most ±%v said", name, seen, widest)
			}
		}
	}
}
