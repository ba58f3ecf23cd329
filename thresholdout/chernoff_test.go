package thresholdout

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/dp/binomial"
	"github.com/holdoutd/holdoutd/thresholdout/bounds"
	"github.com/holdoutd/holdoutd/thresholdout/moments"
)

// crossing is where f, which rises on [lo, hi], reaches level, by halving.
func crossing(lo, hi, level float64, f func(p float64) float64) float64 {
	for range 100 {
		if mid := (lo + hi) / 2; f(mid) < level {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi
}

// TestSplitIntervals: a slice's interval ends where Chernoff's tail is as improbable as the level says, that of a yes/no question where the binomial tail is, summed term by term; both lie within Hoeffding's,
// which a guarantee of the first version has. It would notice another level, an end of the wrong tail, and counts that are read of questions that are no yes/no questions.
func TestSplitIntervals(t *testing.T) {
	p := must(t, Spec{Mechanism: Split, N: 10_000, Questions: 100})
	const units = 100
	level := math.Log(200 / 0.05)
	for _, yes := range []int64{0, 2, 10, 50, 97, 100} {
		mean := Mean{N: units, Sum: yes * grid}
		value := float64(yes) / units
		chernoff := [2]float64{1 - crossing(1-value, 1, level, func(x float64) float64 { return units * bounds.KL(1-value, x) }), crossing(value, 1, level, func(x float64) float64 { return units * bounds.KL(value, x) })}
		atMost := func(count int64, x float64) float64 { // -ln P(Bin(units, x) <= count)
			total := 0.0
			for i := range count + 1 {
				total += math.Exp(binomial.LogProbability(units, float64(i), x))
			}
			return -math.Log(total)
		}
		exact := [2]float64{0, 1}
		if yes < units {
			exact[1] = crossing(value, 1, level, func(x float64) float64 { return atMost(yes, x) })
		}
		if yes > 0 {
			exact[0] = 1 - crossing(1-value, 1, level, func(x float64) float64 { return atMost(units-yes, x) })
		}
		for binary, want := range map[bool][2]float64{false: chernoff, true: exact} {
			out, _, err := Step(p, State{}, Input{Holdout: mean, Binary: binary}, Seeded{})
			if err != nil {
				t.Fatal(err)
			}
			got := out.Interval
			if math.Abs(got.Low-want[0]) > 1e-7 || math.Abs(got.High-want[1]) > 1e-7 {
				t.Errorf("%d of %d, yes/no %v: [%v, %v], want %v", yes, units, binary, got.Low, got.High, want)
			}
			if hoeffding := around(value, p.HalfWidth, "", nil); got.Low < hoeffding.Low || got.High > hoeffding.High || binary && (got.Low < chernoff[0]-1e-9 || got.High > chernoff[1]+1e-9) {
				t.Errorf("%d of %d, yes/no %v: [%v, %v] is wider than before", yes, units, binary, got.Low, got.High)
			}
			if low, high, ok := p.IntervalAt(State{}, out, p.Level()); !ok || math.Abs(low-got.Low) > 1e-12 || math.Abs(high-got.High) > 1e-12 {
				t.Errorf("%d of %d, yes/no %v: read at its own level [%v, %v]", yes, units, binary, low, high)
			}
		}
	}
	old := of(&split{Head{Version: GuaranteeVersion, Mechanism: Split, N: 10_000, Questions: 100, Confidence: 0.95, HalfWidth: p.HalfWidth}})
	if out, _, err := Step(old, State{}, Input{Holdout: Mean{N: units}, Binary: true}, Seeded{}); err != nil || math.Abs(out.Interval.High-p.HalfWidth) > 2*gridError || out.Interval.Bound != MethodSplitting {
		t.Errorf("the first version: %+v, %v", out.Interval, err)
	}
}

// TestCountsOfUnlikeUnits: units whose probabilities of a yes differ, drawn without replacement: the count's exact law, summed over all draws, misses the mean of the probabilities on either side no more often than the
// level says. Drawn from half of the units it misses by far more.
func TestCountsOfUnlikeUnits(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 8))
	const all, slice, each = 12, 6, 0.1
	planted, worst := 0, 0.0
	for range 60 {
		chances := make([]float64, all)
		theta, half := 0.0, 0.0
		for i := range chances {
			switch r.IntN(3) {
			case 0:
				chances[i] = float64(r.IntN(2))
			default:
				chances[i] = r.Float64()
			}
			theta += chances[i] / all
			if i < all/2 {
				half += chances[i] / (all / 2)
			}
		}
		law := make([]float64, slice+1) // of the count: coefficients of the elementary symmetric polynomial
		sums := make([][]float64, slice+1)
		for j := range sums {
			sums[j] = make([]float64, slice+1)
		}
		sums[0][0] = 1
		for _, q := range chances {
			for j := slice; j > 0; j-- {
				for x := slice; x >= 0; x-- {
					sums[j][x] += (1 - q) * sums[j-1][x]
					if x > 0 {
						sums[j][x] += q * sums[j-1][x-1]
					}
				}
			}
		}
		draws := math.Exp(lgamma(all+1) - lgamma(slice+1) - lgamma(all-slice+1))
		for x := range law {
			law[x] = sums[slice][x] / draws
		}
		below, above, off := 0.0, 0.0, 0.0
		for x, mass := range law {
			low, high, err := moments.FractionInterval(slice, int64(x), -math.Log(each))
			if err != nil {
				t.Fatal(err)
			}
			if theta < low {
				below += mass
			}
			if theta > high {
				above += mass
			}
			if half < low || half > high {
				off += mass
			}
		}
		if below > each+1e-12 || above > each+1e-12 {
			t.Fatalf("%v: misses %v below and %v above, %v may", chances, below, above, each)
		}
		worst = max(worst, below/each, above/each)
		if off > 2*each {
			planted++
		}
	}
	t.Logf("largest probability of a side, of what is promised: %.4f", worst)
	if planted == 0 {
		t.Error("another mean than that of all units went unnoticed")
	}
}

