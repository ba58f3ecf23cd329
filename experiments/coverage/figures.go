package coverage

import (
	"fmt"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/internal/figure"
)

// drawReach draws how far every analyst got against every mechanism, for the largest guarantee at the highest confidence that all are finished for: the largest error of a
// run over its interval's half-width. Beyond 1 an interval misses.
func drawReach(rows []run.Row) (*plot.Plot, error) {
	last := rows[0]
	for _, r := range rows {
		if r.Confidence >= last.Confidence {
			last = r
		}
	}
	p := figure.New(fmt.Sprintf("How far nine analysts got in %d adaptive questions about %d units", last.K, last.N),
		"largest error of a run, in half-widths of the interval that was shown (a mark for each analyst)", "")
	p.Add(figure.Shade{From: 1})
	var names []string
	for i, m := range slices.Backward(methods) {
		var reached plotter.XYs
		misses, runs, farthest := int64(0), 0, 0.
		for _, r := range rows {
			if r.Method != m.name || r.N != last.N || r.K != last.K || r.Confidence != last.Confidence {
				continue
			}
			switch r.Set {
			case nonCoverage:
				misses, runs = misses+r.Events(), runs+r.Repetitions
			case worstReach:
				reached = append(reached, plotter.XY{X: r.Mean, Y: float64(len(names))})
				farthest = max(farthest, r.Mean)
			}
		}
		if len(reached) == 0 {
			continue
		}
		style := figure.Mark(0)
		if methods[i].name == naiveMethod {
			style.Color = figure.Vermillion
		}
		style.Radius = 4.5
		style.Shape = draw.RingGlyph{}
		marks, err := plotter.NewScatter(reached)
		if err != nil {
			return nil, err
		}
		marks.GlyphStyle = style
		bar, err := plotter.NewLine(plotter.XYs{{X: 0, Y: float64(len(names))}, {X: farthest, Y: float64(len(names))}})
		if err != nil {
			return nil, err
		}
		bar.LineStyle = draw.LineStyle{Color: style.Color, Width: 5}
		p.Add(bar, marks)
		names = append(names, fmt.Sprintf("%s\nan interval missed\nin %d of %d runs", m.name, misses, runs))
		p.X.Max = max(p.X.Max, 1.15*farthest)
	}
	p.NominalY(names...)
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, max(p.X.Max, 1.5), -0.5, float64(len(names))-0.2
	p.X.Tick.Marker = figure.EvenTicks
	p.Add(&figure.Label{XY: plotter.XY{X: 1, Y: p.Y.Max}, Text: "here an interval misses the truth", Color: figure.Vermillion, Offset: vg.Point{X: 6, Y: -4}})
	return p, nil
}
