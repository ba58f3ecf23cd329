package account

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/holdoutd/holdoutd/dp/noise"
)

// TestExact compares with 40-digit arithmetic (mpmath's quadrature and normal distribution).
func TestExact(t *testing.T) {
	for _, c := range []struct{ rate, multiplier, order, want float64 }{
		{0.01, 1.1, 8, 0.00058407033552025122492},
		{0.01, 1.1, 7.5, 0.00054025945258032227936},
		{0.01, 1.1, 8.3, 0.00061125227835959137832},
		{0.01, 1.1, 2.5, 0.00016207740937000374605},
		{0.1, 4, 10.9, 0.0037116546792413349589},
		{0.1, 4, 1.1, 0.00035273908280107546611},
		{0.001, 0.5, 3.7, 0.0015770849757355212947},
		{0.3, 0.8, 5.2, 2.5760586036129224616},
	} {
		near(t, "divergence", SubsampledDivergence(c.rate, c.multiplier, c.order), c.want, 1e-11)
	}
	for _, c := range []struct{ mu, eps, want float64 }{
		{0.001, 0.001, 0.000083357132125208491812},
		{0.001, 0, 0.00039894226377883828456},
		{0.01, 0.2, 1.5140791334826317975e-92},
		{1, 30, 4.709326318097522197e-193},
		{5, 0, 0.98758066934844772967},
		{5, 3, 0.95184861011790586367},
		{20, 150, 0.99279195656290283149},
		{40, 10, 1},
		{0.5, 12, 1.1288602754443730355e-126},
		{0.05, 1.5, 1.7268876702378554573e-200},
		{3, 6, 0.21468827003935890905},
	} {
		near(t, "delta", GDP(c.mu).Delta(c.eps), c.want, 1e-11)
	}
}

// TestIntegral: at integer orders the integral and the binomial sum are two ways to one number, also where it overflows.
func TestIntegral(t *testing.T) {
	for _, rate := range []float64{1e-5, 0.003, 0.2, 0.9} {
		for _, multiplier := range []float64{0.1, 0.3, 0.7, 1, 2, 10, 100} {
			s := newSubsampled(rate, multiplier)
			for _, a := range []float64{2, 3, 7, 32, 200} {
				near(t, "ln A", s.integral(a), s.binomial(a), 1e-9)
			}
		}
	}
}

// TestChord: the bound that takes over below leastMultiplier is one, and no wild one.
func TestChord(t *testing.T) {
	s := newSubsampled(0.02, leastMultiplier*0.999)
	for _, a := range []float64{1.1, 1.9, 2.5, 10.3} {
		if bound, exact := s.divergence(a), s.integral(a)/(a-1); bound < exact || bound > 10*exact {
			t.Errorf("order %v: chord %v, integral %v", a, bound, exact)
		}
	}
}

// TestBackAndForth: each inverse undoes its function, on the side that promises less.
func TestBackAndForth(t *testing.T) {
	r := rand.New(noise.Seeded(1))
	for range 300 {
		eps, delta := math.Exp(8*r.Float64()-5), math.Exp(-1-25*r.Float64())
		for name, currency := range map[string]interface {
			Delta(float64) float64
			Epsilon(float64) float64
		}{"GDP": LargestGDP(eps, delta), "zCDP": LargestZCDP(eps, delta)} {
			if got := currency.Delta(eps); got > delta || got < delta*(1-1e-9) {
				t.Errorf("%s %v for (%v, %v) has delta %v", name, currency, eps, delta, got)
			}
			if got := currency.Epsilon(delta); math.Abs(got-eps) > 1e-9*eps {
				t.Errorf("%s %v for (%v, %v) has epsilon %v", name, currency, eps, delta, got)
			}
		}
	}
}

