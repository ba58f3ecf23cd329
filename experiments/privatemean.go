package experiments

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/holdoutd/holdoutd/dp/estimate"
	"github.com/holdoutd/holdoutd/dp/noise"
)

// SquaredError is the measure of PrivateMean, Row.Set: of the released mean from the population's, over all coordinates. A
// repetition is the average of meanRuns runs.
const SquaredError = "squared error"

const (
	meanRuns  = 20
	meanDelta = 1e-6 // of Gaussian noise
)

// Methods of PrivateMean.
const (
	laplaceMean  = "Laplace"
	gaussianMean = "Gaussian"
	plainMean    = "no privacy"
)

// population is a law that rows are drawn from.
type population struct {
	name string
	draw func(r *rand.Rand) float64
	mean float64
	// clamped returns mean and variance of a value clamped to [0, high].
	clamped func(high float64) (mean, variance float64)
}

var uniform = population{"uniform", (*rand.Rand).Float64, 0.5, func(float64) (float64, float64) { return 0.5, 1. / 12 }}

// paretoTail is a in P(X > x) = x^{-a}, x >= 1: the mean is finite and the variance is not.
const paretoTail = 1.5

var pareto = population{fmt.Sprintf("Pareto %v", paretoTail), func(r *rand.Rand) float64 { return math.Pow(1-r.Float64(), -1/paretoTail) },
	paretoTail / (paretoTail - 1), func(c float64) (float64, float64) {
		const a = paretoTail
		mean := (a - math.Pow(c, 1-a)) / (a - 1)
		return mean, 1 + 2*(math.Pow(c, 2-a)-1)/(2-a) - mean*mean // E min(X,c)^2 = 1 + the integral of 2x x^{-a} from 1 to c
	}}

// meanCell is one estimator of a group.
type meanCell struct {
	method string
	mean   estimate.Mean // of plainMean only Dim and High count
	errors []float64     // by repetition; nil until all are finished
}

// meanGroup is estimators that see the same rows.
type meanGroup struct {
	part string // of the experiment
	population
	n     int
	cells []*meanCell
}

// expected is the mean squared error by theory: bias, sampling and noise.
func (g *meanGroup) expected(c *meanCell) float64 {
	center, variance := g.clamped(c.mean.High)
	total := (center-g.mean)*(center-g.mean) + variance/float64(g.n)
	if c.method != plainMean {
		sd := c.mean.NoiseSD(g.n)
		total += sd * sd
	}
	return float64(c.mean.Dim) * total
}

// repetition returns the squared error of each cell, averaged over meanRuns runs.
func (g *meanGroup) repetition(seed uint64) ([]float64, error) {
	x, s := make([]float64, g.n*g.cells[0].mean.Dim), noise.Seeded(seed)
	r, sums := rand.New(s), make([]float64, len(g.cells))
	for range meanRuns {
		for i := range x {
			x[i] = g.draw(r)
		}
		for i, c := range g.cells {
			released := []float64{stat.Mean(x, nil)} // of plainMean, which has one coordinate
			if c.method != plainMean {
				var err error
				if released, err = c.mean.Release(x, s); err != nil {
					return nil, err
				}
			}
			for _, v := range released {
				sums[i] += (v - g.mean) * (v - g.mean) / meanRuns
			}
		}
	}
	return sums, nil
}

// Parts of PrivateMean.
const (
	byRows      = "rows"
	byEpsilon   = "epsilon"
	byThreshold = "threshold"
	byDimension = "dimension"
)

// Fixed sizes of the parts.
const (
	smallEpsilon     = 0.01 // at which noise is most of the error
	largeEpsilon     = 1.   // at which sampling is
	epsilonRows      = 100
	thresholdEpsilon = 0.1
	dimensionEpsilon = 0.1
	dimensionRows    = 100
)

