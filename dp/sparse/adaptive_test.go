package sparse_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/holdoutd/holdoutd/dp/audit"
	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/dp/sparse"
	"github.com/holdoutd/holdoutd/internal/stattest"
)

// TestAccuracyOfRuns: of 1,500 runs with three questions above, no more have a question on the wrong side by more than is said, or a value that is farther
// off, than may at beta .1 (false alarm 1e-8); and what is said is less than the theorems of Dwork and Roth 2014 say of their forms (3.24, 3.26 and 3.28).
func TestAccuracyOfRuns(t *testing.T) {
	v := sparse.Split(.75, 3, 1, false)
	v.Release = eps(.25)
	const k, beta, runs = 40, .1, 1500
	comparison, release := v.Accuracy(k, beta)
	far, s, wrong := int64(comparison), noise.Seeded(31), 0
	for range runs {
		r, err := v.Start(s)
		if err != nil {
			t.Fatal(err)
		}
		for i := range k {
			value, above := -far-1, i%15 == 4
			if above {
				value = far + 1
			}
			a, err := r.Ask(value, 0)
			if err != nil || a.Above != above || above && math.Abs(float64(a.Value-value)) >= release {
				wrong++
				break
			}
			if r.Left() == 0 { // at the third that is above
				break
			}
		}
	}
	if err := stattest.AtMost(wrong, runs, beta, 1e-8); err != nil {
		t.Error(err)
	}
	if half, _ := v.Accuracy(k, .9999); half > comparison {
		t.Errorf("%v at beta .9999, %v at %v", half, comparison, beta)
	}
	one := sparse.Split(1, 1, 1, false)
	ten := sparse.Split(8./9, 10, 1, false)
	plain, none := ten.Accuracy(1000, .05)
	ten.Release = eps(1. / 9)
	numeric, value := ten.Accuracy(1000, .05)
	above, _ := one.Accuracy(1000, .05)
	if !(above < 84.773078) || !(plain < 8*10*(math.Log(1000)+math.Log(20/.05))/(8./9)) || none != 0 || !(max(numeric, value) < 9*10*(math.Log(1000)+math.Log(40/.05))) {
		t.Errorf("AboveThreshold %v, Sparse %v and %v, NumericSparse %v and %v", above, plain, none, numeric, value)
	}
	// The formula itself, computed elsewhere: ln(2/.05)/eps1 + 2 ln(2000/.05)/eps2 + 2 with eps1 = 1/(1 + 2^(2/3)).
	if want := math.Log(40)*(1+math.Cbrt(4)) + 2*math.Log(40_000)*(1+1/math.Cbrt(4)) + 2; math.Abs(above/want-1) > 1e-6 {
		t.Errorf("AboveThreshold %v, want %v", above, want)
	}
	for _, bad := range []float64{0, 1, math.NaN()} {
		if c, r := v.Accuracy(k, bad); !math.IsInf(c, 1) || !math.IsInf(r, 1) {
			t.Errorf("beta %v: %v, %v", bad, c, r)
		}
	}
}

// adaptive is what a run says of values with a threshold of 0.
func adaptive(a sparse.Adaptive, values ...int64) audit.Mechanism[string] {
	return func(s *noise.Stream) string {
		r, err := a.Start(s)
		if err != nil {
			panic(err)
		}
		said := ""
		for _, value := range values {
			answer, err := r.Ask(value, 0)
			switch {
			case errors.Is(err, sparse.ErrSpent):
				return said
			case err != nil:
				panic(err)
			case answer.Far:
				said += fmt.Sprintf("A%d", answer.Gap)
			case answer.Above:
				said += fmt.Sprintf("T%d", answer.Gap)
			default:
				said += "F"
			}
		}
		return said
	}
}

// TestAdaptiveIsPrivate: runs are not refuted on three pairs of tables, near the threshold and near the margin (false alarm 1e-5 each).
func TestAdaptiveIsPrivate(t *testing.T) {
	for i, a := range []sparse.Adaptive{
		sparse.SplitAdaptive(1, 1, 1, false),
		{Sensitivity: 1, Above: 1, Threshold: eps(.5), Query: eps(.5), Margin: 0},
		{Sensitivity: 1, Above: 2, Threshold: eps(.3), Query: eps(.7), Margin: 2},
	} {
		for j, pair := range neighbours {
			for _, up := range []int64{0, a.Margin} {
				shifted := func(values []int64) (out []int64) {
					for _, v := range values {
						out = append(out, v+up)
					}
					return out
				}
				report, err := audit.Outcomes(audit.Claim{Epsilon: a.Epsilon()}, audit.Settings{Runs: 10_000, Confidence: 1 - 1e-5}, noise.Seeded(uint64(10*i+j)),
					adaptive(a, shifted(pair.a)...), adaptive(a, shifted(pair.b)...))
				if err != nil {
					t.Fatal(err)
				}
				if report.Refuted() {
					t.Errorf("%+v, pair %d: %v", a, j, report)
				}
			}
		}
	}
	// The same attack sees noise that is too small: of four questions above that cost as much as one at eight times the epsilon.
	cheap := sparse.Vector{Sensitivity: 1, Above: 4, Threshold: eps(.5), Query: eps(4)}
	report, err := audit.Outcomes(audit.Claim{Epsilon: 1}, audit.Settings{Runs: 60_000, Confidence: 1 - 1e-5}, noise.Seeded(77), run(cheap, 0, 0, 0, 0, 1, 1, 1, 1), run(cheap, 1, 1, 1, 1, 0, 0, 0, 0))
	if err != nil || !report.Refuted() {
		t.Errorf("%v, %v", report, err)
	}
}

