package experiments

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
)

// Conditions of FeatureSelection, Row.Condition.
const (
	NoSignal = "no signal" // no column knows anything of the label
	Signal   = "signal"    // a five-hundredth of the columns does, a little
)

// Methods of FeatureSelection, Row.Method.
const (
	selectionStandard     = "standard"     // the holdout tells its own numbers
	selectionThresholdout = "thresholdout" // Thresholdout tells them
)

// Measures of FeatureSelection, Row.Set: accuracies, and how many columns pass the filter or were answered from the holdout.
const (
	TrainingAccuracy = "training"
	ToldAccuracy     = "holdout, as told"
	FreshAccuracy    = "fresh data"
	SelectedColumns  = "columns selected"
	AboveThreshold   = "answers from the holdout"
)

var selectionSets = []string{TrainingAccuracy, ToldAccuracy, FreshAccuracy}

var featureSelectionExperiment = Experiment{
	Name:  "feature-selection",
	Short: "what a holdout tells of a classifier whose features were selected by asking it, plainly and through Thresholdout",
	Paper: `Dwork, Feldman, Hardt, Pitassi, Reingold and Roth, The reusable holdout (Science 349, 2015, doi 10.1126/science.aaa9375; also section 5
of arXiv 1506.02629): on 10,000 rows and 10,000 columns an analyst keeps the columns whose correlations with the label agree in the training part and the
holdout, and votes with the signs of the k strongest. Where no column knows anything of the label, every classifier is right half of
the time, and the standard reuse of the holdout reports more than 63% for k = 500; through Thresholdout the holdout stays near the truth. Where 20 columns know a
little, both find them. The means that are compared with come from a run of the published program's steps over 100 repetitions.`,
	Flags: []Flag{
		{Name: "plain", Default: "false", Usage: "draw all data instead of what the analyst sees of it: the same distribution, a thousand times slower"},
		{Name: "n", Usage: "rows of each part (default 10000; 1000 with --http or --quick)"},
		{Name: "d", Usage: "columns (default: as many as rows)"},
		{Name: "http", Usage: "address of a running holdoutd, started with --allow-naive: the analyst plays over HTTP"},
		{Name: "key", Usage: "admin key for --http (default: the environment's HOLDOUTD_KEY)", Secret: true},
	},
	Small: Options{Repetitions: 20, Set: map[string]string{"n": "200"}},
	Run:   FeatureSelection,
}

// publishedKs are the numbers of columns of the published figure, for publishedSize rows and columns.
var publishedKs = []int{10, 20, 30, 45, 70, 100, 150, 200, 250, 300, 400, 500}

const (
	publishedSize   = 10000
	publishedBiased = 20
)

// newSelectionSize keeps the picture for any size: numbers of columns go with d, since correlations go with 1/sqrt(n).
func newSelectionSize(n, d int, condition string) selectionSize {
	scaled := func(k int) int { return max(1, int(math.Round(float64(k)*float64(d)/publishedSize))) }
	s := selectionSize{n: n, d: d}
	for _, k := range publishedKs {
		s.ks = append(s.ks, scaled(k))
	}
	s.ks = slices.Compact(s.ks)
	if condition == Signal {
		s.biased = scaled(publishedBiased)
	}
	return s
}

// selectionRun is what FeatureSelection is asked to do.
type selectionRun struct {
	o           Options
	sizes       map[string]selectionSize // by condition
	repetitions int
	play        func(ctx context.Context, condition, method string, seed uint64) (path, error)
	how         string // a note
}

// selectionCell is a condition with a method.
type selectionCell struct{ condition, method string }

var selectionCells = []selectionCell{
	{NoSignal, selectionStandard}, {NoSignal, selectionThresholdout}, {Signal, selectionStandard}, {Signal, selectionThresholdout},
}

// FeatureSelection reproduces the figures of Science 2015.
func FeatureSelection(ctx context.Context, o Options) (Result, error) {
	result := Result{Experiment: "feature-selection", Seed: o.Seed, Quick: o.Quick}
	run, err := newSelectionRun(o)
	if err != nil {
		return result, err
	}
	measured, err := run.measure(ctx, "repetitions", run.repetitions, o.Seed, run.play)
	for _, c := range selectionCells {
		result.Rows = append(result.Rows, run.rows(c, measured[c])...)
	}
	result.Notes = run.notes()
	result.Summary = selectionTable(result.Rows)
	if err == nil {
		result.Checks, err = run.checks(ctx, result.Rows)
	}
	result.Complete = err == nil
	result.Figures = selectionFigures(result.Rows)
	return result, err
}

