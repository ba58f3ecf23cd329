// Package featureselection is the experiment of Dwork, Feldman, Hardt, Pitassi, Reingold and Roth, The reusable holdout (Science 349, 2015,
// doi 10.1126/science.aaa9375; section 5 of arXiv 1506.02629): an analyst selects features by asking the holdout, and votes with them.
// The holdout tells its own numbers, or Thresholdout tells them.
//
// What the analyst sees is drawn exactly instead of the data, or all data are drawn (experiments/selection); or the analyst plays against a
// running server over HTTP.
package featureselection

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/experiments/seeds"
	"github.com/holdoutd/holdoutd/experiments/selection"
)

// What the columns know of the label: run.Row.Condition.
const (
	noSignal = "no signal" // no column knows anything of the label
	signal   = "signal"    // a five-hundredth of the columns does, a little
)

// What is measured, run.Row.Set: accuracies, and how many columns pass the filter or were answered from the holdout.
const (
	trainingAccuracy = "training"
	toldAccuracy     = "holdout, as told"
	freshAccuracy    = "fresh data"
	selectedColumns  = "columns selected"
	aboveThreshold   = "answers from the holdout"
)

var accuracies = []string{trainingAccuracy, toldAccuracy, freshAccuracy}

// Experiment is the reusable holdout of Science 2015.
var Experiment = run.Experiment{
	Name:  "feature-selection",
	Short: "what a holdout tells of a classifier whose features were selected by asking it, plainly and through Thresholdout",
	Paper: `Dwork, Feldman, Hardt, Pitassi, Reingold and Roth, The reusable holdout (Science 349, 2015, doi 10.1126/science.aaa9375; also section 5
of arXiv 1506.02629): on 10,000 rows and 10,000 columns an analyst keeps the columns whose correlations with the label agree in the training part and the
holdout, and votes with the signs of the k strongest. Where no column knows anything of the label, every classifier is right half of
the time, and the standard reuse of the holdout reports more than 63% for k = 500; through Thresholdout the holdout stays near the truth. Where 20 columns know a
little, both find them. The means that are compared with come from a run of the published program's steps over 100 repetitions.`,
	Flags: []run.Flag{
		{Name: "plain", Default: "false", Usage: "draw all data instead of what the analyst sees of it: the same distribution, a thousand times slower"},
		{Name: "n", Usage: "rows of each part (default 10000; 1000 with --http or --quick)"},
		{Name: "d", Usage: "columns (default: as many as rows)"},
		{Name: "http", Usage: "address of a running holdoutd, started with --allow-naive: the analyst plays over HTTP"},
		{Name: "key", Usage: "admin key for --http (default: the environment's HOLDOUTD_KEY)", Secret: true},
	},
	Small: run.Options{Repetitions: 20, Set: map[string]string{"n": "200"}},
	Run:   measure,
}

// setup is one run of the experiment, as its options ask for it.
type setup struct {
	o           run.Options
	sizes       map[string]selection.Shape // by condition
	repetitions int
	play        func(ctx context.Context, condition, method string, seed uint64) (selection.Path, error) // one repetition
	how         string                                                                                   // the note that says how
}

// cell is a condition with a method.
type cell struct{ condition, method string }

var cells = []cell{
	{noSignal, selection.StandardReuse}, {noSignal, selection.ThroughThresholdout}, {signal, selection.StandardReuse}, {signal, selection.ThroughThresholdout},
}

// measure reproduces the figures of Science 2015.
func measure(ctx context.Context, o run.Options) (run.Result, error) {
	result := run.Result{Experiment: "feature-selection", Seed: o.Seed, Quick: o.Quick}
	s, err := newSetup(o)
	if err != nil {
		return result, err
	}
	measured, err := s.measure(ctx, "repetitions", s.repetitions, o.Seed, s.play)
	for _, c := range cells {
		result.Rows = append(result.Rows, s.rows(c, measured[c])...)
	}
	result.Notes = s.notes()
	result.Summary = tableOf(result.Rows)
	if err == nil {
		result.Checks, err = s.checks(ctx, result.Rows)
	}
	result.Complete = err == nil
	result.Figures = figuresOf(result.Rows)
	return result, err
}

