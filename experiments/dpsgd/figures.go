package dpsgd

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/internal/figure"
)

func (d findings) figures(audited []*audit) []run.Figure {
	figures := []run.Figure{{Name: "account", Caption: "Epsilon of the same steps by three valid accounts.", Draw: drawAccount},
		{Name: "composition", Caption: "How much each of k answers may spend, so that all together spend an epsilon of 1, by the ways in which epsilons are composed.", Draw: drawComposition}}
	if len(audited) > 0 {
		figures = append(figures, run.Figure{Name: "audit", Caption: "The epsilon that a canary shows, with 95% intervals, against the one that the account promises: below the line, " +
			"as everything must be.", Draw: func() (*plot.Plot, error) { return drawAudit(audited) }})
	}
	if x, _ := d.ratePoints(models(false)[0].name); len(x) > 1 {
		figures = append([]run.Figure{{Name: "excess", Caption: "Training loss over the same training without noise, against n times epsilon, with fitted exponents. " +
			"The line falls as theory's square.", Draw: d.excessFigure}}, figures...)
	}
	if slices.ContainsFunc(d, func(c *cell) bool { return c.method == privateSGD && c.n == d.largest() }) {
		figures = append(figures, run.Figure{Name: "gap", Caption: "How much better a model is on the digits that it learned from than on others, with 95% intervals, against epsilon. Horizontal lines: plain training.",
			Draw: d.gapFigure})
		figures = append([]run.Figure{{Name: "accuracy", Caption: "Accuracy on digits against epsilon, with 95% intervals: on the training part and on the rest. Horizontal lines: plain training.",
			Draw: d.accuracyFigure}}, figures...)
	}
	return figures
}

// gapFigure is of the cells with most digits.
func (d findings) gapFigure() (*plot.Plot, error) {
	p := figure.New(fmt.Sprintf("Learned by heart: DP-SGD on %d handwritten digits, delta %v", d.largest(), delta), "epsilon", "training accuracy less test accuracy")
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, quarterTicks
	highest := 0.
	for i, m := range models(false) {
		var points figure.Points
		for _, c := range d {
			if c.model.name != m.name || c.n != d.largest() {
				continue
			}
			r := c.gap()
			switch c.method {
			case privateSGD:
				points.Add(c.epsilon, r.Mean, r.Low, r.High)
			case plainSGD:
				level := plotter.NewFunction(func(float64) float64 { return r.Mean })
				level.LineStyle = figure.Line(i)
				p.Add(level)
				p.Legend.Add(m.name+", no privacy", level)
			}
			highest = max(highest, r.High)
		}
		if len(points.XYs) == 0 {
			continue
		}
		if err := figure.AddMarks(p, i, m.name+", private", points); err != nil {
			return nil, err
		}
	}
	zero := plotter.NewFunction(func(float64) float64 { return 0 })
	zero.Width = 0.5
	p.Add(zero)
	figure.Widen(&p.X)
	p.Y.Max = 1.6 * highest // room for the legend
	p.Legend.Left, p.Legend.Top = true, true
	return p, nil
}

// accuracyFigure is of the cells with most digits.
func (d findings) accuracyFigure() (*plot.Plot, error) {
	p := figure.New(fmt.Sprintf("DP-SGD on %d handwritten digits, delta %v", d.largest(), delta), "epsilon", "accuracy")
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, quarterTicks
	p.Legend.Left, p.Legend.Top = true, false
	p.Legend.XOffs = run.FigureWidth / 2 // below the curves; names right of their lines, for viewers' fonts are wider than those that are measured
	series := 0
	for _, m := range models(false) {
		for _, measure := range []struct {
			name string
			row  func(*cell) run.Row
		}{{"training", (*cell).training}, {"test", (*cell).test}} {
			var points figure.Points
			for _, c := range d {
				if c.model.name != m.name || c.n != d.largest() {
					continue
				}
				r := measure.row(c)
				switch {
				case c.method == privateSGD:
					points.Add(c.epsilon, r.Mean, r.Low, r.High)
				case c.method == plainSGD && measure.name == "test":
					level := plotter.NewFunction(func(float64) float64 { return r.Mean })
					level.LineStyle = figure.Line(series)
					level.Width = 0.8
					p.Add(level)
					p.Legend.Add(m.name+", test, no privacy", level)
				}
			}
			if len(points.XYs) == 0 {
				continue
			}
			if err := addSeries(p, series, m.name+", "+measure.name, points); err != nil {
				return nil, err
			}
			series++
		}
	}
	figure.Widen(&p.X)
	p.Y.Max = 1
	return p, nil
}

// addSeries draws a line through points with error bars.
func addSeries(p *plot.Plot, i int, name string, points figure.Points) error {
	line, err := plotter.NewLine(points.XYs)
	if err != nil {
		return err
	}
	line.LineStyle = figure.Line(i)
	p.Add(line)
	p.Legend.Add(name, line, &plotter.Scatter{GlyphStyle: figure.Mark(i)})
	return figure.AddMarks(p, i, "", points)
}

// quarterTicks labels the powers of two.
var quarterTicks = plot.TickerFunc(func(low, high float64) []plot.Tick {
	var ticks []plot.Tick
	for v := math.Exp2(math.Ceil(math.Log2(low) - 1e-9)); v <= high*1.001; v *= 2 {
		ticks = append(ticks, plot.Tick{Value: v, Label: fmt.Sprint(v)})
	}
	return ticks
})

// excessFigure has a mark for each size and epsilon, and theory's slope through the convex model's points.
func (d findings) excessFigure() (*plot.Plot, error) {
	p := figure.New("What noise costs", "n epsilon", excessLoss)
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = figure.LogTicks, figure.LogTicks
	for i, m := range models(false) {
		x, y := d.ratePoints(m.name)
		if len(x) == 0 {
			continue
		}
		points, center, low, high := make(plotter.XYs, len(x)), 0.0, x[0], x[0]
		for k := range x {
			points[k] = plotter.XY{X: x[k], Y: y[k]}
			center += math.Log(y[k]*x[k]*x[k]) / float64(len(x))
			low, high = min(low, x[k]), max(high, x[k])
		}
		label := m.name
		for _, f := range d.fits() {
			if f.Method == m.name {
				label += fmt.Sprintf(": exponent %.2f (%.2f to %.2f)", f.Exponent, f.Low, f.High)
			}
		}
		marks, err := plotter.NewScatter(points)
		if err != nil {
			return nil, err
		}
		marks.GlyphStyle = figure.Mark(i)
		p.Add(marks)
		p.Legend.Add(label, marks)
		if i == 0 {
			theory, err := plotter.NewLine(plotter.XYs{{X: low, Y: math.Exp(center) / low / low}, {X: high, Y: math.Exp(center) / high / high}})
			if err != nil {
				return nil, err
			}
			theory.LineStyle = draw.LineStyle{Color: figure.Line(i).Color, Width: vg.Points(1)}
			p.Add(theory)
			p.Legend.Add("exponent -2", theory)
		}
	}
	figure.Widen(&p.X)
	figure.Widen(&p.Y)
	p.Legend.Top = true
	return p, nil
}