func newSelectionRun(o Options) (selectionRun, error) {
	run := selectionRun{o: o, sizes: map[string]selectionSize{}, repetitions: o.repetitions(100)}
	size := publishedSize
	if o.Quick || o.Text("http") != "" {
		size = 1000
	}
	n, err := o.Int("n", size)
	if err != nil {
		return run, err
	}
	d, err := o.Int("d", n)
	if err != nil {
		return run, err
	}
	if n < minSelectionSize || d < minSelectionSize {
		return run, fmt.Errorf("experiments: feature-selection needs at least %d rows and columns", minSelectionSize)
	}
	for _, c := range []string{NoSignal, Signal} {
		run.sizes[c] = newSelectionSize(n, d, c)
	}
	switch {
	case o.Text("http") != "" && o.Switch("plain"):
		return run, errors.New("experiments: --http draws all data anyway; leave --plain out")
	case o.Text("http") != "":
		return run, run.overHTTP()
	case o.Switch("plain"):
		run.how = "All data was drawn; the mechanism and the selection code are those that are shipped."
		run.play = func(ctx context.Context, condition, method string, seed uint64) (path, error) {
			return plainSelection(ctx, run.sizes[condition], method, seed)
		}
	default:
		run.how = "What the analyst sees of the data was drawn exactly, instead of the data (docs/proofs/feature-selection-sampling.md)."
		run.play = run.sampled()
	}
	return run, nil
}

// minSelectionSize is where a question for an accuracy can still have a range that its threshold is made for, and a
// classifier of a twentieth of the columns is one of several sizes.
const minSelectionSize = 200

// sampled draws what the analyst sees.
func (run selectionRun) sampled() func(ctx context.Context, condition, method string, seed uint64) (path, error) {
	samplers := map[string]*sync.Pool{}
	for condition, size := range run.sizes {
		samplers[condition] = &sync.Pool{New: func() any { return newSelectionSampler(size) }}
	}
	return func(_ context.Context, condition, method string, seed uint64) (path, error) {
		s := samplers[condition].Get().(*selectionSampler)
		defer samplers[condition].Put(s)
		if method == selectionStandard {
			return s.standard(seed), nil
		}
		return s.thresholdout(seed), nil
	}
}

// measure plays all repetitions of all cells. Each has data of its own: nothing is shared between methods either.
func (run selectionRun) measure(ctx context.Context, part string, repetitions int, seed uint64,
	play func(ctx context.Context, condition, method string, seed uint64) (path, error)) (map[selectionCell][]path, error) {
	paths, finished, err := Repeat(ctx, run.o, part, len(selectionCells)*repetitions, func(ctx context.Context, i int) (path, error) {
		c := selectionCells[i%len(selectionCells)]
		return play(ctx, c.condition, c.method, seedOf(seed, uint64(i)))
	})
	out := map[selectionCell][]path{}
	for i, p := range paths {
		if finished[i] {
			c := selectionCells[i%len(selectionCells)]
			out[c] = append(out[c], p)
		}
	}
	return out, err
}

// rows are those of one cell, of the repetitions that are finished.
func (run selectionRun) rows(c selectionCell, paths []path) []Row {
	if len(paths) == 0 {
		return nil
	}
	size := run.sizes[c.condition]
	row := Row{Condition: c.condition, Method: c.method, N: int64(size.n), Repetitions: len(paths)}
	var rows []Row
	measure := func(set string, k int, value func(p path) float64) {
		row.Set, row.K = set, int64(k)
		row.summarise(collect(paths, value))
		rows = append(rows, row)
	}
	for i, k := range size.ks {
		measure(TrainingAccuracy, k, func(p path) float64 { return p.Training[i] })
		measure(ToldAccuracy, k, func(p path) float64 { return p.Told[i] })
		measure(FreshAccuracy, k, func(p path) float64 { return p.Fresh[i] })
	}
	measure(SelectedColumns, 0, func(p path) float64 { return float64(p.Selected) })
	if c.method == selectionThresholdout {
		measure(AboveThreshold, 0, func(p path) float64 { return float64(p.Above) })
	}
	return rows
}

func collect(paths []path, value func(p path) float64) []float64 {
	values := make([]float64, len(paths))
	for i, p := range paths {
		values[i] = value(p)
	}
	return values
}

func (run selectionRun) notes() []string {
	size := run.sizes[Signal]
	return []string{
		fmt.Sprintf("Training part, holdout and fresh data of %d rows and %d columns each, all normal; with signal %d columns have the mean 6/sqrt(n) times the label. "+
			"%d repetitions of both conditions with both methods, each on data of its own.", size.n, size.d, size.biased, run.repetitions),
		"Filter: both correlations beyond 1/sqrt(n), with one sign. Thresholdout: for correlations threshold 4/sqrt(n) and normal noise of deviation 1/sqrt(n), " +
			"for accuracies 0.04 and 0.01 (the same at n = 10,000), fresh in every comparison and answer.",
		run.how,
	}
}

