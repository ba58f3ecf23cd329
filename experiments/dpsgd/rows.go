package dpsgd

import (
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/experiments/run"
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

// gaps are how much better a model is on its own digits than on others, by repetition.
func (c *cell) gaps() []float64 {
	return c.values(func(r outcome) float64 { return r.Training - r.Test })
}

func (c *cell) gap() run.Row { return c.row(gap, c.gaps()) }

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
		rows = append(rows, c.training(), c.test(), c.gap(), c.advantage())
		if r, ok := d.excess(c); ok {
			rows = append(rows, r)
		}
	}
	return rows
}

// excessAgainst is what the rate's exponent is of.
const excessAgainst = "excess training loss against n epsilon"

// ratePoints are n epsilon and the mean excess loss of a model's cells.
func (d findings) ratePoints(model string) (x, y []float64) {
	x, rows := d.rateRows(model)
	for _, r := range rows {
		y = append(y, r.Mean)
	}
	return x, y
}

// rateRows are n epsilon and the excess loss of a model's cells.
func (d findings) rateRows(model string) (x []float64, y []run.Row) {
	for _, c := range d {
		if c.model.name != model || !rated(c.epsilon) {
			continue
		}
		if r, ok := d.excess(c); ok && r.Mean > 0 {
			x, y = append(x, float64(c.n)*c.epsilon), append(y, r)
		}
	}
	return x, y
}

func (d findings) fits() []run.Fit {
	var fits []run.Fit
	for _, m := range models(false) {
		if x, y := d.ratePoints(m.name); len(x) >= 3 {
			fits = append(fits, run.FitExponent(m.name, excessAgainst, x, y))
		}
	}
	return fits
}

const (
	rateTolerance     = 0.1  // of the exponent: noise also moves the parameters out of the range in which the loss is a parabola
	accuracyTolerance = 0.01 // at the largest epsilon, beside training without noise
)

func (d findings) checks(audits []*audit, quick bool) ([]run.Check, error) {
	var checks run.Checks
	convex := models(false)[0].name
	if x, y := d.rateRows(convex); len(x) >= 3 {
		slope, standard := run.Slope(x, y)
		checks.Estimate(convex+": exponent of the "+excessAgainst, -2, rateTolerance, slope, standard)
	}
	for _, m := range models(false) {
		d.ofModel(&checks, m.name)
	}
	accountChecks(&checks)
	compositionChecks(&checks)
	auditChecks(&checks, audits)
	if len(audits) == 0 { // interrupted: what is missing is not compared
		return checks.Decide(), nil
	}
	err := d.storedChecks(&checks, quick)
	return checks.Decide(), err
}

// ofModel are the checks of one model at the largest size: accuracy grows with epsilon, is at the largest what it is without noise,
// and the attack gains no more than is allowed.
func (d findings) ofModel(checks *run.Checks, model string) {
	var private []*cell
	var noiseless, plain *cell
	for _, c := range d {
		if c.model.name != model || c.n != d.largest() {
			continue
		}
		switch c.method {
		case privateSGD:
			private = append(private, c)
		case noiselessSGD:
			noiseless = c
		case plainSGD:
			plain = c
		}
	}
	for i := 1; i < len(private); i++ {
		less, more := private[i-1].training(), private[i].training()
		standard := math.Hypot(less.SD, more.SD) / math.Sqrt(float64(less.Repetitions))
		gain := run.Row{Mean: more.Mean - less.Mean, SD: standard * math.Sqrt(float64(less.Repetitions)), Repetitions: less.Repetitions}
		gain.Low, gain.High = gain.Mean-2*standard, gain.Mean+2*standard
		checks.AtLeast(fmt.Sprintf("%s: training accuracy at epsilon %v less that at %v", model, private[i].epsilon, private[i-1].epsilon), 0, gain)
	}
	if len(private) > 0 && noiseless != nil {
		last := private[len(private)-1]
		noisy, without := last.test(), noiseless.test()
		checks.Estimate(fmt.Sprintf("%s: test accuracy at epsilon %v beside training without noise", model, last.epsilon), without.Mean, accuracyTolerance, noisy.Mean,
			math.Hypot(noisy.SD/math.Sqrt(float64(noisy.Repetitions)), without.SD/math.Sqrt(float64(without.Repetitions))))
	}
	for _, c := range private {
		if plain == nil {
			continue
		}
		differences := c.gaps()
		for i, g := range plain.gaps() {
			differences[i] -= g
		}
		checks.AtMost(fmt.Sprintf("%s: generalisation gap at epsilon %v less that of plain training", model, c.epsilon), 0,
			run.Measured(run.Row{}, differences, func(d float64) float64 { return d }))
	}
	for _, c := range private {
		if bound := advantageBound(c.epsilon, delta); bound < 0.9 { // more is no limit to speak of
			checks.AtMost(fmt.Sprintf("%s: advantage of the membership attack at epsilon %v, n = %d, against what privacy allows", model, c.epsilon, c.n), bound, c.advantage())
		}
	}
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
