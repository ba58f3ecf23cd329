// Package featureselection is the experiment of Dwork, Feldman, Hardt, Pitassi, Reingold and Roth, The reusable holdout (Science 349, 2015,
// doi 10.1126/science.aaa9375; section 5 of arXiv 1506.02629): an analyst selects features by asking the holdout, and votes with them.
// The holdout tells its own numbers, or Thresholdout tells them.
//
// What the analyst sees is drawn exactly instead of the data (docs/proofs/feature-selection-sampling.md); or all data are drawn; or the
// analyst plays against a running server over HTTP.
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
	"github.com/holdoutd/holdoutd/experiments/run/checks"
)

// What the columns know of the label: run.Row.Condition.
const (
	noSignal = "no signal" // no column knows anything of the label
	signal   = "signal"    // a five-hundredth of the columns does, a little
)

// Who tells the holdout's numbers: run.Row.Method.
const (
	standardReuse       = "standard"     // the holdout tells its own numbers
	throughThresholdout = "thresholdout" // Thresholdout tells them
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
	Small: run.Options{Quick: true, Repetitions: 20},
	Run:   measure,
}

// publishedKs are the numbers of columns of the published figure, for publishedSize rows and columns.
var publishedKs = []int{10, 20, 30, 45, 70, 100, 150, 200, 250, 300, 400, 500}

const (
	publishedSize   = 10000
	publishedBiased = 20
	quickSize       = 1000
)

// newShape keeps the picture for any size: numbers of columns go with d, since correlations go with 1/sqrt(n).
func newShape(n, d int, condition string) shape {
	scaled := func(k int) int { return max(1, int(math.Round(float64(k)*float64(d)/publishedSize))) }
	s := shape{n: n, d: d}
	for _, k := range publishedKs {
		s.ks = append(s.ks, scaled(k))
	}
	s.ks = slices.Compact(s.ks)
	if condition == signal {
		s.biased = scaled(publishedBiased)
	}
	return s
}

// setup is one run of the experiment, as its options ask for it.
type setup struct {
	o           run.Options
	sizes       map[string]shape // by condition
	repetitions int
	rules       rules                                                                          // of exact sampling
	play        func(ctx context.Context, condition, method string, seed uint64) (path, error) // one repetition
	samples     bool                                                                           // play is exact sampling
	how         string                                                                         // the note that says how
}

// cell is a condition with a method.
type cell struct{ condition, method string }

var cells = []cell{
	{noSignal, standardReuse}, {noSignal, throughThresholdout}, {signal, standardReuse}, {signal, throughThresholdout},
}

// measure reproduces the figures of Science 2015.
func measure(ctx context.Context, o run.Options) (run.Result, error) {
	s, err := newSetup(o)
	if err != nil {
		return run.Result{Experiment: "feature-selection", Seed: o.Seed, Quick: o.Quick}, err
	}
	return s.result(ctx)
}

// result plays, and compares.
func (s *setup) result(ctx context.Context) (run.Result, error) {
	o := s.o
	result := run.Result{Experiment: "feature-selection", Seed: o.Seed, Quick: o.Quick}
	measured, err := s.measure(ctx, "repetitions", s.repetitions, o.Seed, s.play)
	for _, c := range cells {
		result.Rows = append(result.Rows, s.rows(c, measured[c])...)
	}
	result.Notes = s.notes()
	result.Summary = tableOf(result.Rows)
	var expected known
	if err == nil {
		expected, err = s.expected(ctx)
	}
	if result.Complete = err == nil; result.Complete {
		result.Compare(s.comparisons(measured, expected))
	}
	if result.Complete && expected.of == nil {
		result.Notes = append(result.Notes, "Nothing is known of this size but by exact sampling, which is what was run: there is nothing to compare with.")
	}
	result.Figures = figuresOf(result.Rows)
	return result, err
}

func newSetup(o run.Options) (*setup, error) {
	s := &setup{o: o, sizes: map[string]shape{}, repetitions: o.RepetitionsOr(100), rules: publishedRules}
	size := publishedSize
	if o.Quick || o.Text("http") != "" {
		size = quickSize
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
		s.sizes[c] = newShape(n, d, c)
	}
	switch {
	case o.Text("http") != "" && o.Switch("plain"):
		return s, errors.New("experiments: --http draws all data anyway; leave --plain out")
	case o.Text("http") != "":
		return s, s.overHTTP()
	case o.Switch("plain"):
		s.how = "All data was drawn; the mechanism and the selection code are those that are shipped."
		s.play = func(ctx context.Context, condition, method string, seed uint64) (path, error) {
			return playDrawn(ctx, s.sizes[condition], method, seed)
		}
	default:
		s.how = "What the analyst sees of the data was drawn exactly, instead of the data (docs/proofs/feature-selection-sampling.md)."
		s.samples, s.play = true, s.sampled()
	}
	return s, nil
}

