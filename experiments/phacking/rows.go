package phacking

import (
	"fmt"
	"math"
	"slices"

	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/experiments/run/checks"
	"github.com/holdoutd/holdoutd/experiments/tables"
	"github.com/holdoutd/holdoutd/thresholdout"
)

func (c *cell) rows() []run.Row {
	if len(c.runs) == 0 {
		return nil
	}
	methods := []string{string(c.guarantee.Mechanism)}
	if c.guarantee.Mechanism == thresholdout.Naive {
		methods = []string{testPlain, testBonferroni}
	}
	var rows []run.Row
	for way, method := range methods {
		add := func(set string, rate bool, of func(r outcome) float64) {
			r := run.Row{Condition: c.condition, Method: method, N: c.guarantee.N, K: testCount, Confidence: 1 - level, Set: set, Rate: rate}
			rows = append(rows, run.Measured(r, c.runs, of))
		}
		add(falseDiscoveries, false, func(r outcome) float64 { return float64(r.False[way]) })
		add(anyFalseDiscovery, true, func(r outcome) float64 { return run.Indicator(r.False[way] > 0) })
		add(riskGroupFalse, true, func(r outcome) float64 { return run.Indicator(r.Risk[way]) })
		add(trueDiscoveries, false, func(r outcome) float64 { return float64(r.True[way]) })
		if way == 0 {
			add(riskGroupDeviation, false, func(r outcome) float64 { return r.Deviation })
		}
	}
	return rows
}

// riskDeviation is what theory says of the risk group's deviation under shuffled labels and exact answers. The sum of f free
// excesses, weighted by themselves, has a correlation of sqrt(f/n) with the label; the half of the rows in which it is positive has
// sqrt(2/pi) of it, and a half's excess deviates by that times sqrt(n/2).
func riskDeviation(t *tables.Groups) float64 {
	free := 0
	for a, size := range t.Sizes {
		free += size
		if !slices.Contains(t.Codes[a], tables.Ungrouped) {
			free-- // the excesses of all groups add up to nothing
		}
	}
	return math.Sqrt(float64(free) / math.Pi)
}

// deviationError is what theory leaves out: groups of unlike sizes, attributes that know of each other. A separate program with the same groups
// found 4.89 where theory says 5.44.
const deviationError = 0.7

// The risk group's deviation by that separate program (NumPy): 40 analysts on the same groups of flights, for 200,000 flights.
var referenceDeviation = checks.Sample{Mean: 4.89, SD: 0.51, Runs: 40}

func comparisons(rows []run.Row, table *tables.Groups, n int64) []checks.Comparison {
	shuffled := func(method, set string) run.Row { return run.Find(rows, labelsShuffled, method, n, set) }
	deviation := shuffled(testPlain, riskGroupDeviation).Sample()
	all := []checks.Comparison{
		checks.RateAbove("labels shuffled, plain test: "+anyFalseDiscovery, level, shuffled(testPlain, anyFalseDiscovery).Count()),
		checks.Equal("labels shuffled, exact answers: "+riskGroupDeviation, riskDeviation(table), deviationError, deviation),
		checks.RateAbove("labels shuffled, Bonferroni: "+riskGroupFalse, level, shuffled(testBonferroni, riskGroupFalse).Count()),
	}
	if n >= usefulRows {
		all = append(all, checks.Same("labels shuffled, exact answers: "+riskGroupDeviation+", against a separate program", referenceDeviation, deviation))
	}
	for _, m := range mechanisms {
		for _, condition := range []string{labelsShuffled, labelsReal} {
			all = append(all, checks.RateAtMost(fmt.Sprintf("%s, %s: %s", condition, m, anyFalseDiscovery), level,
				run.Find(rows, condition, string(m), n, anyFalseDiscovery).Count()))
		}
		if m == thresholdout.Split { // a question is about a 200th of the flights, which find next to nothing, and no answer tells of another question's
			all = append(all, checks.Equal("labels shuffled, split: "+riskGroupDeviation, 0, 0, shuffled(string(m), riskGroupDeviation).Sample()))
			continue
		}
		// A holdout that never found anything would keep its promise, and be of no use.
		if n >= usefulRows {
			all = append(all, checks.Above(fmt.Sprintf("%s, %s: %s", labelsReal, m, trueDiscoveries), 0, run.Find(rows, labelsReal, string(m), n, trueDiscoveries).Sample()))
		}
	}
	return all
}

// usefulRows is how many flights a holdout needs for its intervals to be narrower than some real differences.
const usefulRows = 200000
