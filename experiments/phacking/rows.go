package phacking

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/holdoutd/holdoutd/experiments/run"
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

// deviationTolerance allows for what theory leaves out: groups of unlike sizes, attributes that know of each other.
const deviationTolerance = 1

//go:embed reference.json
var referenceText []byte

// reference is the risk group's deviation where labels are shuffled, as an independent program found it: see reference.py.
type reference struct {
	N           int64      `json:"n"`
	Repetitions int        `json:"repetitions"`
	Deviation   run.Stored `json:"deviation"`
}

func checksOf(cells []*cell, rows []run.Row, table *tables.Groups, n int64) ([]run.Check, error) {
	var known reference
	if err := json.Unmarshal(referenceText, &known); err != nil {
		return nil, fmt.Errorf("experiments: reference: %w", err)
	}
	known.Deviation.Repetitions = known.Repetitions
	shuffled := func(method, set string) run.Row { return run.Find(rows, labelsShuffled, method, n, set) }
	var checks run.Checks
	checks.AtLeast("labels shuffled, plain test: "+anyFalseDiscovery, 0.99, shuffled(testPlain, anyFalseDiscovery))
	if n == known.N {
		pair := run.Pair{At: riskGroupDeviation, Stored: known.Deviation}
		for _, c := range cells {
			if c.condition == labelsShuffled && c.guarantee.Mechanism == thresholdout.Naive {
				for _, r := range c.runs {
					pair.Values = append(pair.Values, r.Deviation)
				}
			}
		}
		checks.Stored("labels shuffled, exact answers", []run.Pair{pair})
	}
	checks.Equal("labels shuffled, exact answers: "+riskGroupDeviation+", against a rough theory", riskDeviation(table), deviationTolerance, shuffled(testPlain, riskGroupDeviation))
	checks.AtLeast("labels shuffled, Bonferroni: "+riskGroupFalse, 0.8, shuffled(testBonferroni, riskGroupFalse))
	for _, m := range mechanisms {
		for _, condition := range []string{labelsShuffled, labelsReal} {
			checks.AtMost(fmt.Sprintf("%s, %s: %s", condition, m, anyFalseDiscovery), level, run.Find(rows, condition, string(m), n, anyFalseDiscovery))
		}
		// A holdout that never found anything would keep its promise, and be of no use.
		if n >= usefulRows && m != thresholdout.Split { // a slice of a thousand flights shows no difference of this size
			checks.AtLeast(fmt.Sprintf("%s, %s: %s", labelsReal, m, trueDiscoveries), 1, run.Find(rows, labelsReal, string(m), n, trueDiscoveries))
		}
	}
	return checks.Decide(), nil
}

// usefulRows is how many flights a holdout needs for its intervals to be narrower than some real differences.
const usefulRows = 200000
