// Package coverage measures the first promise of docs/GUARANTEES.md under attack: how often any interval of a run misses its target, for
// every analyst of [analysts.All] against every mechanism, on simulated data whose truth is known. Naive reuse with the intervals of
// questions fixed beforehand is there to show that the attacks bite.
package coverage

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot"

	"github.com/holdoutd/holdoutd/experiments/analysts"
	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/experiments/seeds"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// What is measured: run.Row.Set.
const (
	nonCoverage = "non-coverage"                 // rate of runs in which any interval misses
	worstError  = "worst error"                  // the largest of a run
	worstReach  = "worst error / its half-width" // the largest of a run; an interval misses beyond 1
)

// naiveMethod is naive reuse with the intervals of a batch fixed beforehand.
const naiveMethod = "naive, non-adaptive intervals"

// method is a mechanism, and how a holdout with it is asked for.
type method struct {
	name string
	spec func(n, k int64, confidence float64) thresholdout.Spec
}

// tokensFor: enough that an attack gets far on what the holdout tells, as few as someone would grant.
func tokensFor(k int64) int64 { return max(20, k/4) }

// methods are the mechanisms that analysts play against. The training part is as large as the holdout.
var methods = []method{
	{"gaussian", func(n, k int64, confidence float64) thresholdout.Spec {
		return thresholdout.Spec{Mechanism: thresholdout.Gaussian, N: n, Questions: k, Confidence: confidence}
	}},
	{"guess_and_check", func(n, k int64, confidence float64) thresholdout.Spec {
		return thresholdout.Spec{Mechanism: thresholdout.GuessAndCheck, N: n, Training: n, Questions: k, Tokens: tokensFor(k), Confidence: confidence}
	}},
	{"thresholdout", func(n, k int64, confidence float64) thresholdout.Spec {
		return thresholdout.Spec{Mechanism: thresholdout.Thresholdout, N: n, Training: n, Questions: k, Tokens: tokensFor(k), Confidence: confidence}
	}},
	{"thresholdout, laplace", func(n, k int64, confidence float64) thresholdout.Spec {
		return thresholdout.Spec{Mechanism: thresholdout.Thresholdout, Form: thresholdout.FormLaplace, N: n, Training: n, Questions: k,
			Tokens: tokensFor(k), Confidence: confidence}
	}},
	{"split", func(n, k int64, confidence float64) thresholdout.Spec {
		return thresholdout.Spec{Mechanism: thresholdout.Split, N: n, Questions: k, Confidence: confidence}
	}},
	{naiveMethod, func(n, k int64, confidence float64) thresholdout.Spec {
		return thresholdout.Spec{Mechanism: thresholdout.Naive, N: n, Questions: k, Confidence: confidence}
	}},
}

func (m method) oracle(p thresholdout.Guarantee, seed uint64) analysts.Oracle {
	if m.name == naiveMethod {
		return &analysts.NonAdaptive{Holdout: *analysts.NewHoldout(p, seed)}
	}
	return analysts.NewHoldout(p, seed)
}

// cell is one condition: an analyst against a mechanism.
type cell struct {
	analyst    analysts.Analyst
	method     method
	guarantee  thresholdout.Guarantee
	confidence float64
	games      []analysts.Game // nil until all are finished
}

// Experiment is how often any interval misses.
var Experiment = run.Experiment{
	Name:  "coverage",
	Short: "how often any interval misses its target, for every analyst and mechanism",
	Paper: `The guarantee (docs/GUARANTEES.md): for every analyst, the probability that any interval of a run misses its target is at most one minus
the confidence. Intervals for questions fixed beforehand promise nothing once questions are chosen after answers.`,
	Small: run.Options{Quick: true, Repetitions: 3},
	Run:   measure,
}

