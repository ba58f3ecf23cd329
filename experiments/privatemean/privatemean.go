// Package privatemean measures the error of dp/estimate's private mean on populations whose mean is known, against what theory says of
// rows, epsilon, clipping threshold and dimension (Barber, Duchi, arXiv 1412.4451; Kamath, Singhal, Ullman, arXiv 2002.09464).
package privatemean

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat"

	"github.com/holdoutd/holdoutd/dp/estimate"
	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/experiments/seeds"
)

// squaredError is what is measured, run.Row.Set: of the released mean from the population's, over all coordinates. A repetition is the
// average of runsEach runs.
const squaredError = "squared error"

const (
	runsEach = 20
	delta    = 1e-6 // of Gaussian noise
)

// Kinds of noise: run.Row.Method.
const (
	laplace  = "Laplace"
	gaussian = "Gaussian"
	plain    = "no privacy"
)

// population is a law that rows are drawn from.
type population struct {
	name string
	draw func(r *rand.Rand) float64
	mean float64
	// clamped returns mean and variance of a value clamped to [low, high]. Of a law without negative values low is 0.
	clamped func(low, high float64) (mean, variance float64)
}

var uniform = population{"uniform", (*rand.Rand).Float64, 0.5, func(_, _ float64) (float64, float64) { return 0.5, 1. / 12 }}

// paretoTail is a in P(X > x) = x^{-a}, x >= 1: the mean is finite and the variance is not.
const paretoTail = 1.5

var pareto = population{fmt.Sprintf("Pareto %v", paretoTail), func(r *rand.Rand) float64 { return math.Pow(1-r.Float64(), -1/paretoTail) },
	paretoTail / (paretoTail - 1), func(_, c float64) (float64, float64) {
		const a = paretoTail
		mean := (a - math.Pow(c, 1-a)) / (a - 1)
		return mean, 1 + 2*(math.Pow(c, 2-a)-1)/(2-a) - mean*mean // E min(X,c)^2 = 1 + the integral of 2x x^{-a} from 1 to c
	}}

// cell is one estimator of a group.
type cell struct {
	method string
	mean   estimate.Mean // of plain only Dim and High count
	errors []float64     // by repetition; nil until all are finished
}

// group is estimators that see the same rows.
type group struct {
	part string // of the experiment
	population
	n     int
	cells []*cell
}

// expected is the mean squared error by theory: bias, sampling and noise.
func (g *group) expected(c *cell) float64 {
	center, variance := g.clamped(c.mean.Low, c.mean.High)
	total := (center-g.mean)*(center-g.mean) + variance/float64(g.n)
	if c.method != plain {
		sd := c.mean.NoiseSD(g.n)
		total += sd * sd
	}
	return float64(c.mean.Dim) * total
}

// repetition returns the squared error of each cell, averaged over runsEach runs.
func (g *group) repetition(seed uint64) ([]float64, error) {
	x, s := make([]float64, g.n*g.cells[0].mean.Dim), noise.Seeded(seed)
	r, sums := rand.New(s), make([]float64, len(g.cells))
	for range runsEach {
		for i := range x {
			x[i] = g.draw(r)
		}
		for i, c := range g.cells {
			released := []float64{stat.Mean(x, nil)} // of plain, which has one coordinate
			if c.method != plain {
				var err error
				if released, err = c.mean.Release(x, s); err != nil {
					return nil, err
				}
			}
			for _, v := range released {
				sums[i] += (v - g.mean) * (v - g.mean) / runsEach
			}
		}
	}
	return sums, nil
}

// What is varied, one after the other.
const (
	byRows      = "rows"
	byEpsilon   = "epsilon"
	byThreshold = "threshold"
	byDimension = "dimension"
	byMoment    = "moment"
	byNorm      = "norm"
)

// What is fixed while another is varied.
const (
	smallEpsilon     = 0.01 // at which noise is most of the error
	largeEpsilon     = 1.   // at which sampling is
	epsilonRows      = 100
	thresholdEpsilon = 0.1
	dimensionEpsilon = 0.1
	dimensionRows    = 100
)

func newGroups(quick bool) []*group {
	rows, thresholdRows, dimensions := []int{100, 300, 1000, 3000, 10000, 30000}, []int{1000, 3000, 10000, 30000}, []int{1, 2, 4, 8, 16, 32, 64, 128, 256}
	if quick {
		rows, thresholdRows, dimensions = []int{100, 300, 1000}, []int{100, 300, 1000}, []int{1, 8, 64}
	}
	both := func(dim int, high, eps float64) []*cell {
		return []*cell{{method: laplace, mean: estimate.Mean{Dim: dim, High: high, Epsilon: eps}},
			{method: gaussian, mean: estimate.Mean{Dim: dim, High: high, Epsilon: eps, Delta: delta}}}
	}
	var groups []*group
	for _, n := range rows {
		cells := append(both(1, 1, smallEpsilon), both(1, 1, largeEpsilon)...)
		groups = append(groups, &group{part: byRows, population: uniform, n: n, cells: append(cells, &cell{method: plain, mean: estimate.Mean{Dim: 1, High: 1}})})
	}
	privacy := &group{part: byEpsilon, population: uniform, n: epsilonRows}
	for _, eps := range []float64{0.003, 0.01, 0.03, 0.1} {
		privacy.cells = append(privacy.cells, both(1, 1, eps)...)
	}
	groups = append(groups, privacy)
	for _, n := range thresholdRows {
		g := &group{part: byThreshold, population: pareto, n: n}
		for i := range 25 {
			g.cells = append(g.cells, both(1, math.Pow(10, float64(i)/8), thresholdEpsilon)...)
		}
		groups = append(groups, g)
	}
	for _, dim := range dimensions {
		groups = append(groups, &group{part: byDimension, population: uniform, n: dimensionRows, cells: both(dim, 1, dimensionEpsilon)})
	}
	for _, n := range rows {
		groups = append(groups, momentGroups(n)...)
	}
	for _, dim := range dimensions {
		groups = append(groups, &group{part: byNorm, population: signs(dim), n: dimensionRows,
			cells: []*cell{{method: gaussian, mean: estimate.Mean{Dim: dim, Norm: 1, Epsilon: dimensionEpsilon, Delta: delta}}}})
	}
	return groups
}

