package thresholdout

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/holdoutd/holdoutd/thresholdout/bounds"
)

// TestClimbedPromises climbs over the law of units with one of two values, alike, over the promise and its kind, for a first answer of the real mechanism: over all samples and the noise, exactly, the interval of a kept promise misses on a side with no more than what
// the position pays for. Violated at three fifths of the width.
func TestClimbedPromises(t *testing.T) {
	r := rand.New(rand.NewChaCha8([32]byte{50, 17}))
	worst, narrower := map[PledgeKind]float64{}, 0.0
	type design struct {
		n, questions int64
		confidence   float64
	}
	logistic := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	for _, d := range []design{{100, 2, 0.5}, {100, 50, 0.95}} {
		m := must(t, Spec{Mechanism: Gaussian, N: d.n, Questions: d.questions, Confidence: d.confidence, Tokens: 2}).gaussian()
		sigma := m.sigmaOf(State{})
		claimed := bounds.PromisedMiss(float64(d.n), m.HalfWidth, sigma, 0)
		top, _ := math.Lgamma(float64(d.n + 1))
		for _, kind := range PledgeKinds() {
			starts, steps := 2, 40
			if kind == Disagreement { // an interval takes longer
				starts = 1
			}
			for range starts {
				missed := func(x []float64, width float64) float64 {
					share, a, b := logistic(x[0]), min(max(x[1], 0), 1), min(max(x[2], 0), 1)
					p, err := NewPledge(kind, logistic(x[3])*[]float64{0.5, 0.5, 1, 0.25}[slices.Index(PledgeKinds(), kind)])
					if err != nil {
						return 0
					}
					noise := p.noise(sigma)
					mu := a + (b-a)*share
					end := func(above bool) float64 { // the nearest answer that excludes mu
						out := func(v float64) bool {
							low, high := p.interval(p.clip(v), width)
							return low > mu && above || high < mu && !above
						}
						far := p.clip(1)
						if !above {
							far = max(p.clip(0), 0)
						}
						if !out(far) {
							return math.NaN()
						}
						in := mu
						for range 14 { // from outside
							if v := (in + far) / 2; out(v) {
								far = v
							} else {
								in = v
							}
						}
						return far
					}
					high, low := end(true), end(false)
					up, down := 0.0, 0.0
					for k := range d.n + 1 {
						q := float64(k) / float64(d.n)
						mean, statistic := a+(b-a)*q, 0.0
						switch kind {
						case AtMost:
							statistic = mean
						case AtLeast:
							statistic = 1 - mean
						case Disagreement:
							statistic = (1-q)*math.Abs(2*a-1) + q*math.Abs(2*b-1)
						case Variance:
							statistic = (b - a) * (b - a) * q * (1 - q)
						}
						if statistic > p.Value() {
							continue
						}
						g, _ := math.Lgamma(float64(k + 1))
						h, _ := math.Lgamma(float64(d.n - k + 1))
						w := math.Exp(top - g - h + float64(k)*math.Log(share) + float64(d.n-k)*math.Log1p(-share))
						if !math.IsNaN(high) {
							up += w * math.Erfc((high-mean)/noise/math.Sqrt2) / 2
						}
						if !math.IsNaN(low) {
							down += w * math.Erfc((mean-low)/noise/math.Sqrt2) / 2
						}
					}
					return max(up, down) / claimed
				}
				x, best := []float64(nil), -1.0
				for range 12 {
					next := []float64{3 * r.NormFloat64(), r.Float64(), r.Float64(), 2 * r.NormFloat64()}
					if r.IntN(2) == 0 {
						next[1], next[2] = 0, 1
					}
					if v := missed(next, m.HalfWidth); v > best {
						best, x = v, next
					}
				}
				for range steps {
					next := slices.Clone(x)
					next[r.IntN(len(x))] += 3 * math.Exp(-6*r.Float64()) * r.NormFloat64()
					if v := missed(next, m.HalfWidth); v >= best {
						best, x = v, next
					}
				}
				worst[kind] = max(worst[kind], best)
				narrower = max(narrower, missed(x, 0.6*m.HalfWidth))
			}
		}
	}
	t.Logf("largest probability over what was planned: %v; %.4f at three fifths of the width", worst, narrower)
	for kind, x := range worst {
		if x > 1+1e-6 || x < 0.05 {
			t.Errorf("%s: a side misses with %v times what is planned", kind, x)
		}
	}
	if narrower < 1.05 {
		t.Errorf("a narrower interval goes unnoticed: %v", narrower)
	}
}
