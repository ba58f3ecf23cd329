package account

import (
	"math"
	"testing"

	"github.com/holdoutd/holdoutd/dp/normal"
)

// TestGDPLogDelta: by quadrature of its density, over scales at which the closed form underflows or cancels. d delta/d eps =
// -e^eps Phi(-eps/mu-mu/2), so delta is the integral of that from eps on.
func TestGDPLogDelta(t *testing.T) {
	for _, mu := range []float64{1e-6, 9e-5, 1.1e-4, 0.01, 1, 30} {
		for _, x := range []float64{0.1, 1, 5, 15, 21, 30} {
			eps := mu*x + mu*mu/2
			sum, step := 0.0, mu/(100*(1+x))
			for i := 0.5; i < 6000; i++ {
				e := eps + i*step
				// e^e Phi(-e/mu-mu/2) = phi(e/mu-mu/2) m(e/mu+mu/2)
				y := e/mu - mu/2
				sum += step * math.Exp(-y*y/2+x*x/2) / math.Sqrt(2*math.Pi) * normal.Mills(y+mu)
			}
			got := GDP(mu).LogDelta(eps) + x*x/2
			if math.Abs(got-math.Log(sum)) > 1e-4 {
				t.Errorf("mu=%v eps=%v: ln delta %v, quadrature %v", mu, eps, got-x*x/2, math.Log(sum)-x*x/2)
			}
		}
	}
	for _, mu := range []float64{0, 1e-3, 0.5, 4, 50, math.Inf(1)} { // where Delta does not underflow it is the same
		for _, eps := range []float64{0, 0.01, 1, 8, math.Inf(1)} {
			if d, log := GDP(mu).Delta(eps), GDP(mu).LogDelta(eps); d > 1e-290 && math.Abs(math.Log(d)-log) > 1e-12*(1-log) || d == 0 && log > -600 {
				t.Errorf("mu=%v eps=%v: delta %v, its logarithm %v", mu, eps, d, log)
			}
		}
	}
	if !math.IsInf(GDP(0).LogDelta(0.1), -1) {
		t.Error("nothing released, but delta is not 0")
	}
}
