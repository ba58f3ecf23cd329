package shape

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/rowfn"
)

// TestContrastVariance: on the grid, where both places of a value may be rounded up, four functions have variances that add up to
// no more than 3/4. The worst tables are near the corners: each row with one function at or near 1.
func TestContrastVariance(t *testing.T) {
	const step = 1.0 / float64(rowfn.One)
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "rows")
		sums, squares := make([]*big.Rat, 4), new(big.Rat)
		for i := range sums {
			sums[i] = new(big.Rat)
		}
		for range n {
			u := rapid.SampledFrom([]float64{0, step / 2, step / 4, step, 1 - step/2, 1, 0.5, 0.5 + step/2}).Draw(t, "u")
			group := rapid.IntRange(0, 2).Draw(t, "group") // the third is none
			for i, x := range []float64{u, 1 - u} {
				if group < 2 {
					v := new(big.Rat).SetFloat64(math.Floor(x/step+0.5) * step)
					sums[2*group+i].Add(sums[2*group+i], v)
					squares.Add(squares, v.Mul(v, v))
				}
			}
		}
		count := big.NewRat(int64(n), 1)
		variance := squares.Quo(squares, count)
		for _, s := range sums {
			s.Quo(s, count)
			variance.Sub(variance, s.Mul(s, s))
		}
		if variance.Cmp(new(big.Rat).SetFloat64(contrastVariance(false))) > 0 {
			t.Fatalf("variances add up to %s", variance.FloatString(30))
		}
	})
}