// minSize: from here on a question for an accuracy has a range that its threshold is made for, and a classifier of a twentieth of the
// columns is one of several sizes.
const minSize = 200

// sampled is a repetition in which what the analyst sees is drawn, instead of the data.
func (s *setup) sampled() func(ctx context.Context, condition, method string, seed uint64) (path, error) {
	samplers := map[string]*sync.Pool{}
	for condition, size := range s.sizes {
		samplers[condition] = &sync.Pool{New: func() any { return newSampler(size) }}
	}
	return func(_ context.Context, condition, method string, seed uint64) (path, error) {
		drawn := samplers[condition].Get().(*sampler)
		defer samplers[condition].Put(drawn)
		drawn.rules = s.rules
		if method == standardReuse {
			return drawn.standard(seed), nil
		}
		return drawn.thresholdout(seed), nil
	}
}

// measure plays all repetitions of all cells. Each has data of its own: nothing is shared between methods either.
func (s *setup) measure(ctx context.Context, part string, repetitions int, seed uint64,
	play func(ctx context.Context, condition, method string, seed uint64) (path, error)) (map[cell][]path, error) {
	paths, finished, err := run.Repeat(ctx, s.o, part, len(cells)*repetitions, func(ctx context.Context, i int) (path, error) {
		c := cells[i%len(cells)]
		return play(ctx, c.condition, c.method, run.SeedOf(seed, uint64(i)))
	})
	out := map[cell][]path{}
	for i, p := range run.Dealt(paths, finished, len(cells)) {
		out[cells[i]] = p
	}
	return out, err
}