func meanGroups(quick bool) []*meanGroup {
	rows, thresholdRows, dimensions := []int{100, 300, 1000, 3000, 10000, 30000}, []int{1000, 3000, 10000, 30000}, []int{1, 2, 4, 8, 16, 32, 64, 128, 256}
	if quick {
		rows, thresholdRows, dimensions = []int{100, 300, 1000}, []int{100, 300, 1000}, []int{1, 8, 64}
	}
	both := func(dim int, high, eps float64) []*meanCell {
		return []*meanCell{{method: laplaceMean, mean: estimate.Mean{Dim: dim, High: high, Epsilon: eps}},
			{method: gaussianMean, mean: estimate.Mean{Dim: dim, High: high, Epsilon: eps, Delta: meanDelta}}}
	}
	var groups []*meanGroup
	for _, n := range rows {
		cells := append(both(1, 1, smallEpsilon), both(1, 1, largeEpsilon)...)
		groups = append(groups, &meanGroup{part: byRows, population: uniform, n: n, cells: append(cells, &meanCell{method: plainMean, mean: estimate.Mean{Dim: 1, High: 1}})})
	}
	privacy := &meanGroup{part: byEpsilon, population: uniform, n: epsilonRows}
	for _, eps := range []float64{0.003, 0.01, 0.03, 0.1} {
		privacy.cells = append(privacy.cells, both(1, 1, eps)...)
	}
	groups = append(groups, privacy)
	for _, n := range thresholdRows {
		g := &meanGroup{part: byThreshold, population: pareto, n: n}
		for i := range 25 {
			g.cells = append(g.cells, both(1, math.Pow(10, float64(i)/8), thresholdEpsilon)...)
		}
		groups = append(groups, g)
	}
	for _, dim := range dimensions {
		groups = append(groups, &meanGroup{part: byDimension, population: uniform, n: dimensionRows, cells: both(dim, 1, dimensionEpsilon)})
	}
	return groups
}

var privateMeanExperiment = Experiment{
	Name:  "private-mean",
	Short: "the error of a private mean against rows, epsilon, clipping threshold and dimension",
	Paper: `Theory: noise for (epsilon, 0) or (epsilon, delta) adds an error that falls as 1/(n epsilon), below the sampling error of
1/sqrt(n) once n epsilon^2 is large (arXiv 1412.4451). Of values with a tail of index a, clipping at C trades a bias of C^{1-a}/(a-1)
for noise of C/(n epsilon); at the best C, about (n epsilon)^{1/a}, the error falls as (n epsilon)^{-(1-1/a)}, which is optimal
(arXiv 1412.4451, arXiv 2002.09464). For d numbers a row Laplace noise grows as d^{3/2}, Gaussian noise as d.`,
	Small: Options{Quick: true, Repetitions: 4},
	Run:   PrivateMean,
}

// PrivateMean measures the squared error of estimate.Mean on populations whose mean is known.
func PrivateMean(ctx context.Context, o Options) (Result, error) {
	result := Result{Experiment: "private-mean", Seed: o.Seed, Quick: o.Quick}
	groups, repetitions := meanGroups(o.Quick), o.repetitions(100)
	values, finished, err := Repeat(ctx, o, "means", len(groups)*repetitions, func(_ context.Context, i int) ([]float64, error) {
		return groups[i/repetitions].repetition(seedOf(o.Seed, uint64(i/repetitions), uint64(i%repetitions)))
	})
	done := groups[:0]
	for i, g := range groups {
		if g.take(values[i*repetitions:(i+1)*repetitions], finished[i*repetitions:(i+1)*repetitions]) {
			done = append(done, g)
		}
	}
	result.Complete = err == nil
	m := meanFindings{groups: done}
	result.Rows = m.rows()
	result.Fits, result.Checks = m.fits(), m.checks()
	result.Summary = m.table()
	result.Notes = []string{fmt.Sprintf("Every squared error is of %d runs on fresh rows, with the released library code (dp/estimate), noise from a seeded stream, "+
		"replaced rows as neighbours, and delta %v for Gaussian noise. Nothing private is chosen from the data: the thresholds are a fixed grid.", meanRuns*repetitions, meanDelta)}
	result.Figures = m.figures()
	return result, err
}

