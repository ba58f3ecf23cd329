package bounds

import (
	"math"
	"testing"
)

// TestPromisedWidthsPayForPatterns walks the patterns of held and broken promises: the misses of all positions and patterns add up to at most
// beta, whether a broken answer is printed, which counts itself, or refused. Red when the number of patterns is that of the position
// before, and when W_f is read before the answer's own broken promise.
func TestPromisedWidthsPayForPatterns(t *testing.T) {
	const beta = 0.05
	worst := 0.0
	defer func() { t.Logf("the misses of all patterns add up to at most %.6f of what was planned", worst) }()
	for _, c := range []struct {
		n, k, tokens int64
		exactLast    bool
	}{{200, 1, 1, false}, {1000, 20, 1, false}, {10000, 60, 2, false}, {30000, 40, 4, false}, {200, 1, 1, true}, {1000, 20, 1, true}, {30000, 40, 4, true}} {
		plan, err := PromisedSchedule(c.n, c.k, beta, c.tokens, c.exactLast)
		if err != nil {
			t.Fatal(err)
		}
		information := func(i int64) (sum float64) { // before position i
			for j := int64(1); j < i; j++ {
				s := ScheduledSigma(plan.Scale, j, c.k)
				sum += 1 / (8 * s * s * float64(c.n-1))
			}
			if i > 1 {
				sum = max(sum, minInformation)
			}
			return sum
		}
		side := func(i, f int64) float64 {
			w := plan.Widths[f]
			if i > 1 {
				w /= rounding(float64(c.n))
			}
			sigma := ScheduledSigma(plan.Scale, i, c.k)
			if c.exactLast && i == c.k {
				sigma = 0
			}
			return PromisedMiss(float64(c.n), w, sigma, information(i))
		}
		for _, refused := range []bool{false, true} {
			total := 0.0
			patterns := make([]float64, c.tokens+1) // by how many are broken
			patterns[0] = 1
			for i := int64(1); i <= c.k; i++ {
				next := make([]float64, c.tokens+1)
				if refused {
					// A refused question takes no position: any number of them may come before one that is answered.
					for f := range patterns {
						for g := f; g < len(next); g++ {
							next[g] += patterns[f]
						}
					}
				} else {
					for f := range patterns {
						next[f] += patterns[f]
						if f+1 < len(next) {
							next[f+1] += patterns[f]
						}
					}
				}
				for f := range next {
					total += next[f] * 2 * side(i, int64(f))
				}
				patterns = next
			}
			worst = max(worst, total/beta)
			if total > beta*(1+1e-6) {
				t.Errorf("n=%d k=%d B=%d, refused %v: the misses add up to %v", c.n, c.k, c.tokens, refused, total)
			}
			if refused && c.k > 1 && total < 0.97*beta {
				t.Errorf("n=%d k=%d B=%d: the misses add up to %v only", c.n, c.k, c.tokens, total)
			}
		}
	}
}

// TestPromisedMissIsAbovePlain: an answer without a promise is covered by the same width; and the tail falls with the width and rises with what was
// released.
func TestPromisedMissIsAbovePlain(t *testing.T) {
	for _, n := range []float64{100, 1000, 1e6} {
		for _, noise := range []float64{0, 0.05, 0.3, 1, 5} {
			for _, released := range []float64{0, 0.01, 1, 30} {
				before := 1.0
				for w := 0.1; w < 30; w *= 1.3 {
					got := PromisedMiss(n, w/math.Sqrt(n), noise/math.Sqrt(n), released)
					if noise > 0 && got < Miss(n, w/math.Sqrt(n), noise/math.Sqrt(n), released)*(1-1e-12) {
						t.Errorf("n=%v noise %v I=%v w=%v: %v is below a plain answer's", n, noise, released, w, got)
					}
					if got > before*(1+1e-12) || got < PromisedMiss(n, w/math.Sqrt(n), noise/math.Sqrt(n), released/2)*(1-1e-12) {
						t.Errorf("n=%v noise %v I=%v w=%v: not monotone", n, noise, released, w)
					}
					before = got
				}
			}
		}
	}
	if got, want := PromisedMiss(1000, 0.05, 0, 0), math.Exp(-2*1000*0.05*0.05); math.Abs(got-want) > 1e-15 {
		t.Errorf("without noise %v, want Hoeffding's %v", got, want)
	}
}

