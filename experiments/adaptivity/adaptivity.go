// Package adaptivity measures how many adaptive questions a holdout of n units answers before the error leaves a tolerance, under the
// strongest attack on each mechanism that we know. Theory says that the number grows as n for naive reuse and splitting, and as n^2 up
// to logarithms with noise (Dwork et al., arXiv 1411.2664; Bassily et al., arXiv 1511.02513), and that no efficient mechanism does better
// (Steinke, Ullman, arXiv 1410.1228).
package adaptivity

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot"

	"github.com/holdoutd/holdoutd/experiments/analysts"
	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/experiments/seeds"
	"github.com/holdoutd/holdoutd/thresholdout"
	"github.com/holdoutd/holdoutd/thresholdout/bounds"
)

// tolerance is what the mean over runs of a run's largest error is to stay under.
const tolerance = 0.1

// questionsWithin is the measure of Adaptivity, Row.Set: the largest number of questions under the tolerance.
const questionsWithin = "questions within 0.1"

// What exponents are fitted of: run.Fit.Of.
const (
	questionsAlone    = "k"
	questionsTimesLog = "k z^2" // with the logarithm of the union over k answers taken out
)

// rival is one mechanism of Adaptivity with the strongest attack on it that we know.
type rival struct {
	name    string
	attack  string
	largest bool // what limits it is the largest of k errors of one scale, not the attack's last answer alone
	sizes   []int64
	spec    func(n, k int64) thresholdout.Spec
	// noise of an answer from the holdout, by how many questions were asked before; nil where there is none.
	noise func(p thresholdout.Guarantee) func(asked int64) float64
	play  func(p thresholdout.Guarantee) func(analysts.Oracle, uint64, int64, int64) error
}

const splitName = "split"

var rivals = []rival{
	{"naive", "single-adaptive", false, []int64{1000, 2000, 4000, 8000, 16000},
		func(n, k int64) thresholdout.Spec {
			return thresholdout.Spec{Mechanism: thresholdout.Naive, N: n, Questions: k}
		}, nil,
		func(thresholdout.Guarantee) func(analysts.Oracle, uint64, int64, int64) error {
			return analysts.SingleAdaptive(analysts.LogOdds)
		}},
	{splitName, "single-adaptive", true, []int64{8000, 16000, 32000, 64000, 128000},
		func(n, k int64) thresholdout.Spec {
			return thresholdout.Spec{Mechanism: thresholdout.Split, N: n, Questions: k}
		}, nil,
		func(thresholdout.Guarantee) func(analysts.Oracle, uint64, int64, int64) error {
			return analysts.SingleAdaptive(analysts.LogOdds)
		}},
	{"gaussian", "single-adaptive, discounted", true, []int64{2000, 4000, 8000, 16000},
		func(n, k int64) thresholdout.Spec {
			return thresholdout.Spec{Mechanism: thresholdout.Gaussian, N: n, Questions: k}
		}, analysts.ScheduledNoise,
		func(p thresholdout.Guarantee) func(analysts.Oracle, uint64, int64, int64) error {
			return analysts.SingleAdaptive(analysts.Discounted(p, analysts.ScheduledNoise(p)))
		}},
	{"thresholdout", "knows training, discounted", true, []int64{1000, 2000, 4000, 8000},
		func(n, k int64) thresholdout.Spec {
			return thresholdout.Spec{Mechanism: thresholdout.Thresholdout, N: n, Training: n, Questions: k, Tokens: k}
		}, analysts.ConstantNoise,
		func(p thresholdout.Guarantee) func(analysts.Oracle, uint64, int64, int64) error {
			return analysts.KnowsTraining(analysts.Discounted(p, analysts.ConstantNoise(p)))
		}},
	{"guess_and_check", "knows training", false, []int64{1000, 2000, 4000, 8000},
		func(n, k int64) thresholdout.Spec {
			return thresholdout.Spec{Mechanism: thresholdout.GuessAndCheck, N: n, Training: n, Questions: k, Tokens: k}
		}, analysts.ConstantNoise,
		func(p thresholdout.Guarantee) func(analysts.Oracle, uint64, int64, int64) error {
			return analysts.KnowsTraining(analysts.Discounted(p, analysts.ConstantNoise(p)))
		}},
}

// largestError is a measure beside it: the mean of a run's largest error, at the number of questions for which theory says that it is the tolerance.
const largestError = "largest error at theory's number of questions"

