package experiments

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/plot"

	"github.com/holdoutd/holdoutd/thresholdout"
	"github.com/holdoutd/holdoutd/thresholdout/bounds"
)

// Measures of Coverage, Row.Set.
const (
	NonCoverage = "non-coverage"                 // rate of runs in which any interval misses
	WorstError  = "worst error"                  // the largest of a run
	WorstReach  = "worst error / its half-width" // the largest of a run; an interval misses beyond 1
)

// NaiveMethod is naive reuse with the intervals of a batch fixed beforehand.
const NaiveMethod = "naive, non-adaptive intervals"

// Method makes the oracle of a guarantee.
type Method struct {
	Name   string
	Params func(n, k int64, confidence float64) thresholdout.Params // for thresholdout.New
}

// tokens: enough that an attack gets far on what the holdout tells, as few as someone would grant.
func tokens(k int64) int64 { return max(20, k/4) }

// Methods are those of Coverage. The training part is as large as the holdout.
var Methods = []Method{
	{"gaussian", func(n, k int64, confidence float64) thresholdout.Params {
		return thresholdout.Params{Mechanism: thresholdout.Gaussian, N: n, Questions: k, Confidence: confidence}
	}},
	{"guess_and_check", func(n, k int64, confidence float64) thresholdout.Params {
		return thresholdout.Params{Mechanism: thresholdout.GuessAndCheck, N: n, Training: n, Questions: k, Tokens: tokens(k), Confidence: confidence}
	}},
	{"thresholdout", func(n, k int64, confidence float64) thresholdout.Params {
		return thresholdout.Params{Mechanism: thresholdout.Thresholdout, N: n, Training: n, Questions: k, Tokens: tokens(k), Confidence: confidence}
	}},
	{"thresholdout, laplace", func(n, k int64, confidence float64) thresholdout.Params {
		return thresholdout.Params{Mechanism: thresholdout.Thresholdout, Form: thresholdout.FormLaplace, N: n, Training: n, Questions: k,
			Tokens: tokens(k), Confidence: confidence}
	}},
	{"split", func(n, k int64, confidence float64) thresholdout.Params {
		return thresholdout.Params{Mechanism: thresholdout.Split, N: n, Questions: k, Confidence: confidence}
	}},
	{NaiveMethod, func(n, k int64, confidence float64) thresholdout.Params {
		return thresholdout.Params{Mechanism: thresholdout.Naive, N: n, Questions: k, Confidence: confidence}
	}},
}

func (m Method) oracle(p thresholdout.Params, seed uint64) Oracle {
	if m.Name == NaiveMethod {
		return &nonAdaptive{*newHoldout(p, seed)}
	}
	return newHoldout(p, seed)
}

// cell is one condition of Coverage.
type cell struct {
	analyst    Analyst
	method     Method
	params     thresholdout.Params
	confidence float64
	games      []Game // nil until all are finished
}

var coverageExperiment = Experiment{
	Name:  "coverage",
	Short: "how often any interval misses its target, for every analyst and mechanism",
	Paper: `The guarantee (docs/GUARANTEES.md): for every analyst, the probability that any interval of a run misses its target is at most one minus
the confidence. Intervals for questions fixed beforehand promise nothing once questions are chosen after answers.`,
	Small: Options{Quick: true, Repetitions: 3},
	Run:   Coverage,
}

// Coverage lets every analyst play against every mechanism on fresh data, for a grid of sizes and confidences.
func Coverage(ctx context.Context, o Options) (Result, error) {
	result := Result{Experiment: "coverage", Seed: o.Seed, Quick: o.Quick}
	sizes := []struct{ n, k int64 }{{500, 100}, {500, 500}, {2000, 500}}
	confidences, repetitions := []float64{0.8, 0.95}, o.repetitions(100)
	if o.Quick {
		sizes, confidences, repetitions = sizes[1:2], confidences[1:], o.repetitions(20)
	}
	var cells []*cell
	for _, size := range sizes {
		for _, confidence := range confidences {
			for _, m := range Methods {
				p, err := thresholdout.New(m.Params(size.n, size.k, confidence))
				if err != nil {
					return result, fmt.Errorf("experiments: %s: %w", m.Name, err)
				}
				for _, a := range Analysts {
					cells = append(cells, &cell{analyst: a, method: m, params: p, confidence: confidence})
				}
			}
		}
	}
	err := play(ctx, o, cells, repetitions)
	for _, c := range cells {
		if c.games != nil {
			result.Rows = append(result.Rows, c.rows()...)
		}
	}
	result.Complete = err == nil
	result.Summary = coverageTable(result.Rows)
	result.Checks = coverageChecks(result.Rows)
	result.Notes = []string{fmt.Sprintf("%d analysts play %d runs each against %d mechanisms, on fresh data in every run, "+
		"at %d sizes and %d confidences; the training part is as large as the holdout.", len(Analysts), repetitions, len(Methods), len(sizes), len(confidences))}
	if len(result.Rows) > 0 {
		result.Figures = []Figure{{Name: "coverage", Caption: "The rate of runs in which any interval misses, by analyst and mechanism, with 95% intervals. " +
			"The horizontal line is what is promised at most.", Draw: func() (*plot.Plot, error) { return coverageFigure(result.Rows) }}}
	}
	return result, err
}

