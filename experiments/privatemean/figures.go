package privatemean

import (
	"fmt"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg/draw"

	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/internal/figure"
)

// curve is a curve by theory and the points measured beside it, both root mean squared errors.
type curve struct {
	label    string
	theory   plotter.XYs
	measured figure.Points
}

// add puts a cell into the series.
func (s *curve) add(g *group, c *cell, x float64) {
	s.theory = append(s.theory, plotter.XY{X: x, Y: math.Sqrt(g.expected(c))})
	r, rms := g.row(c), c.rms()
	low := math.Sqrt(max(r.Low, r.Mean/16)) // from few repetitions an interval may reach below 0, where a logarithm has no place
	s.measured.Add(x, rms, low, math.Sqrt(r.High))
}

// drawCurves draws the series; room is the factor of empty space above them, for the legend.
func drawCurves(title, x string, series []*curve, room float64) (*plot.Plot, error) {
	p := figure.New(title, x, "root mean squared error")
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = figure.LogTicks, figure.LogTicks
	for i, s := range series {
		line, err := plotter.NewLine(s.theory)
		if err != nil {
			return nil, err
		}
		line.LineStyle = figure.Line(i)
		line.Width = 1.2
		p.Add(line)
		if len(s.measured.XYs) == 0 {
			p.Legend.Add(s.label, line)
			continue
		}
		if err := figure.AddMarks(p, i, "", s.measured); err != nil {
			return nil, err
		}
		p.Legend.Add(s.label, line, &plotter.Scatter{GlyphStyle: draw.GlyphStyle(figure.Mark(i))})
	}
	figure.Widen(&p.X)
	figure.Widen(&p.Y)
	p.Y.Max *= room
	p.Legend.Top = true
	return p, nil
}

func (m findings) figures() []run.Figure {
	var figures []run.Figure
	add := func(part, caption string, drawing func() (*plot.Plot, error)) {
		for _, g := range m.groups {
			if g.part == part {
				figures = append(figures, run.Figure{Name: part, Caption: caption, Draw: drawing})
				return
			}
		}
	}
	add(byRows, "Error of the mean of uniform values against rows: lines by theory, marks measured, with 95% intervals. With epsilon 0.01 noise is all and falls as 1/n; "+
		"with epsilon 1 it is soon below the sampling error of 1/sqrt(n).", m.rowsFigure)
	add(byThreshold, "Error of the mean of values with a heavy tail against the clipping threshold, for growing n: bias on the left, Laplace noise on the right; "+
		"the best threshold grows as n to the 2/3, the error there falls as n to the -1/3.", m.thresholdFigure)
	add(byDimension, "Error of the mean vector against numbers a row: Laplace noise grows as d to the 3/2, Gaussian noise as d; of rows of norm 1 as the root of d.", m.dimensionFigure)
	add(byMoment, "Error of the mean where only E[x^2] <= 1 is known, clamped to sqrt(n epsilon)/2: no law is above the theorem's limit, and the hardest one needs nine sixteenths of its second term.", m.momentFigure)
	return figures
}

func (m findings) rowsFigure() (*plot.Plot, error) {
	var series []*curve
	for i := range 5 {
		s := &curve{}
		for _, g := range m.groups {
			if g.part == byRows {
				c := g.cells[i]
				s.label = c.method
				if c.method != plain {
					s.label += fmt.Sprintf(", epsilon %v", c.mean.Epsilon)
				}
				s.add(g, c, float64(g.n))
			}
		}
		series = append(series, s)
	}
	return drawCurves(fmt.Sprintf("Private mean of uniform values (delta of Gaussian noise: %v)", delta), "rows, n", series, 3)
}

func (m findings) thresholdFigure() (*plot.Plot, error) {
	var series []*curve
	for _, g := range m.groups {
		if g.part != byThreshold {
			continue
		}
		s := &curve{label: fmt.Sprintf("n = %d, best near %.0f", g.n, g.best(laplace).mean.High)}
		for _, c := range g.cells {
			if c.method == laplace {
				s.add(g, c, c.mean.High)
			}
		}
		series = append(series, s)
	}
	p, err := drawCurves(fmt.Sprintf("Bias against noise: P(X > x) = x^-%v, Laplace noise, epsilon %v", paretoTail, thresholdEpsilon), "clipping threshold", series, 1)
	if err == nil {
		p.Legend.Top, p.Legend.Left = false, true // the upper corner has a curve
	}
	return p, err
}

func (m findings) dimensionFigure() (*plot.Plot, error) {
	series := []*curve{{label: laplace}, {label: gaussian + fmt.Sprintf(", delta %v", delta)}, {label: gaussian + ", rows of norm 1"}}
	for _, g := range m.groups {
		if g.part == byDimension {
			for i, s := range series[:2] {
				s.add(g, g.cells[i], float64(g.cells[i].mean.Dim))
			}
		}
		if g.part == byNorm {
			series[2].add(g, g.cells[0], float64(g.cells[0].mean.Dim))
		}
	}
	p, err := drawCurves(fmt.Sprintf("Private mean of vectors, n = %d, epsilon %v", dimensionRows, dimensionEpsilon), "numbers a row, d", series, 1)
	if err == nil {
		p.Legend.Left = true
	}
	return p, err
}
