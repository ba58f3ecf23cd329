package bounds

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

var transferBounds = map[string]func(n, k int64, beta float64) (Transfer, error){
	"bnsssu": BNSSSU, "dfhprr": DFHPRR, "rz": RZ, "xr": XR, "jlnrss20": JLNRSS20, "jlnrss-plus": JLNRSSPlus,
	"jlnrss-gdp": JLNRSSGDP, "tanh": TanhTransfer, "tanh, two events": TanhTransferTwoEvents,
}

// TestTransferAgainstReference: half-widths of two other programs. Some of their optimisers stop early, by at most the factor given:
// ours may be narrower by that, never wider.
func TestTransferAgainstReference(t *testing.T) {
	for name, c := range map[string]struct {
		bound func(n, k int64, beta float64) (Transfer, error)
		loose float64 // the reference is at most this factor above the optimum
		above float64 // and we may be so much above it
	}{
		"ci_halfwidth_bnsssu16":                {BNSSSU, 2e-4, 2e-4}, // five digits
		"ci_halfwidth_bnsssu16_second_program": {BNSSSU, 1e-6, 1e-6},
		"ci_halfwidth_dfhprr":                  {DFHPRR, 1e-6, 1e-6},
		"ci_halfwidth_xr17":                    {XR, 1e-6, 1e-6},
		"ci_halfwidth_jlnrss20_thm13":          {JLNRSS20, 1e-1, 1e-6},
		"ci_halfwidth_jlnrss_plus_cks":         {JLNRSSPlus, 1e-5, 1e-6},
		"ci_halfwidth_jlnrss_gdp":              {JLNRSSGDP, 1e-5, 1e-6},
		"ci_halfwidth_rz_corrected":            {RZ, 1e-6, 1e-6},
		"ci_halfwidth_tanh_transfer":           {TanhTransferTwoEvents, 1e-6, 1e-6},
		"ci_halfwidth_tanh_single_event":       {TanhTransfer, 1e-6, 1e-6},
	} {
		for _, r := range references(t, name) {
			got, err := c.bound(int64(r.Inputs["n"]), int64(r.Inputs["k"]), r.Inputs["beta"])
			if err != nil {
				t.Fatal(err)
			}
			want, ok := r.Expected["value"]
			if !ok {
				want = r.Expected["half_width"]
			}
			if ratio := got.HalfWidth / want; ratio < 1-c.loose || ratio > 1+c.above {
				t.Errorf("%s %v: %v, the reference is %v (ratio %.8f)", name, r.Inputs, got.HalfWidth, want, ratio)
			}
			if math.Abs(got.Noise+got.Adaptivity-got.HalfWidth) > 1e-12*got.HalfWidth {
				t.Errorf("%s %v: the parts of %+v do not add up", name, r.Inputs, got)
			}
		}
	}
}

// TestGrid: from ten to 1e12 units and one to 1e12 questions nothing is NaN, negative or narrower than a batch fixed beforehand, and
// nothing is wider with more units, narrower with more questions or a higher confidence.
func TestGrid(t *testing.T) {
	sizes := []int64{10, 1000, 1e6, 1e12}
	bounds := map[string]func(n, k int64, beta float64) (float64, error){
		"constant": func(n, k int64, beta float64) (float64, error) {
			b, err := AdaptiveHoeffding(n, k, beta)
			return b.HalfWidth, err
		},
		"scheduled": func(n, k int64, beta float64) (float64, error) {
			b, err := AdaptiveHoeffdingScheduled(n, k, beta)
			return b.HalfWidth, err
		},
		"rounds": func(n, k int64, beta float64) (float64, error) {
			b, err := AdaptiveHoeffdingRounds(n, k, min(k, 3), beta)
			return b.HalfWidth, err
		},
	}
	for name, bound := range transferBounds {
		bounds[name] = func(n, k int64, beta float64) (float64, error) {
			b, err := bound(n, k, beta)
			return b.HalfWidth, err
		}
	}
	for name, bound := range bounds {
		at := func(n, k int64, beta float64) float64 {
			w, err := bound(n, k, beta)
			if floor := Exact(float64(n), float64(k), beta, 0); err != nil || !(w >= floor*(1-1e-9)) {
				t.Errorf("%s n=%d k=%d beta=%v: %v, %v; the floor is %v", name, n, k, beta, w, err, floor)
			}
			return min(w, 1) // beyond, all say nothing, and some searches end at the end of their range
		}
		for i, n := range sizes {
			for j, k := range append([]int64{1}, sizes...) {
				w := at(n, k, 0.05)
				const rounding = 1 + 2e-3 // the factor for rounding m, and stretches
				if i > 0 && w > at(sizes[i-1], k, 0.05)*rounding {
					t.Errorf("%s n=%d k=%d: wider than with fewer units", name, n, k)
				}
				if j > 0 && w*rounding < at(n, append([]int64{1}, sizes...)[j-1], 0.05) {
					t.Errorf("%s n=%d k=%d: narrower than with fewer questions", name, n, k)
				}
			}
			if at(n, 1000, 0.001) < at(n, 1000, 0.05) {
				t.Errorf("%s n=%d: narrower with more confidence", name, n)
			}
		}
	}
}

