package reconstruction

import (
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/internal/figure"
)

// titles of the mechanisms in the legend.
var titles = map[string]string{"naive": "exact answers", "gaussian": "gaussian", "guess_and_check": "guess_and_check, 20 tokens"}

// drawFound draws what either attacker gets.
func drawFound(cells []*cell) ([]*plot.Plot, error) {
	var row []*plot.Plot
	for panel, what := range []struct {
		title, y string
		row      func(c *cell) run.Row
		theory   func(c *cell) float64
	}{
		{"A secret column", "share of the secrets that is found", (*cell).found, func(c *cell) float64 { return c.columns[0].Expected }},
		{"Who is in the holdout", "rows that are told from others", (*cell).tells, func(c *cell) float64 { return c.pairs[0].Expected }},
	} {
		p := figure.New(what.title, "questions for each row of the holdout", what.y)
		chance := plotter.NewFunction(func(float64) float64 { return 0.5 })
		chance.Width = 0.8
		p.Add(chance)
		for i, m := range mechanisms {
			var theory plotter.XYs
			var points figure.Points
			for _, c := range cells {
				if c.guarantee.Mechanism != m {
					continue
				}
				x, r := float64(c.guarantee.Questions)/float64(c.guarantee.N), what.row(c)
				theory = append(theory, plotter.XY{X: x, Y: what.theory(c)})
				points.Add(x, r.Mean, r.Low, r.High)
			}
			line, err := plotter.NewLine(theory)
			if err != nil {
				return nil, err
			}
			line.LineStyle = figure.Line(i)
			p.Add(line)
			if err := figure.AddMarks(p, i, "", points); err != nil {
				return nil, err
			}
			if panel == 0 {
				p.Legend.Add(titles[string(m)], line, &plotter.Scatter{GlyphStyle: figure.Mark(i)})
			}
		}
		if panel == 0 {
			p.Legend.Add("chance", chance)
		}
		p.X.Min, p.Y.Min, p.Y.Max = 0, 0.45, 1.3 // room for the legend above
		p.X.Tick.Marker = figure.EvenTicks
		p.Y.Tick.Marker = plot.ConstantTicks{{Value: 0.5, Label: "0.5"}, {Value: 0.6, Label: "0.6"}, {Value: 0.7, Label: "0.7"}, {Value: 0.8, Label: "0.8"}, {Value: 0.9, Label: "0.9"}, {Value: 1, Label: "1"}}
		p.Legend.Top, p.Legend.Left = true, true
		row = append(row, p)
	}
	return row, nil
}
