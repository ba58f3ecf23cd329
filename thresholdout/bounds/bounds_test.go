package bounds

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"pgregory.net/rapid"
)

// reference is one numeric check of testdata/reference_numbers.json: values computed by two other programs.
type reference struct {
	Name     string
	Inputs   map[string]float64
	Expected map[string]float64
}

func references(t *testing.T, name string) []reference {
	t.Helper()
	raw, err := os.ReadFile("testdata/reference_numbers.json")
	if err != nil {
		t.Fatal(err)
	}
	var all, found []reference
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		if r.Name == name {
			found = append(found, r)
		}
	}
	if len(found) == 0 {
		t.Fatalf("no reference numbers for %s", name)
	}
	return found
}

// within checks that got is the reference number times at most the factor that rounding and cutting into stretches cost,
// and never below it: narrower than proven would be a wrong promise.
func within(t *testing.T, r reference, got, want, factor float64) {
	t.Helper()
	if !(got >= want*(1-1e-6) && got <= want*factor*(1+1e-6)) {
		t.Errorf("%s %v: %.10g, the reference is %.10g (ratio %.8f, allowed 1 to %v)", r.Name, r.Inputs, got, want, got/want, factor)
	}
}

func TestMissAgainstReference(t *testing.T) {
	for _, r := range references(t, "adaptive_hoeffding_pbar") {
		got := Miss(r.Inputs["n"], r.Inputs["W"], r.Inputs["sigma"], r.Inputs["I"])
		if want := r.Expected["value"]; math.Abs(got-want) > 1e-10*want {
			t.Errorf("%v: %.15g, the reference is %.15g", r.Inputs, got, want)
		}
	}
}

func TestAdaptiveHoeffdingAgainstReference(t *testing.T) {
	for name, bound := range map[string]func(n, k int64, beta float64) (Bound, error){
		"ci_halfwidth_adaptive_hoeffding":           AdaptiveHoeffding,
		"ci_halfwidth_adaptive_hoeffding_scheduled": AdaptiveHoeffdingScheduled,
	} {
		for _, r := range references(t, name) {
			k := int64(r.Inputs["k"])
			b, err := bound(int64(r.Inputs["n"]), k, r.Inputs["beta"])
			if err != nil {
				t.Fatal(err)
			}
			factor := rounding(r.Inputs["n"])
			if k > exactQuestions {
				factor *= 1 + 1e-3 // stretches
			}
			within(t, r, b.HalfWidth, r.Expected["half_width"], factor)
			if !(b.Adaptivity >= 0 && b.Adaptivity < b.HalfWidth) || k > 1 != (b.Adaptivity > 0) {
				t.Errorf("%v: the parts of %+v", r.Inputs, b)
			}
		}
	}
}

func TestLaplaceAgainstReference(t *testing.T) {
	for _, r := range references(t, "thresholdout_interval") {
		w := Laplace{N: int64(r.Inputs["h"]), Questions: int64(r.Inputs["m"]), Tokens: int64(r.Inputs["B"]),
			Beta: r.Inputs["beta"], Threshold: r.Inputs["T"], Sigma: r.Inputs["sigma"]}.HalfWidth()
		if want := r.Expected["half_width"]; math.Abs(w.HalfWidth-want) > 1e-6*want || math.Abs(w.Sample+w.Posterior-w.HalfWidth) > 1e-12 {
			t.Errorf("%v: %v, the reference is %v", r.Inputs, w, want)
		}
	}
}

func TestSplittingAgainstReference(t *testing.T) {
	for _, r := range references(t, "ci_halfwidth_split_hoeffding") {
		b, err := Splitting(int64(r.Inputs["n"]), int64(r.Inputs["k"]), r.Inputs["beta"])
		if err != nil {
			t.Fatal(err)
		}
		within(t, r, b.HalfWidth, r.Expected["value"], 1)
	}
}

