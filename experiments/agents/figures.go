package agents

import (
	"fmt"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg/draw"

	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/internal/figure"
)

// figuresOf has one of each data set.
func figuresOf(cells []*cell) []run.Figure {
	var figures []run.Figure
	of := map[string][]*cell{}
	var names []string
	for _, c := range cells {
		if len(c.runs) == 0 || c.configurations < lookedAt[1] {
			continue
		}
		if of[c.problem.name] == nil {
			names = append(names, c.problem.name)
		}
		of[c.problem.name] = append(of[c.problem.name], c)
	}
	for _, name := range names {
		figures = append(figures, run.Figure{Name: strings.ReplaceAll(name, " ", "-"),
			Caption: fmt.Sprintf("An agent on %s, %d rows in the holdout. Left: the best answer so far less the score of the same ensemble on fresh data, with 95%% intervals. Right: the last claim "+
				"with its interval (the plain one for naive, the mechanism's for others) and the score on fresh data, means over runs.", name, of[name][0].problem.part),
			Row: func() ([]*plot.Plot, error) { return drawAgent(of[name]) }})
	}
	return figures
}

// drawAgent draws, left, by how much claims are better than fresh data, and right what the last claim's interval says of that.
func drawAgent(cells []*cell) ([]*plot.Plot, error) {
	gap, err := drawGap(cells)
	if err != nil {
		return nil, err
	}
	intervals, err := drawIntervals(cells)
	return []*plot.Plot{gap, intervals}, err
}

func drawGap(cells []*cell) (*plot.Plot, error) {
	p := figure.New("The best answer is too good, whoever gives it", "configurations tried", "claimed accuracy less that on fresh data")
	p.X.Scale, p.X.Tick.Marker, p.Y.Tick.Marker = plot.LogScale{}, figure.LogTicks, figure.EvenTicks
	truth := plotter.NewFunction(func(float64) float64 { return 0 })
	truth.Width = 0.8
	p.Add(truth)
	for i, c := range cells {
		var points figure.Points
		for j := range c.runs[0].Claimed {
			r := c.row("", false, func(r outcome) float64 { return r.Claimed[j] - r.Fresh[j] })
			points.Add(float64(lookedAt[j])*(1+0.04*float64(i-1)), r.Mean, r.Low, r.High)
		}
		line, err := plotter.NewLine(points.XYs)
		if err != nil {
			return nil, err
		}
		line.LineStyle = figure.Line(i)
		p.Add(line)
		if err := figure.AddMarks(p, i, "", points); err != nil {
			return nil, err
		}
		p.Legend.Add(string(c.guarantee.Mechanism), line, &plotter.Scatter{GlyphStyle: figure.Mark(i)})
	}
	figure.Widen(&p.X)
	p.Legend.Left, p.Legend.Top = true, true
	p.Y.Max += 0.35 * (p.Y.Max - p.Y.Min) // room for the legend
	return p, nil
}

func drawIntervals(cells []*cell) (*plot.Plot, error) {
	p := figure.New("The mechanisms' intervals say so, the plain one does not", "", "accuracy")
	var names []string
	var fresh plotter.XYs
	for i, c := range cells {
		bar, err := plotter.NewLine(plotter.XYs{{X: float64(i), Y: c.low().Mean}, {X: float64(i), Y: c.high().Mean}})
		if err != nil {
			return nil, err
		}
		style := figure.Line(i)
		style.Width, style.Dashes = 14, nil
		bar.LineStyle = style
		p.Add(bar, &figure.Dash{XY: plotter.XY{X: float64(i), Y: c.claimed().Mean}, Width: 26})
		fresh = append(fresh, plotter.XY{X: float64(i), Y: c.fresh().Mean})
		refuted := c.refutedRate()
		names = append(names, fmt.Sprintf("%s\nrefuted in %d\nof %d runs", c.guarantee.Mechanism, refuted.Events(), refuted.Repetitions))
	}
	marks, err := plotter.NewScatter(fresh)
	if err != nil {
		return nil, err
	}
	marks.GlyphStyle = draw.GlyphStyle{Color: figure.Black, Radius: 4.5, Shape: draw.CircleGlyph{}}
	p.Add(marks)
	p.NominalX(names...)
	p.X.Min, p.X.Max = -0.6, float64(len(names))-0.4
	p.Y.Tick.Marker = plot.TickerFunc(func(low, high float64) []plot.Tick { return figure.EvenTicks.Ticks(low, min(high, 1)) })
	p.Legend.Add("claimed, with its interval", &figure.Dash{})
	p.Legend.Add("on fresh data", marks)
	p.Legend.Top, p.Legend.Left = true, true
	p.Y.Max += 0.3 * (p.Y.Max - p.Y.Min) // room for the legend
	return p, nil
}
