package dpsgd

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"github.com/holdoutd/holdoutd/dp/account"
	"github.com/holdoutd/holdoutd/dp/learn"
	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/experiments/seeds"
	"github.com/holdoutd/holdoutd/internal/figure"
)

// separation is the measure of an audit, Row.Set: by how many of its standard deviations a statistic of the trained model
// moves when a canary is among the examples.
const separation = "separation by a canary"

// audit trains on a few examples with and without a canary, whose gradient is clipped and shares no direction with the
// others', and looks at the model along that direction: the strongest test of the last model that we know, and close to
// what the account allows to one who sees all models. Learning is so slow that the canary's gradient stays the same.
type audit struct {
	epsilon  float64
	settings learn.Private
	found    []float64 // separations by repetition; nil until all are finished
}

const (
	auditRows     = 10
	auditRate     = 1e-9
	auditDistance = 1000 // of a row from 0: a gradient of that norm is clipped
)

// auditRuns are the trainings of a repetition, of each kind.
func auditRuns(quick bool) int {
	if quick {
		return 30
	}
	return 300
}

func audits(cells []*cell) []*audit {
	var all []*audit
	for _, c := range cells {
		if c.method == privateSGD && c.model.hidden == nil && c.n == findings(cells).largest() {
			settings := c.model.private
			settings.Multiplier, settings.Rate, settings.Momentum = c.multiplier, auditRate, 0
			all = append(all, &audit{epsilon: c.epsilon, settings: settings})
		}
	}
	return all
}

// runAudits returns the audits that are finished.
func runAudits(ctx context.Context, o run.Options, all []*audit, repetitions int) ([]*audit, error) {
	found, finished, err := run.Repeat(ctx, o, "audits", len(all)*repetitions, func(ctx context.Context, i int) (float64, error) {
		return all[i/repetitions].repetition(ctx, auditRuns(o.Quick), seeds.Of(o.Seed, 3, uint64(i/repetitions), uint64(i%repetitions)))
	})
	var done []*audit
	for i, a := range all {
		from, to := i*repetitions, (i+1)*repetitions
		if run.AllFinished(finished[from:to]) {
			a.found = found[from:to]
			done = append(done, a)
		}
	}
	return done, err
}

// expected is the separation by theory: a canary is in a step with probability q and then moves its sum by the clipping norm,
// against the noise of all steps.
func (a *audit) expected() float64 {
	return a.settings.Sampling * math.Sqrt(float64(a.settings.Steps)) / a.settings.Multiplier
}

// repetition returns the separation that runs trainings of each kind show.
func (a *audit) repetition(ctx context.Context, runs int, seed uint64) (float64, error) {
	without := learn.Data{Dim: 2, Classes: 2}
	for i := range auditRows {
		without.X, without.Y = append(without.X, 0, auditDistance), append(without.Y, i%2)
	}
	with := learn.Data{Dim: 2, Classes: 2, X: append([]float64{auditDistance, 0}, without.X...), Y: append([]int{0}, without.Y...)}
	s := noise.Seeded(seed)
	statistic := func(d learn.Data) ([]float64, error) {
		values := make([]float64, runs)
		for i := range values {
			n := learn.Softmax(2, 2)
			if err := n.TrainPrivately(ctx, d, a.settings, s); err != nil {
				return nil, err
			}
			// Weights of the first feature: class 0 in row 0, class 1 in row 1. The step divides by the expected batch.
			p := n.Params()
			values[i] = (p[0] - p[2]) / math.Sqrt2 * a.settings.Sampling * float64(d.Len()) / auditRate
		}
		return values, nil
	}
	in, err := statistic(with)
	if err != nil {
		return 0, err
	}
	out, err := statistic(without)
	if err != nil {
		return 0, err
	}
	center, sd := stat.MeanStdDev(out, nil)
	return (stat.Mean(in, nil) - center) / sd, nil
}

