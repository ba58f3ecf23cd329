package account

import (
	"encoding/json"
	"math"
	"os"
	"testing"
)

// reference is one line of testdata/reference.json: numbers computed by public code (its source says which) and by an
// independent program.
type reference struct {
	Name      string
	Inputs    map[string]any
	Expected  json.RawMessage
	Tolerance float64
}

func (r reference) in(name string) float64 {
	v, ok := r.Inputs[name].(float64)
	if !ok {
		panic(r.Name + " has no " + name)
	}
	return v
}

// expected returns a member of the expectation, or all of it for "".
func (r reference) expected(t *testing.T, name string) float64 {
	t.Helper()
	var one float64
	many := map[string]float64{}
	var err error
	if name == "" {
		err = json.Unmarshal(r.Expected, &one)
	} else {
		err = json.Unmarshal(r.Expected, &many)
		var ok bool
		if one, ok = many[name]; !ok {
			t.Fatalf("%s expects nothing for %q", r.Name, name)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return one
}

// each calls check for every reference of that name; there must be count.
func each(t *testing.T, name string, count int, check func(r reference)) {
	t.Helper()
	data, err := os.ReadFile("testdata/reference.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []reference
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		if r.Name == name {
			count--
			check(r)
		}
	}
	if count != 0 {
		t.Errorf("%s: %d references too few", name, count)
	}
}

func near(t *testing.T, what string, got, want, relative float64) {
	t.Helper()
	if !(math.Abs(got-want) <= relative*math.Abs(want)) {
		t.Errorf("%s is %.17g, want %.17g within a relative %g", what, got, want, relative)
	}
}

func TestGDPReference(t *testing.T) {
	each(t, "gdp_delta", 2, func(r reference) {
		near(t, "delta", GDP(r.in("mu")).Delta(r.in("eps")), r.expected(t, ""), 1e-12)
	})
	each(t, "gdp_eps", 1, func(r reference) {
		near(t, "epsilon", GDP(r.in("mu")).Epsilon(r.in("delta")), r.expected(t, "own"), 1e-12)
		near(t, "epsilon", GDP(r.in("mu")).Epsilon(r.in("delta")), r.expected(t, "google"), 1e-10)
	})
	each(t, "analytic_gaussian_sigma", 4, func(r reference) {
		sigma := GaussianSigma(r.in("sensitivity"), r.in("eps"), r.in("delta"))
		near(t, "sigma", sigma, r.expected(t, "balle_wang"), 1e-10)
		near(t, "sigma", sigma, r.expected(t, "google"), 1e-10)
		if GaussianGDP(r.in("sensitivity"), sigma).Delta(r.in("eps")) > r.in("delta")*(1+1e-12) {
			t.Errorf("sigma %v is not private", sigma)
		}
	})
}

func TestZCDPReference(t *testing.T) {
	each(t, "zcdp_to_delta", 1, func(r reference) {
		near(t, "delta", ZCDP(r.in("rho")).Delta(r.in("eps")), r.expected(t, "cks20"), 1e-12)
		near(t, "delta", GDP(math.Sqrt(2*r.in("rho"))).Delta(r.in("eps")), r.expected(t, "exact_gaussian"), 1e-12)
	})
	each(t, "zcdp_to_eps", 2, func(r reference) {
		near(t, "epsilon", ZCDP(r.in("rho")).Epsilon(r.in("delta")), r.expected(t, "cks20"), 1e-12)
		near(t, "epsilon", GDP(math.Sqrt(2*r.in("rho"))).Epsilon(r.in("delta")), r.expected(t, "gdp_exact"), 1e-12)
	})
	each(t, "zcdp_rho_from_eps_delta", 1, func(r reference) {
		near(t, "rho", float64(LargestZCDP(r.in("eps"), r.in("delta"))), r.expected(t, ""), 1e-12)
	})
}

func TestPureReference(t *testing.T) {
	each(t, "composition_pure", 3, func(r reference) {
		p := Pure{Epsilon: r.in("eps"), K: int(r.in("k"))}
		near(t, "basic", p.Basic(), r.expected(t, "basic"), 1e-12)
		near(t, "advanced", p.Advanced(r.in("delta")), r.expected(t, "drv_tanh"), 1e-12)
		near(t, "zCDP", (ZCDP(p.K) * PureZCDP(p.Epsilon)).Epsilon(r.in("delta")), r.expected(t, "zcdp_cks"), 1e-12)
		optimalOnGrid(t, p, r.in("delta"), r.expected(t, "kov15_thm33"))
	})
	each(t, "composition_kov_with_delta", 1, func(r reference) {
		optimalOnGrid(t, Pure{Epsilon: r.in("eps"), Delta: r.in("delta"), K: int(r.in("k"))}, r.in("total_delta"), r.expected(t, ""))
	})
	each(t, "pld_laplace_composition", 1, func(r reference) {
		// Laplace is one pure mechanism of many: the optimum for all cannot be below what it needs alone.
		p := Pure{Epsilon: 1 / r.in("scale_over_sens"), K: int(r.in("k"))}
		if got := p.Optimal(r.in("delta")); got < r.expected(t, "") || got > r.expected(t, "")+0.11 {
			t.Errorf("optimal epsilon %v for Laplace's %v", got, r.expected(t, ""))
		}
		account := NewRDP()
		account.Laplace(r.in("scale_over_sens"), p.K)
		if got, _ := account.Epsilon(r.in("delta")); got < r.expected(t, "") || got > r.expected(t, "")+0.6 {
			t.Errorf("RDP epsilon %v for Laplace's %v", got, r.expected(t, ""))
		}
	})
}

// optimalOnGrid checks against the theorem as it is stated, which is about epsilons (K-2i) Epsilon only: ours lies between
// the grid's answer and the point below.
func optimalOnGrid(t *testing.T, p Pure, delta, onGrid float64) {
	t.Helper()
	if got := p.Optimal(delta); got > onGrid*(1+1e-12) || got <= onGrid-2*p.Epsilon {
		t.Errorf("optimal epsilon of %+v is %v, on the grid %v", p, got, onGrid)
	}
	if onGrid < p.Basic() && p.OptimalDelta(onGrid-2*p.Epsilon) <= delta {
		t.Errorf("optimal delta of %+v is below the grid's", p)
	}
}

func TestFilterReference(t *testing.T) {
	fill := func(f *Filter, size float64) int {
		for f.Spend(size) {
		}
		if f.Left() < 0 || f.Spend(size) {
			t.Errorf("an overdrawn filter: %+v", f)
		}
		return f.Count()
	}
	each(t, "privacy_filter_wrrw23", 1, func(r reference) {
		if got := fill(PureFilter(r.in("eps_target"), r.in("delta_prime")), r.in("eps_i")); got != int(r.expected(t, "max_queries")) {
			t.Errorf("%d pure releases", got)
		}
	})
	each(t, "privacy_filter_zcdp", 1, func(r reference) {
		budget := LargestZCDP(r.in("eps_target"), r.in("delta"))
		near(t, "rho", float64(budget), r.expected(t, "rho_budget"), 1e-12)
		if got := fill(ZCDPFilter(budget), float64(GaussianZCDP(1, r.in("sigma_over_sensitivity")))); got != int(r.expected(t, "max_queries")) {
			t.Errorf("%d Gaussian releases by zCDP", got)
		}
	})
	each(t, "privacy_filter_gdp", 1, func(r reference) {
		budget := LargestGDP(r.in("eps_target"), r.in("delta"))
		near(t, "mu", float64(budget), r.expected(t, "mu_budget"), 1e-10)
		if got := fill(GDPFilter(budget), float64(GaussianGDP(1, r.in("sigma_over_sensitivity")))); got != int(r.expected(t, "max_queries")) {
			t.Errorf("%d Gaussian releases by GDP", got)
		}
	})
}

func TestRDPReference(t *testing.T) {
	each(t, "rdp_to_eps_single_order", 1, func(r reference) {
		account := NewRDP(r.in("alpha"))
		account.ZCDP(ZCDP(r.in("rdp") / r.in("alpha")))
		got, order := account.Epsilon(r.in("delta"))
		near(t, "epsilon", got, r.expected(t, "balle_cks"), 1e-12)
		if order != r.in("alpha") {
			t.Errorf("order %v", order)
		}
		delta, _ := account.Delta(got)
		near(t, "delta back", delta, r.in("delta"), 1e-12)
	})
	each(t, "sgm_rdp_integer_order", 2, func(r reference) {
		near(t, "divergence", SubsampledDivergence(r.in("q"), r.in("noise_multiplier"), r.in("alpha")), r.expected(t, ""), 1e-12)
	})
	each(t, "poisson_subsampled_gaussian", 2, func(r reference) {
		account := NewRDP()
		account.SubsampledGaussian(r.in("q"), r.in("noise_multiplier"), int(r.in("steps")))
		got, _ := account.Epsilon(r.in("delta"))
		// The reference ends its series for orders between integers at e^-30 a step; TestExact is stricter.
		near(t, "epsilon", got, r.expected(t, "rdp_eps"), 1e-6)
		if got < r.expected(t, "pld_eps") {
			t.Errorf("RDP's %v is below the truth %v", got, r.expected(t, "pld_eps"))
		}
		multiplier, err := SubsampledMultiplier(r.in("q"), int(r.in("steps")), got, r.in("delta"))
		if err != nil || multiplier < r.in("noise_multiplier")*(1-1e-9) {
			t.Errorf("multiplier %v, %v", multiplier, err)
		}
		near(t, "multiplier back", multiplier, r.in("noise_multiplier"), 2e-4)
	})
}
