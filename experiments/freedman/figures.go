package freedman

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/internal/figure"
	"github.com/holdoutd/holdoutd/thresholdout"
)

func figuresOf(classical []regressions, rows []run.Row) []run.Figure {
	var figures []run.Figure
	if len(classical) > 0 && len(classical[0].runs) > 0 {
		f := classical[0]
		figures = append(figures, run.Figure{Name: "screened", Caption: "A regression on pure noise, and again on the regressors that were significant at 25% in it. Lines are what there is to be found: " +
			"no fit, and one test in twenty.", Draw: f.drawScreened}, run.Figure{Name: "p-values", Caption: "Share of runs whose F test has a P-value of at most x: a valid test follows the thin line. " +
			"After screening on the same data most runs of noise are significant even at 1%.", Draw: f.drawPValues})
	}
	if slices.ContainsFunc(rows, func(r run.Row) bool { return r.Condition == throughHoldout }) {
		figures = append(figures, run.Figure{Name: "holdout", Caption: "How often the screened prediction hits the response's sign, as each holdout tells it, with its interval, both on average over runs: " +
			"truly it is half. The intervals of the mechanisms hold for all questions together, the plain one only for a single one.", Draw: func() (*plot.Plot, error) { return drawHoldouts(rows) }})
	}
	return figures
}

// drawScreened draws what either regression says, beside what there is in noise.
func (f regressions) drawScreened() (*plot.Plot, error) {
	p := figure.New(fmt.Sprintf("Regressions of noise on noise, %d rows, %d %s", f.size.n, f.size.p, f.size.design), "", "share")
	rows := f.rows()
	measures := []struct {
		set, title string
		truth      float64
	}{{rSquared, "R²", 0}, {testRejects, "F tests with P < 0.05", 0.05}, {shareSignificant, "coefficients with P < 0.05", 0.05}}
	var names []string
	for i, m := range measures {
		names = append(names, m.title)
		p.Add(&figure.Dash{XY: plotter.XY{X: float64(i), Y: m.truth}, Width: 130})
	}
	for i, condition := range []string{allRegressors, screened} {
		var values []float64
		for _, m := range measures {
			values = append(values, run.Find(rows, condition, f.size.design, int64(f.size.n), m.set).Mean)
		}
		if err := figure.AddBars(p, figure.Bars{Series: i, Of: 2, Style: i, Width: 52, Number: "%.2f"}, condition, values); err != nil {
			return nil, err
		}
	}
	p.Legend.Add("what noise has", &figure.Dash{})
	p.NominalX(names...)
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = -0.5, float64(len(names))-0.5, 0, 1.35 // room for the legend above
	p.Y.Tick.Marker = plot.ConstantTicks{{Value: 0, Label: "0"}, {Value: 0.25, Label: "0.25"}, {Value: 0.5, Label: "0.5"}, {Value: 0.75, Label: "0.75"}, {Value: 1, Label: "1"}}
	p.Legend.Top, p.Legend.Left = true, true
	return p, nil
}

// drawPValues draws the distributions of the F tests' P-values.
func (f regressions) drawPValues() (*plot.Plot, error) {
	const least = 1e-8 // of the axis: smaller P-values are drawn there
	p := figure.New(fmt.Sprintf("F tests of regressions on noise, %d rows, %d %s, %d runs", f.size.n, f.size.p, f.size.design, len(f.runs)), "P-value of the F test", "share of runs with at most this P-value")
	p.X.Scale = plot.LogScale{}
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = least, 1, 0, 1.02
	p.X.Tick.Marker = plot.ConstantTicks{{Value: 1e-8, Label: "1e-8"}, {Value: 1e-6, Label: "1e-6"}, {Value: 1e-4, Label: "1e-4"}, {Value: 0.01, Label: "0.01"}, {Value: 0.05, Label: "0.05"}, {Value: 1, Label: "1"}}
	for i, pass := range []struct {
		name string
		of   func(r analysis) float64
	}{{"first regression, all regressors", func(r analysis) float64 { return r.First.P }},
		{"second, those with P below 0.25", func(r analysis) float64 { return r.Second.P }}} {
		values := make([]float64, len(f.runs))
		for j, r := range f.runs {
			values[j] = max(least, pass.of(r))
		}
		slices.Sort(values)
		steps := plotter.XYs{{X: least, Y: 0}}
		for j, v := range values {
			steps = append(steps, plotter.XY{X: v, Y: float64(j) / float64(len(values))}, plotter.XY{X: v, Y: float64(j+1) / float64(len(values))})
		}
		line, err := plotter.NewLine(append(steps, plotter.XY{X: 1, Y: 1}))
		if err != nil {
			return nil, err
		}
		line.LineStyle = figure.Line(i)
		p.Add(line)
		p.Legend.Add(pass.name, line)
	}
	var diagonal plotter.XYs
	for e := -8.0; e <= 0; e += 0.05 {
		diagonal = append(diagonal, plotter.XY{X: math.Pow(10, e), Y: math.Pow(10, e)})
	}
	valid, err := plotter.NewLine(diagonal)
	if err != nil {
		return nil, err
	}
	valid.Width = 0.8
	p.Add(valid)
	p.Legend.Add("a valid test", valid)
	p.Legend.Left, p.Legend.Top = true, true
	p.Y.Tick.Marker = figure.EvenTicks
	return p, nil
}

// drawHoldouts draws what each holdout tells at last, with its interval.
func drawHoldouts(rows []run.Row) (*plot.Plot, error) {
	var asking []run.Row
	for _, r := range rows {
		if r.Condition == throughHoldout && r.Set == hitsTold {
			asking = append(asking, r)
		}
	}
	n, k := asking[0].N, asking[0].K
	p := figure.New(fmt.Sprintf("A prediction screened from %d noise regressors, asked about in a holdout of %d rows", k, n), "mechanism", "hits of the response's sign")
	var names []string
	for i, r := range asking {
		names = append(names, r.Method)
		low, high := run.Find(rows, r.Condition, r.Method, n, lowerEnd), run.Find(rows, r.Condition, r.Method, n, upperEnd)
		var point figure.Points
		point.Add(float64(i), r.Mean, low.Mean, high.Mean)
		label := "told by " + r.Method + ", with its interval"
		if r.Method == string(thresholdout.Naive) {
			label = "told by " + r.Method + ", with the plain interval"
		}
		if err := figure.AddMarks(p, i, label, point); err != nil {
			return nil, err
		}
	}
	p.NominalX(names...)
	truth := plotter.NewFunction(func(float64) float64 { return 0.5 })
	truth.Width = 0.8
	p.Add(truth)
	p.Legend.Add("truth", truth)
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = -0.5, float64(len(names))-0.5, 0.2, 0.95
	p.Y.Tick.Marker = figure.EvenTicks
	p.Legend.Top = true
	return p, nil
}
