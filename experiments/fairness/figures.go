package fairness

import (
	"fmt"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/internal/figure"
	"github.com/holdoutd/holdoutd/internal/printed"
)

func figuresOf(cells []*cell) []run.Figure {
	for _, c := range cells {
		if len(c.runs) == 0 {
			return nil
		}
	}
	return []run.Figure{{Name: "fairness", Caption: "The gap that is shown of the last rule against the number of adjustments, with the interval that is shown with it, both on average over runs. " +
		"On the law, and on fresh rows, the gap is 8 points whatever is adjusted: the textbook's interval misses it, the mechanisms' do not.",
		Draw: func() (*plot.Plot, error) { return drawGaps(cells) }}}
}

// drawGaps draws what is shown, with its intervals.
func drawGaps(cells []*cell) (*plot.Plot, error) {
	p := figure.New(fmt.Sprintf("A gap between two groups, tuned on a holdout of %s rows", printed.Thousands(cells[0].guarantee.N)), "adjustments that were tried", "gap of the last rule, as shown")
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, figure.LogTicks
	law := plotter.NewFunction(func(float64) float64 { return lawGap })
	law.Width = 0.8
	p.Add(law)
	p.Legend.Add("the gap on the law, whatever is adjusted", law)
	limit := plotter.NewFunction(func(float64) float64 { return closed })
	limit.LineStyle = figure.Line(6)
	limit.Width, limit.Dashes = 0.8, figure.Dotted
	p.Add(limit)
	p.Legend.Add("passes for closed", limit)
	var fresh figure.Points
	least, most := cells[0].k, cells[0].k
	for i, m := range methodsOf(cells) {
		var points figure.Points
		for _, c := range cells {
			if c.guarantee.Mechanism != m {
				continue
			}
			least, most = min(least, c.k), max(most, c.k)
			x := float64(c.k) * math.Pow(1.06, float64(i)-1) // beside each other
			points.Add(x, c.shown().Mean, c.low().Mean, c.high().Mean)
			if c.naive() {
				r := c.fresh()
				fresh.Add(float64(c.k)*math.Pow(1.06, -2), r.Mean, r.Low, r.High)
			}
		}
		if err := figure.AddMarks(p, i, titles[string(m)], points); err != nil {
			return nil, err
		}
	}
	if err := figure.AddMarks(p, 3, "the same rule of exact answers on fresh rows", fresh); err != nil {
		return nil, err
	}
	p.X.Min, p.X.Max = float64(least)/1.2, float64(most)*1.2
	p.Y.Min, p.Y.Max = -0.1, 0.35
	p.Y.Tick.Marker = figure.EvenTicks
	p.Legend.Top, p.Legend.Left = true, true
	return p, nil
}

// titles of the mechanisms in the legend.
var titles = map[string]string{"naive": "exact answers, with the textbook's interval", "gaussian": "gaussian, with its interval", "guess_and_check": "guess_and_check, the default, with its interval"}
