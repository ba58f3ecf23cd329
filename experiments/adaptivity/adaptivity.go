// Package adaptivity measures how many adaptive questions a holdout of n units answers before the error leaves a tolerance, under the
// strongest attack on each mechanism that we know. Theory says that the number grows as n for naive reuse and splitting, and as n^2 up
// to logarithms with noise (Dwork et al., arXiv 1411.2664; Bassily et al., arXiv 1511.02513), and that no efficient mechanism does better
// (Steinke, Ullman, arXiv 1410.1228).
package adaptivity

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/plot"

	"github.com/holdoutd/holdoutd/experiments/analysts"
	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/experiments/run/checks"
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

// sizes are those of holdouts under each of analysts.Rivals.
var sizes = map[string][]int64{
	"naive":           {1000, 2000, 4000, 8000, 16000},
	"split":           {8000, 16000, 32000, 64000, 128000},
	"gaussian":        {2000, 4000, 8000, 16000},
	"thresholdout":    {1000, 2000, 4000, 8000},
	"guess_and_check": {1000, 2000, 4000, 8000},
}

// replicates are independent searches for each size: the spread of a fit comes from them.
const replicates = 3

// search is one of them.
type search struct {
	rival     analysts.Rival
	n         int64
	replicate int
	found     float64 // 0 until it is
	theory    float64 // what is expected of it
}

// Experiment is how many questions a holdout answers within a tolerance.
var Experiment = run.Experiment{
	Name:  "adaptivity",
	Short: "how many adaptive questions a holdout of n units answers within a tolerance",
	Paper: `Theory: under attack naive reuse and splitting answer a number of questions that grows as n; noise answers one that grows as n^2 up
to logarithms (arXiv 1411.2664, arXiv 1511.02513), and no efficient mechanism does better (arXiv 1408.1655, arXiv 1410.1228).`,
	Small: run.Options{Quick: true, Repetitions: 1},
	Run:   measure,
}

// measure searches for the largest number of questions at which the mean of a run's largest error stays under the
// tolerance, for mechanisms whose noise is planned for that number at 95% confidence.
func measure(ctx context.Context, o run.Options) (run.Result, error) {
	result := run.Result{Experiment: "adaptivity", Seed: o.Seed, Quick: o.Quick}
	repetitions := o.RepetitionsOr(10)
	var searches []*search
	for _, r := range analysts.Rivals {
		of := sizes[r.Name]
		if o.Quick {
			of = []int64{of[0] / 2, of[0], of[1]} // work grows as the cube of the size
		}
		for _, n := range of {
			theory, err := r.Breaks(n, tolerance)
			if err != nil {
				return result, err
			}
			for i := range replicates {
				searches = append(searches, &search{rival: r, n: n, replicate: i, theory: theory})
			}
		}
	}
	found, _, err := run.Repeat(ctx, o, "searches", len(searches), func(ctx context.Context, i int) (float64, error) {
		return searches[i].largest(ctx, run.SeedOf(o.Seed, uint64(i)), repetitions)
	})
	for i, k := range found {
		searches[i].found = k
	}
	result.Complete = err == nil
	result.Rows, result.Fits = rowsOf(searches)
	result.Summary = tableOf(result.Rows, result.Fits)
	if result.Complete {
		result.Compare(comparisons(searches))
	}
	result.Notes = []string{fmt.Sprintf("For each mechanism and size, %d searches for the largest number of questions at which the mean over %d runs "+
		"of a run's largest error stays under %v; noise is planned for that number at 95%% confidence.", replicates, repetitions, tolerance)}
	if len(result.Rows) > 0 {
		result.Figures = []run.Figure{{Name: "adaptivity", Caption: "Questions before the largest error under attack exceeds 0.1, against the holdout's size, " +
			"both in logarithms, with 95% intervals and fitted exponents.", Draw: func() (*plot.Plot, error) { return drawQuestions(result.Rows, result.Fits) }}}
	}
	return result, err
}

// modelError is how far theory may be off for a size at hand: errors of answers are taken for independent and normal.
const modelError = 0.05

// comparisons hold the numbers of questions against theory's for each size at hand (worst), on average over sizes and in how they grow. Errors come from what searches
// at one size differ by: what sizes differ by is what is looked for.
func comparisons(searches []*search) []checks.Comparison {
	var all []checks.Comparison
	for _, r := range analysts.Rivals {
		var logs, sizes []float64 // of the ratio to theory, and of n; replicates of a size follow each other
		for _, s := range searches {
			if s.rival.Name == r.Name {
				logs, sizes = append(logs, math.Log(s.found/s.theory)), append(sizes, math.Log(float64(s.n)))
			}
		}
		within, count := 0.0, float64(len(logs))
		for i := 0; i < len(logs); i += replicates {
			within += float64(replicates-1) * stat.Variance(logs[i:i+replicates], nil)
		}
		freedom := len(logs) / replicates * (replicates - 1)
		sd := math.Sqrt(within / float64(freedom))
		_, slope := stat.LinearRegression(sizes, logs, nil, false)
		spread := math.Sqrt(stat.Variance(sizes, nil) * (count - 1))
		all = append(all, checks.Estimate(r.Name+": logarithm of the questions measured over theory's for the same size", 0, modelError, stat.Mean(logs, nil), sd/math.Sqrt(count), freedom),
			checks.Slope(r.Name+": exponent of n in that ratio", 0, modelError, slope, sd/spread, freedom))
	}
	return all
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
		return 0, fmt.Errorf("experiments: %s with %d units: two questions are beyond the tolerance", s.rival.Name, s.n)
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
	sum := 0.0
	for i := range repetitions {
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		game, err := s.rival.Game(s.n, k, run.SeedOf(seed, uint64(k), uint64(i)))
		if err != nil {
			return 0, err
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
		row := run.Row{Condition: r.Attack, Method: r.Name, N: group[0].n, Confidence: 0.95, Set: questionsWithin, Repetitions: replicates}
		row.Summarise(values)
		row.K = int64(math.Round(row.Mean))
		rows = append(rows, row)
		for _, v := range values {
			x[r.Name], y[r.Name] = append(x[r.Name], float64(row.N)), append(y[r.Name], v)
		}
	}
	for _, r := range analysts.Rivals {
		if len(x[r.Name]) >= 3*replicates {
			fits = append(fits, run.FitExponent(r.Name, questionsAlone, x[r.Name], y[r.Name]))
			if r.Largest {
				fits = append(fits, run.FitExponent(r.Name, questionsTimesLog, x[r.Name], timesLog(y[r.Name])))
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