// rows are those of one cell, of the repetitions that are finished.
func (s *setup) rows(c cell, paths []path) []run.Row {
	if len(paths) == 0 {
		return nil
	}
	size := s.sizes[c.condition]
	row := run.Row{Condition: c.condition, Method: c.method, N: int64(size.n), Repetitions: len(paths)}
	var rows []run.Row
	measure := func(set string, k int, value func(p path) float64) {
		row.Set, row.K = set, int64(k)
		row.Summarise(collect(paths, value))
		rows = append(rows, row)
	}
	for i, k := range size.ks {
		measure(trainingAccuracy, k, func(p path) float64 { return p.Training[i] })
		measure(toldAccuracy, k, func(p path) float64 { return p.Told[i] })
		measure(freshAccuracy, k, func(p path) float64 { return p.Fresh[i] })
	}
	measure(selectedColumns, 0, func(p path) float64 { return float64(p.Selected) })
	if c.method == throughThresholdout {
		measure(aboveThreshold, 0, func(p path) float64 { return float64(p.Above) })
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

func (s *setup) notes() []string {
	size := s.sizes[signal]
	return []string{
		fmt.Sprintf("Training part, holdout and fresh data of %d rows and %d columns each, all normal; with signal %d columns have the mean 6/sqrt(n) times the label. "+
			"%d repetitions of both conditions with both methods, each on data of its own.", size.n, size.d, size.biased, s.repetitions),
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

// published are the means and standard deviations that are compared with at publishedSize: of a separate program with the published one's steps.
//
//go:embed published.json
var publishedText []byte

// reference is what reference.py found at quickSize, with histograms.
//
//go:embed reference.json
var referenceText []byte

const (
	publishedRepeats    = 100
	comparedRepetitions = 1000 // of exact sampling, where neither has the size
)

// known is what a run is compared with, by cell and set: one for each k.
type known struct {
	source string
	of     map[cell]map[string][]accuracy
}

// accuracy is what is known of one accuracy.
type accuracy struct {
	checks.Sample
	edges  []float64 // of a histogram of the repetitions; none where only means and deviations are known
	counts []int
}

// expected are the numbers that a run is compared with: of separate programs at the published size and at that of a quick run. At another size, all data that was
// drawn, or asked of a server, is compared with exact sampling. Exact sampling at another size has nothing to be compared with.
func (s *setup) expected(ctx context.Context) (known, error) {
	size := s.sizes[signal]
	switch {
	case size.n == publishedSize && size.d == publishedSize:
		return publishedNumbers()
	case size.n == quickSize && size.d == quickSize:
		return referenceNumbers()
	case s.samples:
		return known{}, nil
	}
	// Another seed than the run's own.
	measured, err := s.measure(ctx, "expected", comparedRepetitions, run.SeedOf(s.o.Seed, 2015), s.sampled())
	out := known{"exact sampling at this size", map[cell]map[string][]accuracy{}}
	for _, c := range cells {
		out.of[c] = map[string][]accuracy{}
		for _, set := range accuracies {
			for i := range size.ks {
				out.of[c][set] = append(out.of[c][set], accuracy{Sample: checks.Of(collect(measured[c], func(p path) float64 { return p.accuracy(set, i) }))})
			}
		}
	}
	return out, err
}

// accuracy is one of a set's, for the i-th number of columns.
func (p path) accuracy(set string, i int) float64 {
	switch set {
	case trainingAccuracy:
		return p.Training[i]
	case toldAccuracy:
		return p.Told[i]
	}
	return p.Fresh[i]
}

func publishedNumbers() (known, error) {
	var file struct {
		Means []struct {
			Condition, Method string
			Means             [][3]float64 // by publishedKs: training, as told, fresh
			Deviation         [][3]float64
		}
	}
	if err := json.Unmarshal(publishedText, &file); err != nil {
		return known{}, fmt.Errorf("experiments: published numbers: %w", err)
	}
	out := known{"a separate program", map[cell]map[string][]accuracy{}}
	for _, m := range file.Means {
		c := cell{m.Condition, m.Method}
		out.of[c] = map[string][]accuracy{}
		for i := range publishedKs {
			for j, set := range accuracies {
				out.of[c][set] = append(out.of[c][set], accuracy{Sample: checks.Sample{Mean: m.Means[i][j], SD: m.Deviation[i][j], Runs: publishedRepeats}})
			}
		}
	}
	return out, nil
}

func referenceNumbers() (known, error) {
	var file struct {
		Cells []struct {
			Condition, Method string
			Repetitions       int
			Accuracies        [][3]struct {
				Mean, SD, Kurtosis float64
				Edges              []float64
				Counts             []int
			}
		}
	}
	if err := json.Unmarshal(referenceText, &file); err != nil {
		return known{}, fmt.Errorf("experiments: reference numbers: %w", err)
	}
	out := known{"a separate program", map[cell]map[string][]accuracy{}}
	for _, m := range file.Cells {
		c := cell{m.Condition, m.Method}
		out.of[c] = map[string][]accuracy{}
		for _, of := range m.Accuracies {
			for j, set := range accuracies {
				a := of[j]
				out.of[c][set] = append(out.of[c][set], accuracy{checks.Sample{Mean: a.Mean, SD: a.SD, Runs: m.Repetitions, Kurtosis: a.Kurtosis}, a.Edges, a.Counts})
			}
		}
	}
	return out, nil
}

// comparisons compare means, standard deviations and, where they are known, histograms of every curve, each by the point that is the farthest off.
func (s *setup) comparisons(measured map[cell][]path, expected known) []checks.Comparison {
	if expected.of == nil {
		return nil
	}
	var all []checks.Comparison
	for _, c := range cells {
		for _, set := range accuracies {
			var means, spreads, shapes []checks.Comparison
			for i, k := range s.sizes[c.condition].ks {
				values := collect(measured[c], func(p path) float64 { return p.accuracy(set, i) })
				want, got, at := expected.of[c][set][i], checks.Of(values), fmt.Sprintf("k = %d", k)
				got.Low, got.High = interval(values)
				if got.Runs < checks.LeastRuns {
					// A few accuracies, which are whole numbers of rows, may be equal by chance: then they tell no spread. What is expected tells one.
					got.SD = max(got.SD, want.SD)
				} else {
					spreads = append(spreads, checks.Spread(at, want.Sample, got))
				}
				means = append(means, checks.Same(at, want.Sample, got))
				if want.counts != nil {
					shapes = append(shapes, checks.Shape(at, want.counts, histogram(values, want.edges)))
				}
			}
			of := fmt.Sprintf("%s, %s, %s: ", c.condition, c.method, set)
			all = append(all, checks.Worst(of+"mean against "+expected.source, means))
			if spreads != nil {
				all = append(all, checks.Worst(of+"standard deviation", spreads))
			}
			if shapes != nil {
				all = append(all, checks.Worst(of+"histogram", shapes))
			}
		}
	}
	return all
}

func interval(values []float64) (low, high float64) {
	var r run.Row
	r.Repetitions = len(values)
	r.Summarise(values)
	return r.Low, r.High
}

// histogram counts values up to each edge, and beyond the last. An accuracy is a whole number of rows: what is on an edge belongs below it.
func histogram(values, edges []float64) []int {
	counts := make([]int, len(edges)+1)
	for _, v := range values {
		i := 0
		for i < len(edges) && v > edges[i]+edgeRounding {
			i++
		}
		counts[i]++
	}
	return counts
}

// edgeRounding is far below a row's share, and above what the file rounds to.
const edgeRounding = 1e-9

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
