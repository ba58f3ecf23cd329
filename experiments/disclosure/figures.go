package disclosure

import (
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg/draw"

	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/internal/figure"
)

func figuresOf(cells []*cell) []run.Figure {
	for _, c := range cells {
		if len(c.runs) > 0 {
			return []run.Figure{
				{Name: "reconstruction", Caption: "The share of secret bits that the attacker gets right, against the number of questions: marks with 95% intervals of the mean, lines by theory. One half is guessing. The thin line is what no attack on gaussian exceeds.",
					Draw: func() (*plot.Plot, error) {
						return drawAttack(cells, reconstruction, "Secret bits of 1,000 rows that random questions give away", "share of bits right")
					}},
				{Name: "membership", Caption: "The share of targets, half of them members, that the attacker tells rightly, against the number of attributes asked about: marks with 95% intervals of the mean, lines by theory. One half is guessing.",
					Draw: func() (*plot.Plot, error) {
						return drawAttack(cells, membership, "Is this person among the 1,000? What the means of attributes tell", "share of targets told rightly")
					}}}
		}
	}
	return nil
}

// drawAttack draws shares against questions.
func drawAttack(cells []*cell, attack, title, y string) (*plot.Plot, error) {
	p := figure.New(title, "questions", y)
	p.X.Scale, p.X.Tick.Marker, p.Y.Tick.Marker = plot.LogScale{}, figure.LogTicks, figure.EvenTicks
	guessing := plotter.NewFunction(func(float64) float64 { return 0.5 })
	guessing.Width = 0.8
	p.Add(guessing)
	for i, method := range methods {
		var measured figure.Points
		var theory, limits plotter.XYs
		for _, c := range cells {
			if c.attack != attack || c.method != method || len(c.runs) == 0 {
				continue
			}
			r := c.row()
			measured.Add(float64(c.k)*math.Pow(1.02, float64(i)-2), r.Mean, r.Low, r.High)
			theory = append(theory, plotter.XY{X: float64(c.k), Y: c.theory()})
			if limit, known := c.limit(); known {
				limits = append(limits, plotter.XY{X: float64(c.k), Y: limit})
			}
		}
		if len(theory) == 0 {
			continue
		}
		line, err := plotter.NewLine(theory)
		if err != nil {
			return nil, err
		}
		line.LineStyle = figure.Line(i)
		p.Add(line)
		if err := figure.AddMarks(p, i, "", measured); err != nil {
			return nil, err
		}
		p.Legend.Add(method, line, &plotter.Scatter{GlyphStyle: figure.Mark(i)})
		if len(limits) > 0 {
			bound, err := plotter.NewLine(limits)
			if err != nil {
				return nil, err
			}
			bound.LineStyle = draw.LineStyle{Color: figure.Line(i).Color, Width: 0.7}
			p.Add(bound)
			p.Legend.Add("no attack on gaussian is above", bound)
		}
	}
	p.Legend.Add("guessing", guessing)
	figure.Widen(&p.X)
	p.Y.Min, p.Y.Max = 0.48, 1.02
	p.Legend.Top, p.Legend.Left = true, true
	return p, nil
}
