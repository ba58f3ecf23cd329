package promises

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// climbed is a vector that makes a value large, found from a start by steps of all sizes: each that is no loss is kept.
func climbed(r *rand.Rand, start []float64, steps int, value func([]float64) float64) (best float64, at []float64) {
	x, next := slices.Clone(start), make([]float64, len(start))
	best = value(x)
	for range steps {
		copy(next, x)
		size := math.Exp(-8 * r.Float64())
		for range 1 + r.IntN(2) {
			next[r.IntN(len(next))] += 4 * size * r.NormFloat64()
		}
		if v := value(next); v >= best {
			best = v
			copy(x, next)
		}
	}
	return best, x
}

func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// TestClimbedRates climbs over the laws of few units that differ, three values and a promise that some sample just keeps: a deviation together with a promise that holds is as improbable as the rates say, at every deviation,
// on both sides. Violated for a rate that is a fifth larger, of a
// variance, whose rate is far from what few units can reach, for one that is two and a half times as large.
func TestClimbedRates(t *testing.T) {
	r := rand.New(rand.NewChaCha8([32]byte{47, 17}))
	worst, larger := map[Kind]float64{}, map[Kind]float64{}
	more := map[Kind]float64{SmallMean: 1.2, Disagreement: 1.2, Variance: 2.5}
	for i := range 90 {
		kind := []Kind{SmallMean, Disagreement, Variance}[i%3]
		n, values := 1+r.IntN(4), 2+r.IntN(2)
		type drawn struct{ mean, p float64 }
		var held []drawn
		reached := func(x []float64) (ratio float64) {
			s := sample{kind: kind, n: n, bound: logistic(x[0]) * kind.most()}
			for v := range values {
				y := min(max(x[1+v], 0), 1) // often an end of the range
				if kind == Disagreement {
					y = min(max(x[1+v], -1), 1)
				}
				s.values = append(s.values, y)
			}
			laws, mu := x[1+values:], 0.0
			law := make([][]float64, n)
			for i := range law {
				law[i] = make([]float64, values)
				sum, most := 0.0, slices.Max(laws[i*values:(i+1)*values])
				for v := range values {
					if law[i][v] = math.Exp(laws[i*values+v] - most); law[i][v] < 1e-4 {
						law[i][v] = 0
					}
					sum += law[i][v]
				}
				for v := range values {
					law[i][v] /= sum
					mu += law[i][v] * s.values[v] / float64(n)
				}
			}
			s.weights = []float64{1}
			at := s
			at.values = []float64{mu} // a law with this mean, for the rates
			held = held[:0]
			counts := make([]int, values)
			var walk func(i int, p float64)
			walk = func(i int, p float64) {
				if p == 0 {
					return
				}
				if i == n {
					if mean, statistic := s.of(counts); statistic <= s.bound {
						held = append(held, drawn{mean, p})
					}
					return
				}
				for v, w := range law[i] {
					counts[v]++
					walk(i+1, p*w)
					counts[v]--
				}
			}
			walk(0, 1)
			for _, d := range held {
				dev := math.Abs(d.mean - mu)
				if dev < 1e-7 {
					continue
				}
				side := math.Copysign(1, d.mean-mu)
				tail := 0.0
				for _, o := range held {
					if side*(o.mean-d.mean) >= -1e-12 {
						tail += o.p
					}
				}
				rate := at.up(dev - 1e-12)
				if side < 0 {
					rate = at.down(dev - 1e-12)
				}
				if level := float64(n) * rate; level > 0.5 && level < 6 { // where there is next to no deviation, anything is reached
					ratio = max(ratio, tail*math.Exp(level))
					larger[kind] = max(larger[kind], tail*math.Exp(level*more[kind]))
				}
			}
			return ratio
		}
		start := []float64{3 * r.NormFloat64()}
		for range values + n*values {
			start = append(start, 2*r.NormFloat64())
		}
		ratio, _ := climbed(r, start, 150, reached)
		worst[kind] = max(worst[kind], ratio)
	}
	t.Logf("largest probability over bound %v; %v for larger rates", worst, larger)
	for kind, x := range worst {
		if x > 1+1e-6 || larger[kind] < 1.02 {
			t.Errorf("%s: a deviation has %v times what the rate says; %v of a larger one", kind, x, larger[kind])
		}
	}
}

