package audit

import (
	"math"
	"math/bits"
	"slices"

	"github.com/holdoutd/holdoutd/dp/noise"
)

// Features of a released number by which Numbers looks for events.
type features struct {
	bin int // of the values seen first, in order
	low int // the place of the lowest binary digit of the number: what rounding has done to it
}

// bins are how many stretches numbers are cut into, with about as many of the pilot's values each; pilot is how many of these there are, on each table.
const (
	bins  = 24
	pilot = 1200
)

// Numbers attacks a mechanism that releases a number, by where it lies and by its lowest binary digit: noise that was drawn in floating point is found by
// the second, for a sum of a secret and such noise has only some of the numbers (Mironov, CCS 2012).
func Numbers(claim Claim, set Settings, s *noise.Stream, a, b Mechanism[float64]) (Report, error) {
	if err := set.check(claim); err != nil {
		return Report{}, err
	}
	var seen []float64
	for _, m := range [2]Mechanism[float64]{a, b} {
		for range min(pilot, set.Runs) {
			seen = append(seen, m(s))
		}
	}
	slices.Sort(seen)
	edges := make([]float64, 0, bins)
	for i := 1; i < bins; i++ {
		edges = append(edges, seen[i*len(seen)/bins])
	}
	edges = slices.Compact(edges)
	of := func(m Mechanism[float64]) Mechanism[features] {
		return func(s *noise.Stream) features {
			x := m(s)
			at, _ := slices.BinarySearch(edges, x)
			return features{at, lowest(x)}
		}
	}
	return Outcomes(claim, set, s, of(a), of(b))
}

// lowest is the k of the lowest binary digit of x, 2^k; 1 above every k for 0 and what is not finite.
func lowest(x float64) int {
	fraction, exponent := math.Frexp(x)
	if fraction == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return math.MaxInt16
	}
	mantissa := uint64(math.Abs(math.Ldexp(fraction, 53)))
	return exponent - 53 + bits.TrailingZeros64(mantissa)
}
