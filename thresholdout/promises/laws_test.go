package promises

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mathext"
	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/internal/stattest"
	"github.com/holdoutd/holdoutd/thresholdout/bounds"
	"github.com/holdoutd/holdoutd/thresholdout/moments"
)

// TestHoldsInRationals: a promise holds as exact fractions say, to the last step: no tolerance, in either direction.
func TestHoldsInRationals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]Kind{SmallMean, Disagreement, Variance}).Draw(t, "kind")
		values := rapid.SliceOfN(rapid.Int64Range(0, grid), 1, 8).Draw(t, "values")
		if kind == Disagreement {
			for i, x := range values {
				values[i] = absolute(x)
				d := new(big.Rat).Sub(big.NewRat(2*x, grid), big.NewRat(1, 1))
				if d.Abs(d).Cmp(big.NewRat(values[i], grid)) != 0 {
					t.Fatalf("|D| of %d is %d steps", x, values[i])
				}
			}
		}
		sums := moments.Of(values)
		n := big.NewRat(int64(len(values)), 1)
		statistic, square := new(big.Rat), new(big.Rat)
		for _, x := range values {
			y := big.NewRat(x, grid)
			statistic.Add(statistic, y)
			square.Add(square, y.Mul(y, y))
		}
		statistic.Quo(statistic, n)
		if kind == Variance {
			square.Quo(square, n)
			statistic = square.Sub(square, new(big.Rat).Mul(statistic, statistic))
		}
		steps := int64(kind.steps())
		exact := new(big.Rat).Mul(statistic, big.NewRat(steps, 1))
		bound := new(big.Int).Div(exact.Num(), exact.Denom()).Int64() + rapid.Int64Range(-1, 1).Draw(t, "steps more")
		p := Promise{Kind: kind, Bound: bound}
		if p.Valid() != nil {
			return
		}
		got, err := p.Holds(sums)
		if want := statistic.Cmp(big.NewRat(bound, steps)) <= 0; err != nil || got != want {
			t.Fatalf("%v, %v; the statistic is %v, the bound %d of %d", got, err, statistic, bound, steps)
		}
	})
}

// TestRefused: bounds that the proofs do not cover, and guarantees that promises are not proved for.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		kind  Kind
		bound float64
	}{{SmallMean, 0.5001}, {SmallMean, 0}, {SmallMean, -1}, {SmallMean, math.NaN()}, {Disagreement, 1.01}, {Variance, 0.26}, {"median", 0.1}, {Variance, 0}} {
		if p, err := New(c.kind, c.bound); err == nil {
			t.Errorf("%s of %v: %+v", c.kind, c.bound, p)
		}
	}
	if _, err := bounds.PromisedSchedule(99, 10, 0.05, 1, false); err == nil {
		t.Error("99 units have half-widths with promises")
	}
	if _, err := bounds.PromisedSchedule(1000, 10, 0.05, -1, false); err == nil {
		t.Error("a negative number of promises may be broken")
	}
	p, _ := New(SmallMean, 0.1)
	if _, err := p.Holds(moments.Sums{Units: 2, Sum: 3 * grid}); err == nil {
		t.Error("sums that no units have")
	}
}

// TestIntervals: the answer, clipped to what is promised, is inside; a larger width, or a larger bound, never narrows; all is within the range.
func TestIntervals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]Kind{SmallMean, Disagreement}).Draw(t, "kind")
		p, err := New(kind, rapid.Float64Range(1e-4, 1).Draw(t, "share")*kind.most())
		if err != nil {
			t.Fatal(err)
		}
		u, least := p.bound(), 0.0
		if kind == Disagreement {
			least = -1
		}
		a := rapid.Float64Range(-1.5, 1.5).Draw(t, "answer")
		w := math.Exp(rapid.Float64Range(-6, -0.5).Draw(t, "log width"))
		low, high := p.Interval(a, w)
		inside := min(max(a, least*u), u)
		if low > inside || high < inside || low < least || high > 1 {
			t.Fatalf("%+v: [%v, %v] around %v", p, low, high, a)
		}
		wl, wh := p.Interval(a, w*1.1)
		if wl > low+1e-9 || wh < high-1e-9 {
			t.Fatalf("%+v: at a tenth more the interval is [%v, %v], within [%v, %v]", p, wl, wh, low, high)
		}
		if narrow := 2 * math.Sqrt(p.V()) * w; inside-low < min(narrow, inside-least)-1e-12 || high-inside < min(narrow, 1-inside)-1e-12 {
			t.Fatalf("%+v: [%v, %v] around %v is narrower than 2 sqrt(V) W = %v", p, low, high, inside, narrow)
		}
	})
}

// TestOutermostEnd: between the ends and the range's limit every target is excluded by the rule itself, at many more places than the search looks
// at. Red for a search that stops at the first crossing of a rate that is not monotone.
func TestOutermostEnd(t *testing.T) {
	r := rand.New(rand.NewChaCha8([32]byte{10, 17}))
	for range 60 {
		u := math.Exp(-6 * r.Float64())
		p, err := New(Disagreement, u)
		if err != nil {
			t.Fatal(err)
		}
		u = p.bound()
		a, w := u*(2*r.Float64()-1), math.Exp(-4*r.Float64()-0.7)
		low, _ := p.Interval(a, w)
		for range 500 {
			if low == -1 {
				break
			}
			mu := -1 + (low+1)*r.Float64()
			// v by a fine grid of all smaller deviations.
			v, d := u, a-mu
			for i := 1; i <= 400; i++ {
				s := d * float64(i) / 400
				if rate := disagreementRate(mu+s, mu, u); rate > 1e-15 && !math.IsInf(rate, 1) {
					v = max(v, s*s/(2*rate))
				}
			}
			if d < 2*math.Sqrt(v)*w {
				t.Fatalf("u=%v a=%v W=%v: %v is below the low end %v and not excluded", u, a, w, mu, low)
			}
		}
	}
}

