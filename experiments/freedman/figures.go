package freedman

import (
	"fmt"
	"math"
	"slices"
	"strings"

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
		figures = append(figures, run.Figure{Name: "fit", Caption: "Regressions on pure noise, half as many regressors as rows. R2 and shares of significant tests after screening on the same data, with one standard " +
			"deviation of a run; crosses are limits by theory. An honest analysis would say 0 and 0.05.",
			Draw: func() (*plot.Plot, error) { return drawFit(classical) }})
		figures = append(figures, run.Figure{Name: "p-values", Caption: "Share of runs whose F test has a P-value of at most x: a valid test follows the thin line. " +
			"After screening on the same data most runs of noise are significant even at 1%.", Draw: f.drawPValues})
	}
	if slices.ContainsFunc(rows, func(r run.Row) bool { return r.Condition == throughHoldout }) {
		figures = append(figures, run.Figure{Name: "holdout", Caption: "How often the screened prediction hits the response's sign, as each holdout tells it, with its interval, both on average over runs: " +
			"truly it is half. The intervals of the mechanisms hold for all questions together, the plain one only for a single one.", Draw: func() (*plot.Plot, error) { return drawHoldouts(rows) }})
	}
	return figures
}

// drawFit has what the second regression seems to find, in a row for each measure and size.
func drawFit(classical []regressions) (*plot.Plot, error) {
	p := figure.New("What screening makes of noise", "R2, or share of tests with P below 0.05", "")
	type line struct {
		name  string
		mean  float64
		sd    float64
		limit float64
		sure  float64 // what an honest analysis says
	}
	var lines []line
	for _, f := range classical {
		if len(f.runs) == 0 {
			continue
		}
		limit := newLimits(f.size.design, float64(f.size.p)/float64(f.size.n))
		rows := f.rows()
		of := func(set string) run.Row { return run.Find(rows, screened, f.size.design, int64(f.size.n), set) }
		size := fmt.Sprintf("%s, %s rows", strings.TrimSuffix(f.size.design, " regressors"), figure.Thousands(int64(f.size.n)))
		lines = append(lines, line{"R2: " + size, of(rSquared).Mean, of(rSquared).SD, limit.r2, 0},
			line{"coefficients significant: " + size, of(shareSignificant).Mean, of(shareSignificant).SD, limit.significant, 0.05},
			line{"F tests significant: " + size, of(testRejects).Mean, 0, math.NaN(), 0.05})
	}
	slices.SortStableFunc(lines, func(a, b line) int { return strings.Compare(b.name[:1], a.name[:1]) })
	names := make([]string, len(lines))
	var measured figure.Points
	var limits, honest plotter.XYs
	for i, l := range lines {
		names[i] = l.name
		y := figure.RowOf(i, len(lines))
		measured.XYs = append(measured.XYs, plotter.XY{X: l.mean, Y: y})
		measured.YErrors = append(measured.YErrors, struct{ Low, High float64 }{l.sd, l.sd})
		honest = append(honest, plotter.XY{X: l.sure, Y: y})
		if !math.IsNaN(l.limit) {
			limits = append(limits, plotter.XY{X: l.limit, Y: y})
		}
	}
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = -0.03, 1.05, -0.7, float64(len(lines))+0.6
	p.Y.Tick.Marker, p.X.Tick.Marker = figure.RowTicks(names), figure.EvenTicks
	figure.Grid(p)
	bars, err := plotter.NewXErrorBars(struct {
		plotter.XYs
		plotter.XErrors
	}{measured.XYs, plotter.XErrors(measured.YErrors)})
	if err != nil {
		return nil, err
	}
	bars.LineStyle.Color, bars.LineStyle.Width = figure.Mark(0).Color, 1.2
	p.Add(bars)
	for _, s := range []struct {
		name   string
		points plotter.XYs
		style  int
	}{{"an honest analysis", honest, 1}, {"after screening", measured.XYs, 0}, {"limit by theory", limits, 5}} {
		marks, err := plotter.NewScatter(s.points)
		if err != nil {
			return nil, err
		}
		marks.GlyphStyle = figure.Mark(s.style)
		marks.GlyphStyle.Radius = 4.5
		p.Add(marks)
		p.Legend.Add(s.name, marks)
	}
	p.Legend.Top = true
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
