package bounds

import (
	"math"
	"testing"
)

// TestRounding: the closed form at w/rounding(n) is at least the expectation, over the noise, of the tail at the best
// integer m, wherever an interval is narrower than the range of a row function. (Beyond that it is not: with I = 1e5 the claim is
// passed by a factor of 2.6. An interval of half-width 1 or more says nothing anyway.)
func TestRounding(t *testing.T) {
	for _, n := range []float64{100, 150, 199, 200, 400, 10000} {
		for _, released := range []float64{minInformation, 0.012, 0.02, 0.1, 1, 10, 30, 100, 300, 1000} {
			for _, noise := range []float64{0.02, 0.1, 0.2, 0.6, 1.4, 5, 20} {
				for _, w := range []float64{1.2, 2, 4, 8, 12, 20, 40, 80} {
					sigma, w := noise/math.Sqrt(n), w/math.Sqrt(n)
					if w >= 1 {
						continue
					}
					claimed := Miss(n, w/rounding(n), sigma, released)
					if claimed > 0.2 || claimed < 1e-12 {
						continue // no interval is solved for there
					}
					if got := missAtIntegers(n, w, sigma, released); got > claimed {
						t.Errorf("n=%v I=%v sigma=%v w=%v: %v misses, %v was claimed", n, released, sigma, w, got, claimed)
					}
				}
			}
		}
	}
}

// missAtIntegers is the expectation over Z of min over m of exp((n/m-1) I - (1-m/n) 2n (w-sigma Z)^2), by quadrature.
func missAtIntegers(n, w, sigma, released float64) float64 {
	const step = 1.0 / 64
	sum := 0.0
	for z := -9.0; z < 9; z += step {
		deviation := max(0, w-sigma*z)
		level, exponent := 2*n*deviation*deviation, 0.0
		if level > released {
			at := math.Floor(n * math.Sqrt(released/level))
			for _, m := range []float64{at, at + 1} {
				x := min(max(m, 1), n-1) / n
				exponent = max(exponent, (1-x)*(level-released/x))
			}
		}
		sum += step * math.Exp(-z*z/2-exponent) / math.Sqrt(2*math.Pi)
	}
	return sum
}