func (a *audit) row() run.Row {
	r := run.Row{Condition: fmt.Sprintf("canary, epsilon %v", a.epsilon), Method: privateSGD, N: auditRows, K: int64(a.settings.Steps), Set: separation, Repetitions: len(a.found)}
	r.Summarise(a.found)
	return r
}

// shownEpsilon is the epsilon that a separation stands for, taking the statistic for normal.
func shownEpsilon(separation float64) float64 {
	return account.GDP(max(0, separation)).Epsilon(delta)
}

// auditChecks: the epsilons that separations stand for are within what the account says, and separations are what sampling and
// noise of the stated sizes make: half the noise would double them.
func auditChecks(checks *run.Checks, all []*audit) {
	if len(all) == 0 || len(all[0].found) < 2 {
		return
	}
	repetitions := float64(len(all[0].found))
	student := func(p float64) float64 { return run.Student(p, repetitions-1) }
	for _, a := range all {
		r := a.row()
		checks.Add(1, func(alpha float64) run.Check {
			standard := r.SD / math.Sqrt(repetitions)
			reach := student(1-alpha) * standard
			return run.Check{What: fmt.Sprintf("epsilon that a canary shows of a training that claims %v", a.epsilon), Expected: a.epsilon, Got: shownEpsilon(r.Mean),
				Low: shownEpsilon(r.Low), High: shownEpsilon(r.High), Criterion: fmt.Sprintf("not surely above, %.1f standard errors of the separation", student(1-alpha)),
				Notices: fmt.Sprintf("a training of epsilon %.3g", shownEpsilon(largestSeparation(a.epsilon)+reach+student(run.Power)*standard)),
				Agrees:  shownEpsilon(r.Mean-reach) <= a.epsilon}
		})
	}
	ratio := run.Row{Repetitions: len(all[0].found)}
	ratio.Summarise(separationRatios(all))
	checks.Equal("separations by a canary over those that the stated noise and sampling make", 1, 0, ratio)
}

// largestSeparation is the one that stands for an epsilon.
func largestSeparation(epsilon float64) float64 {
	low, high := 0.0, 1.0
	for shownEpsilon(high) < epsilon {
		high *= 2
	}
	for range 60 {
		if middle := (low + high) / 2; shownEpsilon(middle) < epsilon {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// separationRatios fits, for each repetition, separation = ratio * expected by least squares.
func separationRatios(all []*audit) []float64 {
	ratios, squares := make([]float64, len(all[0].found)), 0.0
	for _, a := range all {
		squares += a.expected() * a.expected()
		for i, v := range a.found {
			ratios[i] += v * a.expected()
		}
	}
	for i := range ratios {
		ratios[i] /= squares
	}
	return ratios
}

func drawAudit(all []*audit) (*plot.Plot, error) {
	p := figure.New("Auditing DP-SGD with a canary", "epsilon that the account promises", "epsilon that the canary shows")
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = quarterTicks, quarterTicks
	var claimed plotter.XYs
	var points figure.Points
	for _, a := range all {
		r := a.row()
		claimed = append(claimed, plotter.XY{X: a.epsilon, Y: a.epsilon})
		got := shownEpsilon(r.Mean)
		if got == 0 {
			continue // below the least separation that shows anything at this delta
		}
		points.Add(a.epsilon, got, max(shownEpsilon(r.Low), got/4), shownEpsilon(r.High))
	}
	line, err := plotter.NewLine(claimed)
	if err != nil {
		return nil, err
	}
	line.Width = vg.Points(1)
	p.Add(line)
	p.Legend.Add("promised at most", line)
	if len(points.XYs) > 0 {
		if err := figure.AddMarks(p, 0, "shown by the canary", points); err != nil {
			return nil, err
		}
	}
	figure.Widen(&p.X)
	figure.Widen(&p.Y)
	p.Legend.Top, p.Legend.Left = true, true
	return p, nil
}
