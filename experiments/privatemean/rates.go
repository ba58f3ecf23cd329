package privatemean

import (
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/experiments/run"
)

// rate is an exponent that theory knows: of what, against what, in which cells.
type rate struct {
	part, method, of string
	law              string  // of the groups, "" for any
	epsilon          float64 // of the cells, 0 for any
	exponent         float64
	tolerance        float64 // of the best cells, which are of a grid and chosen by what was measured
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
		{part: byRows, method: laplace, of: "error against n, epsilon 0.01", epsilon: smallEpsilon, exponent: -1, x: rows, y: rms},
		{part: byRows, method: gaussian, of: "error against n, epsilon 0.01", epsilon: smallEpsilon, exponent: -1, x: rows, y: rms},
		{part: byRows, method: plain, of: "error against n", exponent: -0.5, x: rows, y: rms},
		{part: byEpsilon, method: laplace, of: "error against epsilon, n = 100", exponent: -1, x: eps, y: rms},
		{part: byThreshold, method: laplace, of: "error at the best threshold against n", exponent: -(1 - 1/paretoTail), tolerance: 0.04, x: rows, y: rms, best: true},
		{part: byThreshold, method: gaussian, of: "error at the best threshold against n", exponent: -(1 - 1/paretoTail), tolerance: 0.04, x: rows, y: rms, best: true},
		{part: byThreshold, method: laplace, of: "best threshold against n", exponent: 1 / paretoTail, tolerance: 0.15, x: rows, y: high, best: true},
		{part: byDimension, method: laplace, of: "error against numbers a row", exponent: 1.5, x: dim, y: rms},
		{part: byDimension, method: gaussian, of: "error against numbers a row", exponent: 1, x: dim, y: rms},
		{part: byNorm, method: gaussian, of: "error against numbers of a row of norm 1", exponent: 0.5, x: dim, y: rms},
		{part: byMoment, law: hardest, method: laplace, of: "error of the hardest law against n", exponent: -0.5, x: rows, y: rms},
	}
}

// each calls do for the cells of a rate.
func (m findings) each(r rate, do func(g *group, c *cell)) {
	for _, g := range m.groups {
		if g.part != r.part || r.law != "" && g.name != r.law {
			continue
		}
		for _, c := range g.cells {
			if c.method == r.method && (r.epsilon == 0 || c.mean.Epsilon == r.epsilon) && (!r.best || c == g.best(r.method)) {
				do(g, c)
			}
		}
	}
}

// fit is the exponent as measured, false where fewer than three points are finished.
func (m findings) fit(r rate) (run.Fit, bool) {
	var x, y []float64
	m.each(r, func(g *group, c *cell) { x, y = append(x, r.x(g, c)), append(y, r.y(g, c)) })
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

// theory is what the exponent is for these very sizes: that of theory's squared errors, or the limit's where cells are chosen by what was measured.
func (m findings) theory(r rate) float64 {
	if r.best {
		return r.exponent
	}
	var x, y []float64
	m.each(r, func(g *group, c *cell) { x, y = append(x, r.x(g, c)), append(y, math.Sqrt(g.expected(c))) })
	return run.FitExponent(r.method, r.of, x, y).Exponent
}

// standard is the standard error of an exponent: that of root mean squares is half of that of means of squares. A chosen threshold is one of a grid.
func (m findings) standard(r rate) float64 {
	var x []float64
	var y []run.Row
	m.each(r, func(g *group, c *cell) { x, y = append(x, r.x(g, c)), append(y, g.row(c)) })
	_, standard := run.Slope(x, y)
	return standard / 2
}

func (m findings) checks() []run.Check {
	var checks run.Checks
	for _, r := range rates() {
		if f, ok := m.fit(r); ok {
			checks.Estimate(r.method+": exponent of the "+r.of, m.theory(r), r.tolerance, f.Exponent, m.standard(r))
		}
	}
	m.worst(&checks)
	m.pooled(&checks)
	m.crossing(&checks)
	m.moments(&checks)
	return checks.Decide()
}

// worst compares every mean squared error with theory's sum of bias, sampling and noise, in standard errors.
func (m findings) worst(checks *run.Checks) {
	worst, repetitions, cells, where, error := 0.0, 0, 0, "", 0.0
	for _, g := range m.groups {
		for _, c := range g.cells {
			mean, sd := run.MeanSD(c.errors)
			cells, repetitions = cells+1, len(c.errors)
			error = max(error, sd/math.Sqrt(float64(repetitions))/g.expected(c))
			if off := math.Abs(mean-g.expected(c)) / (sd / math.Sqrt(float64(repetitions))); off > worst {
				worst, where = off, fmt.Sprintf("%s, %s, n = %d", g.row(c).Condition, c.method, g.n)
			}
		}
	}
	if repetitions < 2 {
		return
	}
	checks.Add(cells, func(alpha float64) run.Check {
		freedom := float64(repetitions - 1)
		limit := run.Student(1-alpha/2, freedom)
		return run.Check{What: fmt.Sprintf("the farthest of %d squared errors from theory's bias, sampling and noise, in standard errors (%s)", cells, where),
			Expected: limit, Got: worst, Low: worst, High: worst, Criterion: "at most Student's quantile",
			Notices: fmt.Sprintf("any squared error off by a part of %.2g", (limit+run.Student(run.Power, freedom))*error), Agrees: worst <= limit}
	})
}

// pooled compares what all cells of a method have in common: the mean of their squared errors over theory's. A noise that is a little too small shows in no cell by
// itself.
func (m findings) pooled(checks *run.Checks) {
	for _, method := range []string{laplace, gaussian, plain} {
		var ratios []float64 // of each repetition
		cells := 0.0
		for _, g := range m.groups {
			for _, c := range g.cells {
				if c.method != method {
					continue
				}
				cells++
				for i, e := range c.errors {
					if i == len(ratios) {
						ratios = append(ratios, 0)
					}
					ratios[i] += e / g.expected(c)
				}
			}
		}
		if len(ratios) > 1 {
			checks.Equal(fmt.Sprintf("%s: squared errors over theory's, the mean of %.0f cells", method, cells), 1, 0,
				run.Measured(run.Row{}, ratios, func(v float64) float64 { return v / cells }))
		}
	}
}

// crossing: Gaussian noise is the smaller from a number of dimensions on that follows from the two scales.
func (m findings) crossing(checks *run.Checks) {
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
		return
	}
	checks.Stated(0, run.Check{What: fmt.Sprintf("the least measured number of numbers a row at which Gaussian noise (delta %v) errs less than Laplace noise", delta),
		Expected: float64(expected), Got: float64(got), Low: float64(got), High: float64(got), Criterion: "equal", Agrees: got == expected,
		Notices: "a ratio of the two noises that moves it to the next number that is measured"})
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
