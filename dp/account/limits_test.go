package account

import (
	"math"
	"testing"
)

// TestChordIsTheChord: below leastMultiplier the bound at an order between integers is the straight line of ln A between them, ln A being
// 0 at order 1; at integers it is the binomial sum.
func TestChordIsTheChord(t *testing.T) {
	for _, rate := range []float64{0.001, 0.2} {
		for _, multiplier := range []float64{0.01, 0.05, leastMultiplier * 0.999} {
			logA := func(order float64) float64 {
				if order == 1 {
					return 0
				}
				return (order - 1) * SubsampledDivergence(rate, multiplier, order)
			}
			for _, order := range []float64{1.25, 1.5, 2.5, 2.75, 7.1} {
				low := math.Floor(order)
				want := ((low+1-order)*logA(low) + (order-low)*logA(low+1)) / (order - 1)
				near(t, "chord", SubsampledDivergence(rate, multiplier, order), want, 1e-12)
			}
		}
	}
}

// TestFilterIsFullAtItsBudget: what reaches the budget exactly is admitted, what is above it is not, and the share that is left is one of
// the budget, whatever its size.
func TestFilterIsFullAtItsBudget(t *testing.T) {
	for name, f := range map[string]*Filter{"zCDP": ZCDPFilter(2), "GDP": GDPFilter(GDP(math.Sqrt2))} {
		half := map[string]float64{"zCDP": 0.5, "GDP": math.Sqrt(0.5)}[name]
		if !f.Spend(half) || math.Abs(f.Left()-0.75) > 1e-12 || f.Count() != 1 {
			t.Errorf("%s: a quarter spent, %v left, %d admitted", name, f.Left(), f.Count())
		}
	}
	f := ZCDPFilter(1)
	if !f.Spend(0.25) || !f.Spend(0.75) || f.Left() != 0 || f.Spend(1e-9) || !f.Spend(0) || f.Count() != 3 {
		t.Errorf("a full filter: %v left after %d", f.Left(), f.Count())
	}
}

// TestEndsOfRanges: values at the ends of what is allowed are taken, and mean what they say.
func TestEndsOfRanges(t *testing.T) {
	inf := math.Inf(1)
	few := NewRDP(2, MaxOrder)
	_, order := few.Epsilon(0.5)
	for what, pair := range map[string][2]float64{
		"delta of zCDP at infinity":     {ZCDP(1).Delta(inf), 0},
		"delta of GDP at infinity":      {GDP(1).Delta(inf), 0},
		"rho for delta 1":               {float64(LargestZCDP(1, 1)), inf},
		"rho for epsilon infinity":      {float64(LargestZCDP(inf, 0.1)), inf},
		"mu for epsilon infinity":       {float64(LargestGDP(inf, 0.1)), inf},
		"no sampling":                   {SubsampledDivergence(0, 1, 2.5), 0},
		"everything is sampled":         {SubsampledDivergence(1, 2, 3), 3.0 / 8},
		"the order of an empty account": {order, 2},
		"sensitivity 0":                 {float64(GaussianGDP(0, 1)) + float64(GaussianZCDP(0, 1)), 0},
		"no slack is needed at 1":       {Pure{Epsilon: 0.5, K: 4}.Advanced(1), 4 * 0.5 * math.Tanh(0.25)},
		"pure zCDP":                     {float64(PureZCDP(3)), 4.5},
	} {
		if math.Abs(pair[0]-pair[1]) > 1e-15 || math.IsNaN(pair[0]) {
			t.Errorf("%s is %v, want %v", what, pair[0], pair[1])
		}
	}
	for what, delta := range map[string]float64{"zCDP": ZCDP(1e6).Delta(0), "pure": Pure{Epsilon: 20, K: 5}.OptimalDelta(0)} {
		if !(delta > 0.99 && delta <= 1) {
			t.Errorf("the delta of a %s account that hides nothing is %v", what, delta)
		}
	}
	if f := PureFilter(1, 1); !f.Spend(math.Sqrt2 * (1 - 1e-12)) {
		t.Error("at slack 1 the sum of squares may be 2 eps")
	}
	if orders := DefaultOrders(); len(orders) != 99+54+4 || orders[99] != 11 || orders[152] != 64 || orders[156] != 1024 {
		t.Errorf("orders %v", orders)
	}
	if got := SubsampledDivergence(0.1, 4, MaxOrder); !(got > 0) {
		t.Errorf("the largest order: %v", got)
	}
}

