package dpsgd

import (
	"fmt"
	"slices"

	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/experiments/run/checks"
)

// findings are the cells that are finished.
type findings []*cell

func (c *cell) condition() string {
	if c.method == privateSGD {
		return fmt.Sprintf("%s, epsilon %v", c.model.name, c.epsilon)
	}
	return c.model.name
}

func (c *cell) row(set string, values []float64) run.Row {
	r := run.Row{Condition: c.condition(), Method: c.method, N: int64(c.n), K: int64(c.model.private.Steps), Set: set, Repetitions: len(values)}
	if c.method == plainSGD {
		r.K = int64(c.model.plain.Epochs)
	}
	r.Summarise(values)
	return r
}

// values of a measure, by repetition.
func (c *cell) values(of func(outcome) float64) []float64 {
	v := make([]float64, len(c.runs))
	for i, r := range c.runs {
		v[i] = of(r)
	}
	return v
}

func (c *cell) training() run.Row {
	return c.row(digitsTraining, c.values(func(r outcome) float64 { return r.Training }))
}

func (c *cell) test() run.Row {
	return c.row(digitsTest, c.values(func(r outcome) float64 { return r.Test }))
}

func (c *cell) advantage() run.Row {
	return c.row(membership, c.values(func(r outcome) float64 { return r.Advantage }))
}

// excess is the loss over that of the same model, size and split without noise; false where that is not finished.
func (d findings) excess(c *cell) (run.Row, bool) {
	for _, base := range d {
		if base.method == noiselessSGD && base.model.name == c.model.name && base.n == c.n && c.method == privateSGD {
			values := c.values(func(r outcome) float64 { return r.Loss })
			for i, r := range base.runs {
				values[i] -= r.Loss
			}
			return c.row(excessLoss, values), true
		}
	}
	return run.Row{}, false
}

func (d findings) rows() []run.Row {
	var rows []run.Row
	for _, c := range d {
		rows = append(rows, c.training(), c.test(), c.advantage())
		if r, ok := d.excess(c); ok {
			rows = append(rows, r)
		}
	}
	return rows
}

// excessAgainst is what the rate's exponent is of.
const excessAgainst = "excess training loss against n epsilon"

// without is the findings without one repetition, or with all of them for -1.
func (d findings) without(repetition int) findings {
	if repetition < 0 {
		return d
	}
	less := make(findings, len(d))
	for i, c := range d {
		fewer := *c
		fewer.runs = slices.Delete(slices.Clone(c.runs), repetition, repetition+1)
		less[i] = &fewer
	}
	return less
}

// ratePoints are n epsilon and the mean excess loss of a model's cells.
func (d findings) ratePoints(model string) (x, y []float64) {
	for _, c := range d {
		if c.model.name != model || !rated(c.epsilon) {
			continue
		}
		if r, ok := d.excess(c); ok && r.Mean > 0 {
			x, y = append(x, float64(c.n)*c.epsilon), append(y, r.Mean)
		}
	}
	return x, y
}

func (d findings) fits() []run.Fit {
	var fits []run.Fit
	for _, m := range models(false) {
		if x, _ := d.ratePoints(m.name); len(x) >= 3 {
			fits = append(fits, run.JackknifeExponent(m.name, excessAgainst, len(d[0].runs), func(without int) (x, y []float64) { return d.without(without).ratePoints(m.name) }))
		}
	}
	return fits
}

const (
	rateTolerance     = 0.25 // of the exponent: noise also moves the parameters out of the range in which the loss is a parabola
	accuracyTolerance = 0.02 // at the largest epsilon, beside training without noise
)

func (d findings) comparisons() []checks.Comparison {
	var all []checks.Comparison
	for _, f := range d.fits() {
		if f.Method == models(false)[0].name { // the convex one
			all = append(all, f.Against(f.Method+": exponent of the "+f.Of, -2, rateTolerance))
		}
	}
	for _, m := range models(false) {
		all = append(all, d.ofModel(m.name)...)
	}
	return append(all, accountComparisons()...)
}

// less is the sample of a measure's differences between two ways of training, on the same splits.
func (c *cell) less(other *cell, of func(outcome) float64) checks.Sample {
	values, others := c.values(of), other.values(of)
	for i := range values {
		values[i] -= others[i]
	}
	return checks.Of(values)
}

// ofModel are the comparisons of one model at the largest size: accuracy grows with epsilon, is at the largest what it is without noise,
// and the attack gains no more than is allowed.
func (d findings) ofModel(model string) []checks.Comparison {
	var private []*cell
	var noiseless *cell
	for _, c := range d {
		if c.model.name != model || c.n != d.largest() {
			continue
		}
		switch c.method {
		case privateSGD:
			private = append(private, c)
		case noiselessSGD:
			noiseless = c
		}
	}
	var all []checks.Comparison
	for i := 1; i < len(private); i++ {
		all = append(all, checks.AtLeast(fmt.Sprintf("%s: training accuracy at epsilon %v less that at %v, on the same splits", model, private[i].epsilon, private[i-1].epsilon), 0,
			private[i].less(private[i-1], func(r outcome) float64 { return r.Training })))
	}
	if len(private) > 0 && noiseless != nil {
		last := private[len(private)-1]
		all = append(all, checks.AtLeast(fmt.Sprintf("%s: test accuracy at epsilon %v less that without noise, on the same splits", model, last.epsilon), -accuracyTolerance,
			last.less(noiseless, func(r outcome) float64 { return r.Test })))
	}
	for _, c := range private {
		if bound := advantageBound(c.epsilon, delta); bound < 0.9 { // more is no limit to speak of
			all = append(all, checks.AtMost(fmt.Sprintf("%s: advantage of the membership attack at epsilon %v, n = %d, against what privacy allows", model, c.epsilon, c.n),
				bound, c.advantage().Sample()))
		}
	}
	return all
}

// largest is the largest number of digits that any finished cell trained on.
func (d findings) largest() int {
	n := 0
	for _, c := range d {
		n = max(n, c.n)
	}
	return n
}

func (d findings) table() [][]string {
	table := [][]string{{"MODEL", "METHOD", "N", "EPSILON", "NOISE", "TRAINING ACCURACY", "TEST ACCURACY", "EXCESS LOSS", "MEMBERSHIP ADVANTAGE"}}
	for _, c := range d {
		eps, sigma, excess := "-", "-", "-"
		if c.method == privateSGD {
			eps, sigma = fmt.Sprint(c.epsilon), fmt.Sprintf("%.2f", c.multiplier)
		}
		if r, ok := d.excess(c); ok {
			excess = fmt.Sprintf("%.3g", r.Mean)
		}
		table = append(table, []string{c.model.name, c.method, fmt.Sprint(c.n), eps, sigma, fmt.Sprintf("%.3f", c.training().Mean),
			fmt.Sprintf("%.3f", c.test().Mean), excess, fmt.Sprintf("%.3f", c.advantage().Mean)})
	}
	return table
}
