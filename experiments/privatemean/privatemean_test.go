package privatemean

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

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
		gotMean, gotVariance := pareto.clamped(0, high)
		if math.Abs(gotMean-mean) > 1e-5*mean || math.Abs(gotVariance-(squares-mean*mean)) > 1e-4*squares {
			t.Errorf("clamped at %v: mean %v and variance %v, want %v and %v", high, gotMean, gotVariance, mean, squares-mean*mean)
		}
	}
}

// TestMomentLaws: both laws have a second moment of 1, and clamped as the theorem says, means and variances that are sums over their quantiles.
func TestMomentLaws(t *testing.T) {
	const n = 3000
	tau := momentThreshold(n)
	for _, law := range []population{hardestLaw(n), normalLaw} {
		_, variance := law.clamped(math.Inf(-1), math.Inf(1))
		if second := variance + law.mean*law.mean; math.Abs(second-1) > 1e-12 {
			t.Errorf("%s: a second moment of %v", law.name, second)
		}
	}
	mean, variance := hardestLaw(n).clamped(-tau, tau)
	if p := 1. / 300; math.Abs(mean-tau*p) > 1e-12 || math.Abs(variance-tau*tau*p*(1-p)) > 1e-12 {
		t.Errorf("hardest law: %v, %v", mean, variance)
	}
	const cells, high = 1_000_000, 1.5
	squares := 0.
	for i := range cells {
		x := min(high, math.Abs(distuv.UnitNormal.Quantile((float64(i)+0.5)/cells)))
		squares += x * x / cells
	}
	if _, variance := normalLaw.clamped(-high, high); math.Abs(variance-squares) > 1e-5 {
		t.Errorf("normal law: %v, want %v", variance, squares)
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