// Experiment is the error of a private mean.
var Experiment = run.Experiment{
	Name:  "private-mean",
	Short: "the error of a private mean against rows, epsilon, clipping threshold and dimension",
	Paper: `Theory: noise for (epsilon, 0) or (epsilon, delta) adds an error that falls as 1/(n epsilon), below the sampling error of
1/sqrt(n) once n epsilon^2 is large (arXiv 1412.4451). Of values with a tail of index a, clipping at C trades a bias of C^{1-a}/(a-1)
for noise of C/(n epsilon); at the best C, about (n epsilon)^{1/a}, the error falls as (n epsilon)^{-(1-1/a)}, which is optimal
(arXiv 1412.4451, arXiv 2002.09464). Of values of which only E[x^2] <= sigma^2 is known, the mean of those clamped to
sigma sqrt(n epsilon)/2 has a squared error of at most sigma^2/n + 4 sigma^2/(n epsilon), whatever their law. For d numbers a row
Laplace noise grows as d^{3/2}, Gaussian noise as d; for rows of bounded norm Gaussian noise grows as the root of d.`,
	Small: run.Options{Quick: true, Repetitions: 4},
	Run:   measure,
}

// measure compares the squared error of estimate.Mean on populations whose mean is known with theory.
func measure(ctx context.Context, o run.Options) (run.Result, error) {
	result := run.Result{Experiment: "private-mean", Seed: o.Seed, Quick: o.Quick}
	groups, repetitions := newGroups(o.Quick), o.RepetitionsOr(100)
	values, finished, err := run.Repeat(ctx, o, "means", len(groups)*repetitions, func(_ context.Context, i int) ([]float64, error) {
		return groups[i/repetitions].repetition(seeds.Of(o.Seed, uint64(i/repetitions), uint64(i%repetitions)))
	})
	done := groups[:0]
	for i, g := range groups {
		if g.take(values[i*repetitions:(i+1)*repetitions], finished[i*repetitions:(i+1)*repetitions]) {
			done = append(done, g)
		}
	}
	result.Complete = err == nil
	m := findings{groups: done}
	result.Rows = m.rows()
	result.Fits, result.Checks = m.fits(), m.checks()
	result.Summary = m.table()
	result.Notes = []string{fmt.Sprintf("Every squared error is of %d runs on fresh rows, with the released library code (dp/estimate), noise from a seeded stream, "+
		"replaced rows as neighbours, and delta %v for Gaussian noise. Nothing private is chosen from the data: the thresholds are a fixed grid.", runsEach*repetitions, delta)}
	result.Figures = m.figures()
	return result, err
}

// take keeps the errors where all repetitions are finished.
func (g *group) take(values [][]float64, finished []bool) bool {
	for _, f := range finished {
		if !f {
			return false
		}
	}
	for i, c := range g.cells {
		for _, v := range values {
			c.errors = append(c.errors, v[i])
		}
	}
	return true
}

// findings are the groups that are finished.
type findings struct{ groups []*group }

// row of a cell. K is its dimension.
func (g *group) row(c *cell) run.Row {
	condition := fmt.Sprintf("%s, %s", g.part, g.name)
	if c.method != plain {
		condition += fmt.Sprintf(", epsilon %v", c.mean.Epsilon)
	}
	if g.part == byThreshold {
		condition += fmt.Sprintf(", threshold %.3g", c.mean.High)
	}
	if g.part == byDimension || g.part == byNorm {
		condition += fmt.Sprintf(", %d numbers a row", c.mean.Dim)
	}
	r := run.Row{Condition: condition, Method: c.method, N: int64(g.n), K: int64(c.mean.Dim), Set: squaredError, Repetitions: len(c.errors)}
	r.Summarise(c.errors)
	return r
}

func (m findings) rows() []run.Row {
	var rows []run.Row
	for _, g := range m.groups {
		for _, c := range g.cells {
			rows = append(rows, g.row(c))
		}
	}
	return rows
}

// rms is a cell's root mean squared error.
func (c *cell) rms() float64 { return math.Sqrt(stat.Mean(c.errors, nil)) }

// best is the cell of a method with the least squared error.
func (g *group) best(method string) *cell {
	var best *cell
	for _, c := range g.cells {
		if c.method == method && (best == nil || c.rms() < best.rms()) {
			best = c
		}
	}
	return best
}
