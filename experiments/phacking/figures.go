package phacking

import (
	"fmt"
	"slices"
	"strings"

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
		{Name: "discoveries", Caption: "Discoveries among 200 tests, on average. Left, labels are shuffled and each discovery is false. Right, true discoveries with real labels. " +
			"Intervals that hold for any analyst are wide beside what a single group adds to the rate of all flights: they leave the risk group to be found. " +
			"Queries of type test ask for the rate within a group, by intervals that follow its variance.",
			Row: func() ([]*plot.Plot, error) { return drawCounts(rows) }},
	}
}

var testMethods = []string{testPlain, testBonferroni, string(thresholdout.Split), string(thresholdout.Gaussian), string(thresholdout.Thresholdout), string(thresholdout.GuessAndCheck), testQueries}

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

// drawCounts draws discoveries, each panel with a scale of its own and its numbers printed: a holdout's single discovery is seen beside 176 of a plain test.
func drawCounts(rows []run.Row) ([]*plot.Plot, error) {
	var row []*plot.Plot
	for i, s := range []struct{ title, condition, set string }{
		{"Labels shuffled: all discoveries are false", labelsShuffled, falseDiscoveries},
		{"Real labels: true discoveries", labelsReal, trueDiscoveries},
	} {
		p := figure.New(s.title, "", fmt.Sprintf("of %d tests, mean of the analysts", testCount))
		var values []float64
		for _, m := range testMethods {
			values = append(values, run.Find(rows, s.condition, m, rows[0].N, s.set).Mean)
		}
		if err := figure.AddBars(p, figure.Bars{Of: 1, Style: i, Width: 34, Number: "%.1f"}, "", values); err != nil {
			return nil, err
		}
		p.X.Tick.Label.Font = figure.Text(8).Font // seven names in half of a figure
		p.NominalX(strings.Split(strings.NewReplacer("_and_", "_\nand_", " ", "\n", "thresholdout", "threshold-\nout").Replace(strings.Join(testMethods, "|")), "|")...)
		p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = -0.5, float64(len(testMethods))-0.5, 0, max(1, 1.12*slices.Max(values))
		p.Y.Tick.Marker = figure.EvenTicks
		row = append(row, p)
	}
	return row, nil
}