// TestNonsenseIsRefused: numbers that no mechanism has are a programmer's error in every function that takes them.
// TestInfinities: no epsilon protects from an infinite account, and an infinite epsilon hides nothing of any other.
func TestInfinities(t *testing.T) {
	inf := math.Inf(1)
	for _, eps := range []float64{0, 1e-300, 1, 700, 1e300} {
		if a, b := ZCDP(inf).Delta(eps), GDP(inf).Delta(eps); a != 1 || b != 1 {
			t.Errorf("infinite accounts at %v: %v, %v", eps, a, b)
		}
	}
	for _, x := range []float64{1e-300, 1e-3, 1, 1e3, 1e150} {
		if a, b := ZCDP(x).Delta(inf), GDP(x).Delta(inf); a != 0 || b != 0 {
			t.Errorf("accounts of %v at an infinite epsilon: %v, %v", x, a, b)
		}
	}
}

func TestNonsenseIsRefused(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for name, call := range map[string]func(){
		"no noise, subsampled":         func() { SubsampledDivergence(0.1, 0, 2) },
		"infinite noise, subsampled":   func() { SubsampledDivergence(0.1, inf, 2) },
		"noise NaN, subsampled":        func() { SubsampledDivergence(0.1, nan, 2) },
		"rate NaN":                     func() { SubsampledDivergence(nan, 1, 2) },
		"negative rate":                func() { SubsampledDivergence(-0.1, 1, 2) },
		"order 1":                      func() { SubsampledDivergence(0.1, 1, 1) },
		"order above the largest":      func() { SubsampledDivergence(0.1, 1, MaxOrder+0.5) },
		"account's order above it":     func() { NewRDP(2, MaxOrder+1) },
		"order NaN":                    func() { NewRDP(nan) },
		"GDP without noise":            func() { GaussianGDP(1, 0) },
		"GDP, negative noise":          func() { GaussianGDP(1, -1) },
		"GDP, negative sensitivity":    func() { GaussianGDP(-1, 1) },
		"zCDP, negative sensitivity":   func() { GaussianZCDP(-1, 1) },
		"sigma, negative sensitivity":  func() { GaussianSigma(-1, 1, 0.1) },
		"composing a negative":         func() { ComposeGDP(1, -1) },
		"delta of negative zCDP":       func() { ZCDP(-1).Delta(1) },
		"delta of negative GDP":        func() { GDP(-1).Delta(1) },
		"zCDP's delta at a negative":   func() { ZCDP(1).Delta(-1) },
		"zCDP's delta at NaN":          func() { ZCDP(1).Delta(nan) },
		"GDP's delta at a negative":    func() { GDP(1).Delta(-1) },
		"GDP's delta at NaN":           func() { GDP(1).Delta(nan) },
		"the account's at a negative":  func() { NewRDP().Delta(-1) },
		"pure zCDP of a negative":      func() { PureZCDP(-1) },
		"basic, negative epsilon":      func() { Pure{Epsilon: -1, K: 1}.Basic() },
		"basic, negative releases":     func() { Pure{Epsilon: 1, K: -1}.Basic() },
		"basic, delta above 1":         func() { Pure{Epsilon: 1, Delta: 2, K: 1}.Basic() },
		"advanced, negative releases":  func() { Pure{Epsilon: 1, K: -1}.Advanced(0.1) },
		"advanced without slack":       func() { Pure{Epsilon: 1, K: 1}.Advanced(0) },
		"advanced, slack above 1":      func() { Pure{Epsilon: 1, K: 1}.Advanced(1.1) },
		"optimal delta, negative":      func() { Pure{Epsilon: -1, K: 1}.OptimalDelta(1) },
		"optimal delta, at a negative": func() { Pure{Epsilon: 1, K: 1}.OptimalDelta(-1) },
		"a negative budget of rho":     func() { ZCDPFilter(-1) },
		"a negative budget of mu":      func() { GDPFilter(-1) },
		"a pure budget's slack":        func() { PureFilter(1, 1.5) },
		"a negative pure budget":       func() { PureFilter(-1, 0.5) },
		"account of negative zCDP":     func() { NewRDP().ZCDP(-1) },
		"account, Laplace, no noise":   func() { NewRDP().Laplace(0, 1) },
		"losses of no noise":           func() { GaussianPLD(0) },
		"losses of endless noise":      func() { LaplacePLD(math.Inf(1)) },
		"losses of a step, no noise":   func() { SubsampledGaussianPLD(.1, nan) },
		"losses at a rate above 1":     func() { SubsampledGaussianPLD(1.1, 1) },
		"losses' delta at a negative":  func() { PLD{}.Delta(-1) },
		"a group of none":              func() { ZCDP(1).Group(0) },
		"a trade-off at level 2":       func() { Tradeoff(GDP(1), 2) },
		"precision at level 0":         func() { Precision(GDP(1), .1, 0) },
		"posterior of a belief of 2":   func() { Posterior(2, 1) },
		"an odometer without delta":    func() { NewOdometer(1, 0) },
		"a sample at rate NaN":         func() { Approximate{1, 0}.Sampled(nan) },
		"no goal for delta":            func() { SubsampledMultiplier(0.1, 1, 1, 0) },
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
