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
	switch {
	case c.tests:
		methods = []string{testQueries}
	case c.guarantee.Mechanism == thresholdout.Naive:
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
		if c.tests {
			add(unlikeVerdict, true, func(r outcome) float64 { return run.Indicator(r.Unlike) })
			add(riskGroupGuess, false, func(r outcome) float64 { return r.Guess })
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
	Tested      run.Stored `json:"tested"` // in queries of type test, which ask for the share among a group's flights
}

func checksOf(cells []*cell, rows []run.Row, table *tables.Groups, n int64) ([]run.Check, error) {
	var known reference
	if err := json.Unmarshal(referenceText, &known); err != nil {
		return nil, fmt.Errorf("experiments: reference: %w", err)
	}
	known.Deviation.Repetitions, known.Tested.Repetitions = known.Repetitions, known.Repetitions
	shuffled := func(method, set string) run.Row { return run.Find(rows, labelsShuffled, method, n, set) }
	var checks run.Checks
	checks.AtLeast("labels shuffled, plain test: "+anyFalseDiscovery, 0.99, shuffled(testPlain, anyFalseDiscovery))
	if n == known.N {
		deviations := func(is func(c *cell) bool, of func(r outcome) float64) (values []float64) {
			for _, c := range cells {
				if c.condition == labelsShuffled && is(c) {
					for _, r := range c.runs {
						values = append(values, of(r))
					}
				}
			}
			return values
		}
		checks.Stored("labels shuffled, exact answers", []run.Pair{{At: riskGroupDeviation, Stored: known.Deviation,
			Values: deviations(func(c *cell) bool { return c.guarantee.Mechanism == thresholdout.Naive }, func(r outcome) float64 { return r.Deviation })}})
		// A guess that passes is the training part's exact value: of these the risk group is made.
		checks.Stored(labelsShuffled+", "+testQueries, []run.Pair{{At: riskGroupGuess, Stored: known.Tested,
			Values: deviations(func(c *cell) bool { return c.tests }, func(r outcome) float64 { return r.Guess })}})
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
	for _, condition := range []string{labelsShuffled, labelsReal} {
		of := func(set string) run.Row { return run.Find(rows, condition, testQueries, n, set) }
		checks.AtMost(fmt.Sprintf("%s, %s: %s", condition, testQueries, anyFalseDiscovery), level, of(anyFalseDiscovery))
		checks.AtMost(fmt.Sprintf("%s, %s: %s", condition, testQueries, unlikeVerdict), 0, of(unlikeVerdict))
	}
	if n >= usefulRows {
		// What the same mechanism finds by row functions, whose intervals know the range alone.
		byRange := run.Find(rows, labelsReal, string(thresholdout.GuessAndCheck), n, trueDiscoveries)
		checks.Above(fmt.Sprintf("%s, %s: %s", labelsReal, testQueries, trueDiscoveries), byRange.High, run.Find(rows, labelsReal, testQueries, n, trueDiscoveries))
	}
	return checks.Decide(), nil
}

// usefulRows is how many flights a holdout needs for its intervals to be narrower than some real differences.
const usefulRows = 200000
