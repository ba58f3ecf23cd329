package weights

import (
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/internal/figure"
)

func figuresOf(cells []*cell) []run.Figure {
	for _, c := range cells {
		if len(c.runs) > 0 {
			return []run.Figure{{Name: "errors", Draw: func() (*plot.Plot, error) { return draw(cells) },
				Caption: "The largest error of k answers: marks are means as measured, with 95% intervals; lines are what is promised with 95% probability. Errors of noise beyond 1 are not drawn."}}
		}
	}
	return nil
}

// series are what is drawn; lines reach to more questions than are played, so that both crossings are seen.
var series = []struct{ asks, method string }{{worst, weighted}, {random, weighted}, {anyone, laplace}, {anyone, gaussian}}

const mostDrawn = 3e7

func draw(cells []*cell) (*plot.Plot, error) {
	p := figure.New("Answers about 100,000 rows of 256 elements, total epsilon 1", "questions, k", "largest error")
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = figure.CountTicks, figure.LogTicks
	for i, s := range series {
		var measured figure.Points
		for _, c := range cells {
			if c.asks != s.asks || c.method != s.method || len(c.runs) == 0 {
				continue
			}
			if r := c.rows()[0]; r.Mean <= 1 && r.Mean > 0 {
				measured.Add(float64(c.k), r.Mean, max(r.Low, r.Mean/4), r.High)
			}
		}
		label := s.method
		if s.method == weighted {
			label += ", " + s.asks
		}
		if len(measured.XYs) > 0 {
			if err := figure.AddMarks(p, i, label, measured); err != nil {
				return nil, err
			}
		}
		if s.asks == random {
			continue // the same promise, whoever asks
		}
		var promised plotter.XYs
		for k := 10.; k <= mostDrawn; k *= math.Pow(10, 1./8) {
			if y := promise(s.method, k); y < 1 {
				promised = append(promised, plotter.XY{X: k, Y: y})
			}
		}
		line, err := plotter.NewLine(promised)
		if err != nil {
			return nil, err
		}
		line.LineStyle = figure.Line(i)
		p.Add(line)
		p.Legend.Add(s.method+", promised", line)
	}
	figure.Widen(&p.X)
	figure.Widen(&p.Y)
	p.Y.Max = 2
	p.Legend.Top, p.Legend.Left = false, false
	return p, nil
}