// take keeps the errors where all repetitions are finished.
func (g *meanGroup) take(values [][]float64, finished []bool) bool {
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

// meanFindings are the groups that are finished.
type meanFindings struct{ groups []*meanGroup }

// row of a cell. K is its dimension.
func (g *meanGroup) row(c *meanCell) Row {
	condition := fmt.Sprintf("%s, %s", g.part, g.name)
	if c.method != plainMean {
		condition += fmt.Sprintf(", epsilon %v", c.mean.Epsilon)
	}
	if g.part == byThreshold {
		condition += fmt.Sprintf(", threshold %.3g", c.mean.High)
	}
	if g.part == byDimension {
		condition += fmt.Sprintf(", %d numbers a row", c.mean.Dim)
	}
	r := Row{Condition: condition, Method: c.method, N: int64(g.n), K: int64(c.mean.Dim), Set: SquaredError, Repetitions: len(c.errors)}
	r.summarise(c.errors)
	return r
}

func (m meanFindings) rows() []Row {
	var rows []Row
	for _, g := range m.groups {
		for _, c := range g.cells {
			rows = append(rows, g.row(c))
		}
	}
	return rows
}

// rms is a cell's root mean squared error.
func (c *meanCell) rms() float64 { return math.Sqrt(stat.Mean(c.errors, nil)) }

// best is the cell of a method with the least squared error.
func (g *meanGroup) best(method string) *meanCell {
	var best *meanCell
	for _, c := range g.cells {
		if c.method == method && (best == nil || c.rms() < best.rms()) {
			best = c
		}
	}
	return best
}

// meanRate is an exponent that theory knows.
type meanRate struct {
	part, method, of string
	epsilon          float64 // of the cells, 0 for any
	exponent         float64
	tolerance        float64
	x, y             func(g *meanGroup, c *meanCell) float64
	best             bool // only the best cell of a group
}

func meanRates() []meanRate {
	rows := func(g *meanGroup, _ *meanCell) float64 { return float64(g.n) }
	eps := func(_ *meanGroup, c *meanCell) float64 { return c.mean.Epsilon }
	dim := func(_ *meanGroup, c *meanCell) float64 { return float64(c.mean.Dim) }
	high := func(_ *meanGroup, c *meanCell) float64 { return c.mean.High }
	rms := func(_ *meanGroup, c *meanCell) float64 { return c.rms() }
	return []meanRate{
		{part: byRows, method: laplaceMean, of: "error against n, epsilon 0.01", epsilon: smallEpsilon, exponent: -1, tolerance: 0.03, x: rows, y: rms},
		{part: byRows, method: gaussianMean, of: "error against n, epsilon 0.01", epsilon: smallEpsilon, exponent: -1, tolerance: 0.03, x: rows, y: rms},
		{part: byRows, method: plainMean, of: "error against n", exponent: -0.5, tolerance: 0.03, x: rows, y: rms},
		{part: byEpsilon, method: laplaceMean, of: "error against epsilon, n = 100", exponent: -1, tolerance: 0.03, x: eps, y: rms},
		{part: byThreshold, method: laplaceMean, of: "error at the best threshold against n", exponent: -(1 - 1/paretoTail), tolerance: 0.04, x: rows, y: rms, best: true},
		{part: byThreshold, method: gaussianMean, of: "error at the best threshold against n", exponent: -(1 - 1/paretoTail), tolerance: 0.04, x: rows, y: rms, best: true},
		{part: byThreshold, method: laplaceMean, of: "best threshold against n", exponent: 1 / paretoTail, tolerance: 0.15, x: rows, y: high, best: true},
		{part: byDimension, method: laplaceMean, of: "error against numbers a row", exponent: 1.5, tolerance: 0.03, x: dim, y: rms},
		{part: byDimension, method: gaussianMean, of: "error against numbers a row", exponent: 1, tolerance: 0.03, x: dim, y: rms},
	}
}

// fit is the exponent as measured, false where fewer than three points are finished.
func (m meanFindings) fit(r meanRate) (Fit, bool) {
	var x, y []float64
	for _, g := range m.groups {
		if g.part != r.part {
			continue
		}
		for _, c := range g.cells {
			if c.method == r.method && (r.epsilon == 0 || c.mean.Epsilon == r.epsilon) && (!r.best || c == g.best(r.method)) {
				x, y = append(x, r.x(g, c)), append(y, r.y(g, c))
			}
		}
	}
	if len(x) < 3 {
		return Fit{}, false
	}
	return fitExponent(r.method, r.of, x, y), true
}

func (m meanFindings) fits() []Fit {
	var fits []Fit
	for _, r := range meanRates() {
		if f, ok := m.fit(r); ok {
			fits = append(fits, f)
		}
	}
	return fits
}

// meanFalseAlarm is the probability with which the check of all errors fails though theory is right.
const meanFalseAlarm = 1e-4

func (m meanFindings) checks() []Check {
	var checks []Check
	for _, r := range meanRates() {
		if f, ok := m.fit(r); ok {
			checks = append(checks, Check{What: r.method + ": exponent of the " + r.of, Expected: r.exponent, Got: f.Exponent, Low: f.Low, High: f.High,
				Criterion: fmt.Sprintf("within %v", r.tolerance), Agrees: math.Abs(f.Exponent-r.exponent) <= r.tolerance})
		}
	}
	if c, ok := m.worst(); ok {
		checks = append(checks, c)
	}
	return append(checks, m.crossing()...)
}

// worst compares every mean squared error with theory's sum of bias, sampling and noise, in standard errors.
func (m meanFindings) worst() (Check, bool) {
	worst, repetitions, cells, where := 0.0, 0, 0, ""
	for _, g := range m.groups {
		for _, c := range g.cells {
			mean, sd := meanSD(c.errors)
			cells, repetitions = cells+1, len(c.errors)
			if off := math.Abs(mean-g.expected(c)) / (sd / math.Sqrt(float64(repetitions))); off > worst {
				worst, where = off, fmt.Sprintf("%s, %s, n = %d", g.row(c).Condition, c.method, g.n)
			}
		}
	}
	if repetitions < 2 {
		return Check{}, false
	}
	limit := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(repetitions - 1)}.Quantile(1 - meanFalseAlarm/2/float64(cells))
	return Check{What: fmt.Sprintf("the farthest of %d squared errors from theory's bias, sampling and noise, in standard errors (%s)", cells, where),
		Expected: limit, Got: worst, Low: worst, High: worst,
		Criterion: fmt.Sprintf("at most Student's quantile (false alarm %v)", meanFalseAlarm), Agrees: worst <= limit}, true
}

