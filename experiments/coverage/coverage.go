// Package coverage measures the first promise of docs/GUARANTEES.md under attack: how often any interval of a run misses its target, for
// every analyst of [analysts.All] against every mechanism, on simulated data whose truth is known. Naive reuse with the intervals of
// questions fixed beforehand is there to show that the attacks bite.
package coverage

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/holdoutd/holdoutd/experiments/analysts"
	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/experiments/run/checks"
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
	confidences, repetitions := []float64{0.8, 0.95}, o.RepetitionsOr(400)
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
	if result.Complete {
		result.Compare(comparisons(cells))
	}
	result.Notes = []string{fmt.Sprintf("%d analysts play %d runs each against %d mechanisms, on fresh data in every run, "+
		"at %d sizes and %d confidences; the training part is as large as the holdout.", len(analysts.All), repetitions, len(methods), len(sizes), len(confidences))}
	result.Figures = figuresOf(result.Rows)
	return result, err
}

// comparisons are, for every mechanism and confidence: the rate of misses of the worst analyst, and that of all analysts together, which
// is seen more sharply; and for naive reuse that every analyst breaks the intervals of questions fixed beforehand.
func comparisons(cells []*cell) []checks.Comparison {
	var all []checks.Comparison
	for _, m := range methods {
		for _, confidence := range []float64{0.8, 0.95} {
			promise := math.Round(100*(1-confidence)) / 100
			var each, bites []checks.Comparison
			var together []*cell
			for _, c := range cells {
				if c.method.name != m.name || c.confidence != confidence {
					continue
				}
				condition := fmt.Sprintf("%s, n = %d, k = %d", c.analyst.Name, c.guarantee.N, c.guarantee.Questions)
				together = append(together, c)
				each = append(each, checks.RateAtMost(condition, promise, count(c)))
				bites = append(bites, checks.RateAbove(fmt.Sprintf("naive reuse at %v: non-adaptive intervals miss (%s)", confidence, condition), promise, count(c)))
			}
			if len(each) == 0 {
				continue
			}
			of := fmt.Sprintf("%s at %v: rate of runs in which any interval misses", m.name, confidence)
			if m.name == naiveMethod {
				all = append(all, bites[0]) // the strongest attack on exact answers comes first
				continue
			}
			narrower := func(level float64) string { return narrowing(together, promise, level) }
			all = append(all, checks.Worst(of, each).Also(narrower), checks.RateAtMost(of+", all analysts together", promise, count(together...)))
		}
	}
	return all
}

// count is how many of the runs missed.
func count(cells ...*cell) (c checks.Count) {
	for _, x := range cells {
		for _, g := range x.games {
			c.Runs++
			if g.Missed {
				c.Events++
			}
		}
	}
	return c
}

// narrowing says by how much narrower intervals would have been noticed in these very runs, in any of the conditions at an equal part of the level. An
// interval that is f times narrower misses where the error is beyond 1/f of its half-width.
func narrowing(cells []*cell, promise, level float64) string {
	least := math.Inf(1)
	for _, c := range cells {
		reaches := make([]float64, len(c.games))
		for i, g := range c.games {
			reaches[i] = g.Reach
		}
		slices.Sort(reaches)
		if needed := checks.RefusedFrom(len(reaches), promise, level/float64(len(cells))); needed <= len(reaches) && needed > 0 {
			least = min(least, 1/reaches[len(reaches)-needed])
		}
	}
	if math.IsInf(least, 1) {
		return "no intervals, however narrow"
	}
	return fmt.Sprintf("intervals %.2g times narrower", max(1, least))
}

// playAll plays all games: the seed of one is made of where it stands in the grid, so that no order changes it.
func playAll(ctx context.Context, o run.Options, cells []*cell, repetitions int) error {
	games, finished, err := run.Repeat(ctx, o, "games", len(cells)*repetitions, func(_ context.Context, i int) (analysts.Game, error) {
		c, repetition := cells[i/repetitions], i%repetitions
		seed := run.SeedOf(o.Seed, uint64(i/repetitions), uint64(repetition))
		game, err := analysts.Play(c.analyst, c.method.oracle(c.guarantee, run.SeedOf(seed, 1)), run.SeedOf(seed, 2), c.guarantee.N, c.guarantee.N)
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