// TestDefaultSeldomBreaks: an honest question about alike units breaks the default promise at most once in 30,000, by the exact law of both
// parts' counts, where a margin that forgot the training part's own error breaks up to two in five, and one that takes the tails of a variance to be as light as the
// training part's would be broken by the first unit of a kind that it has none of.
func TestDefaultSeldomBreaks(t *testing.T) {
	worst := 0.0
	for _, parts := range [][2]int64{{30000, 70000}, {10000, 10000}, {8000, 2000}, {50000, 5000}, {1000, 1000}} {
		n, training := parts[0], parts[1]
		for _, c := range []struct {
			kind     Kind
			expected float64 // in the holdout
		}{{Disagreement, 0.2}, {Disagreement, 1}, {Disagreement, 2}, {Disagreement, 4}, {Disagreement, 7}, {Disagreement, 20}, {Disagreement, 100},
			{Variance, 0.2}, {Variance, 1}, {Variance, 4}, {Variance, 20}, {Variance, 100}} {
			expected := c.expected
			share := expected / float64(n)
			breaks := 0.0
			for count := int64(0); count < 400; count++ { // in the training part
				mean := share * float64(training)
				lg, _ := math.Lgamma(float64(count + 1))
				p := math.Exp(float64(count)*math.Log(mean) - mean - lg)
				if p < 1e-12 {
					continue
				}
				d := float64(count) / float64(training)
				statistic, fourth := d, 0.0
				if c.kind == Variance {
					statistic, fourth = d*(1-d), d*(1-d)*(1-3*d*(1-d))
				}
				promise, ok := Default(c.kind, statistic, fourth, n, training, 4)
				if !ok {
					continue
				}
				most := math.Floor(promise.bound() * float64(n))
				if c.kind == Variance { // the most rare units with which d - d² is at most the bound
					most = math.Floor((1 - math.Sqrt(1-4*promise.bound())) / 2 * float64(n))
				}
				breaks += p * mathext.GammaIncReg(most+1, expected) // P(Poisson > most)
			}
			worst = max(worst, breaks)
		}
	}
	t.Logf("largest probability of an accidental break: %.3g", worst)
	if worst > 1.0/30000 {
		t.Errorf("an honest question breaks its default promise with probability %v", worst)
	}
}

// TestCheckIsNoPreview: at confidence .9 an analyst asks of many features, by promises at the middle, on which side of it they are, and then for the
// mean of the features turned to that side. With every check paid no more runs miss than one in ten (false alarm 1e-6). Where the check can
// be seen without a question, as by an explain that shows it or a broken promise that is refused unpaid, most runs miss.
func TestCheckIsNoPreview(t *testing.T) {
	const n, questions, beta, tokens, runs = 1000, 5, 0.1, 2, 60
	plan, err := bounds.PromisedSchedule(n, questions, beta, tokens, false)
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(SmallMean, 0.5)
	if err != nil {
		t.Fatal(err)
	}
	for _, preview := range []bool{false, true} {
		r := rand.New(rand.NewChaCha8([32]byte{11, 17}))
		missed := 0
		for range runs {
			turned, f, position, learnt := make([]float64, n), int64(0), int64(1), 0
			for preview && learnt < 400 || !preview && f < tokens && position < questions {
				coin, count := make([]float64, n), int64(0)
				for i := range coin {
					coin[i] = float64(r.IntN(2))
					count += int64(coin[i])
				}
				held, err := p.Holds(moments.Sums{Units: n, Sum: count * grid})
				if err != nil {
					t.Fatal(err)
				}
				side := 1.0
				if held {
					side = -1
				}
				for i := range turned {
					turned[i] += side * (coin[i] - 0.5)
				}
				learnt++
				if !preview {
					position++
					if !held {
						f++
					}
				}
			}
			mean := 0.0
			for _, x := range turned {
				if x > 0 {
					mean += 1.0 / n
				}
			}
			answer := mean + r.NormFloat64()*bounds.ScheduledSigma(plan.Scale, position, questions)
			if math.Abs(answer-tailAboveHalf(learnt)) > plan.Widths[f] {
				missed++
			}
		}
		t.Logf("the check is shown without a question: %v: %d of %d runs miss", preview, missed, runs)
		if wrong := stattest.AtMost(missed, runs, beta, 1e-6); (wrong != nil) != preview {
			t.Errorf("the check is shown without a question: %v: %d of %d runs miss", preview, missed, runs)
		}
	}
}

// tailAboveHalf is the probability that d fair signs add up to more than 0.
func tailAboveHalf(d int) float64 {
	if d%2 == 1 {
		return 0.5
	}
	lg := func(x int) float64 { g, _ := math.Lgamma(float64(x + 1)); return g }
	return (1 - math.Exp(lg(d)-2*lg(d/2)-float64(d)*math.Ln2)) / 2
}

// absolute is |D| in steps of 2^-30 for a D that is stored as (1+D)/2 in steps of 2^-30, rounded down by nothing: 2x is even.
func absolute(stored int64) int64 { return max(2*stored-grid, grid-2*stored) }
