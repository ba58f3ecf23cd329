package phacking

import (
	"fmt"

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
		{Name: "discoveries", Caption: "Discoveries among 200 tests, on average: with shuffled labels all are false, with real labels nearly all are true. " +
			"Intervals that hold for any analyst are wide beside what a single group adds to the rate of all flights: they leave the risk group to be found.",
			Draw: func() (*plot.Plot, error) { return drawCounts(rows) }},
	}
}

var testMethods = []string{testPlain, testBonferroni, string(thresholdout.Gaussian), string(thresholdout.Thresholdout)}

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

func drawCounts(rows []run.Row) (*plot.Plot, error) {
	p := figure.New(fmt.Sprintf("Discoveries in 200 adaptive tests of %d flights", rows[0].N), "method", "discoveries of 200")
	const width = 14
	for i, s := range []struct{ label, condition, set string }{
		{"labels shuffled: false", labelsShuffled, falseDiscoveries},
		{"real labels: true", labelsReal, trueDiscoveries},
		{"real labels: false", labelsReal, falseDiscoveries},
	} {
		values := make(plotter.Values, len(testMethods))
		for x, m := range testMethods {
			values[x] = run.Find(rows, s.condition, m, rows[0].N, s.set).Mean
		}
		bars, err := plotter.NewBarChart(values, vg.Points(width))
		if err != nil {
			return nil, err
		}
		bars.Offset = vg.Points(width * (float64(i) - 1))
		bars.Color = figure.Line(i).Color
		bars.LineStyle.Width = vg.Points(0.5)
		p.Add(bars)
		p.Legend.Add(s.label, bars)
	}
	p.NominalX(testMethods...)
	p.Legend.Top = true
	p.Y.Max *= 1.15
	p.Y.Tick.Marker = figure.EvenTicks
	return p, nil
}
