package agents

import (
	"fmt"
	"math"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/internal/figure"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// figuresOf has the claims of all agents, and for each data set how claims and truth part.
func figuresOf(cells []*cell) []run.Figure {
	var figures []run.Figure
	of := map[string][]*cell{}
	var names []string
	var begun []*cell
	for _, c := range cells {
		if len(c.runs) == 0 {
			continue
		}
		if begun = append(begun, c); c.configurations < lookedAt[1] {
			continue
		}
		if of[c.problem.name] == nil {
			names = append(names, c.problem.name)
		}
		of[c.problem.name] = append(of[c.problem.name], c)
	}
	if len(begun) > 0 {
		figures = append(figures, run.Figure{Name: "claims", Caption: "How much too good every agent's claim is, in half-widths of the interval that it claims: a mark each. Beyond 1 fresh data " +
			"lie outside of the interval (a plain interval of a claim of 100% has no width: such a mark is at the end): there the number behind a row counts those that fresh data refute, their own error allowed for.",
			Draw: func() (*plot.Plot, error) { return drawClaims(begun) }})
	}
	for _, name := range names {
		figures = append(figures, run.Figure{Name: strings.ReplaceAll(name, " ", "-"),
			Caption: "Best score that was told so far, and the score of the same ensemble on fresh data, on average over runs. What lies between is how much too good the claim is: about as much with " +
				"the mechanisms as without.",
			Row: func() ([]*plot.Plot, error) { return drawAgent(of[name]) }})
	}
	return figures
}

// excessOf is how much too good a claim is, in half-widths of its interval. The plain interval of a claim of 100% has no width: then it is infinite, or 0 where the claim is true.
func excessOf(r outcome) float64 {
	excess := last(r.Claimed) - last(r.Fresh)
	if excess == 0 {
		return 0
	}
	return 2 * excess / (r.High - r.Low)
}

// drawClaims has a row for each data set and mechanism, and a mark for each agent; those of infinite excess are at the end.
func drawClaims(cells []*cell) (*plot.Plot, error) {
	p := figure.New(fmt.Sprintf("What agents claim after %d configurations", cells[0].configurations), "claimed less fresh score, in half-widths of the claim's interval", "")
	names := make([]string, len(cells))
	p.Y.Min, p.Y.Max = -0.7, float64(len(cells))+0.3
	p.X.Min, p.X.Max = -0.5, 1.5
	for _, c := range cells {
		for _, r := range c.runs {
			if excess := excessOf(r); !math.IsInf(excess, 0) {
				p.X.Min, p.X.Max = min(p.X.Min, excess-0.1), max(p.X.Max, excess+0.1)
			}
		}
	}
	least, most := p.X.Min, p.X.Max
	var labels []*figure.Label
	for i, c := range cells {
		names[i] = c.problem.name + ", " + string(c.guarantee.Mechanism)
		marks := make(plotter.XYs, len(c.runs))
		refuted := 0
		for j, r := range c.runs {
			marks[j] = plotter.XY{X: min(max(excessOf(r), least), most), Y: figure.RowOf(i, len(cells)) + 0.4*(float64(j)+0.5)/float64(len(c.runs)) - 0.2}
			if c.refuted(r) {
				refuted++
			}
		}
		s, err := plotter.NewScatter(marks)
		if err != nil {
			return nil, err
		}
		s.GlyphStyle = figure.Mark(seriesOf(c))
		p.Add(s)
		labels = append(labels, &figure.Label{XY: plotter.XY{Y: figure.RowOf(i, len(cells))}, Text: fmt.Sprintf("%d of %d refuted", refuted, len(c.runs)), Color: figure.Black, Offset: vg.Point{X: 8, Y: 6}})
	}
	end := p.X.Max
	p.X.Max += 0.3 * (p.X.Max - p.X.Min)
	for _, l := range labels {
		l.X = end
		p.Add(l)
	}
	p.Y.Tick.Marker, p.X.Tick.Marker = figure.RowTicks(names), figure.EvenTicks
	if err := figure.Upright(p, 0, draw.LineStyle{Color: figure.Grey, Width: 0.8}, "the claim is true"); err != nil {
		return nil, err
	}
	if err := figure.Upright(p, 1, draw.LineStyle{Color: figure.Black, Width: 1, Dashes: figure.Dashed}, "the interval ends"); err != nil {
		return nil, err
	}
	p.Legend.Top = true
	return p, nil
}

// seriesOf gives naive reuse the colour of a warning.
func seriesOf(c *cell) int {
	switch c.guarantee.Mechanism {
	case thresholdout.Naive:
		return 5
	case thresholdout.Thresholdout:
		return 0
	}
	return 1
}

// settledPoint is the first point that is drawn, where there are enough: before it, scores change so much that claims and fresh data cannot
// be compared by eye.
const settledPoint = 4

// drawAgent has a panel for each mechanism, all with one scale.
func drawAgent(cells []*cell) ([]*plot.Plot, error) {
	var panels []*plot.Plot
	low, high := math.Inf(1), math.Inf(-1)
	for _, c := range cells {
		p := figure.New(fmt.Sprintf("%s, %s", c.problem.name, c.guarantee.Mechanism), "configurations tried", "accuracy")
		p.X.Scale, p.X.Tick.Marker, p.Y.Tick.Marker = plot.LogScale{}, figure.LogTicks, figure.EvenTicks
		var claimed, fresh plotter.XYs
		for j := range c.runs[0].Claimed {
			if points := len(c.runs[0].Claimed); j < min(settledPoint, points-2) {
				continue
			}
			at := func(values func(r outcome) []float64) float64 {
				return c.row("", false, func(r outcome) float64 { return values(r)[j] }).Mean
			}
			claimed = append(claimed, plotter.XY{X: float64(lookedAt[j]), Y: at(func(r outcome) []float64 { return r.Claimed })})
			fresh = append(fresh, plotter.XY{X: float64(lookedAt[j]), Y: at(func(r outcome) []float64 { return r.Fresh })})
		}
		for i, s := range []struct {
			name   string
			points plotter.XYs
		}{{"claimed", claimed}, {"fresh data", fresh}} {
			line, marks, err := plotter.NewLinePoints(s.points)
			if err != nil {
				return nil, err
			}
			style := []int{seriesOf(c), 2}[i]
			line.LineStyle, marks.GlyphStyle = figure.Line(style), figure.Mark(style)
			if i == 1 {
				line.LineStyle.Color, marks.GlyphStyle.Color = figure.Black, figure.Black
			}
			p.Add(line, marks)
			p.Legend.Add(s.name, line, marks)
		}
		p.Legend.Left, p.Legend.Top = true, true
		low, high = min(low, p.Y.Min), max(high, p.Y.Max)
		panels = append(panels, p)
	}
	for _, p := range panels {
		// No mark touches an edge: gonum moves the axis of a panel where one does, and of that panel alone.
		p.Y.Min, p.Y.Max = low-0.05*(high-low), high+0.2*(high-low)
	}
	return panels, nil
}