func newSetup(o run.Options) (setup, error) {
	s := setup{o: o, sizes: map[string]selection.Shape{}, repetitions: o.RepetitionsOr(100)}
	size := selection.PublishedSize
	if o.Quick || o.Text("http") != "" {
		size = 1000
	}
	n, err := o.Int("n", size)
	if err != nil {
		return s, err
	}
	d, err := o.Int("d", n)
	if err != nil {
		return s, err
	}
	if n < minSize || d < minSize {
		return s, fmt.Errorf("experiments: feature-selection needs at least %d rows and columns", minSize)
	}
	for _, c := range []string{noSignal, signal} {
		s.sizes[c] = selection.NewShape(n, d, c == signal)
	}
	switch {
	case o.Text("http") != "" && o.Switch("plain"):
		return s, errors.New("experiments: --http draws all data anyway; leave --plain out")
	case o.Text("http") != "":
		return s, s.overHTTP()
	case o.Switch("plain"):
		s.how = "All data was drawn; the mechanism and the selection code are those that are shipped."
		s.play = func(ctx context.Context, condition, method string, seed uint64) (selection.Path, error) {
			return selection.PlayDrawn(ctx, s.sizes[condition], method, seed)
		}
	default:
		s.how = "What the analyst sees of the data was drawn exactly, instead of the data (docs/proofs/feature-selection-sampling.md)."
		s.play = s.sampled()
	}
	return s, nil
}

// minSize: from here on a question for an accuracy has a range that its threshold is made for, and a classifier of a twentieth of the
// columns is one of several sizes.
const minSize = 200

// sampled is a repetition in which what the analyst sees is drawn, instead of the data.
func (s setup) sampled() func(ctx context.Context, condition, method string, seed uint64) (selection.Path, error) {
	samplers := map[string]*sync.Pool{}
	for condition, size := range s.sizes {
		samplers[condition] = &sync.Pool{New: func() any { return selection.NewSampler(size) }}
	}
	return func(_ context.Context, condition, method string, seed uint64) (selection.Path, error) {
		drawn := samplers[condition].Get().(*selection.Sampler)
		defer samplers[condition].Put(drawn)
		if method == selection.StandardReuse {
			return drawn.Standard(seed), nil
		}
		return drawn.Thresholdout(seed), nil
	}
}

// measure plays all repetitions of all cells. Each has data of its own: nothing is shared between methods either.
func (s setup) measure(ctx context.Context, part string, repetitions int, seed uint64,
	play func(ctx context.Context, condition, method string, seed uint64) (selection.Path, error)) (map[cell][]selection.Path, error) {
	paths, finished, err := run.Repeat(ctx, s.o, part, len(cells)*repetitions, func(ctx context.Context, i int) (selection.Path, error) {
		c := cells[i%len(cells)]
		return play(ctx, c.condition, c.method, seeds.Of(seed, uint64(i)))
	})
	out := map[cell][]selection.Path{}
	for i, p := range run.Dealt(paths, finished, len(cells)) {
		out[cells[i]] = p
	}
	return out, err
}

// rows are those of one cell, of the repetitions that are finished.
func (s setup) rows(c cell, paths []selection.Path) []run.Row {
	if len(paths) == 0 {
		return nil
	}
	size := s.sizes[c.condition]
	row := run.Row{Condition: c.condition, Method: c.method, N: int64(size.N), Repetitions: len(paths)}
	var rows []run.Row
	measure := func(set string, k int, value func(p selection.Path) float64) {
		row.Set, row.K = set, int64(k)
		row.Summarise(collect(paths, value))
		rows = append(rows, row)
	}
	for i, k := range size.Ks {
		measure(trainingAccuracy, k, func(p selection.Path) float64 { return p.Training[i] })
		measure(toldAccuracy, k, func(p selection.Path) float64 { return p.Told[i] })
		measure(freshAccuracy, k, func(p selection.Path) float64 { return p.Fresh[i] })
	}
	measure(selectedColumns, 0, func(p selection.Path) float64 { return float64(p.Selected) })
	if c.method == selection.ThroughThresholdout {
		measure(aboveThreshold, 0, func(p selection.Path) float64 { return float64(p.Above) })
	}
	return rows
}

func collect(paths []selection.Path, value func(p selection.Path) float64) []float64 {
	values := make([]float64, len(paths))
	for i, p := range paths {
		values[i] = value(p)
	}
	return values
}

func (s setup) notes() []string {
	size := s.sizes[signal]
	return []string{
		fmt.Sprintf("Training part, holdout and fresh data of %d rows and %d columns each, all normal; with signal %d columns have the mean 6/sqrt(n) times the label. "+
			"%d repetitions of both conditions with both methods, each on data of its own.", size.N, size.D, size.Biased, s.repetitions),
		"Filter: both correlations beyond 1/sqrt(n), with one sign. Thresholdout: for correlations threshold 4/sqrt(n) and normal noise of deviation 1/sqrt(n), " +
			"for accuracies 0.04 and 0.01 (the same at n = 10,000), fresh in every comparison and answer.",
		s.how,
	}
}