// TestClimbedEnds climbs over promises, half-widths, answers and targets, with bounds, answers and targets at their ends: where an answer's interval excludes a target mu, the rate there, and at all
// smaller deviations, is at least what section 5 of the proof asks for, s²/(2v) with 2 sqrt(v) W no more than the distance, and v no less than V. Violated for ends that are a hundredth nearer to the answer.
func TestClimbedEnds(t *testing.T) {
	r := rand.New(rand.NewChaCha8([32]byte{48, 17}))
	worst, nearer := map[Kind]float64{}, 0.0
	for i := range 45 {
		kind := []Kind{SmallMean, Disagreement, Variance}[i%3]
		reached := func(x []float64, share float64) float64 {
			p := Promise{Kind: kind, Bound: max(1, int64(min(logistic(x[0])*1.02, 1)*kind.most()*kind.steps()))}
			u, width := p.bound(), math.Exp(min(max(x[1], -9), 0))
			least, most := 0.0, u // of the answers that the promise allows
			switch kind {
			case Disagreement:
				least = -u
			case Variance:
				most = 1
			}
			a := least + (most-least)*min(max(1.1*logistic(x[2])-0.05, 0), 1)
			low, high := p.Interval(a, width)
			s := sample{weights: []float64{1}, kind: kind, bound: u}
			end, limit, rate := low, 0.0, (*sample).rateUp
			if kind == Disagreement {
				limit = -1
			} else if x[3] > 0 { // of a disagreement both sides are one
				end, limit, rate = high, 1.0, (*sample).rateDown
			}
			if end == limit {
				return 0 // nothing is excluded
			}
			mu := end + (limit-end)*max(0, logistic(x[4])-0.9)
			mu += (limit - end) * 1e-9
			mu = a + (mu-a)*share
			distance := math.Abs(a - mu)
			s.values = []float64{mu}
			v := square(distance / (2 * width))
			ratio := p.V() / v
			for j := range 300 {
				d := distance * float64(j+1) / 300
				if x := rate(&s, d*(1-1e-12)); x > 1e-14 && !math.IsInf(x, 1) {
					ratio = max(ratio, d*d/(2*x)/v)
				}
			}
			return ratio
		}
		start := []float64{3 * r.NormFloat64(), -6 * r.Float64(), 3 * r.NormFloat64(), r.NormFloat64(), r.NormFloat64()}
		if i == 0 { // a target of .8 above a small mean of at most .3: its variance is largest where the sample's mean is .2
			start = []float64{0.4, -0.44, 0.4, 1, -3}
		}
		ratio, at := climbed(r, start, 50, func(x []float64) float64 { return reached(x, 1) })
		worst[kind] = max(worst[kind], ratio)
		nearer = max(nearer, reached(at, 0.99))
		if ratio > 1+1e-5 {
			t.Errorf("%s: an answer excludes a target where s²/(2R(s)) is %.9f of v: %v", kind, ratio, at)
		}
	}
	t.Logf("largest s²/(2R(s)) over v: %v; %.4f for ends a hundredth nearer", worst, nearer)
	for kind, x := range worst {
		if x < 0.99 {
			t.Errorf("%s: the search is too weak: %v", kind, x)
		}
	}
	if nearer < 1.01 {
		t.Errorf("a nearer end goes unnoticed: %v", nearer)
	}
}

func (s *sample) rateUp(t float64) float64   { return s.up(t) }
func (s *sample) rateDown(t float64) float64 { return s.down(t) }