// TestForcedRunsPreset has the half-widths of the science2015 preset, k=2000, B=50, after 0, 10 and 50 failures.
func TestForcedRunsPreset(t *testing.T) {
	for _, c := range []struct {
		n      int64
		widths [3]float64
	}{{1e4, [3]float64{.112, .153, .212}}, {1e5, [3]float64{.0353, .0484, .0670}}, {1e6, [3]float64{.0112, .0153, .0212}}} {
		s := 1 / math.Sqrt(float64(c.n))
		r := ForcedRuns{N: c.n, Questions: 2000, Tokens: 50, Beta: 0.05, Threshold: 4 * s, Comparison: s, Release: s}
		for i, failed := range []int64{0, 10, 50} {
			if got := r.Pass(1999, failed); math.Abs(got/c.widths[i]-1) > 5e-3 {
				t.Errorf("n=%d f=%d: %v, want about %v", c.n, failed, got, c.widths[i])
			}
		}
	}
}

func TestForcedRunsAgainstReference(t *testing.T) {
	for _, r := range references(t, "forced_runs") {
		in := func(name string) int64 { return int64(r.Inputs[name]) }
		f := ForcedRuns{N: in("n"), Questions: in("k"), Tokens: in("B"), Beta: r.Inputs["beta"], Threshold: r.Inputs["T"],
			Comparison: r.Inputs["sigma"], Release: r.Inputs["sigma"]}
		within(t, r, f.Pass(in("asked"), in("failed")), r.Expected["pass"], 1)
		within(t, r, f.Fail(in("asked"), in("failed")), r.Expected["fail"], 1)
	}
}

// TestMissIsTheExpectation compares the closed form with the expectation that it stands for, by quadrature over the noise.
func TestMissIsTheExpectation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := math.Exp(rapid.Float64Range(math.Log(100), math.Log(1e9)).Draw(t, "log n"))
		sigma := math.Exp(rapid.Float64Range(-2, 2).Draw(t, "log sigma")) / math.Sqrt(n)
		released := rapid.Float64Range(0, 30).Draw(t, "I")
		w := rapid.Float64Range(0, 12).Draw(t, "w") / math.Sqrt(n)
		const step = 1.0 / 512
		sum := 0.0
		for z := -12.0; z < 12; z += step {
			x := max(0, (w-sigma*z)*math.Sqrt(2*n)-math.Sqrt(released))
			sum += step * math.Exp(-z*z/2-x*x) / math.Sqrt(2*math.Pi)
		}
		got := Miss(n, w, sigma, released)
		if got < 1 && math.Abs(got-sum) > 1e-6*sum+1e-12 {
			t.Fatalf("closed form %v, quadrature %v", got, sum)
		}
	})
}

// TestStretchesBound: a stretch's bound is at least the sum over its questions.
func TestStretchesBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := math.Exp(rapid.Float64Range(math.Log(100), math.Log(1e9)).Draw(t, "log n"))
		w := rapid.Float64Range(0.1, 12).Draw(t, "w") / math.Sqrt(n)
		low := math.Exp(rapid.Float64Range(-3, 2).Draw(t, "log sigma")) / math.Sqrt(n)
		high := low * rapid.Float64Range(1, 3).Draw(t, "ratio")
		released := rapid.Float64Range(0, 30).Draw(t, "I")
		between := low + (high-low)*rapid.Float64Range(0, 1).Draw(t, "between")
		if bound, one := missBetween(n, w, low, high, released), Miss(n, w, between, released); one > bound*(1+1e-12) {
			t.Fatalf("sigma %v misses with %v, its stretch is bounded by %v", between, one, bound)
		}
	})
}

