package account

import (
	"math"
	"testing"
)

// TestZCDPDeltaIsANumber: delta rises with rho and falls with eps, from 0 to 1, also where the best order is 1 to the last bit: it was NaN
// there.
func TestZCDPDeltaIsANumber(t *testing.T) {
	for _, eps := range []float64{0, 1e-6, 0.01, 1, 30, 1e6} {
		last := 0.0
		for rho := 1e-12; rho < 1e30; rho *= 10 {
			d := ZCDP(rho).Delta(eps)
			if !(d >= last*(1-1e-9) && d >= 0 && d <= 1) {
				t.Errorf("rho=%v eps=%v: delta %v after %v", rho, eps, d, last)
			}
			last = d
		}
		if eps < 1e6 && last < 1-1e-6 {
			t.Errorf("eps=%v: delta is at most %v", eps, last)
		}
	}
	// The minimum over orders is a minimum: no other order is below it (arXiv 2004.00010, corollary 13).
	for _, c := range []struct{ rho, eps float64 }{{10, 5}, {0.01, 0.5}, {3, 20}, {1e-6, 0.01}} {
		got := math.Log(ZCDP(c.rho).Delta(c.eps))
		for b := 1e-6; b < 1e8; b *= 1.01 {
			a := 1 + b
			if at := b*(a*c.rho-c.eps) + a*math.Log1p(-1/a) - math.Log(b); at < got-1e-9*(1-got) {
				t.Fatalf("%+v: ln delta %v, order %v has %v", c, got, a, at)
			}
		}
	}
}
