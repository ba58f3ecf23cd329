// Package guaranteed counts the adaptive questions of which a holdout of n units is sure that all answers are within 0.05, or 0.1, of the truth: by
// what holdoutd promises, by the bounds of the literature (Dwork et al., arXiv 1411.2664; Bassily et al., arXiv 1511.02513; Jung et al., arXiv 1909.03577; Rogers et al.,
// arXiv 1906.09231), and by splitting. Beside them stands the number of questions at which the strongest attack that we know breaks the same half-width, on a raw holdout and through the mechanisms.
package guaranteed

import (
	"context"
	_ "embed"
	"fmt"
	"math"

	"gonum.org/v1/plot"

	"github.com/holdoutd/holdoutd/experiments/analysts"
	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/internal/figure"
	"github.com/holdoutd/holdoutd/thresholdout/bounds"
)

//go:embed reference.json
var referenceText []byte

// What is counted or measured: run.Row.Set.
const (
	guaranteedQuestions = "questions guaranteed"
	breakingQuestions   = "questions at which the attack breaks it"
	breakingTheory      = "questions at which the attack breaks it, by theory"
	missedRuns          = "runs with an answer beyond it" // at the number of questions that is guaranteed
)

var widths = []float64{0.05, 0.1}

var sizes = []int64{1000, 3000, 10000, 30000, 100000, 300000, 1000000}

const (
	quickSizes  = 4 // of sizes
	quickTheory = 2
)

// Experiment is how many adaptive questions are guaranteed.
var Experiment = run.Experiment{
	Name:  "guaranteed",
	Short: "how many adaptive questions a holdout of n units guarantees at a half-width, beside attacks and the literature",
	Paper: `With noise a holdout of n units answers a number of adaptive questions that grows as n^2 up to logarithms, with splitting as n, and while guesses hold exponentially many
(Dwork et al., arXiv 1411.2664; Bassily et al., arXiv 1511.02513; Jung et al., arXiv 1909.03577; Rogers et al., arXiv 1906.09231). Every bound is an upper bound of an error: the number of
questions that is guaranteed has to be below the one at which an attack breaks the half-width.`,
	Small: run.Options{Quick: true, Repetitions: 5},
	Run:   measure,
}

// point is a number of questions for one half-width and size.
type point struct {
	name  string // of a curve or a rival
	w     float64
	n     int64
	value float64 // 0 where there is none
	known bool
}

func measure(ctx context.Context, o run.Options) (run.Result, error) {
	result := run.Result{Experiment: "guaranteed", Seed: o.Seed, Quick: o.Quick}
	repetitions := o.RepetitionsOr(60)
	reference, err := run.ParseReference(referenceText)
	if err != nil {
		return result, err
	}
	counted, theories := newPoints(o.Quick)
	err = complete(ctx, o, "guarantees", counted, func(i int) (float64, error) {
		k, err := curves[i/(len(counted)/len(curves))].most(counted[i].n, counted[i].w)
		return float64(k), err
	})
	if err == nil {
		err = complete(ctx, o, "theory of attacks", theories, func(i int) (float64, error) {
			return analysts.Rivals[i/(len(theories)/len(analysts.Rivals))].Breaks(theories[i].n, theories[i].w)
		})
	}
	var cells []*cell
	if err == nil {
		cells, err = newCells(o.Quick, counted)
	}
	if err == nil {
		var runs [][]float64
		var finished []bool
		runs, finished, err = run.Repeat(ctx, o, "attacks", len(cells)*repetitions, func(_ context.Context, i int) ([]float64, error) {
			return cells[i%len(cells)].play(run.SeedOf(o.Seed, uint64(i)))
		})
		for i, r := range run.Dealt(runs, finished, len(cells)) {
			cells[i].runs = r
		}
	}
	result.Complete = err == nil
	result.Rows = rowsOf(counted, theories, cells)
	if result.Complete {
		result.Compare(comparisons(reference, counted, theories, cells))
	}
	result.Summary = tableOf(counted, theories, cells, o.Quick)
	result.Notes = []string{
		fmt.Sprintf("All answers of a run are within the half-width with probability %v, whoever asks. Under guess_and_check and thresholdout the last answer is within it although all tokens are spent: of %d, or of as many as there are questions, where every answer comes from the holdout; "+
			"when the tokens are spent no question is answered any more, so that the former is a promise of so many answers only while no more than %d guesses fail. A count of 2^40 is that or more. Bounds of the literature have one noise for all answers, at its best.", confidence, tokens, tokens),
		fmt.Sprintf("An attack breaks a half-width where the mean over runs of a run's largest error is that. It is interpolated between runs at three numbers of questions around theory's, %d at each. At the number of questions that is guaranteed as many runs count those with an error beyond the half-width.", repetitions),
	}
	if someKnown(counted) {
		result.Figures = []run.Figure{{Name: "guaranteed", Caption: "Adaptive questions all of whose answers are within ±0.05 (left) and ±0.1 (right), against the holdout's size: guaranteed by holdoutd (thick) and by the literature (thin), and where the strongest attack breaks the half-width " +
			"(marks: measured; pale: by theory).", Row: func() ([]*plot.Plot, error) { return drawPanels(counted, theories, cells) }}}
	}
	return result, err
}