// theoryRuns are played for each mechanism and size at that number: means are within a hundredth of the error.
const theoryRuns = 100

// replicates are independent searches for each size: the spread of a fit comes from them.
const replicates = 3

// search is one of them.
type search struct {
	rival     rival
	n         int64
	replicate int
	found     float64 // 0 until it is
}

// Experiment is how many questions a holdout answers within a tolerance.
var Experiment = run.Experiment{
	Name:  "adaptivity",
	Short: "how many adaptive questions a holdout of n units answers within a tolerance",
	Paper: `Theory: under attack naive reuse and splitting answer a number of questions that grows as n; noise answers one that grows as n^2 up
to logarithms (arXiv 1411.2664, arXiv 1511.02513), and no efficient mechanism does better (arXiv 1408.1655, arXiv 1410.1228). The logarithms
matter at sizes that can be run: what is compared with is the number that theory gives for each size, not the exponent of infinite ones.`,
	Small: run.Options{Quick: true, Repetitions: 1},
	Run:   measure,
}

// measure searches for the largest number of questions at which the mean of a run's largest error stays under the
// tolerance, for mechanisms whose noise is planned for that number at 95% confidence.
func measure(ctx context.Context, o run.Options) (run.Result, error) {
	result := run.Result{Experiment: "adaptivity", Seed: o.Seed, Quick: o.Quick}
	repetitions := o.RepetitionsOr(10)
	var searches []*search
	for _, r := range rivals {
		sizes := r.sizes
		if o.Quick {
			sizes = []int64{sizes[0] / 2, sizes[0], sizes[1]} // work grows as the cube of the size
		}
		for _, n := range sizes {
			for i := range replicates {
				searches = append(searches, &search{rival: r, n: n, replicate: i})
			}
		}
	}
	numbers, _, err := run.Repeat(ctx, o, "searches", len(searches), func(ctx context.Context, i int) (float64, error) {
		return searches[i].largest(ctx, seeds.Of(o.Seed, uint64(i)), repetitions)
	})
	for i, k := range numbers {
		searches[i].found = k
	}
	var checks run.Checks
	rows, failed := atTheory(ctx, o, searches, &checks)
	err = errors.Join(err, failed, checksOf(searches, &checks))
	found, fits := rowsOf(searches)
	promised, growth, failed := guaranteed(ctx, o)
	err = errors.Join(err, failed)
	var held []run.Row
	if err == nil {
		held, failed = whileHolding(ctx, o, promised, &checks)
		err = errors.Join(failed, guaranteedChecks(&checks, promised, found))
	}
	result.Complete = err == nil
	result.Rows, result.Fits = slices.Concat(found, rows, promised, held), slices.Concat(fits, growth)
	result.Checks = checks.Decide()
	result.Summary = append(tableOf(found, fits), guaranteedTable(promised, growth)...)
	result.Notes = []string{fmt.Sprintf("For each mechanism and size, %d searches for the largest number of questions at which the mean over %d runs "+
		"of a run's largest error stays under %v; noise is planned for that number at 95%% confidence.", replicates, repetitions, tolerance),
		fmt.Sprintf("Where guesses hold, an analyst asks with the training part's means as guesses, at most %d questions, %d runs of each size.", mostHolding, holdingRuns),
		"What is guaranteed is arithmetic: the largest number of adaptive questions whose intervals, of a half-width, hold together at 95% for any analyst. The training part is as large " +
			"as the holdout; under guess_and_check the number is that of questions whose guesses hold, with 20 that may be wrong."}
	if len(found) > 0 {
		result.Figures = []run.Figure{{Name: "adaptivity", Caption: "Questions before the largest error under attack exceeds 0.1, against the holdout's size, " +
			"both in logarithms, with 95% intervals and fitted exponents.", Draw: func() (*plot.Plot, error) { return drawQuestions(found, fits) }}}
	}
	if len(promised) > 0 {
		result.Figures = append(result.Figures, run.Figure{Name: "guaranteed", Caption: "How many adaptive questions have intervals within ±0.05 and ±0.1 that hold together at 95%, whoever asks, against the " +
			"holdout's size, both in logarithms; and from how many on the strongest attack known succeeds against gaussian, by its formula and as measured.",
			Row: func() ([]*plot.Plot, error) { return drawGuaranteed(promised, found) }})
	}
	return result, err
}

