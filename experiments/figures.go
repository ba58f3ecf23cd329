package experiments

import (
	"fmt"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/holdoutd/holdoutd/internal/figure"
)

// barred are points with error bars, as plotter.NewYErrorBars wants them.
type barred struct {
	plotter.XYs
	plotter.YErrors
}

// coverageFigure draws the rate of misses of every analyst, a column each, for the largest guarantee at the highest
// confidence that all are finished for.
func coverageFigure(rows []Row) (*plot.Plot, error) {
	last := rows[0]
	for _, r := range rows {
		if r.Confidence >= last.Confidence {
			last = r
		}
	}
	p := figure.New(fmt.Sprintf("Runs in which any interval misses, n = %d, k = %d, confidence %v", last.N, last.K, last.Confidence), "who asks", "non-coverage (rate of runs)")
	var names []string
	for _, a := range Analysts {
		names = append(names, a.Name)
	}
	p.NominalX(names...)
	p.X.Tick.Label.Rotation = math.Pi / 7
	p.X.Tick.Label.XAlign, p.X.Tick.Label.YAlign = draw.XRight, draw.YTop
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = -0.6, float64(len(names))-0.4, 0, 1.55 // room for the legend above
	p.Y.Tick.Marker = plot.ConstantTicks{{Value: 0, Label: "0"}, {Value: 0.25, Label: "0.25"}, {Value: 0.5, Label: "0.5"}, {Value: 0.75, Label: "0.75"}, {Value: 1, Label: "1"}}
	promise := plotter.NewFunction(func(float64) float64 { return 1 - last.Confidence })
	promise.Color, promise.Width = plotter.DefaultLineStyle.Color, 0.8
	p.Add(promise)
	p.Legend.Add("promised at most", promise)
	for i, m := range Methods {
		var points barred
		for _, r := range rows {
			if r.Method == m.Name && r.Set == NonCoverage && r.N == last.N && r.K == last.K && r.Confidence == last.Confidence {
				for x, name := range names {
					if name == r.Condition {
						points.XYs = append(points.XYs, plotter.XY{X: float64(x) + (float64(i)-2.5)*0.12, Y: r.Mean})
						points.YErrors = append(points.YErrors, struct{ Low, High float64 }{r.Mean - r.Low, r.High - r.Mean})
					}
				}
			}
		}
		if len(points.XYs) == 0 {
			continue
		}
		if err := addMarks(p, i, m.Name, points); err != nil {
			return nil, err
		}
	}
	p.Legend.Top, p.Legend.Left = true, true
	return p, nil
}

func addMarks(p *plot.Plot, i int, name string, points barred) error {
	bars, err := plotter.NewYErrorBars(points)
	if err != nil {
		return err
	}
	bars.LineStyle = draw.LineStyle{Color: figure.Mark(i).Color, Width: 0.8}
	bars.CapWidth = 3
	marks, err := plotter.NewScatter(points.XYs)
	if err != nil {
		return err
	}
	marks.GlyphStyle = figure.Mark(i)
	p.Add(bars, marks)
	if name != "" {
		p.Legend.Add(name, marks)
	}
	return nil
}

// adaptivityFigure draws questions against units, both in logarithms.
func adaptivityFigure(rows []Row, fits []Fit) (*plot.Plot, error) {
	p := figure.New("Adaptive questions under attack before the largest error exceeds 0.1", "units in the holdout, n", "questions")
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = figure.LogTicks, figure.LogTicks
	for i, r := range rivals {
		var points barred
		for _, row := range rows {
			if row.Method == r.name {
				points.XYs = append(points.XYs, plotter.XY{X: float64(row.N), Y: row.Mean})
				// From few replicates an interval may reach below 0, where a logarithm has no place.
				points.YErrors = append(points.YErrors, struct{ Low, High float64 }{row.Mean - max(row.Low, row.Mean/4), row.High - row.Mean})
			}
		}
		if len(points.XYs) == 0 {
			continue
		}
		line, err := plotter.NewLine(points.XYs)
		if err != nil {
			return nil, err
		}
		line.LineStyle = figure.Line(i)
		p.Add(line)
		if err := addMarks(p, i, "", points); err != nil {
			return nil, err
		}
		label := r.name
		for _, f := range fits {
			if f.Method == r.name && f.Of == Questions {
				label += fmt.Sprintf(": n^%.2f (%.2f to %.2f)", f.Exponent, f.Low, f.High)
			}
		}
		p.Legend.Add(label, line, &plotter.Scatter{GlyphStyle: figure.Mark(i)})
	}
	p.Y.Max *= 12 // room for the legend above the curves
	p.Legend.Top, p.Legend.Left = true, true
	return p, nil
}

// FigureWidth and FigureHeight are the size of the figures, RowWidth and RowHeight that of panels side by side.
const (
	FigureWidth  = 8 * vg.Inch
	FigureHeight = 5.4 * vg.Inch
	RowWidth     = 10 * vg.Inch
	RowHeight    = 4.6 * vg.Inch
)
