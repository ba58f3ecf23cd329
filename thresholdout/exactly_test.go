package thresholdout

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// drawnWays are all ways to be n units of so many kinds, and their numbers' logarithms.
func drawnWays(n, kinds int) (ways [][]int64, logs []float64) {
	way := make([]int64, kinds)
	var walk func(k, left int)
	walk = func(k, left int) {
		if k == kinds-1 {
			way[k] = int64(left)
			log, _ := math.Lgamma(float64(n + 1))
			for _, c := range way {
				x, _ := math.Lgamma(float64(c + 1))
				log -= x
			}
			ways, logs = append(ways, slices.Clone(way)), append(logs, log)
			return
		}
		for c := 0; c <= left; c++ {
			way[k] = int64(c)
			walk(k+1, left-c)
		}
	}
	walk(0, n)
	return ways, logs
}

// TestQuantilesExactly asks for a quantile, of all units and under a condition, in every holdout of a few units that are alike, through each mechanism that has an interval of it by one question, and climbs over
// the law of a unit. How often a side misses is exact. Units that differ are climbed over in thresholdout/pairs. Violated where half of it is promised.
func TestQuantilesExactly(t *testing.T) {
	const questions, confidence = 1, 0.5
	r := rand.New(rand.NewChaCha8([32]byte{49, 17}))
	quantile := func(p float64, exact bool) func(way []int64) LastStatistic { // kinds: at one of three rungs, or out of the condition
		return func(way []int64) LastStatistic {
			q := QuantileSums{P: p, Exact: exact}
			for i, c := range way {
				if q.All += c; i < 3 {
					q.Below = append(q.Below, q.Units)
					q.Units += c * grid
					q.Upto = append(q.Upto, q.Units)
				}
			}
			return q
		}
	}
	ends := func(p float64) func(law []float64) (least, most float64) {
		return func(law []float64) (least, most float64) {
			all, f := law[0]+law[1]+law[2], 0.0
			least = 2
			for v := range 3 {
				if f <= p*all {
					most = float64(v)
				}
				if f += law[v]; f >= p*all*(1-1e-12) {
					least = min(least, float64(v))
				}
			}
			return least / 2, most / 2
		}
	}
	worst, half := map[string]float64{}, 0.0
	for _, c := range []struct {
		name      string
		n         int // units
		kinds     int
		trainings int
		of        func(way []int64) LastStatistic
		target    func(law []float64) (least, most float64)
	}{
		{"a median", 8, 3, 3, quantile(0.5, true), ends(0.5)},
		{"a tenth", 8, 3, 3, quantile(0.1, true), ends(0.1)},
		{"a median under a condition", 6, 4, 3, quantile(0.5, false), ends(0.5)},
	} {
		ways, logs := drawnWays(c.n, c.kinds)
		for _, spec := range []Spec{{Mechanism: GuessAndCheck}, {Mechanism: Gaussian, Rounds: 1}, {Mechanism: Split}} {
			spec.N, spec.Questions, spec.Confidence = int64(c.n), questions, confidence
			for range c.trainings {
				way := make([]int64, c.kinds)
				for k := range way {
					way[k] = 1 + r.Int64N(6)
					spec.Training += way[k]
				}
				training := c.of(way)
				spec.Training = 0
				for _, k := range way {
					spec.Training += k
				}
				g := must(t, spec)
				printed := make([]*Interval, len(ways))
				for i, way := range ways {
					if g.Last(State{}) {
						out, _ := stepLast(t, g, State{}, training, c.of(way), 1)
						printed[i] = out.Interval
						continue
					}
					out, _, err := StepStatistic(g, State{}, StatisticInput{Training: training, Holdout: c.of(way)})
					if err != nil {
						t.Fatal(err)
					}
					printed[i] = out.Interval
				}
				reached := func(x []float64) float64 {
					law, sum, top := make([]float64, c.kinds), 0.0, slices.Max(x)
					for k := range law {
						law[k] = math.Exp(max(x[k]-top, -12))
						sum += law[k]
					}
					for k := range law {
						law[k] /= sum
					}
					least, most := c.target(law)
					low, high := 0.0, 0.0
					for i, way := range ways {
						log := logs[i]
						for k, count := range way {
							log += float64(count) * math.Log(law[k])
						}
						if printed[i].Low > least+1e-9 {
							low += math.Exp(log)
						}
						if printed[i].High < most-1e-9 {
							high += math.Exp(log)
						}
					}
					return max(low, high) / ((1 - confidence) / 2)
				}
				x, best := make([]float64, c.kinds), -1.0
				for range 200 {
					next := make([]float64, c.kinds)
					for k := range next {
						next[k] = 2 * r.NormFloat64()
					}
					if v := reached(next); v > best {
						x, best = next, v
					}
				}
				for range 400 {
					next := slices.Clone(x)
					next[r.IntN(c.kinds)] += 4 * math.Exp(-6*r.Float64()) * r.NormFloat64()
					if v := reached(next); v >= best {
						best, x = v, next
					}
				}
				worst[c.name+", "+string(spec.Mechanism)] = max(worst[c.name+", "+string(spec.Mechanism)], best)
			}
		}
	}
	for name, x := range worst {
		half = max(half, 2*x)
		if x > 1+1e-6 {
			t.Errorf("%s: a side misses with %v times what is promised", name, x)
		}
	}
	t.Logf("largest probability of a side, of what is promised: %v", worst)
	if half < 1.05 {
		t.Errorf("the search is too weak: %v", worst)
	}
}