func lgamma(x float64) float64 {
	v, _ := math.Lgamma(x)
	return v
}

// TestForcedRunsByChernoff: an answer of thresholdout as it was stored with version 2 lies within what the first version said, and its ends are where n kl is the level of the union and of what failures released, at the best whole m; the farther from
// one half the narrower. It would notice another level, and a comparison or a release whose noise is forgotten.
func TestForcedRunsByChernoff(t *testing.T) {
	p := must(t, Spec{Mechanism: Thresholdout, N: 10_000, Training: 20_000, Questions: 100, Tokens: 10})
	second := p.own.(*comparedRuns).forcedRuns
	m, first := &second, second
	second.Version, first.Version = forcedRunsVersion, GuaranteeVersion
	rapid.Check(t, func(t *rapid.T) {
		s := State{Questions: rapid.Int64Range(0, 99).Draw(t, "asked")}
		s.Tokens = rapid.Int64Range(0, min(9, s.Questions)).Draw(t, "failed")
		value := rapid.Float64Range(0, 1).Draw(t, "value")
		source, near := FromTraining, m.Threshold+m.runs().ComparisonNoise()
		if rapid.Bool().Draw(t, "failed now") {
			source, near = FromHoldout, m.runs().ReleaseNoise()
		}
		got, before := m.interval(s, value, source), first.interval(s, value, source)
		if got.Low < before.Low || got.High > before.High || got.Low > value || got.High < value {
			t.Fatalf("%v: [%v, %v], it was [%v, %v]", value, got.Low, got.High, before.Low, before.High)
		}
		n, f := float64(p.N), float64(s.Tokens)
		union := math.Log(6*100*11/p.Beta()) + lgamma(float64(s.Questions)+1) - lgamma(f+1) - lgamma(float64(s.Questions)-f+1)
		level := union
		if f > 0 {
			level = math.Inf(1)
			for i := 1.0; i < n; i++ {
				level = min(level, n/(n-i)*union+n/i*f/(8*m.Sigma*m.Sigma*(n-1)))
			}
		}
		if got.High < 1 {
			if kl := n * bounds.KL(min(value+near, 1), got.High); math.Abs(kl-level) > 1e-3*level {
				t.Fatalf("%v after %+v: the upper end %v has n kl %v, the level is %v", value, s, got.High, kl, level)
			}
		}
		if got.Low > 0 {
			if kl := n * bounds.KL(max(value-near, 0), got.Low); math.Abs(kl-level) > 1e-3*level {
				t.Fatalf("%v after %+v: the lower end %v has n kl %v, the level is %v", value, s, got.Low, kl, level)
			}
		}
	})
	if now, before := m.interval(State{}, 0.005, FromHoldout), first.interval(State{}, 0.005, FromHoldout); now.High > 0.85*before.High {
		t.Errorf("near 0: up to %v, it was %v", now.High, before.High)
	}
}