// TestAdaptivePrices: far questions cost half of what near ones do, the noise of either comparison has its scale (5,000 gaps, to 9%), and what is spent is spent.
func TestAdaptivePrices(t *testing.T) {
	for _, monotone := range []bool{false, true} {
		a := sparse.SplitAdaptive(4, 3, 2, monotone)
		factor := 2.
		if monotone {
			factor = 1
		}
		first := 2 * factor * 3 * 2 / a.Query.Float()
		if math.Abs(float64(a.Margin)-2*math.Sqrt2*first) > 1 || math.Abs(a.Epsilon()-4) > 1e-6 {
			t.Fatalf("%+v: a margin of %d, the first comparison has %v", a, a.Margin, first)
		}
		const games, far = 1000, 1_000_000
		s, square, n := noise.Seeded(8), 0., 0
		for range games {
			r, err := a.Start(s)
			if err != nil {
				t.Fatal(err)
			}
			for range 5 {
				answer, err := r.Ask(far, 0)
				if err != nil || !answer.Far {
					t.Fatalf("%+v, %v", answer, err)
				}
				square, n = square+math.Pow(float64(answer.Gap-far), 2), n+1
			}
			if _, err := r.Ask(far, 0); !errors.Is(err, sparse.ErrSpent) || r.Left() != 0 {
				t.Fatalf("after the last: %v", err)
			}
		}
		// Gaps of one run share the threshold's noise, which is small beside the questions'.
		if got, want := math.Sqrt(square/float64(n)), math.Sqrt2*math.Hypot(2/a.Threshold.Float(), first); math.Abs(got/want-1) > .09 {
			t.Errorf("monotone %v: gaps of far questions deviate by %v, want %v", monotone, got, want)
		}
		a.Margin = sparse.MaxValue // nothing is far
		near, count := 0., 0
		for range games {
			r, err := a.Start(s)
			if err != nil {
				t.Fatal(err)
			}
			for left := 3; left > 0; left-- {
				if r.Left() != left {
					t.Fatalf("%d left, want %d", r.Left(), left)
				}
				answer, err := r.Ask(far, 0)
				if err != nil || !answer.Above || answer.Far {
					t.Fatalf("%+v, %v", answer, err)
				}
				near, count = near+math.Pow(float64(answer.Gap-far), 2), count+1
			}
			if _, err := r.Ask(far, 0); !errors.Is(err, sparse.ErrSpent) {
				t.Fatalf("after the last: %v", err)
			}
		}
		if got, want := math.Sqrt(near/float64(count)), math.Sqrt2*math.Hypot(2/a.Threshold.Float(), first/2); math.Abs(got/want-1) > .12 {
			t.Errorf("monotone %v: gaps of near questions deviate by %v, want %v", monotone, got, want)
		}
	}
}

func TestAdaptiveRefused(t *testing.T) {
	good := sparse.SplitAdaptive(1, 3, 2, true)
	for name, spoil := range map[string]func(a *sparse.Adaptive){
		"sensitivity": func(a *sparse.Adaptive) { a.Sensitivity = 0 },
		"above":       func(a *sparse.Adaptive) { a.Above = sparse.MaxAbove },
		"none above":  func(a *sparse.Adaptive) { a.Above = 0 },
		"threshold":   func(a *sparse.Adaptive) { a.Threshold = noise.Epsilon{} },
		"query":       func(a *sparse.Adaptive) { a.Query = noise.Epsilon{} },
		"margin":      func(a *sparse.Adaptive) { a.Margin = -1 },
		"wide margin": func(a *sparse.Adaptive) { a.Margin = sparse.MaxValue + 1 },
	} {
		a := good
		spoil(&a)
		if _, err := a.Start(noise.Seeded(1)); !errors.Is(err, sparse.ErrSettings) {
			t.Errorf("%s: %v", name, err)
		}
	}
	r, err := good.Start(noise.Seeded(1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Ask(0, -sparse.MaxValue-1); !errors.Is(err, sparse.ErrSettings) || r.Left() != 3 {
		t.Errorf("a threshold beyond the limit: %v, %d left", err, r.Left())
	}
}

// Of many counts of one table, which are above 500? Those that are far above cost half, so that five are found where three were paid for.
func ExampleAdaptive() {
	a := sparse.SplitAdaptive(1, 3, 1, true)
	r, err := a.Start(noise.Seeded(1)) // a service takes a stream of its secret key
	if err != nil {
		panic(err)
	}
	found := 0
	for i := range 100 {
		count := int64(100)
		if i%10 == 7 {
			count = 5000
		}
		if answer, err := r.Ask(count, 500); err == nil && answer.Far {
			found++
		}
	}
	fmt.Println(found, "found,", r.Left(), "left")
	// Output: 5 found, 0 left
}