// crossing: Gaussian noise is the smaller from a number of dimensions on that follows from the two scales.
func (m meanFindings) crossing() []Check {
	var expected, got int
	for _, g := range m.groups {
		if g.part != byDimension {
			continue
		}
		l, n := g.cells[0], g.cells[1]
		if expected == 0 && g.expected(n) < g.expected(l) {
			expected = l.mean.Dim
		}
		if got == 0 && n.rms() < l.rms() {
			got = l.mean.Dim
		}
	}
	if expected == 0 || got == 0 {
		return nil
	}
	return []Check{{What: fmt.Sprintf("the least measured number of numbers a row at which Gaussian noise (delta %v) errs less than Laplace noise", meanDelta),
		Expected: float64(expected), Got: float64(got), Low: float64(got), High: float64(got), Criterion: "equal", Agrees: got == expected}}
}

func (m meanFindings) table() [][]string {
	table := [][]string{{"METHOD", "EXPONENT OF", "THEORY", "MEASURED", "95% INTERVAL"}}
	for _, r := range meanRates() {
		if f, ok := m.fit(r); ok {
			table = append(table, []string{f.Method, f.Of, fmt.Sprintf("%.3f", r.exponent), fmt.Sprintf("%.3f", f.Exponent), fmt.Sprintf("%.3f to %.3f", f.Low, f.High)})
		}
	}
	return table
}