// measure lets every analyst play against every mechanism on fresh data, for a grid of sizes and confidences.
func measure(ctx context.Context, o run.Options) (run.Result, error) {
	result := run.Result{Experiment: "coverage", Seed: o.Seed, Quick: o.Quick}
	sizes := []struct{ n, k int64 }{{500, 100}, {500, 500}, {2000, 500}}
	confidences, repetitions := []float64{0.8, 0.95}, o.RepetitionsOr(100)
	if o.Quick {
		sizes, confidences, repetitions = sizes[1:2], confidences[1:], o.RepetitionsOr(20)
	}
	var cells []*cell
	for _, size := range sizes {
		for _, confidence := range confidences {
			for _, m := range methods {
				p, err := thresholdout.Plan(m.spec(size.n, size.k, confidence))
				if err != nil {
					return result, fmt.Errorf("experiments: %s: %w", m.name, err)
				}
				for _, a := range analysts.All {
					cells = append(cells, &cell{analyst: a, method: m, guarantee: p, confidence: confidence})
				}
			}
		}
	}
	err := playAll(ctx, o, cells, repetitions)
	for _, c := range cells {
		if c.games != nil {
			result.Rows = append(result.Rows, c.rows()...)
		}
	}
	result.Complete = err == nil
	result.Summary = tableOf(result.Rows)
	checks, broken := checksOf(cells)
	result.Checks, err = checks, errors.Join(err, broken)
	result.Notes = []string{fmt.Sprintf("%d analysts play %d runs each against %d mechanisms, on fresh data in every run, "+
		"at %d sizes and %d confidences; the training part is as large as the holdout.", len(analysts.All), repetitions, len(methods), len(sizes), len(confidences))}
	if len(result.Rows) > 0 {
		result.Figures = []run.Figure{{Name: "coverage", Caption: "How near each analyst came to a miss: the largest error of a run over its interval's half-width, a mean over runs. " +
			"Against every mechanism all stay left of 1. Intervals for questions fixed beforehand, over exact answers, are left far behind.",
			Draw: func() (*plot.Plot, error) { return drawReach(result.Rows) }}}
	}
	return result, err
}

//go:embed reference.json
var referenceText []byte

// reference is what an independent program finds of one analyst: see reference.py.
type reference struct {
	Analyst string `json:"analyst"`
	Cells   []struct {
		Method      string     `json:"method"`
		N           int64      `json:"n"`
		K           int64      `json:"k"`
		Confidence  float64    `json:"confidence"`
		HalfWidth   float64    `json:"half_width"` // of every interval
		Repetitions int        `json:"repetitions"`
		Worst       run.Stored `json:"worst"` // the largest error of a run
	} `json:"cells"`
}

// widthTolerance is what a half-width may be off by, as a part: the released one pays two parts in ten thousand for whole numbers in its proof
// (thresholdout/bounds), and the reference's search for the best noise stops where widths are flat.
const widthTolerance = 5e-4

// checksOf are, for every mechanism, the largest rate of misses of any analyst against the promise; for naive reuse that some analyst breaks
// the intervals of questions fixed beforehand; and where an independent program knows them, half-widths and errors.
func checksOf(cells []*cell) ([]run.Check, error) {
	var checks run.Checks
	for _, m := range methods {
		for _, confidence := range []float64{0.8, 0.95} {
			var these []*cell
			for _, c := range cells {
				if c.method.name == m.name && c.confidence == confidence && c.games != nil {
					these = append(these, c)
				}
			}
			if len(these) > 0 {
				missChecks(&checks, m, math.Round(100*(1-confidence))/100, these)
			}
		}
	}
	var r reference
	if err := json.Unmarshal(referenceText, &r); err != nil {
		return nil, fmt.Errorf("experiments: reference: %w", err)
	}
	for _, known := range r.Cells {
		for _, c := range cells {
			p := c.guarantee
			if c.games == nil || c.analyst.Name != r.Analyst || c.method.name != known.Method || p.N != known.N || p.Questions != known.K || c.confidence != known.Confidence {
				continue
			}
			of := fmt.Sprintf("%s at %v, n = %d, k = %d", known.Method, known.Confidence, known.N, known.K)
			// An error over its part of the half-width, as the intervals were that the analyst saw.
			checks.Arithmetic(of+": half-width", known.HalfWidth, widthTolerance, c.games[0].Worst/c.games[0].Reach)
			known.Worst.Repetitions = known.Repetitions
			values := make([]float64, len(c.games))
			for i, g := range c.games {
				values[i] = g.Worst
			}
			checks.Stored(of, []run.Pair{{At: "the largest error of " + r.Analyst, Values: values, Stored: known.Worst}})
		}
	}
	return checks.Decide(), nil
}

