package privatemean

import (
	"math"
	"testing"

	"github.com/holdoutd/holdoutd/dp/estimate"
	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/experiments/seeds"
)

// TestPareto compares the law's clamped mean and variance with sums over its quantiles.
func TestPareto(t *testing.T) {
	for _, high := range []float64{1, 1.5, 10, 300} {
		mean, squares := 0.0, 0.0
		const cells = 1_000_000
		for i := range cells {
			x := min(high, math.Pow((float64(i)+0.5)/cells, -1/paretoTail))
			mean += x / cells
			squares += x * x / cells
		}
		gotMean, gotVariance := pareto.clamped(high)
		if math.Abs(gotMean-mean) > 1e-5*mean || math.Abs(gotVariance-(squares-mean*mean)) > 1e-4*squares {
			t.Errorf("clamped at %v: mean %v and variance %v, want %v and %v", high, gotMean, gotVariance, mean, squares-mean*mean)
		}
	}
}

// TestErrorsNoticeFaults: the check of squared errors fails when the noise is a quarter more than theory's, and passes
// otherwise.
func TestErrorsNoticeFaults(t *testing.T) {
	for name, c := range map[string]struct {
		epsilon float64 // that is used
		agrees  bool
	}{"honest": {0.1, true}, "more noise": {0.08, false}} {
		claimed := &cell{method: laplace, mean: estimate.Mean{Dim: 1, High: 1, Epsilon: c.epsilon}}
		g := &group{part: byEpsilon, population: uniform, n: 100, cells: []*cell{claimed}}
		var values [][]float64
		var finished []bool
		for i := range 100 {
			v, err := g.repetition(seeds.Of(8, uint64(i)))
			if err != nil {
				t.Fatal(err)
			}
			values, finished = append(values, v), append(finished, true)
		}
		if !g.take(values, finished) {
			t.Fatal("nothing taken")
		}
		claimed.mean.Epsilon = 0.1 // what it says of itself
		var checks run.Checks
		(findings{[]*group{g}}).worst(&checks)
		if decided := checks.Decide(); len(decided) != 1 || decided[0].Agrees != c.agrees {
			t.Errorf("%s: %+v", name, decided)
		}
	}
}