// TestOrderOfBounds: of one thing, the exact account is at most zCDP's, zCDP's at most RDP's over few orders, sampling
// helps, and the optimal composition is at most the advanced one and the basic one.
func TestOrderOfBounds(t *testing.T) {
	r := rand.New(noise.Seeded(2))
	for range 100 {
		multiplier, delta := math.Exp(3*r.Float64()), math.Exp(-5-20*r.Float64())
		exact := GaussianGDP(1, multiplier).Epsilon(delta)
		zcdp := GaussianZCDP(1, multiplier).Epsilon(delta)
		whole, sampled := NewRDP(), NewRDP()
		whole.Gaussian(multiplier, 1)
		sampled.SubsampledGaussian(0.1, multiplier, 1)
		rdp, _ := whole.Epsilon(delta)
		less, _ := sampled.Epsilon(delta)
		if !(exact <= zcdp && zcdp <= rdp*(1+1e-12) && less <= rdp) {
			t.Errorf("multiplier %v, delta %v: exact %v, zCDP %v, RDP %v, sampled %v", multiplier, delta, exact, zcdp, rdp, less)
		}
		p := Pure{Epsilon: math.Exp(-4 * r.Float64()), K: 1 + r.IntN(300)}
		if best := p.Optimal(delta); best > min(p.Basic(), p.Advanced(delta))*(1+1e-12) || p.OptimalDelta(best) > delta {
			t.Errorf("%+v: optimal %v, basic %v, advanced %v", p, best, p.Basic(), p.Advanced(delta))
		}
	}
	all, every := NewRDP(), NewRDP()
	all.SubsampledGaussian(1, 2, 7)
	every.Gaussian(2, 7)
	if a, _ := all.Epsilon(1e-6); math.Abs(a-first(every.Epsilon(1e-6))) > 1e-12 {
		t.Errorf("a sample of everything spends %v", a)
	}
}

func first(v, _ float64) float64 { return v }

func TestComposition(t *testing.T) {
	near(t, "composed", float64(ComposeGDP(3, 4, 12)), 13, 1e-15)
	account := NewRDP()
	account.Gaussian(2, 3)
	account.ZCDP(GaussianZCDP(1, 4))
	orders, spent := account.Orders()
	for i, a := range orders {
		near(t, "spent", spent[i], a*(3./8+1./32), 1e-14)
	}
}

// TestEdges: nothing spent is no loss, no noise is no privacy.
func TestEdges(t *testing.T) {
	inf := math.Inf(1)
	empty := NewRDP()
	empty.SubsampledGaussian(0, 1, 5)
	empty.SubsampledGaussian(0.5, 1, 0)
	for what, pair := range map[string][2]float64{
		"delta of 0-GDP":              {GDP(0).Delta(0), 0},
		"delta of infinite GDP":       {GDP(inf).Delta(3), 1},
		"epsilon of 0-GDP":            {GDP(0).Epsilon(0), 0},
		"epsilon of GDP at 0":         {GDP(1).Epsilon(0), inf},
		"epsilon of infinite GDP":     {GDP(inf).Epsilon(0.5), inf},
		"GDP for delta 0":             {float64(LargestGDP(1, 0)), 0},
		"GDP for delta 1":             {float64(LargestGDP(1, 1)), inf},
		"delta of 0-zCDP":             {ZCDP(0).Delta(0), 0},
		"delta of infinite zCDP":      {ZCDP(inf).Delta(5), 1},
		"epsilon of zCDP at 0":        {ZCDP(1).Epsilon(0), inf},
		"rho for delta 0":             {float64(LargestZCDP(1, 0)), 0},
		"epsilon of an empty account": {first(empty.Epsilon(1e-9)), 0},
		"delta of an empty account":   {first(empty.Delta(0)), 0},
		"optimal of no releases":      {Pure{Epsilon: 1}.Optimal(0), 0},
		"optimal beyond delta":        {Pure{Epsilon: 1, Delta: 0.1, K: 3}.Optimal(0.2), inf},
		"an empty filter's share":     {new(Filter).Left(), 0},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s is %v, want %v", what, pair[0], pair[1])
		}
	}
	if new(Filter).Spend(0) {
		t.Error("a filter without a budget admits")
	}
	if _, err := SubsampledMultiplier(1, 1e9, 1e-6, 1e-9); err == nil {
		t.Error("a multiplier above the largest")
	}
}

func TestPanics(t *testing.T) {
	nan := math.NaN()
	for name, call := range map[string]func(){
		"delta":        func() { GDP(1).Epsilon(1.5) },
		"epsilon":      func() { GDP(1).Delta(-1) },
		"NaN":          func() { GDP(nan).Delta(1) },
		"sigma":        func() { GaussianZCDP(1, 0) },
		"rate":         func() { NewRDP().SubsampledGaussian(1.1, 1, 1) },
		"order":        func() { NewRDP(1) },
		"RDP delta":    func() { NewRDP().Epsilon(0) },
		"steps":        func() { NewRDP().Gaussian(1, -1) },
		"spend":        func() { ZCDPFilter(1).Spend(-0.1) },
		"spend NaN":    func() { ZCDPFilter(1).Spend(nan) },
		"slack":        func() { PureFilter(1, 0) },
		"no such goal": func() { SubsampledMultiplier(0.1, 1, 0, 1e-5) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			call()
		}()
	}
}

func BenchmarkSubsampledGaussian(b *testing.B) {
	for b.Loop() {
		NewRDP().SubsampledGaussian(0.01, 1.1, 1000)
	}
}
