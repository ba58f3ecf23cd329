package phacking

import (
	"fmt"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/internal/figure"
	"github.com/holdoutd/holdoutd/thresholdout"
)

func figuresOf(rows []run.Row) []run.Figure {
	if len(rows) == 0 {
		return nil
	}
	return []run.Figure{
		{Name: "false", Caption: "Share of analysts with any false discovery among 200 tests, and with the last group, made of the answers, as one; labels are shuffled, so that each discovery is false. " +
			"Bars are 95% intervals; the mechanisms promise to stay below the line.",
			Draw: func() (*plot.Plot, error) { return drawRates(rows) }},
		{Name: "discoveries", Caption: "Discoveries among 200 tests, on average. Left: labels are shuffled, so that each one is false. Right: real labels, and true discoveries. " +
			"gaussian and thresholdout leave the risk group to be found. guess_and_check, the default, is asked about a group alone: it tells about half of what a plain test does, and nothing that is false. split has a 200th of the flights for each test, and finds next to nothing.",
			Row: func() ([]*plot.Plot, error) { return drawCounts(rows) }},
	}
}

var testMethods = []string{testPlain, testBonferroni, string(thresholdout.Gaussian), string(thresholdout.Thresholdout), string(thresholdout.GuessAndCheck), string(thresholdout.Split)}

func drawRates(rows []run.Row) (*plot.Plot, error) {
	p := figure.New(fmt.Sprintf("False discoveries in 200 adaptive tests of %d flights with shuffled labels", rows[0].N), "method", "share of analysts")
	for i, set := range []string{anyFalseDiscovery, riskGroupFalse} {
		var points figure.Points
		for x, m := range testMethods {
			if r := run.Find(rows, labelsShuffled, m, rows[0].N, set); r.Repetitions > 0 {
				points.Add(float64(x)+(float64(i)-0.5)*0.2, r.Mean, r.Low, r.High)
			}
		}
		if len(points.XYs) == 0 {
			continue
		}
		if err := figure.AddMarks(p, i, set, points); err != nil {
			return nil, err
		}
	}
	promise := plotter.NewFunction(func(float64) float64 { return level })
	promise.Width = 0.8
	p.Add(promise)
	p.Legend.Add("5%", promise)
	p.NominalX(testMethods...)
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = -0.5, float64(len(testMethods))-0.5, 0, 1.05
	p.Legend.Top, p.Legend.YOffs = true, -vg.Points(30)
	p.Y.Tick.Marker = figure.EvenTicks
	return p, nil
}

// drawCounts has false discoveries under shuffled labels at the left, and true ones under real labels at the right.
func drawCounts(rows []run.Row) ([]*plot.Plot, error) {
	var panels []*plot.Plot
	for _, s := range []struct {
		title, condition, set string
		series                int
	}{
		{"labels shuffled: false discoveries", labelsShuffled, falseDiscoveries, 5},
		{"real labels: true discoveries", labelsReal, trueDiscoveries, 0},
	} {
		p := figure.New(s.title, "discoveries of 200, on average", "")
		largest := 1.0
		for _, m := range testMethods {
			largest = max(largest, run.Find(rows, s.condition, m, rows[0].N, s.set).Mean)
		}
		p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, 1.18*largest, -0.6, float64(len(testMethods))-0.4
		p.X.Tick.Marker, p.Y.Tick.Marker = figure.EvenTicks, figure.RowTicks(testMethods)
		figure.Grid(p)
		for i, m := range testMethods {
			if r := run.Find(rows, s.condition, m, rows[0].N, s.set); r.Repetitions > 0 {
				p.Add(&figure.Bar{Series: s.series, To: r.Mean, Row: figure.RowOf(i, len(testMethods)), Half: 0.3, Number: number(r.Mean)})
			}
		}
		panels = append(panels, p)
	}
	return panels, nil
}

// number has one digit behind the point where there is one.
func number(v float64) string {
	if v == math.Trunc(v) || v >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.1f", v)
}
