package privatemean

import (
	"fmt"
	"math"
	"slices"

	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/experiments/run/checks"
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
	points := func(without int) (x, y []float64) {
		for _, g := range m.groups {
			if g.part != r.part {
				continue
			}
			g := g.without(without)
			for _, c := range g.cells {
				if c.method == r.method && (r.epsilon == 0 || c.mean.Epsilon == r.epsilon) && (!r.best || c == g.best(r.method)) {
					x, y = append(x, r.x(g, c)), append(y, r.y(g, c))
				}
			}
		}
		return x, y
	}
	x, _ := points(-1)
	if len(x) < 3 {
		return run.Fit{}, false
	}
	return run.JackknifeExponent(r.method, r.of, len(m.groups[0].cells[0].errors), points), true
}

// without is the group without one repetition, or with all of them for -1.
func (g *group) without(repetition int) *group {
	if repetition < 0 {
		return g
	}
	less := *g
	less.cells = make([]*cell, len(g.cells))
	for i, c := range g.cells {
		fewer := *c
		fewer.errors = slices.Delete(slices.Clone(c.errors), repetition, repetition+1)
		less.cells[i] = &fewer
	}
	return &less
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

// comparisons: exponents of theory, every squared error against theory's sum of bias, sampling and noise, the noise alone, and where Gaussian noise is
// the smaller.
func (m findings) comparisons() []checks.Comparison {
	var all []checks.Comparison
	for _, r := range rates() {
		if f, ok := m.fit(r); ok {
			all = append(all, f.Against(r.method+": exponent of the "+r.of, r.exponent, r.tolerance))
		}
	}
	for _, part := range []string{byRows, byEpsilon, byThreshold, byDimension} {
		var errors []checks.Comparison
		for _, g := range m.groups {
			if g.part != part {
				continue
			}
			for _, c := range g.cells {
				// Relative to theory, so that all have one scale.
				ratios := make([]float64, len(c.errors))
				for i, e := range c.errors {
					ratios[i] = e / g.expected(c)
				}
				errors = append(errors, checks.Equal(fmt.Sprintf("%s, %s, n = %d", g.row(c).Condition, c.method, g.n), 1, 0, checks.Of(ratios)))
			}
		}
		if len(errors) > 0 {
			all = append(all, checks.Worst("squared error over theory's bias, sampling and noise, by "+part, errors))
		}
	}
	return append(all, m.crossing()...)
}

// crossing: where theory says that the two kinds of noise differ by more than a tenth, the smaller one by theory errs less as measured. Both see the same rows.
func (m findings) crossing() []checks.Comparison {
	var all []checks.Comparison
	for _, g := range m.groups {
		if g.part != byDimension {
			continue
		}
		l, n := g.cells[0], g.cells[1]
		expected := math.Log(g.expected(n) / g.expected(l))
		if math.Abs(expected) < math.Log(1.1) || len(l.errors) < 2 {
			continue
		}
		differences := make([]float64, len(l.errors))
		for i := range differences {
			differences[i] = math.Copysign(1, expected) * (n.errors[i] - l.errors[i]) / g.expected(l)
		}
		larger, smaller := gaussian, laplace
		if expected < 0 {
			larger, smaller = laplace, gaussian
		}
		all = append(all, checks.AtLeast(fmt.Sprintf("%d numbers a row: squared error with %s noise less that with %s noise (delta %v)", l.mean.Dim, larger, smaller, delta), 0, checks.Of(differences)))
	}
	return all
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
