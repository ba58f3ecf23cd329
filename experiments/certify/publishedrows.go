package certify

import (
	"fmt"
	"math"
	"strings"

	"gonum.org/v1/plot"

	"github.com/holdoutd/holdoutd/experiments/run"
)

// publishedSizes are attack sizes at which the published settings are compared; a row has those of attackSizes, too.
var publishedSizes = []float64{0, 0.1, 0.25, 0.5, 0.75, 1, 1.5}

// rightRadius is a measure, run.Row.Set: the mean over a run's digits, 0 where the prediction is wrong or nothing is certified.
const rightRadius = "certified radius of right predictions"

// accuracy of a run at an attack size, as a share of its digits.
func (t trial) accuracy(size float64) float64 {
	count := 0
	for _, r := range t.Radius {
		if r > size {
			count++
		}
	}
	return float64(count) / float64(len(t.Radius))
}

func (t trial) mean() (mean float64) {
	for _, r := range t.Radius {
		mean += r / float64(len(t.Radius))
	}
	return mean
}

// condition names a set and paper in run.Row.Condition.
func (p published) condition(at int) string {
	if at == len(p.all) {
		return p.set.name + ", " + undefendedSetting
	}
	return fmt.Sprintf("%s, %s, %s", p.set.name, p.all[at].paper, p.all[at].name)
}

// rows of all settings: accuracies at attackSizes and, beyond, at publishedSizes, then abstentions and radii.
func (p published) rows() (rows []run.Row) {
	for at, trials := range p.trials {
		base := run.Row{Condition: p.condition(at), Method: undefendedAttack(0), K: int64(len(trials[0].Radius))}
		set, last := certifiedAccuracy, rightRadius
		if at < len(p.all) {
			base.Method, base.N = p.all[at].way.String(), int64(p.all[at].draws)
		} else {
			set, last = attackedAccuracy, smallestAttack
		}
		add := func(set string, of func(t trial) float64) {
			r := base
			r.Set = set
			rows = append(rows, run.Measured(r, trials, of))
		}
		for _, size := range p.sizes() {
			add(set(size), func(t trial) float64 { return t.accuracy(size) })
		}
		if at < len(p.all) {
			add(abstained, func(t trial) float64 { return float64(t.Abstained) / float64(len(t.Radius)) })
		}
		add(last, trial.mean)
		if len(trials[0].Smallest) > 0 {
			for _, size := range p.sizes() {
				add(attackedAccuracy(size), underAttack(size))
			}
		}
	}
	return rows
}

// sizes of the rows.
func (p published) sizes() []float64 {
	sizes := append([]float64{}, attackSizes...)
	for _, s := range publishedSizes {
		if s > attackSizes[len(attackSizes)-1] || s == 0.25 {
			sizes = append(sizes, s)
		}
	}
	return sizes
}

// table has a line for each setting, as tableOf.
func (p published) table(rows []run.Row) (lines [][]string) {
	for at := range p.trials {
		name, method, draws, set, last := p.condition(at), undefendedAttack(0), int64(0), attackedAccuracy, smallestAttack
		if at < len(p.all) {
			method, draws, set, last = p.all[at].way.String(), int64(p.all[at].draws), certifiedAccuracy, rightRadius
		}
		find := func(set string) string { return fmt.Sprintf("%.3f", run.Find(rows, name, method, draws, set).Mean) }
		line := []string{name, method, "", "(" + find(last) + ")"}
		if at < len(p.all) {
			line[2], line[3] = find(abstained), find(last)
		}
		for _, size := range attackSizes {
			line = append(line, find(set(size)))
		}
		lines = append(lines, line)
	}
	return lines
}

// common are shares that a comparison by their spread is right for: of rarer ones a few runs have none.
const common = 0.1

// checks compare with the independent program, with what all draws can show at most, and with what the papers' figures say.
func (p published) checks(checks *run.Checks, quick bool) error {
	for _, paper := range []string{cohen, pixelDP} {
		var radii, accuracies []run.Pair
		attacked, broken, alpha, nearest := 0, 0, 0., 0.
		for at, s := range p.all {
			if s.paper != paper {
				continue
			}
			stored, err := publishedReference(quick, p.set.name, s)
			if err != nil {
				return err
			}
			values := func(of func(t trial) float64) (v []float64) {
				for _, t := range p.trials[at] {
					v = append(v, of(t))
				}
				return v
			}
			radii = append(radii, run.Pair{At: s.name, Values: values(trial.mean), Stored: stored.Radius})
			for i, size := range publishedSizes {
				if mean := stored.Accuracy[i].Mean; mean < common || mean > 1-common {
					continue
				}
				accuracies = append(accuracies, run.Pair{At: fmt.Sprintf("%s at %v", s.name, size), Values: values(func(t trial) float64 { return t.accuracy(size) }), Stored: stored.Accuracy[i]})
			}
			largest := 0.
			for _, t := range p.trials[at] {
				attacked, broken, largest = attacked+t.Attacked, broken+t.Broken, max(largest, t.Largest)
			}
			part := largest / stored.Ceiling
			nearest, alpha = max(nearest, part), s.alpha
			checks.Stated(0, run.Check{What: p.condition(at) + ": the largest radius over that of draws that all agree (SciPy)", Expected: 1, Got: part, Low: part, High: part,
				Agrees: part <= 1+formulaTolerance, Criterion: "at most", Notices: fmt.Sprintf("radii %.3g times too large", (1+formulaTolerance)/part)})
		}
		of := p.set.name + ", " + paper
		checks.Stated(0, run.Check{What: of + ": the largest of them", Expected: 1, Got: nearest, Low: nearest, High: nearest,
			Agrees: math.Abs(nearest-1) <= formulaTolerance, Criterion: fmt.Sprintf("within a part of %v: all draws of some digit agree", formulaTolerance),
			Notices: fmt.Sprintf("a part of %v", formulaTolerance)})
		r := run.Row{Mean: float64(broken) / float64(max(1, attacked)), Repetitions: max(1, attacked), Rate: true}
		r.Low, r.High = run.RateInterval(int64(broken), int64(max(1, attacked)), 0.05)
		checks.AtMost(fmt.Sprintf("%s: share of certificates that an attack at %v of the radius breaks", of, inside), alpha+sureAlpha*insideTries, r)
		checks.Stored(of+": certified radius of right predictions (NumPy)", radii)
		checks.Stored(of+": certified accuracy (NumPy)", accuracies)
	}
	p.shapeChecks(checks)
	return nil
}

