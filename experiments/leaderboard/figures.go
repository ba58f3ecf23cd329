package leaderboard

import (
	"fmt"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/internal/figure"
)

func figuresOf(cells []*cell) []run.Figure {
	for _, c := range cells {
		if len(c.runs) > 0 {
			return []run.Figure{
				{Name: "final", Caption: "Loss on the public labels of the majority of the submissions kept, against their number, with 95% intervals of the mean; lines by theory. " +
					"Each submission is truly wrong half of the time.", Draw: func() (*plot.Plot, error) { return drawFinal(cells) }},
				{Name: "shown", Caption: "What the board shows of the final submission. Of gaussian and guess_and_check the bars are the interval that is shown with it, on average.",
					Draw: func() (*plot.Plot, error) { return drawShown(cells) }}}
		}
	}
	return nil
}

// seriesOf are the cells of each board that are begun.
func seriesOf(cells []*cell) (methods []string, of map[string][]*cell) {
	of = map[string][]*cell{}
	for _, c := range cells {
		if len(c.runs) == 0 {
			continue
		}
		if of[c.method] == nil {
			methods = append(methods, c.method)
		}
		of[c.method] = append(of[c.method], c)
	}
	return methods, of
}

// newPlot is an empty figure of losses against k.
func newPlot(title, y string) *plot.Plot {
	p := figure.New(title, "submissions before the last, k", y)
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, figure.LogTicks
	truth := plotter.NewFunction(func(float64) float64 { return 0.5 })
	truth.Width = 0.8
	p.Add(truth)
	p.Legend.Add("truth", truth)
	p.Legend.Left = true
	return p
}

func drawFinal(cells []*cell) (*plot.Plot, error) {
	methods, of := seriesOf(cells)
	p := newPlot(fmt.Sprintf("The attack on a leaderboard of %d labels: loss of its final submission", cells[0].n), "loss on the public labels")
	for i, method := range methods {
		var measured figure.Points
		var theory plotter.XYs
		for _, c := range of[method] {
			final := c.final()
			x := float64(c.k) * math.Pow(1.04, float64(i)-1.5) // beside each other
			measured.Add(x, final.Mean, final.Low, final.High)
			theory = append(theory, plotter.XY{X: float64(c.k), Y: c.theory(c.kept().Mean)})
		}
		if method == boardLadder || method == boardRounded { // for which there is no theory, or the same
			if err := figure.AddMarks(p, i, method, measured); err != nil {
				return nil, err
			}
			continue
		}
		line, err := plotter.NewLine(theory)
		if err != nil {
			return nil, err
		}
		line.LineStyle = figure.Line(i)
		line.Width = 1.2
		p.Add(line)
		if err := figure.AddMarks(p, i, "", measured); err != nil {
			return nil, err
		}
		p.Legend.Add(method+", line by theory", line, &plotter.Scatter{GlyphStyle: figure.Mark(i)})
	}
	p.Y.Max = 0.505
	p.Y.Tick.Marker = figure.EvenTicks
	return p, nil
}

func drawShown(cells []*cell) (*plot.Plot, error) {
	methods, of := seriesOf(cells)
	p := newPlot(fmt.Sprintf("The attack on a leaderboard of %d labels: what is shown of its final submission", cells[0].n), "loss that is shown")
	for i, method := range methods {
		var points figure.Points
		for _, c := range of[method] {
			low, high := c.ends()
			points.Add(float64(c.k)*math.Pow(1.04, float64(i)-1.5), c.shown().Mean, low, high)
		}
		if of[method][0].promises() {
			if err := figure.AddMarks(p, i, method+", with its interval", points); err != nil {
				return nil, err
			}
			continue
		}
		marks, err := plotter.NewScatter(points.XYs)
		if err != nil {
			return nil, err
		}
		marks.GlyphStyle = figure.Mark(i)
		p.Add(marks)
		p.Legend.Add(method, marks)
	}
	p.Y.Min -= 0.3 * (p.Y.Max - p.Y.Min) // for the legend
	p.Y.Tick.Marker = figure.EvenTicks
	return p, nil
}