// TestExtremes: no overflow, no NaN, and wider with more questions, narrower with more units.
func TestExtremes(t *testing.T) {
	last := 0.0
	for _, k := range []int64{1, 1000, 1e6, 1e12} {
		b, err := AdaptiveHoeffdingScheduled(1e12, k, 0.05)
		if err != nil || !(b.HalfWidth > last) || math.IsInf(b.HalfWidth, 0) {
			t.Errorf("n=1e12, k=%d: %+v, %v", k, b, err)
		}
		last = b.HalfWidth
	}
	last = math.Inf(1)
	for _, n := range []int64{10, 99, 100, 1000, 1e6, 1e12} {
		b, err := AdaptiveHoeffdingScheduled(n, 20, 0.05)
		if err != nil || !(b.HalfWidth < last && b.HalfWidth > 0) {
			t.Errorf("n=%d, k=20: %+v, %v", n, b, err)
		}
		last = b.HalfWidth
	}
	for _, bad := range []struct {
		n, k int64
		beta float64
	}{{1, 1, .05}, {10, 0, .05}, {10, 1, 0}, {10, 1, 1}, {10, 1, math.NaN()}} {
		if _, err := AdaptiveHoeffding(bad.n, bad.k, bad.beta); err == nil {
			t.Errorf("%+v was accepted", bad)
		}
	}
}

// TestThresholdoutExtremes: from ten to 1e12 units and one to 1e12 questions no width of Thresholdout is NaN, infinite
// or below a batch's, and none falls with more questions or failures.
func TestThresholdoutExtremes(t *testing.T) {
	const beta = 0.05
	for _, n := range []int64{10, 1000, 1e6, 1e9, 1e12} {
		noise := 1 / math.Sqrt(float64(n))
		var last [4]float64
		for _, k := range []int64{1, 10, 1000, 1e6, 1e9, 1e12} {
			for _, tokens := range []int64{min(k, 1), min(k, 50), k} {
				laplace := Laplace{N: n, Questions: k, Tokens: tokens, Beta: beta, Threshold: 4 * noise, Sigma: noise}.HalfWidth()
				forced := ForcedRuns{N: n, Questions: k, Tokens: tokens, Beta: beta, Threshold: 4 * noise, Comparison: noise, Release: noise}
				failed := tokens / 2
				got := [4]float64{laplace.HalfWidth, forced.Pass(k-1, failed), forced.Fail(k-1, failed), forced.TunedNoise()}
				floor := Exact(float64(n), 1, beta, 0)
				for i, w := range got {
					if !(w > 0) || math.IsInf(w, 0) || i < 3 && w < floor {
						t.Errorf("n=%d k=%d B=%d: %v, %+v", n, k, tokens, got, laplace)
						break
					}
					if i < 3 && w < last[i]*(1-1e-9) && tokens != 1 {
						t.Errorf("n=%d k=%d B=%d: number %d falls to %v from %v", n, k, tokens, i, w, last[i])
					}
				}
				if forced.Pass(k-1, 0) > forced.Pass(k-1, failed)*(1+1e-12) {
					t.Errorf("n=%d k=%d B=%d: narrower after more failures", n, k, tokens)
				}
				last = got
			}
		}
	}
	none := Laplace{N: 1000, Questions: 10, Beta: beta, Threshold: 0.1, Sigma: 0.01}.HalfWidth()
	if none.Posterior != 0 || !(none.HalfWidth > 0.1) {
		t.Errorf("no tokens: %+v", none)
	}
}

// TestQuestionsWithin: at n = 20,000 and ±0.1 the schedule answers 4,232 questions by the reference program, which does not
// charge for rounding m, and which answers the last one with noise, too: two fewer.
func TestQuestionsWithin(t *testing.T) {
	k, err := QuestionsWithin(20000, 0.05, 0.1)
	if err != nil || k < 4227 || k > 4234 {
		t.Errorf("%d questions, %v; want about 4,233", k, err)
	}
	if k, err := QuestionsWithin(100, 0.05, 0.01); err != nil || k != 0 {
		t.Errorf("%d questions at an impossible width, %v", k, err)
	}
}
