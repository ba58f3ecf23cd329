package privatemean

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/holdoutd/holdoutd/experiments/run"
)

// rate is an exponent that theory knows: of what, against what, in which cells.
type rate struct {
	part, method, of string
	epsilon          float64 // of the cells, 0 for any
	exponent         float64
	tolerance        float64
	x, y             func(g *group, c *cell) float64
	best             bool // only the best cell of a group
}

func rates() []rate {
	rows := func(g *group, _ *cell) float64 { return float64(g.n) }
	eps := func(_ *group, c *cell) float64 { return c.mean.Epsilon }
	dim := func(_ *group, c *cell) float64 { return float64(c.mean.Dim) }
	high := func(_ *group, c *cell) float64 { return c.mean.High }
	rms := func(_ *group, c *cell) float64 { return c.rms() }
	return []rate{
		{part: byRows, method: laplace, of: "error against n, epsilon 0.01", epsilon: smallEpsilon, exponent: -1, tolerance: 0.03, x: rows, y: rms},
		{part: byRows, method: gaussian, of: "error against n, epsilon 0.01", epsilon: smallEpsilon, exponent: -1, tolerance: 0.03, x: rows, y: rms},
		{part: byRows, method: plain, of: "error against n", exponent: -0.5, tolerance: 0.03, x: rows, y: rms},
		{part: byEpsilon, method: laplace, of: "error against epsilon, n = 100", exponent: -1, tolerance: 0.03, x: eps, y: rms},
		{part: byThreshold, method: laplace, of: "error at the best threshold against n", exponent: -(1 - 1/paretoTail), tolerance: 0.04, x: rows, y: rms, best: true},
		{part: byThreshold, method: gaussian, of: "error at the best threshold against n", exponent: -(1 - 1/paretoTail), tolerance: 0.04, x: rows, y: rms, best: true},
		{part: byThreshold, method: laplace, of: "best threshold against n", exponent: 1 / paretoTail, tolerance: 0.15, x: rows, y: high, best: true},
		{part: byDimension, method: laplace, of: "error against numbers a row", exponent: 1.5, tolerance: 0.03, x: dim, y: rms},
		{part: byDimension, method: gaussian, of: "error against numbers a row", exponent: 1, tolerance: 0.03, x: dim, y: rms},
	}
}

// fit is the exponent as measured, false where fewer than three points are finished.
func (m findings) fit(r rate) (run.Fit, bool) {
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
		return run.Fit{}, false
	}
	return run.FitExponent(r.method, r.of, x, y), true
}

func (m findings) fits() []run.Fit {
	var fits []run.Fit
	for _, r := range rates() {
		if f, ok := m.fit(r); ok {
			fits = append(fits, f)
		}
	}
	return fits
}

// falseAlarm is the probability with which the check of all errors fails though theory is right.
const falseAlarm = 1e-4

func (m findings) checks() []run.Check {
	var checks []run.Check
	for _, r := range rates() {
		if f, ok := m.fit(r); ok {
			checks = append(checks, run.Check{What: r.method + ": exponent of the " + r.of, Expected: r.exponent, Got: f.Exponent, Low: f.Low, High: f.High,
				Criterion: fmt.Sprintf("within %v", r.tolerance), Agrees: math.Abs(f.Exponent-r.exponent) <= r.tolerance})
		}
	}
	if c, ok := m.worst(); ok {
		checks = append(checks, c)
	}
	return append(checks, m.crossing()...)
}

// worst compares every mean squared error with theory's sum of bias, sampling and noise, in standard errors.
func (m findings) worst() (run.Check, bool) {
	worst, repetitions, cells, where := 0.0, 0, 0, ""
	for _, g := range m.groups {
		for _, c := range g.cells {
			mean, sd := run.MeanSD(c.errors)
			cells, repetitions = cells+1, len(c.errors)
			if off := math.Abs(mean-g.expected(c)) / (sd / math.Sqrt(float64(repetitions))); off > worst {
				worst, where = off, fmt.Sprintf("%s, %s, n = %d", g.row(c).Condition, c.method, g.n)
			}
		}
	}
	if repetitions < 2 {
		return run.Check{}, false
	}
	limit := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(repetitions - 1)}.Quantile(1 - falseAlarm/2/float64(cells))
	return run.Check{What: fmt.Sprintf("the farthest of %d squared errors from theory's bias, sampling and noise, in standard errors (%s)", cells, where),
		Expected: limit, Got: worst, Low: worst, High: worst,
		Criterion: fmt.Sprintf("at most Student's quantile (false alarm %v)", falseAlarm), Agrees: worst <= limit}, true
}

// crossing: Gaussian noise is the smaller from a number of dimensions on that follows from the two scales.
func (m findings) crossing() []run.Check {
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
	return []run.Check{{What: fmt.Sprintf("the least measured number of numbers a row at which Gaussian noise (delta %v) errs less than Laplace noise", delta),
		Expected: float64(expected), Got: float64(got), Low: float64(got), High: float64(got), Criterion: "equal", Agrees: got == expected}}
}

func (m findings) table() [][]string {
	table := [][]string{{"METHOD", "EXPONENT OF", "THEORY", "MEASURED", "95% INTERVAL"}}
	for _, r := range rates() {
		if f, ok := m.fit(r); ok {
			table = append(table, []string{f.Method, f.Of, fmt.Sprintf("%.3f", r.exponent), fmt.Sprintf("%.3f", f.Exponent), fmt.Sprintf("%.3f to %.3f", f.Low, f.High)})
		}
	}
	return table
}
