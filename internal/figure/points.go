package figure

import (
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg/draw"
)

// Points are points with error bars: YErrors has for each how far the bar reaches below and above it.
type Points struct {
	plotter.XYs
	plotter.YErrors
}

// Add appends a point whose error bar reaches from low to high.
func (p *Points) Add(x, y, low, high float64) {
	p.XYs = append(p.XYs, plotter.XY{X: x, Y: y})
	p.YErrors = append(p.YErrors, struct{ Low, High float64 }{y - low, high - y})
}

// AddMarks draws points with their error bars in style i, and names them in the legend where they have a name.
func AddMarks(p *plot.Plot, i int, name string, points Points) error {
	bars, err := plotter.NewYErrorBars(points)
	if err != nil {
		return err
	}
	bars.LineStyle = draw.LineStyle{Color: Mark(i).Color, Width: 0.8}
	bars.CapWidth = 3
	marks, err := plotter.NewScatter(points.XYs)
	if err != nil {
		return err
	}
	marks.GlyphStyle = Mark(i)
	p.Add(bars, marks)
	if name != "" {
		p.Legend.Add(name, marks)
	}
	return nil
}
