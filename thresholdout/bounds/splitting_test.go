package bounds

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestSliceOfUnlikeUnits: the mean of a random slice of units that differ keeps Chernoff's bound for as many coins of their
// mean (docs/proofs/split.md, section 2), in its exact law. It would notice a bound that holds for units of one law only.
func TestSliceOfUnlikeUnits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SliceOfN(rapid.OneOf(rapid.Float64Range(0, 1), rapid.SampledFrom([]float64{0, 1})), 1, 12).Draw(t, "units")
		m := rapid.IntRange(1, len(p)).Draw(t, "slice")
		mean := 0.0
		for _, v := range p {
			mean += v / float64(len(p))
		}
		// weight[c][s]: over subsets of c units, the sum of the probabilities that s of them are 1.
		weight := make([][]float64, m+1)
		for c := range weight {
			weight[c] = make([]float64, m+1)
		}
		weight[0][0] = 1
		for _, v := range p {
			for c := m; c > 0; c-- {
				for s := c; s >= 0; s-- {
					weight[c][s] += (1 - v) * weight[c-1][s]
					if s > 0 {
						weight[c][s] += v * weight[c-1][s-1]
					}
				}
			}
		}
		subsets, tail := 0.0, 0.0
		for _, w := range weight[m] {
			subsets += w
		}
		for s := m; s >= 0; s-- {
			tail += weight[m][s] / subsets
			at := float64(s) / float64(m)
			if at <= mean {
				break
			}
			if bound := math.Exp(-float64(m) * bernoulliKL(at, mean)); tail > bound*(1+1e-9) {
				t.Fatalf("P(mean >= %v) = %v, bounded by %v, for units of mean %v", at, tail, bound, mean)
			}
		}
	})
}

// bernoulliKL is the Kullback-Leibler divergence of coins of means a and b.
func bernoulliKL(a, b float64) float64 {
	term := func(x, y float64) float64 {
		if x == 0 {
			return 0
		}
		return x * math.Log(x/y)
	}
	return term(a, b) + term(1-a, 1-b)
}