// approximation is what the theory of predicted leaves out, as a part of the number of questions: the vote's normal law, that the largest error
// of answers and the last one's are taken for independent, and that a search interpolates.
const approximation = 0.04

// errorApproximation is the same of an error, as a part of it: of the number of questions it moves about the root.
const errorApproximation = approximation / 2

// atTheory plays theory's number of questions for each mechanism and size, and compares the mean of the largest error with the tolerance.
func atTheory(ctx context.Context, o run.Options, searches []*search, checks *run.Checks) (rows []run.Row, err error) {
	var cells []*search // one for each mechanism and size
	for i := 0; i < len(searches); i += replicates {
		cells = append(cells, searches[i])
	}
	runs := theoryRuns
	if o.Repetitions > 0 {
		runs = o.Repetitions
	}
	numbers, known, err := run.Repeat(ctx, o, "theory", len(cells), func(_ context.Context, i int) (float64, error) {
		return cells[i].rival.predicted(cells[i].n)
	})
	if err != nil || !run.AllFinished(known) {
		return nil, err
	}
	errs, finished, err := run.Repeat(ctx, o, "runs at theory's number", len(cells)*runs, func(ctx context.Context, i int) (float64, error) {
		c := cells[i%len(cells)]
		return c.error(ctx, int64(math.Round(numbers[i%len(cells)])), seeds.Of(o.Seed, 7, uint64(i)), 1)
	})
	for i, found := range run.Dealt(errs, finished, len(cells)) {
		c := cells[i]
		if len(found) < runs {
			continue
		}
		r := run.Measured(run.Row{Condition: c.rival.attack, Method: c.rival.name, N: c.n, K: int64(math.Round(numbers[i])), Confidence: 0.95, Set: largestError}, found,
			func(v float64) float64 { return v })
		rows = append(rows, r)
		checks.Equal(fmt.Sprintf("%s, n = %d: the largest error of %d questions", c.rival.name, c.n, r.K), tolerance, errorApproximation*tolerance, r)
	}
	return rows, err
}

// checksOf compare the numbers that searches found with theory's for the same sizes: their level and their growth.
func checksOf(searches []*search, checks *run.Checks) error {
	for _, r := range rivals {
		var sizes, theory, ratios, off []float64
		known := map[int64]float64{}
		for _, s := range searches {
			if s.rival.name != r.name || s.found == 0 {
				continue
			}
			if known[s.n] == 0 {
				k, err := r.predicted(s.n)
				if err != nil {
					return err
				}
				known[s.n] = k
			}
			sizes, theory = append(sizes, float64(s.n)), append(theory, known[s.n])
			ratios, off = append(ratios, s.found/known[s.n]), append(off, math.Log(s.found/known[s.n]))
		}
		if len(known) < 3 {
			continue
		}
		level := run.Measured(run.Row{}, off, func(v float64) float64 { return v })
		checks.Equal(r.name+": the logarithm of the questions over theory's at these sizes", 0, approximation, level)
		growth, by := run.FitExponent(r.name, questionsAlone, sizes, ratios), run.FitExponent(r.name, questionsAlone, sizes, theory).Exponent
		growth.Exponent, growth.Low, growth.High = growth.Exponent+by, growth.Low+by, growth.High+by
		checks.Exponent(r.name+": the exponent of the questions, beside theory's at these sizes", by, approximation/math.Log(slices.Max(sizes)/slices.Min(sizes)), growth)
	}
	return nil
}

// largest brackets the number of questions by factors of two from 2 up, halves the bracket, and interpolates.
func (s *search) largest(ctx context.Context, seed uint64, repetitions int) (float64, error) {
	low, high := int64(2), int64(0)
	below, above := 0.0, 0.0
	for k := low; ; k *= 2 {
		e, err := s.error(ctx, k, seed, repetitions)
		if err != nil {
			return 0, err
		}
		if e > tolerance {
			high, above = k, e
			break
		}
		low, below = k, e
	}
	if below == 0 {
		return 0, fmt.Errorf("experiments: %s with %d units: two questions are beyond the tolerance", s.rival.name, s.n)
	}
	const resolution = 1.15 // of k, before the interpolation
	for high-low > 1 && float64(high) > resolution*float64(low) {
		k := int64(math.Round(math.Sqrt(float64(low) * float64(high))))
		k = max(low+1, min(k, high-1))
		e, err := s.error(ctx, k, seed, repetitions)
		if err != nil {
			return 0, err
		}
		if e > tolerance {
			high, above = k, e
		} else {
			low, below = k, e
		}
	}
	part := math.Log(tolerance/below) / math.Log(above/below)
	return float64(low) * math.Pow(float64(high)/float64(low), part), nil
}

