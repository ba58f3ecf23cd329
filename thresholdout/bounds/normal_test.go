package bounds

import (
	"math"
	"testing"

	"github.com/holdoutd/holdoutd/dp/account"
)

func TestNormalAgainstReference(t *testing.T) {
	for _, c := range []struct {
		name      string
		f         func(in map[string]float64) float64
		field     string
		tolerance float64
	}{
		{"zmax", func(in map[string]float64) float64 { return MaxNormalQuantile(in["k"], in["beta"]) }, "value", 1e-12},
		{"es_max_abs_normal", func(in map[string]float64) float64 { return MaxNormalShortfall(in["k"], in["beta"]) }, "value", 1e-9},
		{"gdp_delta", func(in map[string]float64) float64 { return math.Exp(account.GDP(in["mu"]).LogDelta(in["eps"])) }, "value", 1e-12},
		{"posterior_sensitivity_gdp", func(in map[string]float64) float64 { return TanhPosterior(in["mu"], in["eta"]) }, "alpha", 1e-9},
	} {
		for _, r := range references(t, c.name) {
			if got, want := c.f(r.Inputs), r.Expected[c.field]; math.Abs(got-want) > c.tolerance*want {
				t.Errorf("%s %v: %.15g, the reference is %.15g", c.name, r.Inputs, got, want)
			}
		}
	}
}

// TestQuantileInverts the tail, for as many variables as there can be questions.
func TestQuantileInverts(t *testing.T) {
	for _, k := range []float64{1, 2, 100, 1e6, 1e12} {
		for _, b := range []float64{0.999, 0.5, 0.05, 1e-9} {
			if got := MaxNormalTail(k, MaxNormalQuantile(k, b)); math.Abs(got/b-1) > 1e-9 {
				t.Errorf("k=%v b=%v: the tail at the quantile is %v", k, b, got)
			}
		}
	}
}