// TestPromisedRounding is TestRounding for answers with a promise, whose noise towards the target gains nothing.
func TestPromisedRounding(t *testing.T) {
	for _, n := range []float64{100, 150, 199, 200, 400, 10000} {
		for _, released := range []float64{minInformation, 0.02, 0.1, 1, 10, 100, 1000} {
			for _, noise := range []float64{0.02, 0.2, 0.6, 1.4, 5, 20} {
				for _, w := range []float64{1.2, 2, 4, 8, 12, 20, 40, 80} {
					sigma, w := noise/math.Sqrt(n), w/math.Sqrt(n)
					claimed := PromisedMiss(n, w/rounding(n), sigma, released)
					if w >= 1 || claimed > 0.2 || claimed < 1e-12 {
						continue
					}
					const step = 1.0 / 64
					got := 0.0
					for z := -9.0; z < 9; z += step {
						deviation := max(0, w-sigma*max(z, 0))
						got += step * math.Exp(-z*z/2+logAdapted(n, 2*n*deviation*deviation, released)) / math.Sqrt(2*math.Pi)
					}
					if got > claimed {
						t.Errorf("n=%v I=%v sigma=%v w=%v: %v misses, %v was claimed", n, released, sigma, w, got, claimed)
					}
				}
			}
		}
	}
}

// TestPromisedPatterns: the last position's patterns count, and tokens that no run has are refused.
func TestPromisedPatterns(t *testing.T) {
	for _, c := range []struct {
		last, f, tokens int64
		want            float64
	}{{1, 0, 0, 1}, {1, 0, 2, 1 / 0.9}, {10, 1, 2, 10 / 0.05}, {10, 2, 2, 55 / 0.05}} {
		got, err := PromisedPatterns(c.last, c.f, c.tokens)
		if err != nil || math.Abs(got/c.want-1) > 1e-9 {
			t.Errorf("%+v: %v, %v", c, got, err)
		}
	}
	for _, c := range [][3]int64{{0, 0, 1}, {1, 2, 1}, {1, -1, 1}} {
		if got, err := PromisedPatterns(c[0], c[1], c[2]); err == nil {
			t.Errorf("%v: %v", c, got)
		}
	}
}

// TestAdaptiveLevel: it is the least over all integers m, and what it gives back is the level that was asked for.
func TestAdaptiveLevel(t *testing.T) {
	for _, n := range []float64{2, 3, 10, 500} {
		for _, level := range []float64{0.1, 3, 40} {
			for _, released := range []float64{0, 0.01, 1, 20} {
				want := level
				if released > 0 {
					want = math.Inf(1)
					for m := 1.0; m < n; m++ {
						want = min(want, n/(n-m)*level+n/m*released)
					}
				}
				got := AdaptiveLevel(n, level, released)
				if math.Abs(got-want) > 1e-12*want {
					t.Errorf("n=%v level %v I=%v: %v, the least over m is %v", n, level, released, got, want)
				}
				if back := -logAdapted(n, got, released); math.Abs(back-level) > 1e-9*level {
					t.Errorf("n=%v I=%v: a level of %v gives back %v, asked was %v", n, released, got, back, level)
				}
			}
		}
	}
	for _, bad := range []float64{AdaptiveLevel(1, 1, 1), AdaptiveLevel(10, -1, 1), AdaptiveLevel(10, 1, -1), AdaptiveLevel(10, math.NaN(), 1)} {
		if !math.IsInf(bad, 1) {
			t.Errorf("what is no account has the level %v", bad)
		}
	}
}
