package manyquestions

import (
	"fmt"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/internal/figure"
	"github.com/holdoutd/holdoutd/internal/printed"
	"github.com/holdoutd/holdoutd/thresholdout"
)

func figuresOf(cells []*cell, promised []promise) []run.Figure {
	for _, c := range cells {
		if len(c.runs) == 0 {
			return nil
		}
	}
	return []run.Figure{{Name: "many-questions", Caption: "Half-widths for any analyst against the number of questions (lines), and the largest error of a run on average (marks, beside each other for each number), with 95% intervals of the mean. " +
		"Of private weights the line is less than any half-width that follows from their privacy.", Draw: func() (*plot.Plot, error) { return drawWidths(cells, promised) }}}
}

// styles of what is promised and of what is played: a mechanism has one.
var styles = map[string]int{
	string(thresholdout.Cells): 0, string(thresholdout.Gaussian): 1, string(thresholdout.GuessAndCheck): 2, whileHolding: 2, byWeights: 3, weightsAbove: 3, byDescription: 5,
}

// apart, as a factor of the number of questions, are marks of two methods that would lie on each other.
const apart = 1.25

// everyOther labels every other power of ten, in words where they are large: all of them do not fit.
func everyOther(low, high float64) []plot.Tick {
	ticks := figure.CountTicks(low, high)
	for i, tick := range ticks {
		switch power := math.Log10(tick.Value); {
		case tick.Label == "" || math.Mod(math.Round(power), 2) == 0:
			ticks[i].Label = ""
		case tick.Value >= 0.99e9:
			ticks[i].Label = printed.Thousands(int64(math.Round(tick.Value/1e9))) + " billion"
		case tick.Value >= 0.99e6:
			ticks[i].Label = printed.Thousands(int64(math.Round(tick.Value/1e6))) + " million"
		}
	}
	return ticks
}

func drawWidths(cells []*cell, promised []promise) (*plot.Plot, error) {
	p := figure.New(fmt.Sprintf("Many questions about %d cells of %s rows", domain, printed.Thousands(cells[0].n)), "questions", "half-width (lines), largest error (marks)")
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.TickerFunc(everyOther), figure.LogTicks
	for _, promise := range promised {
		var points plotter.XYs
		for i, k := range promise.k {
			points = append(points, plotter.XY{X: float64(k), Y: promise.width[i]})
		}
		if len(points) == 0 {
			continue
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return nil, err
		}
		line.LineStyle = figure.Line(styles[promise.method])
		p.Add(line)
		p.Legend.Add(promise.method, line)
	}
	least, aside := math.Inf(1), math.Pow(apart, -1.5) // four methods
	for i := 0; i < len(cells); aside *= apart {
		var points figure.Points
		method := cells[i].method
		for ; i < len(cells) && cells[i].method == method; i++ {
			r := cells[i].largest()
			low := max(r.Low, r.Mean/4) // of few runs it may be below 0
			least = min(least, low)
			points.Add(aside*float64(cells[i].k), r.Mean, low, r.High)
		}
		if err := figure.AddMarks(p, styles[method], method+", as played", points); err != nil {
			return nil, err
		}
	}
	p.X.Min, p.X.Max = 8, 1.3*mostQuestions
	p.Y.Min, p.Y.Max = least/14, 1 // room for the legend
	figure.Grid(p)
	p.Legend.Left = true
	return p, nil
}