// error is the mean over runs of the largest error of k questions.
func (s *search) error(ctx context.Context, k int64, seed uint64, repetitions int) (float64, error) {
	p, err := thresholdout.Plan(s.rival.spec(s.n, k))
	if err != nil {
		return 0, fmt.Errorf("experiments: %s, n %d, k %d: %w", s.rival.name, s.n, k, err)
	}
	analyst := analysts.Analyst{Name: s.rival.attack, Play: s.rival.play(p)}
	sum := 0.0
	for i := range repetitions {
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		played := seeds.Of(seed, uint64(k), uint64(i))
		game, err := analysts.Play(analyst, analysts.NewHoldout(p, seeds.Of(played, 1)), seeds.Of(played, 2), s.n, p.Training)
		if err != nil {
			return 0, fmt.Errorf("experiments: %s, n %d, k %d: %w", s.rival.name, s.n, k, err)
		}
		sum += game.Worst
	}
	return sum / float64(repetitions), nil
}

// rowsOf has a row for each mechanism and size all of whose searches are finished, and fits where three sizes are.
func rowsOf(searches []*search) ([]run.Row, []run.Fit) {
	var rows []run.Row
	var fits []run.Fit
	x, y := map[string][]float64{}, map[string][]float64{}
	for i := 0; i < len(searches); i += replicates {
		group := searches[i : i+replicates]
		r := group[0].rival
		values := make([]float64, 0, replicates)
		for _, s := range group {
			if s.found > 0 {
				values = append(values, s.found)
			}
		}
		if len(values) < replicates {
			continue
		}
		row := run.Row{Condition: r.attack, Method: r.name, N: group[0].n, Confidence: 0.95, Set: questionsWithin, Repetitions: replicates}
		row.Summarise(values)
		row.K = int64(math.Round(row.Mean))
		rows = append(rows, row)
		for _, v := range values {
			x[r.name], y[r.name] = append(x[r.name], float64(row.N)), append(y[r.name], v)
		}
	}
	for _, r := range rivals {
		if len(x[r.name]) >= 3*replicates {
			fits = append(fits, run.FitExponent(r.name, questionsAlone, x[r.name], y[r.name]))
			if r.largest {
				fits = append(fits, run.FitExponent(r.name, questionsTimesLog, x[r.name], timesLog(y[r.name])))
			}
		}
	}
	return rows, fits
}

// timesLog is k z^2, with z the median of the largest of k standard normal variables. A tolerance t for the largest of k
// errors of scale e means e z = t. Under splitting e is sqrt(k/n)/2, so that k z^2 = 4 t^2 n. Under noise e the attack moves the last
// answer by about sqrt(k)/(n e), which held at t makes k z^2 grow as n^2. Counting k alone, the logarithm in z^2 hides in
// the exponent.
func timesLog(k []float64) []float64 {
	out := make([]float64, len(k))
	for i, k := range k {
		z := bounds.MaxNormalQuantile(k, 0.5)
		out[i] = k * z * z
	}
	return out
}

func tableOf(rows []run.Row, fits []run.Fit) [][]string {
	table := [][]string{{"MECHANISM", "ATTACK", "N", "QUESTIONS WITHIN 0.1", "95% INTERVAL", "EXPONENT OF K", "OF K Z^2"}}
	for i, r := range rows {
		exponent := map[string]string{}
		if i == len(rows)-1 || rows[i+1].Method != r.Method {
			for _, f := range fits {
				if f.Method == r.Method {
					exponent[f.Of] = fmt.Sprintf("%.2f (%.2f to %.2f)", f.Exponent, f.Low, f.High)
				}
			}
		}
		table = append(table, []string{r.Method, r.Condition, fmt.Sprint(r.N), fmt.Sprintf("%.1f", r.Mean), fmt.Sprintf("%.1f to %.1f", r.Low, r.High),
			exponent[questionsAlone], exponent[questionsTimesLog]})
	}
	return table
}