// newPoints are those of all curves, and of all rivals, in their order.
func newPoints(quick bool) (counted, theories []point) {
	of, attacked := sizes, sizes
	if quick {
		of, attacked = sizes[:quickSizes], sizes[:quickTheory]
	}
	for _, c := range curves {
		for _, w := range widths {
			for _, n := range of {
				counted = append(counted, point{name: c.name, w: w, n: n})
			}
		}
	}
	for _, r := range analysts.Rivals {
		for _, w := range widths {
			for _, n := range attacked {
				theories = append(theories, point{name: r.Name, w: w, n: n})
			}
		}
	}
	return counted, theories
}

// complete computes the points' values.
func complete(ctx context.Context, o run.Options, part string, points []point, value func(i int) (float64, error)) error {
	values, finished, err := run.Repeat(ctx, o, part, len(points), func(_ context.Context, i int) (float64, error) { return value(i) })
	for i := range points {
		points[i].value, points[i].known = values[i], finished[i]
	}
	return err
}

func someKnown(points []point) bool {
	for _, p := range points {
		if p.known && p.value > 0 {
			return true
		}
	}
	return false
}

// valueAt is the value of a point; false where it is not known.
func valueAt(points []point, name string, w float64, n int64) (float64, bool) {
	for _, p := range points {
		if p.name == name && p.w == w && p.n == n {
			return p.value, p.known
		}
	}
	return 0, false
}

func named(w float64) string { return fmt.Sprintf("±%v", w) }

func rowsOf(counted, theories []point, cells []*cell) []run.Row {
	var rows []run.Row
	add := func(points []point, set string) {
		for _, p := range points {
			if p.known {
				row := run.Row{Condition: named(p.w), Method: p.name, N: p.n, Confidence: confidence, Set: set, Repetitions: 1}
				row.Summarise([]float64{p.value})
				row.Low, row.High = p.value, p.value
				rows = append(rows, row)
			}
		}
	}
	add(counted, guaranteedQuestions)
	add(theories, breakingTheory)
	for _, c := range cells {
		if len(c.runs) > 0 {
			rows = append(rows, c.row())
		}
	}
	return rows
}

// tableOf has a row for each curve and half-width, and one for each attack with the measured number behind theory's where there is one.
func tableOf(counted, theories []point, cells []*cell, quick bool) [][]string {
	of := sizes
	if quick {
		of = sizes[:quickSizes]
	}
	heading := []string{"", "WITHIN"}
	for _, n := range of {
		heading = append(heading, "N = "+figure.Thousands(n))
	}
	table := [][]string{heading}
	for _, w := range widths {
		for _, c := range curves {
			line := []string{c.name, named(w)}
			for _, n := range of {
				v, known := valueAt(counted, c.name, w, n)
				line = append(line, count(v, known))
			}
			table = append(table, line)
		}
		for _, r := range analysts.Rivals {
			line := []string{"attack on " + attacked(r.Name), named(w)}
			for _, n := range of {
				v, known := valueAt(theories, r.Name, w, n)
				text := count(v, known)
				if m, ok := measuredAt(cells, r.Name, w, n); ok {
					text += fmt.Sprintf(" (measured %s)", count(m.Mean, true))
				}
				line = append(line, text)
			}
			table = append(table, line)
		}
	}
	return table
}

// attacked is what an attack is on, for a reader.
func attacked(rival string) string {
	if rival == "naive" {
		return "a raw holdout"
	}
	return rival
}

// count is a number of questions, to four digits.
func count(v float64, known bool) string {
	switch {
	case !known:
		return ""
	case v >= bounds.MaxQuestions:
		return "over 10^12"
	case v >= 10000:
		digits := math.Pow(10, math.Floor(math.Log10(v))-3)
		v = math.Round(v/digits) * digits
	}
	return figure.Thousands(int64(math.Round(v)))
}
