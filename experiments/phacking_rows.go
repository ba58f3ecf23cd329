package experiments

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"github.com/holdoutd/holdoutd/internal/figure"
	"github.com/holdoutd/holdoutd/thresholdout"
)

func (c *hackingCell) rows() []Row {
	if len(c.runs) == 0 {
		return nil
	}
	methods := []string{string(c.params.Mechanism)}
	if c.params.Mechanism == thresholdout.Naive {
		methods = []string{testPlain, testBonferroni}
	}
	var rows []Row
	for way, method := range methods {
		add := func(set string, rate bool, of func(r hackingRun) float64) {
			r := Row{Condition: c.condition, Method: method, N: c.params.N, K: hackingTests, Confidence: 1 - hackingLevel, Set: set, Rate: rate}
			rows = append(rows, measuredRow(r, c.runs, of))
		}
		add(FalseDiscoveries, false, func(r hackingRun) float64 { return float64(r.False[way]) })
		add(AnyFalseDiscovery, true, func(r hackingRun) float64 { return indicator(r.False[way] > 0) })
		add(RiskGroupFalse, true, func(r hackingRun) float64 { return indicator(r.Risk[way]) })
		add(TrueDiscoveries, false, func(r hackingRun) float64 { return float64(r.True[way]) })
		if way == 0 {
			add(RiskGroupDeviation, false, func(r hackingRun) float64 { return r.Deviation })
		}
	}
	return rows
}

// hackingDeviation is what theory says of the risk group's deviation under shuffled labels and exact answers. The sum of f free
// excesses, weighted by themselves, has a correlation of sqrt(f/n) with the label; the half of the rows in which it is positive has
// sqrt(2/pi) of it, and a half's excess deviates by that times sqrt(n/2).
func hackingDeviation(t *subgroupTable) float64 {
	free := 0
	for a, size := range t.sizes {
		free += size
		if !slices.Contains(t.codes[a], ungrouped) {
			free-- // the excesses of all groups add up to nothing
		}
	}
	return math.Sqrt(float64(free) / math.Pi)
}

// hackingTolerance is for what theory leaves out: groups of unlike sizes, attributes that know of each other.
const hackingTolerance = 1

func hackingChecks(rows []Row, table *subgroupTable, n int64) []Check {
	shuffled := func(method, set string) Row { return findRow(rows, LabelsShuffled, method, n, set) }
	checks := []Check{
		AtLeast("labels shuffled, plain test: "+AnyFalseDiscovery, 0.99, shuffled(testPlain, AnyFalseDiscovery)),
		near("labels shuffled, exact answers: "+RiskGroupDeviation, hackingDeviation(table), hackingTolerance, shuffled(testPlain, RiskGroupDeviation)),
		AtLeast("labels shuffled, Bonferroni: "+RiskGroupFalse, 0.8, shuffled(testBonferroni, RiskGroupFalse)),
	}
	for _, m := range []thresholdout.Mechanism{thresholdout.Gaussian, thresholdout.Thresholdout} {
		for _, condition := range []string{LabelsShuffled, LabelsReal} {
			checks = append(checks, AtMost(fmt.Sprintf("%s, %s: %s", condition, m, AnyFalseDiscovery), hackingLevel,
				findRow(rows, condition, string(m), n, AnyFalseDiscovery)))
		}
		// A holdout that never found anything would keep its promise, and be of no use.
		if n >= hackingUseful {
			checks = append(checks, AtLeast(fmt.Sprintf("%s, %s: %s", LabelsReal, m, TrueDiscoveries), 1, findRow(rows, LabelsReal, string(m), n, TrueDiscoveries)))
		}
	}
	return checks
}

// hackingUseful is the number of flights from which real differences are wider than intervals.
const hackingUseful = 200000

func hackingFigures(rows []Row) []Figure {
	if len(rows) == 0 {
		return nil
	}
	return []Figure{
		{Name: "false", Caption: "Share of analysts with any false discovery among 200 tests, and with the last group, made of the answers, as one; labels are shuffled, so that each discovery is false. " +
			"Bars are 95% intervals; the mechanisms promise to stay below the line.",
			Draw: func() (*plot.Plot, error) { return hackingRatesFigure(rows) }},
		{Name: "discoveries", Caption: "Discoveries among 200 tests, on average: with shuffled labels all are false, with real labels nearly all are true. " +
			"Intervals that hold for any analyst are wide beside what a single group adds to the rate of all flights: they leave the risk group to be found.",
			Draw: func() (*plot.Plot, error) { return hackingCountsFigure(rows) }},
	}
}

var hackingMethods = []string{testPlain, testBonferroni, string(thresholdout.Gaussian), string(thresholdout.Thresholdout)}

func hackingRatesFigure(rows []Row) (*plot.Plot, error) {
	p := figure.New(fmt.Sprintf("False discoveries in 200 adaptive tests of %d flights with shuffled labels", rows[0].N), "method", "share of analysts")
	for i, set := range []string{AnyFalseDiscovery, RiskGroupFalse} {
		var points barred
		for x, m := range hackingMethods {
			if r := findRow(rows, LabelsShuffled, m, rows[0].N, set); r.Repetitions > 0 {
				points.XYs = append(points.XYs, plotter.XY{X: float64(x) + (float64(i)-0.5)*0.2, Y: r.Mean})
				points.YErrors = append(points.YErrors, struct{ Low, High float64 }{r.Mean - r.Low, r.High - r.Mean})
			}
		}
		if len(points.XYs) == 0 {
			continue
		}
		if err := addMarks(p, i, set, points); err != nil {
			return nil, err
		}
	}
	promise := plotter.NewFunction(func(float64) float64 { return hackingLevel })
	promise.Width = 0.8
	p.Add(promise)
	p.Legend.Add("5%", promise)
	p.NominalX(hackingMethods...)
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = -0.5, float64(len(hackingMethods))-0.5, 0, 1.05
	p.Legend.Top, p.Legend.YOffs = true, -vg.Points(30)
	p.Y.Tick.Marker = evenTicks
	return p, nil
}

func hackingCountsFigure(rows []Row) (*plot.Plot, error) {
	p := figure.New(fmt.Sprintf("Discoveries in 200 adaptive tests of %d flights", rows[0].N), "method", "discoveries of 200")
	const width = 14
	for i, s := range []struct{ label, condition, set string }{
		{"labels shuffled: false", LabelsShuffled, FalseDiscoveries},
		{"real labels: true", LabelsReal, TrueDiscoveries},
		{"real labels: false", LabelsReal, FalseDiscoveries},
	} {
		values := make(plotter.Values, len(hackingMethods))
		for x, m := range hackingMethods {
			values[x] = findRow(rows, s.condition, m, rows[0].N, s.set).Mean
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
	p.NominalX(hackingMethods...)
	p.Legend.Top = true
	p.Y.Max *= 1.15
	p.Y.Tick.Marker = evenTicks
	return p, nil
}
