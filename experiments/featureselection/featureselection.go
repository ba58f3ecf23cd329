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
	"sync"

	"gonum.org/v1/gonum/stat/distuv"

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
little, both find them. What is compared with comes from an independent NumPy program that draws all of the data and follows the published steps
(experiments/featureselection/reference.py; n = d = 200, 1,000 and 10,000).`,
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
	measured, err := s.measure(ctx)
	for _, c := range cells {
		result.Rows = append(result.Rows, s.rows(c, measured[c])...)
	}
	result.Notes = s.notes()
	result.Summary = tableOf(result.Rows)
	if err == nil {
		result.Checks, err = s.checks(measured)
	}
	result.Complete = err == nil
	result.Figures = figuresOf(result.Rows)
	return result, err
}

func newSetup(o run.Options) (setup, error) {
	repetitions := publishedRepetitions
	if o.Quick {
		repetitions = quickRepetitions
	}
	s := setup{o: o, sizes: map[string]selection.Shape{}, repetitions: o.RepetitionsOr(repetitions)}
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

// publishedRepetitions are those of the published figure. Small ones are cheap: more of them make its comparisons sharper.
const publishedRepetitions, quickRepetitions = 100, 400

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
func (s setup) measure(ctx context.Context) (map[cell][]selection.Path, error) {
	paths, finished, err := run.Repeat(ctx, s.o, "repetitions", len(cells)*s.repetitions, func(ctx context.Context, i int) (selection.Path, error) {
		c := cells[i%len(cells)]
		return s.play(ctx, c.condition, c.method, seeds.Of(s.o.Seed, uint64(i)))
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
	measure(selectedColumns, 0, selected)
	if c.method == selection.ThroughThresholdout {
		measure(aboveThreshold, 0, above)
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

// reference is what an independent program finds, at some sizes: see reference.py.
type reference struct {
	Cells []struct {
		N           int          `json:"n"` // rows and columns
		Condition   string       `json:"condition"`
		Method      string       `json:"method"`
		Repetitions int          `json:"repetitions"`
		Numbers     []run.Stored `json:"numbers"` // by k those of the training part, as told and of fresh data; columns selected; answers from the holdout
	} `json:"cells"`
}

// stored is what the reference has of each cell at this size: nothing where it has not this size.
func (s setup) stored() (map[cell][]run.Stored, error) {
	var r reference
	if err := json.Unmarshal(referenceText, &r); err != nil {
		return nil, fmt.Errorf("experiments: reference: %w", err)
	}
	out := map[cell][]run.Stored{}
	for _, c := range r.Cells {
		if size := s.sizes[c.Condition]; size.N == c.N && size.D == c.N {
			if want := len(accuracies)*len(size.Ks) + 2; len(c.Numbers) != want {
				return nil, fmt.Errorf("experiments: the reference for %d rows has %d numbers, not %d", c.N, len(c.Numbers), want)
			}
			for i := range c.Numbers {
				c.Numbers[i].Repetitions = c.Repetitions
			}
			out[cell{c.Condition, c.Method}] = c.Numbers
		}
	}
	return out, nil
}

// checks compare all accuracies and counts with the reference: means, standard deviations and shapes. At a size that the reference does not
// have, they are what theory says of them.
func (s setup) checks(measured map[cell][]selection.Path) ([]run.Check, error) {
	stored, err := s.stored()
	if err != nil {
		return nil, err
	}
	var checks run.Checks
	for _, c := range cells {
		name := c.condition + ", " + c.method + ", "
		if stored[c] == nil {
			s.theory(&checks, name, c, measured[c])
			continue
		}
		ks, numbers := s.sizes[c.condition].Ks, stored[c]
		for j, set := range accuracies {
			var pairs []run.Pair
			for i, k := range ks {
				pairs = append(pairs, run.Pair{At: fmt.Sprintf("k = %d", k), Values: collect(measured[c], func(p selection.Path) float64 { return [][]float64{p.Training, p.Told, p.Fresh}[j][i] }),
					Stored: numbers[j*len(ks)+i]})
			}
			checks.Stored(name+set, pairs)
		}
		numbers = numbers[len(accuracies)*len(ks):]
		counts := []run.Pair{{At: selectedColumns, Values: collect(measured[c], selected), Stored: numbers[0]}}
		if c.method == selection.ThroughThresholdout {
			counts = append(counts, run.Pair{At: aboveThreshold, Values: collect(measured[c], above), Stored: numbers[1]})
		}
		checks.Stored(name+"counts", counts)
	}
	s.gaps(&checks, measured)
	return checks.Decide(), nil
}

// gaps are what is told of the largest classifier, less what fresh data say: more by its own training rows than by a holdout that answers exactly, and more by that than by
// Thresholdout.
func (s setup) gaps(checks *run.Checks, measured map[cell][]selection.Path) {
	for _, condition := range []string{noSignal, signal} {
		size := s.sizes[condition]
		last := len(size.Ks) - 1
		exact, guarded := measured[cell{condition, selection.StandardReuse}], measured[cell{condition, selection.ThroughThresholdout}]
		shown := func(p selection.Path) float64 { return p.Told[last] - p.Fresh[last] }
		more := func(what string, many, few []float64) {
			for i := range many {
				many[i] -= few[i]
			}
			checks.Above(fmt.Sprintf("%s, k = %d, gap to fresh data: %s", condition, size.Ks[last], what), 0, run.Measured(run.Row{}, many, func(v float64) float64 { return v }))
		}
		more("of the training rows less that of the standard holdout", collect(guarded, func(p selection.Path) float64 { return p.Training[last] - p.Fresh[last] }), collect(exact, shown))
		more("of the standard holdout less that of Thresholdout", collect(exact, shown), collect(guarded, shown))
	}
}

func selected(p selection.Path) float64 { return float64(p.Selected) }

func above(p selection.Path) float64 { return float64(p.Above) }

// theory checks what is known at any size: how many columns that know nothing pass a filter that sees both parts, and how good a classifier of
// them is.
func (s setup) theory(checks *run.Checks, name string, c cell, paths []selection.Path) {
	if c.condition == signal {
		return
	}
	size := s.sizes[c.condition]
	row := func(set string, value func(p selection.Path) float64) run.Row {
		return run.Measured(run.Row{Condition: c.condition, Method: c.method, N: int64(size.N), Set: set}, paths, value)
	}
	if c.method == selection.StandardReuse {
		beyond := distuv.UnitNormal.Survival(1)
		checks.Equal(name+selectedColumns, 2*beyond*beyond*float64(size.D), 0, row(selectedColumns, selected))
	}
	last := len(size.Ks) - 1
	checks.Equal(fmt.Sprintf("%s%s, k = %d", name, freshAccuracy, size.Ks[last]), 0.5, noColumns, row(freshAccuracy, func(p selection.Path) float64 { return p.Fresh[last] }))
}

// noColumns is by how much a mean accuracy is below 1/2 because no column of a repetition passes the filter, and so no row is predicted:
// with 200 columns ten pass, and none with probability e^-10.
const noColumns = 1e-4

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