// tableOf has a line for each cell and some of the ks.
func tableOf(rows []run.Row) [][]string {
	table := [][]string{{"CONDITION", "METHOD", "K", "TRAINING", "HOLDOUT, AS TOLD", "SD", "FRESH DATA", "REPETITIONS"}}
	for i, r := range rows {
		if r.Set == trainingAccuracy {
			told, fresh := rows[i+1], rows[i+2]
			table = append(table, []string{r.Condition, r.Method, fmt.Sprint(r.K), fmt.Sprintf("%.4f", r.Mean), fmt.Sprintf("%.4f", told.Mean),
				fmt.Sprintf("%.4f", told.SD), fmt.Sprintf("%.4f", fresh.Mean), fmt.Sprint(r.Repetitions)})
		}
	}
	return table
}

//go:embed reference.json
var referenceText []byte

// reference are means of 100 repetitions of the published program's steps, at selection.PublishedSize.
type reference struct {
	Source string `json:"source"`
	Means  []struct {
		Condition string       `json:"condition"`
		Method    string       `json:"method"`
		Means     [][3]float64 `json:"means"` // by selection.PublishedKs: training, as told, fresh
		Deviation [][3]float64 `json:"deviation"`
	} `json:"means"`
}

const (
	tolerance           = 0.01 // of a mean
	standardErrors      = 5    // standard errors of both means that are allowed beside, where there are fewer repetitions than published
	publishedRepeats    = 100
	comparedRepetitions = 200 // of exact sampling, where there is no reference
)

// expected are the means and standard errors that a run is compared with: the reference at the published size, else those of
// exact sampling.
func (s setup) expected(ctx context.Context) (map[cell][]run.Row, string, error) {
	out := map[cell][]run.Row{}
	size := s.sizes[signal]
	if size.N == selection.PublishedSize && size.D == selection.PublishedSize {
		var reference reference
		if err := json.Unmarshal(referenceText, &reference); err != nil {
			return nil, "", fmt.Errorf("experiments: reference: %w", err)
		}
		for _, m := range reference.Means {
			c := cell{m.Condition, m.Method}
			for i, k := range selection.PublishedKs {
				for j, set := range accuracies {
					out[c] = append(out[c], run.Row{Set: set, K: int64(k), Mean: m.Means[i][j], SD: m.Deviation[i][j], Repetitions: publishedRepeats})
				}
			}
		}
		return out, "the reference", nil
	}
	// Another seed than the run's own, which may be of exact sampling itself.
	measured, err := s.measure(ctx, "expected", comparedRepetitions, seeds.Of(s.o.Seed, 2015), s.sampled())
	for _, c := range cells {
		out[c] = s.rows(c, measured[c])
	}
	return out, "exact sampling at this size", err
}

// checks compare every mean, by the largest difference of each curve, and the last means themselves.
func (s setup) checks(ctx context.Context, rows []run.Row) ([]run.Check, error) {
	expected, source, err := s.expected(ctx)
	if err != nil {
		return nil, err
	}
	slack := 0.0
	criterion := fmt.Sprintf("within %v", tolerance)
	if s.repetitions < publishedRepeats || source != "the reference" {
		slack = standardErrors
		criterion += fmt.Sprintf(" and %d standard errors", standardErrors)
	}
	var checks, last []run.Check
	for _, c := range cells {
		for _, set := range accuracies {
			curve, wanted := pick(rows, c, set), pickSet(expected[c], set)
			worst := run.Check{What: fmt.Sprintf("%s, %s, %s: the largest difference of %d means from %s", c.condition, c.method, set, len(curve), source),
				Criterion: "every mean " + criterion, Agrees: true}
			for i, r := range curve {
				w := wanted[i]
				// Of few repetitions a deviation is not known; the expected one is, and the same if all is well.
				standard := w.SD * math.Sqrt(1/float64(r.Repetitions)+1/float64(w.Repetitions))
				difference := r.Mean - w.Mean
				ok := math.Abs(difference) <= tolerance+slack*standard
				worst.Agrees = worst.Agrees && ok
				if math.Abs(difference) >= math.Abs(worst.Got) {
					worst.Got, worst.Low, worst.High = difference, r.Low-w.Mean, r.High-w.Mean
				}
				if i == len(curve)-1 {
					last = append(last, run.Check{What: fmt.Sprintf("%s, %s, %s, k = %d", c.condition, c.method, set, r.K), Expected: w.Mean, Got: r.Mean,
						Low: r.Low, High: r.High, Criterion: criterion, Agrees: ok})
				}
			}
			checks = append(checks, worst)
		}
	}
	return append(checks, last...), nil
}

// pick are the rows of one curve.
func pick(rows []run.Row, c cell, set string) []run.Row {
	var out []run.Row
	for _, r := range rows {
		if r.Condition == c.condition && r.Method == c.method && r.Set == set {
			out = append(out, r)
		}
	}
	return out
}

func pickSet(rows []run.Row, set string) []run.Row {
	return slices.DeleteFunc(slices.Clone(rows), func(r run.Row) bool { return r.Set != set })
}