// TestOrder: the order of the bounds where all of them say something: each is proved from more than the one before.
func TestOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := int64(math.Exp(rapid.Float64Range(math.Log(1e3), math.Log(1e8)).Draw(t, "log n")))
		k := int64(math.Exp(rapid.Float64Range(math.Log(2), math.Log(1e3)).Draw(t, "log k")))
		beta := rapid.SampledFrom([]float64{0.2, 0.05, 0.01, 0.001}).Draw(t, "beta")
		last := math.Inf(1)
		for i, bound := range []func(n, k int64, beta float64) (Transfer, error){JLNRSS20, JLNRSSPlus, JLNRSSGDP, TanhTransferTwoEvents, TanhTransfer} {
			b, err := bound(n, k, beta)
			if err != nil || b.HalfWidth > last*(1+1e-6) && last < 1 {
				t.Fatalf("bound %d at n=%d k=%d beta=%v: %v after %v, %v", i, n, k, beta, b.HalfWidth, last, err)
			}
			last = b.HalfWidth
		}
		b, err := AdaptiveHoeffdingScheduled(n, k, beta)
		if err != nil || b.HalfWidth > last && last < 1 {
			t.Fatalf("n=%d k=%d beta=%v: %v after %v, %v", n, k, beta, b.HalfWidth, last, err)
		}
	})
}

// TestPublishedNoise: the noise parts cover the noise. The public code of two of the bounds has half of this: with sigma 1 and
// n 1e6 it gives 1.4834, which one normal variable exceeds with probability 0.138.
func TestPublishedNoise(t *testing.T) {
	for _, k := range []float64{1, 10, 1000, 1e9} {
		for _, beta := range []float64{0.5, 0.05, 1e-6} {
			if got, least := tailNoise(k, beta, 1), MaxNormalQuantile(k, beta/2); got < least {
				t.Errorf("k=%v beta=%v: noise part %v, the quantile is %v", k, beta, got, least)
			}
		}
	}
}

// TestTanhNoise: equal noise gives the two-event bound; less noise in one answer widens all the others' posterior part.
func TestTanhNoise(t *testing.T) {
	const n, k, beta = 10000, 100, 0.05
	b, err := TanhTransferTwoEvents(n, k, beta)
	if err != nil {
		t.Fatal(err)
	}
	sigma := make([]float64, k)
	for j := range sigma {
		sigma[j] = b.Sigma
	}
	lo, hi := 0.0, beta // b1 is where the shortfall is that of the noise part
	for range 60 {
		if b1 := (lo + hi) / 2; MaxNormalShortfall(k, b1) > b.Noise/b.Sigma {
			lo = b1
		} else {
			hi = b1
		}
	}
	b1 := hi
	w, err := TanhNoise(n, sigma, beta, b1)
	if err != nil || len(w) != k || math.Abs(w[0]/b.HalfWidth-1) > 1e-6 {
		t.Fatalf("%v, %v; want %v", w, err, b.HalfWidth)
	}
	sigma[0] /= 2
	if more, err := TanhNoise(n, sigma, beta, b1); err != nil || !(more[0] < w[0] && more[1] > w[1]) {
		t.Errorf("%v %v after %v, %v", more[0], more[1], w[0], err)
	}
	if _, err := TanhNoise(n, []float64{0.1, 0}, beta, b1); err == nil {
		t.Error("an answer without noise was accepted")
	}
}

// TestTanhInterval: a mean that is far from one half has a narrower interval, and none is wider than the plain bound.
func TestTanhInterval(t *testing.T) {
	const noise, eps, slack = 0.02, 0.15, 0.005
	plain := noise + math.Tanh(eps/4) + slack
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.Float64Range(0, 1).Draw(t, "answer")
		low, high := TanhInterval(a, noise, eps, slack)
		if low < max(0, a-plain)-1e-9 || high > min(1, a+plain)+1e-9 || low > a || high < a {
			t.Fatalf("answer %v: [%v, %v], the plain half-width is %v", a, low, high, plain)
		}
		l, h := TanhInterval(1-a, noise, eps, slack)
		if math.Abs(l-(1-high)) > 1e-9 || math.Abs(h-(1-low)) > 1e-9 {
			t.Fatalf("not symmetric at %v", a)
		}
	})
	low, high := TanhInterval(0.05, noise, eps, slack)
	if high-0.05 > 0.8*plain || low > 0.05-noise {
		t.Errorf("[%v, %v] around 0.05", low, high)
	}
}