// selectionTable has a line for each cell and some of the ks.
func selectionTable(rows []Row) [][]string {
	table := [][]string{{"CONDITION", "METHOD", "K", "TRAINING", "HOLDOUT, AS TOLD", "SD", "FRESH DATA", "REPETITIONS"}}
	for i, r := range rows {
		if r.Set == TrainingAccuracy {
			told, fresh := rows[i+1], rows[i+2]
			table = append(table, []string{r.Condition, r.Method, fmt.Sprint(r.K), fmt.Sprintf("%.4f", r.Mean), fmt.Sprintf("%.4f", told.Mean),
				fmt.Sprintf("%.4f", told.SD), fmt.Sprintf("%.4f", fresh.Mean), fmt.Sprint(r.Repetitions)})
		}
	}
	return table
}

//go:embed featureselection_reference.json
var selectionReferenceText []byte

// selectionReference are means of 100 repetitions of the published program's steps, at publishedSize.
type selectionReference struct {
	Source string `json:"source"`
	Means  []struct {
		Condition string       `json:"condition"`
		Method    string       `json:"method"`
		Means     [][3]float64 `json:"means"` // by publishedKs: training, as told, fresh
		Deviation [][3]float64 `json:"deviation"`
	} `json:"means"`
}

const (
	selectionTolerance  = 0.01 // of a mean
	selectionErrors     = 5    // standard errors of both means that are allowed beside, where there are fewer repetitions than published
	publishedRepeats    = 100
	comparedRepetitions = 200 // of exact sampling, where there is no reference
)

// expected are the means and standard errors that a run is compared with: the reference at the published size, else those of
// exact sampling.
func (run selectionRun) expected(ctx context.Context) (map[selectionCell][]Row, string, error) {
	out := map[selectionCell][]Row{}
	size := run.sizes[Signal]
	if size.n == publishedSize && size.d == publishedSize {
		var reference selectionReference
		if err := json.Unmarshal(selectionReferenceText, &reference); err != nil {
			return nil, "", fmt.Errorf("experiments: reference: %w", err)
		}
		for _, m := range reference.Means {
			c := selectionCell{m.Condition, m.Method}
			for i, k := range publishedKs {
				for j, set := range selectionSets {
					out[c] = append(out[c], Row{Set: set, K: int64(k), Mean: m.Means[i][j], SD: m.Deviation[i][j], Repetitions: publishedRepeats})
				}
			}
		}
		return out, "the reference", nil
	}
	// Another seed than the run's own, which may be of exact sampling itself.
	measured, err := run.measure(ctx, "expected", comparedRepetitions, seedOf(run.o.Seed, 2015), run.sampled())
	for _, c := range selectionCells {
		out[c] = run.rows(c, measured[c])
	}
	return out, "exact sampling at this size", err
}

// checks compare every mean, by the largest difference of each curve, and the last means themselves.
func (run selectionRun) checks(ctx context.Context, rows []Row) ([]Check, error) {
	expected, source, err := run.expected(ctx)
	if err != nil {
		return nil, err
	}
	slack := 0.0
	criterion := fmt.Sprintf("within %v", selectionTolerance)
	if run.repetitions < publishedRepeats || source != "the reference" {
		slack = selectionErrors
		criterion += fmt.Sprintf(" and %d standard errors", selectionErrors)
	}
	var checks, last []Check
	for _, c := range selectionCells {
		for _, set := range selectionSets {
			curve, wanted := pick(rows, c, set), pickSet(expected[c], set)
			worst := Check{What: fmt.Sprintf("%s, %s, %s: the largest difference of %d means from %s", c.condition, c.method, set, len(curve), source),
				Criterion: "every mean " + criterion, Agrees: true}
			for i, r := range curve {
				w := wanted[i]
				// Of few repetitions a deviation is not known; the expected one is, and the same if all is well.
				standard := w.SD * math.Sqrt(1/float64(r.Repetitions)+1/float64(w.Repetitions))
				difference := r.Mean - w.Mean
				ok := math.Abs(difference) <= selectionTolerance+slack*standard
				worst.Agrees = worst.Agrees && ok
				if math.Abs(difference) >= math.Abs(worst.Got) {
					worst.Got, worst.Low, worst.High = difference, r.Low-w.Mean, r.High-w.Mean
				}
				if i == len(curve)-1 {
					last = append(last, Check{What: fmt.Sprintf("%s, %s, %s, k = %d", c.condition, c.method, set, r.K), Expected: w.Mean, Got: r.Mean,
						Low: r.Low, High: r.High, Criterion: criterion, Agrees: ok})
				}
			}
			checks = append(checks, worst)
		}
	}
	return append(checks, last...), nil
}

// pick are the rows of one curve.
func pick(rows []Row, c selectionCell, set string) []Row {
	var out []Row
	for _, r := range rows {
		if r.Condition == c.condition && r.Method == c.method && r.Set == set {
			out = append(out, r)
		}
	}
	return out
}

func pickSet(rows []Row, set string) []Row {
	return slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return r.Set != set })
}
