package queries

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/holdoutd/holdoutd/internal/stattest"
)

// TestCellsPValue: published numbers, with noise and without.
func TestCellsPValue(t *testing.T) {
	values, null := []float64{0.18, 0.32, 0.5}, []float64{0.2, 0.3, 0.5}
	for _, c := range []struct{ sigma, want float64 }{
		{0.01, 0.5038265444441177},            // 3 degrees of freedom at 2.3456790123456788
		{0, math.Exp(-3.333333333333333 / 2)}, // 2 degrees of freedom at 3.333333333333333
	} {
		p := freshness{1000, c.sigma}.cellsPValue(values, null)
		if p == nil || math.Abs(*p-c.want) > 1e-9 {
			t.Errorf("with noise %v: %v, want %v", c.sigma, show(p), c.want)
		}
	}
	if p := (freshness{1000, 0}).cellsPValue([]float64{0.5, 0.4, 0.1}, []float64{0.5, 0.5, 0}); p == nil || *p != 0 {
		t.Errorf("a cell that cannot be: %v", show(p))
	}
}

// TestProportionPValue: without noise it is the sum over the counts that are as far away.
func TestProportionPValue(t *testing.T) {
	const n, null = 40, 0.3
	count := distuv.Binomial{N: n, P: null}
	for k := range n + 1 {
		value := float64(k) / n
		two, up, down := 0.0, 0.0, 0.0
		for j := range n + 1 {
			if math.Abs(float64(j)/n-null) >= math.Abs(value-null)-1e-9 {
				two += count.Prob(float64(j))
			}
			if j >= k {
				up += count.Prob(float64(j))
			}
			if j <= k {
				down += count.Prob(float64(j))
			}
		}
		for alternative, want := range map[string]float64{twoSided: two, greater: up, less: down} {
			got := freshness{n, 0}.proportionPValue(value, null, alternative)
			if got == nil || math.Abs(*got-min(want, 1)) > 1e-9 {
				t.Errorf("%d of %d, %s: %v, want %v", k, n, alternative, show(got), want)
			}
		}
	}
}

// TestPlainPValuesAreValid: under the null they are at most u in no more than a share u of runs, and not in far fewer, while those
// that forget the noise are too often (false alarm 1e-6 each, fixed seeds).
func TestPlainPValuesAreValid(t *testing.T) {
	const runs, n, null, sigma = 4000, 400, 0.2, 0.02
	r := rand.New(rand.NewPCG(1, 2))
	below := map[string]map[float64]int{}
	for range runs {
		counts := [3]float64{}
		for range n {
			switch u := r.Float64(); {
			case u < null:
				counts[0]++
			case u < 0.5:
				counts[1]++
			default:
				counts[2]++
			}
		}
		var values []float64
		for _, c := range counts {
			values = append(values, min(max(c/n+sigma*r.NormFloat64(), 0), 1))
		}
		expected := []float64{null, 0.5 - null, 0.5}
		noisy, forgetful := freshness{n, sigma}, freshness{n, 0}
		for name, p := range map[string]*float64{
			"proportion":            noisy.proportionPValue(values[0], null, twoSided),
			"proportion, greater":   noisy.proportionPValue(values[0], null, greater),
			"mean":                  noisy.meanPValue(values[0], null, twoSided),
			"cells":                 noisy.cellsPValue(values, expected),
			"proportion, no noise!": forgetful.proportionPValue(values[0], null, twoSided),
			"cells, no noise!":      forgetful.cellsPValue(values, expected),
		} {
			if below[name] == nil {
				below[name] = map[float64]int{}
			}
			for _, u := range []float64{0.05, 0.3} {
				if *p <= u {
					below[name][u]++
				}
			}
		}
	}
	for name, at := range below {
		for u, count := range at {
			// The normal and the chi-square law are approximations: a tenth of u is allowed for them.
			err := stattest.AtMost(count, runs, 1.1*u, 1e-6)
			forgets := name[len(name)-1] == '!'
			if forgets == (err == nil) {
				t.Errorf("%s: %d of %d at most %v: %v", name, count, runs, u, err)
			}
			if !forgets && float64(count) < 0.7*u*runs {
				t.Errorf("%s: only %d of %d at most %v", name, count, runs, u)
			}
		}
	}
}
