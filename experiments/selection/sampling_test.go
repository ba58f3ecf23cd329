package selection

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/holdoutd/holdoutd/experiments/run/runtest"
)

// smallSelection is a size at which all data can be drawn many times.
var smallSelection = Shape{N: 160, D: 200, Ks: []int{2, 5, 10, 18}}

// values are all numbers of a path.
func (p Path) values() []float64 {
	return slices.Concat(p.Training, p.Told, p.Fresh, []float64{float64(p.Selected), float64(p.Above)})
}

// paths is one variable a row, one repetition a column.
func paths(t *testing.T, count int, play func(seed uint64) (Path, error)) [][]float64 {
	t.Helper()
	var out [][]float64
	for i := range count {
		p, err := play(uint64(i))
		if err != nil {
			t.Fatal(err)
		}
		for j, v := range p.values() {
			if i == 0 {
				out = append(out, make([]float64, count))
			}
			out[j][i] = v
		}
	}
	return out
}

// sameDistribution compares two samples of a random vector: every mean and every covariance, by the normal approximation, and every
// marginal distribution by Kolmogorov's and Smirnov's distance, which is conservative for values on a grid. It returns
// what differs; if the distributions are equal, that is anything with probability about coverage.testFalseAlarm.
func sameDistribution(a, b [][]float64, falseAlarm float64) []string {
	var found []string
	variables := len(a)
	alpha := falseAlarm / float64(variables+variables*(variables+1)/2+variables)
	z := distuv.UnitNormal.Quantile(1 - alpha/2)
	means := func(what string, x, y []float64) {
		mx, sx := stat.MeanStdDev(x, nil)
		my, sy := stat.MeanStdDev(y, nil)
		limit := z * math.Sqrt(sx*sx/float64(len(x))+sy*sy/float64(len(y)))
		if math.Abs(mx-my) > limit {
			found = append(found, fmt.Sprintf("%s: %.5g and %.5g, more than %.3g apart", what, mx, my, limit))
		}
	}
	for i := range a {
		means(fmt.Sprintf("mean %d", i), a[i], b[i])
		for j := i; j < variables; j++ {
			means(fmt.Sprintf("covariance %d, %d", i, j), products(a[i], a[j]), products(b[i], b[j]))
		}
		x, y := slices.Sorted(slices.Values(a[i])), slices.Sorted(slices.Values(b[i]))
		limit := math.Sqrt(-math.Log(alpha/2)/2) * math.Sqrt(1/float64(len(x))+1/float64(len(y)))
		if d := stat.KolmogorovSmirnov(x, nil, y, nil); d > limit {
			found = append(found, fmt.Sprintf("distribution %d: distance %.3g, above %.3g", i, d, limit))
		}
	}
	return found
}

func products(x, y []float64) []float64 {
	mx, my := stat.Mean(x, nil), stat.Mean(y, nil)
	out := make([]float64, len(x))
	for i := range out {
		out[i] = (x[i] - mx) * (y[i] - my)
	}
	return out
}

// samplingFalseAlarm is that of one comparison of two samples, of 14 means, 105 covariances and 14 distributions.
const samplingFalseAlarm = 1e-5

var plainRuns, sampledRuns = 400, 4000

func init() {
	if runtest.UnderRace {
		plainRuns, sampledRuns = 150, 1500
	}
}

// TestSamplingIsExact: what is drawn of the analyst's view is distributed as if all data were drawn, and the analyst of the shipped
// selection code played against the shipped mechanism.
func TestSamplingIsExact(t *testing.T) {
	for _, biased := range []int{0, 4} {
		size := smallSelection
		size.Biased = biased
		s := NewSampler(size)
		for method, sampled := range map[string]func(uint64) Path{StandardReuse: s.Standard, ThroughThresholdout: s.Thresholdout} {
			drawn := paths(t, plainRuns, func(seed uint64) (Path, error) { return PlayDrawn(context.Background(), size, method, seed) })
			seen := paths(t, sampledRuns, func(seed uint64) (Path, error) { return sampled(seed), nil })
			for _, what := range sameDistribution(drawn, seen, samplingFalseAlarm) {
				t.Errorf("%s, %d columns know the label: %s", method, biased, what)
			}
		}
	}
}

// independentRows is a planted fault: rows are drawn as if the columns' correlations were not known.
func independentRows(s *Sampler, seed uint64) Path {
	s.begin(seed)
	p := s.finish(s.holdout, func(_, holdout, _ float64) float64 { return holdout })
	s.accumulate(func(j int) float64 { return s.training[j] })
	s.walk(p.Training, false)
	return p
}

// freshNoise is a planted fault: each classifier's columns are drawn anew, those that it shares with the one before too.
func freshNoise(s *Sampler, seed uint64) Path {
	s.begin(seed)
	p := s.finish(s.holdout, func(_, holdout, _ float64) float64 { return holdout })
	s.accumulate(s.size.shift)
	for i := range p.Fresh {
		one := *s
		one.drift, one.added = s.drift[i:i+1], []int{min(s.size.Ks[i], p.Selected)}
		one.walk(p.Fresh[i:i+1], false)
	}
	return p
}

// TestSamplingFaults: the comparison of TestSamplingIsExact sees rows that are drawn without regard of what is known, and
// classifiers drawn independently of each other.
func TestSamplingFaults(t *testing.T) {
	drawn := paths(t, plainRuns, func(seed uint64) (Path, error) {
		return PlayDrawn(context.Background(), smallSelection, StandardReuse, seed)
	})
	for name, fault := range map[string]func(*Sampler, uint64) Path{"independent rows": independentRows, "fresh noise": freshNoise} {
		s := NewSampler(smallSelection)
		seen := paths(t, sampledRuns, func(seed uint64) (Path, error) { return fault(s, seed), nil })
		if len(sameDistribution(drawn, seen, samplingFalseAlarm)) == 0 {
			t.Errorf("%s is not seen", name)
		}
	}
}

// TestSamplingAllocatesResultsOnly: no repetition allocates but for what it returns.
func TestSamplingAllocatesResultsOnly(t *testing.T) {
	s := NewSampler(smallSelection)
	for name, play := range map[string]func(uint64) Path{StandardReuse: s.Standard, ThroughThresholdout: s.Thresholdout} {
		seed := uint64(0)
		if n := testing.AllocsPerRun(20, func() { seed++; play(seed) }); n > 1 {
			t.Errorf("%s: %v allocations, want that of the returned values", name, n)
		}
	}
}

func BenchmarkSelection(b *testing.B) {
	s := NewSampler(NewShape(PublishedSize, PublishedSize, false))
	for name, play := range map[string]func(uint64) Path{StandardReuse: s.Standard, ThroughThresholdout: s.Thresholdout} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := range b.N {
				play(uint64(i))
			}
		})
	}
}