// coverageFalseAlarm is the probability with which one check of a mechanism that keeps its promise fails.
const coverageFalseAlarm = 1e-4

// coverageChecks are, for every mechanism, the largest rate of misses of any analyst against the promise, and for naive reuse
// that some analyst breaks the intervals of questions fixed beforehand.
func coverageChecks(rows []Row) []Check {
	var checks []Check
	for _, m := range Methods {
		for _, confidence := range []float64{0.8, 0.95} {
			var worst Row
			cells := 0
			for _, r := range rows {
				if r.Method == m.Name && r.Confidence == confidence && r.Set == NonCoverage {
					if cells == 0 || r.Mean > worst.Mean {
						worst = r
					}
					cells++
				}
			}
			if cells == 0 {
				continue
			}
			promise := math.Round(100*(1-confidence)) / 100
			what := fmt.Sprintf("%s at %v: the worst rate of misses (%s, n = %d, k = %d)", m.Name, confidence, worst.Condition, worst.N, worst.K)
			misses, runs := int64(math.Round(worst.Mean*float64(worst.Repetitions))), int64(worst.Repetitions)
			c := Check{What: what, Expected: promise, Got: worst.Mean, Low: worst.Low, High: worst.High}
			// The arguments are in range, so there is no error to see.
			low, _, _ := bounds.ClopperPearson(misses, runs, 2*coverageFalseAlarm/float64(cells))
			if m.Name == NaiveMethod {
				c.Criterion, c.Agrees = "above: these intervals promise nothing under adaptive questions, and an attack must show it", worst.Mean > promise
			} else {
				c.Criterion, c.Agrees = fmt.Sprintf("at most, for the worst of %d conditions (false alarm %v)", cells, coverageFalseAlarm), low <= promise
			}
			checks = append(checks, c)
		}
	}
	return checks
}

// play plays all games: the seed of one is made of where it stands in the grid, so that no order changes it.
func play(ctx context.Context, o Options, cells []*cell, repetitions int) error {
	games, finished, err := Repeat(ctx, o, "games", len(cells)*repetitions, func(_ context.Context, i int) (Game, error) {
		c, repetition := cells[i/repetitions], i%repetitions
		seed := seedOf(o.Seed, uint64(i/repetitions), uint64(repetition))
		game, err := Play(c.analyst, c.method.oracle(c.params, seedOf(seed, 1)), seedOf(seed, 2), c.params.N, c.params.N)
		if err != nil {
			return game, fmt.Errorf("experiments: %s against %s: %w", c.analyst.Name, c.method.Name, err)
		}
		return game, nil
	})
	for i, c := range cells {
		from, to := i*repetitions, (i+1)*repetitions
		if !slices.Contains(finished[from:to], false) {
			c.games = games[from:to]
		}
	}
	return err
}

// Play lets an analyst play one game.
func Play(a Analyst, o Oracle, seed uint64, n, training int64) (Game, error) {
	r := referee{Oracle: o}
	err := a.Play(&r, seed, n, training)
	return r.game, err
}

func (c *cell) rows() []Row {
	row := Row{Condition: c.analyst.Name, Method: c.method.Name, N: c.params.N, K: c.params.Questions, Confidence: c.confidence,
		Repetitions: len(c.games)}
	missed := make([]float64, len(c.games))
	worst := make([]float64, len(c.games))
	reach := make([]float64, len(c.games))
	misses := int64(0)
	for i, g := range c.games {
		if g.Missed {
			missed[i] = 1
			misses++
		}
		worst[i], reach[i] = g.Worst, g.Reach
	}
	a, b, d := row, row, row
	a.Set, a.Rate = NonCoverage, true
	a.Mean, a.SD = meanSD(missed)
	// The arguments are in range, so there is no error to see.
	a.Low, a.High, _ = bounds.ClopperPearson(misses, int64(len(c.games)), 0.05)
	b.Set = WorstError
	b.summarise(worst)
	d.Set = WorstReach
	d.summarise(reach)
	return []Row{a, b, d}
}

func (r *Row) summarise(values []float64) {
	r.Mean, r.SD = meanSD(values)
	half := studentQuantile(len(values)-1) * r.SD / math.Sqrt(float64(len(values)))
	r.Low, r.High = r.Mean-half, r.Mean+half
}

func meanSD(values []float64) (mean, sd float64) {
	if len(values) < 2 {
		return stat.Mean(values, nil), 0
	}
	return stat.MeanStdDev(values, nil)
}

// coverageTable has a line for every mechanism and guarantee: its worst analyst, by misses and then by reach.
func coverageTable(rows []Row) [][]string {
	table := [][]string{{"MECHANISM", "N", "K", "CONFIDENCE", "WORST ANALYST", "NON-COVERAGE", "95% INTERVAL", "WORST ERROR/HALF-WIDTH", "RUNS"}}
	type line struct{ miss, reach Row }
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
