package dpsgd

import (
	"fmt"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"github.com/holdoutd/holdoutd/dp/account"
	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/internal/figure"
)

// The example of lectures: how much each of many answers may spend, so that all of them together spend an epsilon of 1.
const (
	exampleAnswers = 50_000
	exampleEpsilon = 1
	exampleDelta   = 1e-9
)

// compositions say what k answers of a pure epsilon spend together.
var compositions = []struct {
	name string
	all  func(each float64, k int) float64
}{
	{"optimal composition (Kairouz, Oh, Viswanath)", func(each float64, k int) float64 {
		if (account.Pure{Epsilon: each, K: k}).OptimalDelta(exampleEpsilon) <= exampleDelta { // whether it is at most that is all that is asked
			return exampleEpsilon
		}
		return math.Inf(1)
	}},
	{"advanced composition (Dwork, Rothblum, Vadhan)", func(each float64, k int) float64 { return account.Pure{Epsilon: each, K: k}.Advanced(exampleDelta) }},
	{"basic composition", func(each float64, k int) float64 { return account.Pure{Epsilon: each, K: k}.Basic() }},
}

// eachMay is the largest epsilon of each of k answers that spend exampleEpsilon together.
func eachMay(all func(each float64, k int) float64, k int) float64 {
	const precision = 1e-7
	low, high := 0., float64(exampleEpsilon)
	for high-low > precision*high {
		if middle := (low + high) / 2; all(middle, k) <= exampleEpsilon {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// What SciPy says of the example: the root of sqrt(2 k ln(1/delta)) e + k e tanh(e/2) = 1, and of the binomial sum of arXiv 1311.0776, Theorem 3.3.
const (
	exampleAdvanced = 6.864739006e-4
	exampleOptimal  = 8.138536470e-4
)

func compositionChecks(checks *run.Checks) {
	of := func(i int) float64 { return eachMay(compositions[i].all, exampleAnswers) }
	what := fmt.Sprintf("what each of %d answers may spend for an epsilon of %v together, delta %v: ", exampleAnswers, exampleEpsilon, exampleDelta)
	checks.Arithmetic(what+compositions[2].name, float64(exampleEpsilon)/exampleAnswers, 1e-6, of(2))
	checks.Arithmetic(what+compositions[1].name+", against SciPy", exampleAdvanced, 1e-6, of(1))
	checks.Arithmetic(what+compositions[0].name+", against SciPy", exampleOptimal, 1e-6, of(0))
}

// drawComposition draws what each answer may spend against the number of answers.
func drawComposition() (*plot.Plot, error) {
	p := figure.New(fmt.Sprintf("What each of k answers may spend for an epsilon of %v together, delta %v", exampleEpsilon, exampleDelta), "answers, k", "epsilon of each")
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker = figure.CountTicks
	p.Y.Tick.Marker = plot.ConstantTicks{{Value: 1, Label: "1"}, {Value: 0.1, Label: "0.1"}, {Value: 0.01, Label: "0.01"}, {Value: 1e-3, Label: "0.001"}, {Value: 1e-4, Label: "0.0001"}, {Value: 1e-5, Label: "0.00001"}}
	for i, c := range compositions {
		var points plotter.XYs
		for exponent := 1.0; exponent <= 5; exponent += 0.25 {
			k := math.Round(math.Pow(10, exponent))
			points = append(points, plotter.XY{X: k, Y: eachMay(c.all, int(k))})
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return nil, err
		}
		line.LineStyle = figure.Line(i)
		p.Add(line)
		p.Legend.Add(c.name, line)
	}
	basic, advanced := float64(exampleEpsilon)/exampleAnswers, eachMay(compositions[1].all, exampleAnswers)
	span, err := plotter.NewLine(plotter.XYs{{X: exampleAnswers, Y: basic}, {X: exampleAnswers, Y: advanced}})
	if err != nil {
		return nil, err
	}
	p.Add(span, &figure.Label{XY: plotter.XY{X: exampleAnswers, Y: math.Sqrt(basic * advanced)}, Text: fmt.Sprintf("%.0f times", advanced/basic), Color: figure.Black, Offset: vg.Point{X: -58, Y: 6}})
	figure.Grid(p)
	p.Legend.Top = true
	return p, nil
}
