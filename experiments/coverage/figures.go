package coverage

import (
	"fmt"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg/draw"

	"github.com/holdoutd/holdoutd/experiments/analysts"
	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/internal/figure"
)

// drawMisses draws the rate of misses of every analyst, a column each, for the largest guarantee at the highest
// confidence that all are finished for.
func drawMisses(rows []run.Row) (*plot.Plot, error) {
	last := rows[0]
	for _, r := range rows {
		if r.Confidence >= last.Confidence {
			last = r
		}
	}
	p := figure.New(fmt.Sprintf("Runs in which any interval misses, n = %d, k = %d, confidence %v", last.N, last.K, last.Confidence), "who asks", "non-coverage (rate of runs)")
	var names []string
	for _, a := range analysts.All {
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
	for i, m := range methods {
		var points figure.Points
		for _, r := range rows {
			if r.Method == m.name && r.Set == nonCoverage && r.N == last.N && r.K == last.K && r.Confidence == last.Confidence {
				for x, name := range names {
					if name == r.Condition {
						points.Add(float64(x)+(float64(i)-2.5)*0.12, r.Mean, r.Low, r.High)
					}
				}
			}
		}
		if len(points.XYs) == 0 {
			continue
		}
		if err := figure.AddMarks(p, i, m.name, points); err != nil {
			return nil, err
		}
	}
	p.Legend.Top, p.Legend.Left = true, true
	return p, nil
}
