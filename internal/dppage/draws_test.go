package dppage

import (
	"testing"

	"github.com/holdoutd/holdoutd/dp/choose"
	"github.com/holdoutd/holdoutd/dp/estimate"
	"github.com/holdoutd/holdoutd/dp/hypothesis"
	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/dp/pmw"
	"github.com/holdoutd/holdoutd/dp/respond"
	"github.com/holdoutd/holdoutd/dp/smooth"
	"github.com/holdoutd/holdoutd/dp/sparse"
	"github.com/holdoutd/holdoutd/dp/subsample"
	"github.com/holdoutd/holdoutd/dp/unit"
)

// BenchmarkDraws says what a draw of each noise costs, and a release of each mechanism of typical size. docs/PERFORMANCE.md has its figures:
//
//	go test -tags nomsgpack -run NONE -bench Draws ./internal/dppage
func BenchmarkDraws(b *testing.B) {
	const rows = 1000
	one := noise.Eps(1)
	s := noise.Seeded(1)
	scores := make([]int64, 100)
	for i := range scores {
		scores[i] = int64(i)
	}
	values, groups, other := make([]float64, rows), make([]int, rows), make([]int, rows)
	for i := range values {
		values[i], groups[i], other[i] = float64(i%97), i%3, i%5
	}
	table := estimate.Table{Values: values}
	guard := estimate.Guard{Protection: unit.Protection{Unit: unit.Row{}}, Noise: estimate.Laplace{Epsilon: one}}
	die := hypothesis.GoodnessOfFit{Shares: []float64{.2, .3, .5}, Epsilon: one}
	weights := make([]uint32, 1024)
	weights[7] = pmw.One
	ranks := []float64{.25, .5, .75}
	stairs := noise.NewStaircase(2, 1, 1<<30)
	rule := choose.Rule{Epsilon: one, Sensitivity: 1}
	vector, err := sparse.Split(1, 1000, 1, false).Start(s)
	must(b, err)
	gaps, err := sparse.SplitAdaptive(1, 1000, 1, false).Start(s)
	must(b, err)
	run, err := pmw.Settings{Domain: 1024, Rows: 1 << 20, Epsilon: 1, Updates: 100, Threshold: .5}.Start(make1024(), s)
	must(b, err)
	hundred := smooth.Range{Low: 0, High: 100}
	for _, c := range []struct {
		name string
		draw func() error
	}{
		{"noise/Laplace of a whole scale", free(func() { noise.DiscreteLaplace(s, 1e12) })},
		{"noise/two-sided geometric", free(func() { noise.TwoSidedGeometric(s, 1, 10) })},
		{"noise/geometric", free(func() { noise.Geometric(s, 1, 10) })},
		{"noise/discrete Gaussian", free(func() { noise.DiscreteGaussian(s, 1<<40, 1) })},
		{"noise/rounded Gaussian", free(func() { noise.RoundedNormal(s, 1e12) })},
		{"noise/staircase", free(func() { stairs.Draw(s) })},
		{"noise/Bernoulli of e^-x", free(func() { noise.BernoulliExp(s, 1, 2) })},
		{"respond/one of 10", free(func() { respond.Categories{K: 10, Epsilon: one}.Say(s, 3) })},
		{"respond/10 bits", free(func() { respond.Unary{K: 10, Epsilon: one}.Say(s, 3) })},
		{"choose/exponential mechanism, 100 candidates", func() error { _, err := rule.Exponential(s, scores); return err }},
		{"choose/permute and flip, 100 candidates", func() error { _, err := rule.PermuteAndFlip(s, scores); return err }},
		{"choose/report noisy max, 100 candidates", func() error { _, err := rule.NoisyMax(s, scores); return err }},
		{"choose/best 5 of 100 candidates", func() error { _, err := rule.Top(s, scores, 5); return err }},
		{"sparse/a question", func() error { _, err := vector.Ask(-1<<40, 0); return err }},
		{"sparse/a question, adaptive with gaps", func() error { _, err := gaps.Ask(-1<<40, 0); return err }},
		{"pmw/a question, a domain of 1024", func() error { _, err := run.Ask(weights); return err }},
		{"subsample/a question of 1,000 votes", free(func() {
			subsample.Settings{Rows: rows, Questions: 1, Votes: 1000}.Answer(s, func(row int64) uint32 { return uint32(row&1) * subsample.One })
		})},
		{"smooth/median of 1,000, Student's t", func() error { _, err := smooth.Noise{Epsilon: 1}.Release(hundred, values, s); return err }},
		{"smooth/median of 1,000, Laplace", func() error {
			_, err := smooth.Noise{Law: smooth.Laplace, Epsilon: 1, Delta: 1e-6}.Release(hundred, values, s)
			return err
		}},
		{"smooth/median of 1,000, propose, test, release", func() error {
			_, err := smooth.Proposal{Bound: 20, Epsilon: one, Delta: 1e-6}.Release(hundred, values, s)
			return err
		}},
		{"estimate/sum of 1,000", func() error { _, err := estimate.Sum{Guard: guard, Low: 0, High: 100}.Release(table, s); return err }},
		{"estimate/count of 1,000", func() error { _, err := estimate.Count{Guard: guard}.Release(table, s); return err }},
		{"estimate/mean of 1,000", func() error {
			_, err := estimate.CentredMean{Guard: guard, Low: 0, High: 100}.Release(table, s)
			return err
		}},
		{"estimate/variance of 1,000", func() error {
			_, err := estimate.Variance{Guard: guard, Low: 0, High: 100}.Release(table, s)
			return err
		}},
		{"estimate/three quantiles of 1,000", func() error {
			_, err := estimate.Quantiles{Guard: guard, Low: 0, High: 100}.Release(table, ranks, s)
			return err
		}},
		{"estimate/histogram of 1,000 in ten bins", func() error {
			_, err := estimate.Histogram{Guard: guard, Edges: []float64{0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100}}.Release(table, s)
			return err
		}},
		{"estimate/bounds of 1,000", func() error {
			_, err := estimate.Bounds{Guard: guard, Least: -10, Greatest: 20}.Release(table, s)
			return err
		}},
		{"hypothesis/a share of 1,000", func() error { _, err := hypothesis.Binomial{Share: .3, Epsilon: one}.Test(310, rows, s); return err }},
		{"hypothesis/shares of three categories", func() error { _, err := die.Test([]int64{190, 310, 500}, s); return err }},
		{"hypothesis/three groups of 1,000", func() error { _, err := hypothesis.Groups{Epsilon: one}.Test(values, groups, s); return err }},
		{"hypothesis/independence of 1,000 pairs", func() error {
			_, err := hypothesis.Independence{Epsilon: one, Level: .05}.Test(groups, other, s)
			return err
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				if err := c.draw(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func free(draw func()) func() error { return func() error { draw(); return nil } }

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// make1024 is a table of 2^20 rows with as many of each of 1024 kinds.
func make1024() []int64 {
	counts := make([]int64, 1024)
	for i := range counts {
		counts[i] = 1024
	}
	return counts
}