// missChecks compare the rate of misses of the worst of a mechanism's conditions with what is promised.
func missChecks(checks *run.Checks, m method, promise float64, cells []*cell) {
	worst, narrowed := cells[0].rows()[0], []float64{}
	for _, c := range cells {
		if miss := c.rows()[0]; miss.Mean > worst.Mean {
			worst = miss
		}
	}
	what := fmt.Sprintf("%s at %v: the worst rate of misses (%s, n = %d, k = %d)", m.name, worst.Confidence, worst.Condition, worst.N, worst.K)
	check := run.Check{What: what, Expected: promise, Got: worst.Mean, Low: worst.Low, High: worst.High}
	if m.name == naiveMethod {
		checks.Add(1, func(alpha float64) run.Check {
			low, _ := run.RateInterval(worst.Events(), int64(worst.Repetitions), 2*alpha)
			check.Criterion, check.Agrees = "surely above: these intervals promise nothing under adaptive questions, and an attack must show it", low > promise
			check.Notices = "an attack that does not break these intervals"
			runs := int64(worst.Repetitions)
			if most, _ := run.RateInterval(runs, runs, 2*alpha); most <= promise {
				check.Agrees, check.Criterion, check.Notices = true, "none: so few runs cannot show it", "nothing"
			}
			return check
		})
		return
	}
	checks.Add(len(cells), func(alpha float64) run.Check {
		var limit run.Checks
		limit.AtMost(what, promise, worst)
		decided := limit.DecideAt(alpha)[0]
		decided.Criterion += fmt.Sprintf(", in the worst of %d conditions", len(cells))
		// With intervals of this part of their width, as many runs of some condition would have missed as the check needs.
		needed := 0
		for low := 0.0; low <= promise && needed <= worst.Repetitions; needed++ {
			low, _ = run.RateInterval(int64(needed+1), int64(worst.Repetitions), 2*alpha)
		}
		for _, c := range cells {
			if needed > len(c.games) {
				continue
			}
			reaches := make([]float64, len(c.games))
			for i, g := range c.games {
				reaches[i] = g.Reach
			}
			slices.Sort(reaches)
			narrowed = append(narrowed, reaches[len(reaches)-needed])
		}
		if len(narrowed) > 0 {
			decided.Notices += fmt.Sprintf("; intervals of less than %.2f of their width", slices.Max(narrowed))
		}
		return decided
	})
}

// playAll plays all games: the seed of one is made of where it stands in the grid, so that no order changes it.
func playAll(ctx context.Context, o run.Options, cells []*cell, repetitions int) error {
	games, finished, err := run.Repeat(ctx, o, "games", len(cells)*repetitions, func(_ context.Context, i int) (analysts.Game, error) {
		c, repetition := cells[i/repetitions], i%repetitions
		seed := seeds.Of(o.Seed, uint64(i/repetitions), uint64(repetition))
		game, err := analysts.Play(c.analyst, c.method.oracle(c.guarantee, seeds.Of(seed, 1)), seeds.Of(seed, 2), c.guarantee.N, c.guarantee.N)
		if err != nil {
			return game, fmt.Errorf("experiments: %s against %s: %w", c.analyst.Name, c.method.name, err)
		}
		return game, nil
	})
	for i, c := range cells {
		from, to := i*repetitions, (i+1)*repetitions
		if run.AllFinished(finished[from:to]) {
			c.games = games[from:to]
		}
	}
	return err
}

func (c *cell) rows() []run.Row {
	row := func(set string, rate bool, of func(g analysts.Game) float64) run.Row {
		return run.Measured(run.Row{Condition: c.analyst.Name, Method: c.method.name, N: c.guarantee.N, K: c.guarantee.Questions, Confidence: c.confidence,
			Set: set, Rate: rate}, c.games, of)
	}
	return []run.Row{
		row(nonCoverage, true, func(g analysts.Game) float64 { return run.Indicator(g.Missed) }),
		row(worstError, false, func(g analysts.Game) float64 { return g.Worst }),
		row(worstReach, false, func(g analysts.Game) float64 { return g.Reach }),
	}
}

// tableOf has a line for every mechanism and guarantee: its worst analyst, by misses and then by reach.
func tableOf(rows []run.Row) [][]string {
	table := [][]string{{"MECHANISM", "N", "K", "CONFIDENCE", "WORST ANALYST", "NON-COVERAGE", "95% INTERVAL", "WORST ERROR/HALF-WIDTH", "RUNS"}}
	type line struct{ miss, reach run.Row }
	type key struct {
		method     string
		n, k       int64
		confidence float64
	}
	worst := map[key]line{}
	var order []key
	for i := 0; i+2 < len(rows); i += 3 {
		miss, reach := rows[i], rows[i+2]
		id := key{miss.Method, miss.N, miss.K, miss.Confidence}
		before, seen := worst[id]
		if !seen {
			order = append(order, id)
		}
		if !seen || miss.Mean > before.miss.Mean || miss.Mean == before.miss.Mean && reach.Mean > before.reach.Mean {
			worst[id] = line{miss, reach}
		}
	}
	for _, id := range order {
		l := worst[id]
		table = append(table, []string{id.method, fmt.Sprint(id.n), fmt.Sprint(id.k), fmt.Sprint(id.confidence), l.miss.Condition,
			fmt.Sprintf("%.3f", l.miss.Mean), fmt.Sprintf("%.3f to %.3f", l.miss.Low, l.miss.High), fmt.Sprintf("%.2f", l.reach.Mean), fmt.Sprint(l.miss.Repetitions)})
	}
	return table
}
