package agents

import (
	"fmt"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

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
			Caption: "Best score that was told so far (marks) and the score of the same ensemble on fresh data (thin lines without marks), on average over runs. Bars at the right are the claim's " +
				"interval: the plain one for naive, the mechanism's for others.",
			Draw: func() (*plot.Plot, error) { return drawAgent(of[name]) }})
	}
	return figures
}

// settledPoint is the first point that is drawn, where there are enough: before it, scores change so much that claims and fresh data cannot
// be compared by eye.
const settledPoint = 4

func drawAgent(cells []*cell) (*plot.Plot, error) {
	c := cells[0]
	p := figure.New(fmt.Sprintf("An agent on %s: %d rows in the holdout, %d held back", c.problem.name, c.problem.part, c.problem.fresh), "configurations tried", "accuracy")
	p.X.Scale, p.X.Tick.Marker, p.Y.Tick.Marker = plot.LogScale{}, figure.LogTicks, figure.EvenTicks
	end := 1.0
	for i, c := range cells {
		var claimed, fresh plotter.XYs
		for j := range c.runs[0].Claimed {
			if points := len(c.runs[0].Claimed); j < min(settledPoint, points-2) {
				continue
			}
			at := func(values func(r outcome) []float64) float64 {
				return c.row("", false, func(r outcome) float64 { return values(r)[j] }).Mean
			}
			end = float64(lookedAt[j])
			claimed = append(claimed, plotter.XY{X: end, Y: at(func(r outcome) []float64 { return r.Claimed })})
			fresh = append(fresh, plotter.XY{X: end, Y: at(func(r outcome) []float64 { return r.Fresh })})
		}
		told, err := plotter.NewLine(claimed)
		if err != nil {
			return nil, err
		}
		told.LineStyle = figure.Line(i)
		marks, err := plotter.NewScatter(claimed)
		if err != nil {
			return nil, err
		}
		marks.GlyphStyle = figure.Mark(i)
		held, err := plotter.NewLine(fresh)
		if err != nil {
			return nil, err
		}
		held.LineStyle = figure.Line(i)
		held.Width = 1
		p.Add(told, marks, held)
		p.Legend.Add(string(c.guarantee.Mechanism)+", claimed", told, marks)
		p.Legend.Add(string(c.guarantee.Mechanism)+", fresh data", held)
		var bar figure.Points
		bar.Add(end*(1.15+0.12*float64(i)), c.claimed().Mean, c.low().Mean, c.high().Mean)
		if err := figure.AddMarks(p, i, "", bar); err != nil {
			return nil, err
		}
	}
	p.Legend.Left, p.Legend.Top = true, false
	return p, nil
}
