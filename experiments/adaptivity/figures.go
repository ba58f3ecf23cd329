package adaptivity

import (
	"fmt"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"github.com/holdoutd/holdoutd/experiments/analysts"
	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/internal/figure"
)

// drawQuestions draws questions against units, both in logarithms.
func drawQuestions(rows []run.Row, fits []run.Fit) (*plot.Plot, error) {
	p := figure.New("Adaptive questions under attack before the largest error exceeds 0.1", "units in the holdout, n", "questions")
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = figure.LogTicks, figure.LogTicks
	for i, r := range analysts.Rivals {
		var points figure.Points
		for _, row := range rows {
			if row.Method == r.Name {
				// From few replicates an interval may reach below 0, where a logarithm has no place.
				points.Add(float64(row.N), row.Mean, max(row.Low, row.Mean/4), row.High)
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
		if err := figure.AddMarks(p, i, "", points); err != nil {
			return nil, err
		}
		label := r.Name
		for _, f := range fits {
			if f.Method == r.Name && f.Of == questionsAlone {
				label += fmt.Sprintf(": n^%.2f (%.2f to %.2f)", f.Exponent, f.Low, f.High)
			}
		}
		p.Legend.Add(label, line, &plotter.Scatter{GlyphStyle: figure.Mark(i)})
	}
	p.Y.Max *= 12 // room for the legend above the curves
	p.Legend.Top, p.Legend.Left = true, true
	return p, nil
}