// at is the index of a setting, -1 where there is none.
func (p published) at(paper, name string) int {
	for i, s := range p.all {
		if s.paper == paper && s.name == name {
			return i
		}
	}
	return -1
}

// beside takes a check that one number of a run is not below another, of the same digits.
func (p published) beside(checks *run.Checks, what string, large, small int, of func(t trial) float64, than func(t trial) float64) {
	if large < 0 || small < 0 {
		return
	}
	differences := make([]float64, len(p.trials[large]))
	for i, t := range p.trials[large] {
		differences[i] = of(t) - than(p.trials[small][i])
	}
	checks.AtLeast(fmt.Sprintf("%s: %s", p.set.name, what), 0, run.Measured(run.Row{}, differences, func(d float64) float64 { return d }))
}

// defended is the size of attack at which a smoothed model is compared with an undefended one.
const defended = 1

// underAttack is the share of a run's digits that an attack of a size leaves right.
func underAttack(size float64) func(t trial) float64 {
	return func(t trial) float64 { return trial{Radius: t.Smallest}.accuracy(size) }
}

// shapeChecks are what the papers' figures say: little noise predicts more, much noise certifies farther, smoothing certifies farther than PixelDP, and where an
// attack leaves little of an undefended model a certificate holds more.
func (p published) shapeChecks(checks *run.Checks) {
	at := func(size float64) func(t trial) float64 { return func(t trial) float64 { return t.accuracy(size) } }
	first, second, last := p.at(cohen, "sigma 0.12"), p.at(cohen, "sigma 0.25"), p.at(cohen, "sigma 1")
	p.beside(checks, "certified accuracy at 0, with sigma 0.12 less that with 1", first, last, at(0), at(0))
	p.beside(checks, "certified accuracy at 0.5, with sigma 0.25 less that with 0.12", second, first, at(0.5), at(0.5))
	p.beside(checks, "certified accuracy at 0, with PixelDP's L 0.03 less that with 1", p.at(pixelDP, "L 0.03"), p.at(pixelDP, "L 1"), at(0), at(0))
	p.beside(checks, "certified accuracy at 0.1, with PixelDP's L 0.1 less that with 0.03", p.at(pixelDP, "L 0.1"), p.at(pixelDP, "L 0.03"), at(0.1), at(0.1))
	p.beside(checks, "certified radius, by smoothing with sigma 0.25 less that by PixelDP with L 0.1, which is as much noise", second, p.at(pixelDP, "L 0.1"), trial.mean, trial.mean)
	p.beside(checks, fmt.Sprintf("right under an attack of size %v, with sigma %v less that undefended", defended, attackedScale), p.at(cohen, fmt.Sprintf("sigma %v", attackedScale)), len(p.all),
		underAttack(defended), at(defended))
}

// figures: a curve for each noise of a paper, and what an attack leaves of the undefended model.
func (p published) figures() (figures []run.Figure) {
	for _, paper := range []string{cohen, pixelDP} {
		var curves []curve
		add := func(name string, trials []trial, of func(size float64) func(t trial) float64) {
			curves = append(curves, curve{name, func(size float64) (share float64) {
				for _, t := range trials {
					share += of(size)(t) / float64(len(trials))
				}
				return share
			}})
		}
		certified := func(size float64) func(t trial) float64 { return func(t trial) float64 { return t.accuracy(size) } }
		for at, s := range p.all {
			if s.paper == paper {
				add("certified, "+s.name, p.trials[at], certified)
			}
		}
		if at := p.at(paper, fmt.Sprintf("sigma %v", attackedScale)); at >= 0 {
			add(fmt.Sprintf("left right by an attack, sigma %v", attackedScale), p.trials[at], underAttack)
		}
		add("left right by an attack, undefended", p.trials[len(p.all)], certified)
		name := map[string]string{cohen: "cohen", pixelDP: "pixeldp"}[paper] + "-" + strings.ToLower(p.set.name)
		figures = append(figures, run.Figure{Name: name,
			Caption: fmt.Sprintf("%s at the settings of %s: the share of digits that are predicted right and certified against attacks of a size, by noise, and the share that an attack of the size "+
				"leaves right, also of a model without a defence. %d runs of %d digits each.", p.set.name, paper, len(p.trials[0]), digitsEach),
			Draw: func() (*plot.Plot, error) {
				return drawAccuracy(fmt.Sprintf("%s at the settings of %s", p.set.name, paper), "L2", curves, endOf(curves, 0.1))
			}})
	}
	return figures
}
