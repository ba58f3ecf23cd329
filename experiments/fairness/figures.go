package fairness

import (
	"fmt"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/internal/figure"
)

func figuresOf(rows []run.Row) []run.Figure {
	if len(rows) == 0 {
		return nil
	}
	return []run.Figure{
		{Name: "gap", Caption: "The gap in accuracy that is told at the end, with its interval, and the gap that is left, both on average over teams. Left: nothing can be found, and the gap stays. " +
			"Right: some rules truly help. Exact answers overstate either; the intervals of the mechanisms hold what is left.",
			Row: func() ([]*plot.Plot, error) { return drawGaps(rows) }},
		{Name: "closed", Caption: fmt.Sprintf("Share of teams whose interval says that the gap is at most %v. Left: nothing can be found, so that each of them is wrong. Right: real labels, where the gap of these is truly closed.", closed),
			Row: func() ([]*plot.Plot, error) { return drawClosed(rows) }},
	}
}

// methodNames are those of the rows, in their order.
func methodNames() (names []string) {
	for _, w := range ways {
		c := cell{compares: w.compares}
		c.guarantee.Mechanism = w.mechanism
		names = append(names, c.methods()...)
	}
	return names
}

// conditions are the panels of a figure.
var conditions = []struct{ title, condition string }{{"nothing to find: the gap stays", nothingToFind}, {"real labels: some rules help", realLabels}}

// drawGaps has a row for each method: what is told with its interval, and what is left.
func drawGaps(rows []run.Row) ([]*plot.Plot, error) {
	names := methodNames()
	low, high := 0.0, closed
	for _, r := range rows {
		switch r.Set {
		case lowerEnd, upperEnd, gapLeft:
			low, high = min(low, r.Mean), max(high, r.Mean)
		}
	}
	var panels []*plot.Plot
	for _, s := range conditions {
		p := figure.New(s.title, "gap in accuracy", "")
		room := 0.04 * (high - low)
		p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = low-room, high+room, -0.6, float64(len(names))-0.4
		p.X.Tick.Marker, p.Y.Tick.Marker = figure.EvenTicks, figure.RowTicks(names)
		figure.Grid(p)
		if err := figure.Upright(p, closed, draw.LineStyle{Color: figure.Mark(2).Color, Width: 1, Dashes: []vg.Length{vg.Points(4), vg.Points(3)}}, "closed, left of here"); err != nil {
			return nil, err
		}
		p.Y.Max += 1.4 // for the legend
		var shown, left plotter.XYs
		var reach plotter.XErrors
		for i, name := range names {
			of := func(set string) run.Row { return run.Find(rows, s.condition, name, rows[0].N, set) }
			t := of(gapTold)
			if t.Repetitions == 0 {
				continue
			}
			y := figure.RowOf(i, len(names))
			shown = append(shown, plotter.XY{X: t.Mean, Y: y})
			reach = append(reach, struct{ Low, High float64 }{t.Mean - of(lowerEnd).Mean, of(upperEnd).Mean - t.Mean})
			left = append(left, plotter.XY{X: of(gapLeft).Mean, Y: y})
		}
		if len(shown) > 0 {
			bars, err := plotter.NewXErrorBars(struct {
				plotter.XYs
				plotter.XErrors
			}{shown, reach})
			if err != nil {
				return nil, err
			}
			bars.LineStyle.Color, bars.LineStyle.Width = figure.Mark(0).Color, 1.6
			p.Add(bars)
		}
		for _, m := range []struct {
			name   string
			points plotter.XYs
			style  int
			shape  draw.GlyphDrawer
		}{{"told, with its interval", shown, 0, draw.CircleGlyph{}}, {"truly left", left, 5, draw.BoxGlyph{}}} {
			if len(m.points) == 0 {
				continue
			}
			marks, err := plotter.NewScatter(m.points)
			if err != nil {
				return nil, err
			}
			marks.GlyphStyle = draw.GlyphStyle{Color: figure.Mark(m.style).Color, Radius: 4.5, Shape: m.shape}
			p.Add(marks)
			p.Legend.Add(m.name, marks)
		}
		p.Legend.Top, p.Legend.Left = true, true
		panels = append(panels, p)
	}
	return panels, nil
}

// drawClosed has false closings where nothing can be found at the left, and true ones under real labels at the right.
func drawClosed(rows []run.Row) ([]*plot.Plot, error) {
	names := methodNames()
	var panels []*plot.Plot
	for i, s := range []struct {
		title, set string
		series     int
	}{{"nothing to find: told to be closed, falsely", falselyClose, 5}, {"real labels: told to be closed, truly", trulyClosed, 0}} {
		p := figure.New(s.title, "share of teams", "")
		p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, 1.18, -0.6, float64(len(names))-0.4
		p.X.Tick.Marker, p.Y.Tick.Marker = figure.EvenTicks, figure.RowTicks(names)
		figure.Grid(p)
		for j, name := range names {
			if r := run.Find(rows, conditions[i].condition, name, rows[0].N, s.set); r.Repetitions > 0 {
				p.Add(&figure.Bar{Series: s.series, To: r.Mean, Row: figure.RowOf(j, len(names)), Half: 0.3, Number: fmt.Sprintf("%.0f%%", 100*r.Mean)})
			}
		}
		panels = append(panels, p)
	}
	return panels, nil
}
