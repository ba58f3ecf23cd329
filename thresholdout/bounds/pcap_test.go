package bounds

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

type pcapCase struct {
	n, m                   int64
	width, sigma, released float64
}

func drawPCap(t *rapid.T) pcapCase {
	c := pcapCase{n: int64(math.Exp(rapid.Float64Range(math.Log(2), math.Log(1e12)).Draw(t, "log n")))}
	c.m = 1 + int64(math.Exp(rapid.Float64Range(0, math.Log(float64(c.n))).Draw(t, "log m")))
	c.m = min(c.m, c.n-1)
	root := math.Sqrt(float64(c.n))
	c.width = rapid.Float64Range(0, 20).Draw(t, "w") / root
	c.sigma = math.Exp(rapid.Float64Range(-4, 3).Draw(t, "log sigma")) / root
	c.released = rapid.Float64Range(0, 40).Draw(t, "I")
	return c
}

func (c pcapCase) miss() float64 { return PCap(c.width, c.sigma, c.released, c.n, c.m) }

// TestPCapIsTheExpectation compares the closed form with e^((n/m-1)I) E exp(-2(n-m) max(0, W - sigma Z)^2), by quadrature.
func TestPCapIsTheExpectation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawPCap(t)
		n, m := float64(c.n), float64(c.m)
		const step = 1.0 / 512
		sum := 0.0
		for z := -30.0; z < 30; z += step { // the factor before the expectation is large
			x := max(0, c.width-c.sigma*z)
			sum += step * math.Exp((n/m-1)*c.released-z*z/2-2*(n-m)*x*x-math.Log(2*math.Pi)/2)
		}
		if got := c.miss(); math.Abs(got-min(sum, 1)) > 1e-5*sum+1e-300 { // below, a float64 has fewer digits
			t.Fatalf("%+v: closed form %v, quadrature %v", c, got, sum)
		}
	})
}

// TestPCapIsMonotone: less at wider intervals; more with more released; with more noise, once that is no longer a chance of getting
// near by luck; and a stretch's bound is above each of its answers'.
func TestPCapIsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawPCap(t)
		more := 1 + rapid.Float64Range(0, 1).Draw(t, "more")
		wider, noisier, later := c, c, c
		wider.width *= more
		noisier.sigma *= more
		later.released *= more
		const rounded = 1 + 1e-9 // of exponents up to a thousand, and of Mills' ratio's two forms
		fresh := logMissFresh(float64(c.n-c.m), c.width, c.sigma, c.sigma)
		if wider.miss() > c.miss()*rounded || c.miss() > later.miss()*rounded || fresh < math.Log(0.25) && c.miss() > noisier.miss()*rounded {
			t.Fatalf("%+v: %v; wider %v, noisier %v, later %v", c, c.miss(), wider.miss(), noisier.miss(), later.miss())
		}
		n, m := float64(c.n), float64(c.m)
		between := c.sigma * rapid.Float64Range(1, more).Draw(t, "between")
		bound := logCapped(n, c.width, c.sigma, c.sigma*more, c.released, m)
		if one := logCapped(n, c.width, between, between, c.released, m); one > bound+1e-9*(1+math.Abs(bound)) {
			t.Fatalf("%+v: noise %v misses with e^%v, its stretch is bounded by e^%v", c, between, one, bound)
		}
	})
}

// TestPCapRefuses: what is no account promises nothing.
func TestPCapRefuses(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []pcapCase{{10, 0, 1, .1, 1}, {10, 10, 1, .1, 1}, {10, 3, -1, .1, 0}, {10, 3, 1, -.1, 0}, {10, 3, 1, .1, -1},
		{10, 3, nan, .1, 0}, {10, 3, 1, nan, 0}, {10, 3, 1, .1, nan}, {10, 3, 1, inf, 0}, {10, 3, 1, .1, inf}} {
		if got := c.miss(); got != 1 {
			t.Errorf("%+v: %v", c, got)
		}
	}
	if got, want := PCap(0.5, 0, 0, 100, 20), math.Exp(-2*80*0.25); math.Abs(got-want) > 1e-15*want {
		t.Errorf("without noise %v, want %v", got, want)
	}
}

// TestCappedInvertsPCap over everything that an account may be, however far its two factors are from what a float64 holds.
func TestCappedInvertsPCap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := int64(math.Exp(rapid.Float64Range(math.Log(2), math.Log(1e12)).Draw(t, "log n")))
		n = max(n, 2)
		m := rapid.Int64Range(1, n-1).Draw(t, "m")
		share := math.Exp(rapid.Float64Range(-600, -1e-3).Draw(t, "log share"))
		released := math.Exp(rapid.Float64Range(-20, 12).Draw(t, "log I"))
		sigma := math.Exp(rapid.Float64Range(-8, 8).Draw(t, "log sigma")) / math.Sqrt(float64(n))
		c := Capped{N: float64(n), M: float64(m), Share: share, Released: released}
		w, err := c.HalfWidth(sigma)
		if err != nil || !(w > 0) || math.IsInf(w, 0) {
			t.Fatalf("%+v: %v, %v", c, w, err)
		}
		if at := 2 * PCap(w, sigma, released, n, m); at > share*(1+1e-9) || 2*PCap(w*(1-1e-6), sigma, released, n, m) < share {
			t.Fatalf("%+v: %v misses with %v", c, w, at)
		}
	})
}
