package experiments

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"html"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/holdoutd/holdoutd/thresholdout/bounds"
)

var update = flag.Bool("update", false, "store the expectations of TestStoredExpectations anew")

// numbers is what of a result has to be equal.
func numbers(t *testing.T, r Result) string {
	t.Helper()
	encoded, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	summary, err := json.Marshal(r.Summary)
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded) + string(summary)
}

// small are an experiment's options for tests with the defaults of its own flags.
func (e Experiment) small(seed uint64) Options {
	o := e.Small
	o.Seed = seed
	o.Set = map[string]string{}
	for _, f := range e.Flags {
		o.Set[f.Name] = f.Default
	}
	for name, v := range e.Small.Set {
		o.Set[name] = v
	}
	return o
}

// A smallRun is a small run of an experiment with seed 1, made once for all tests that look at it.
type smallRun struct {
	whole   func() (Result, error) // uninterrupted
	resumed func() (resumption, error)
}

// resumption is a run that was interrupted and continued.
type resumption struct {
	report Report
	dir    string
}

var smallRuns = map[string]smallRun{}

func TestMain(m *testing.M) {
	flag.Parse()
	root, err := os.MkdirTemp("", "experiments-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for _, e := range All {
		smallRuns[e.Name] = smallRun{
			whole: sync.OnceValues(func() (Result, error) { return e.Run(context.Background(), e.small(1)) }),
			resumed: sync.OnceValues(func() (resumption, error) {
				dir := filepath.Join(root, e.Name)
				r, err := interrupted(e, dir)
				return resumption{r, dir}, err
			}),
		}
	}
	code := m.Run()
	os.RemoveAll(root)
	os.Exit(code)
}

// interrupted runs an experiment that is interrupted twice and then continued to its end.
func interrupted(e Experiment, dir string) (Report, error) {
	taken, stops := 0, []int{1, 2}
	if underRace {
		stops = stops[:1]
	}
	for _, stop := range stops {
		ctx, cancel := context.WithCancel(context.Background())
		o, calls := e.small(1), 0
		o.Progress = func(_ string, done, total int) {
			if calls++; calls > stop && done < total {
				cancel()
			}
		}
		r, err := Perform(ctx, e, o, dir, "test")
		cancel()
		switch {
		case !r.Written:
			return r, fmt.Errorf("an interrupted run wrote nothing: %w", err)
		case err != nil && (!errors.Is(err, context.Canceled) || r.Result.Complete):
			return r, fmt.Errorf("complete %v: %w", r.Result.Complete, err)
		case r.Run.Taken < taken:
			return r, fmt.Errorf("%d pieces taken from earlier sessions, %d before", r.Run.Taken, taken)
		}
		taken = r.Run.Taken
	}
	r, err := Perform(context.Background(), e, e.small(1), dir, "test")
	if err == nil && (!r.Result.Complete || r.Run.Taken == 0) {
		err = fmt.Errorf("complete %v, %d pieces taken", r.Result.Complete, r.Run.Taken)
	}
	return r, err
}

// TestResumed: every experiment that is interrupted twice and continued finds exactly what it finds uninterrupted, and writes
// all of its files.
func TestResumed(t *testing.T) {
	for _, e := range All {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			resumed, err := smallRuns[e.Name].resumed()
			if err != nil {
				t.Fatal(err)
			}
			checkFiles(t, resumed.dir, resumed.report)
			if underRace {
				return // what is left is arithmetic
			}
			whole, err := smallRuns[e.Name].whole()
			if err != nil || !whole.Complete {
				t.Fatalf("complete %v, error %v", whole.Complete, err)
			}
			if got, want := numbers(t, resumed.report.Result), numbers(t, whole); got != want {
				t.Errorf("continued:\n%s\nuninterrupted:\n%s", got, want)
			}
		})
	}
}

// checkFiles: all files of a run are there, and the report stands alone.
func checkFiles(t *testing.T, dir string, r Report) {
	t.Helper()
	names := []string{RowsFile, ResultFile, RunFile, ReportFile, CheckpointFile}
	for i := range r.Result.Figures {
		names = append(names, r.Result.figureBase(i)+".svg", r.Result.figureBase(i)+".png")
	}
	if len(r.Result.Figures) == 0 || len(r.Result.Checks) == 0 || len(r.Result.Notes) == 0 || r.Experiment.Paper == "" {
		t.Error("a result has a figure, a check, a note and what was to be expected")
	}
	for _, name := range names {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, ReportFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, outside := range []string{`src="http`, `src="f`, "<link", "<script"} {
		if strings.Contains(string(text), outside) {
			t.Errorf("the report has %s: it does not stand alone", outside)
		}
	}
	if n := strings.Count(html.UnescapeString(string(text)), "data:image/svg+xml;base64,"); n != len(r.Result.Figures) {
		t.Errorf("%d figures in the report, want %d", n, len(r.Result.Figures))
	}
}

// storedFalseAlarm is the probability with which TestStoredExpectations fails for one experiment whose distribution is as it was.
const storedFalseAlarm = 1e-6

// TestStoredExpectations: the rows of a small run agree with stored ones, which are pooled from runs with other seeds. Means
// are compared by their spreads with Student's quantile, rates by Clopper-Pearson intervals, each at storedFalseAlarm over
// the number of rows.
func TestStoredExpectations(t *testing.T) {
	for _, e := range All {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join("testdata", "expectations", e.Name+".json")
			if *update {
				storeExpectations(t, e, path)
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatalf("%v; go test ./experiments -run TestStoredExpectations/%s -update stores them", err, e.Name)
			}
			var want []Row
			if err := json.Unmarshal(text, &want); err != nil {
				t.Fatal(err)
			}
			resumed, err := smallRuns[e.Name].resumed()
			if err != nil {
				t.Fatal(err)
			}
			compareRows(t, resumed.report.Result.Rows, want)
		})
	}
}

// storedRuns are the runs that are pooled in stored expectations.
const storedRuns = 10

// storeExpectations pools the rows of small runs with other seeds than a test's.
func storeExpectations(t *testing.T, e Experiment, path string) {
	t.Helper()
	var pooled []Row
	for run := range uint64(storedRuns) {
		r, err := e.Run(context.Background(), e.small(20150807+run))
		if err != nil {
			t.Fatal(err)
		}
		if run == 0 {
			pooled = r.Rows
			continue
		}
		for i, row := range r.Rows {
			pooled[i] = pool(pooled[i], row)
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := writeJSON(path, pooled); err != nil {
		t.Fatal(err)
	}
}

// pool is the row of two rows' repetitions together, without an interval.
func pool(a, b Row) Row {
	m, n := float64(a.Repetitions), float64(b.Repetitions)
	mean := (m*a.Mean + n*b.Mean) / (m + n)
	squares := (m-1)*a.SD*a.SD + (n-1)*b.SD*b.SD + m*(a.Mean-mean)*(a.Mean-mean) + n*(b.Mean-mean)*(b.Mean-mean)
	a.Mean, a.SD = mean, math.Sqrt(squares/(m+n-1))
	a.Repetitions += b.Repetitions
	a.Low, a.High = a.Mean, a.Mean
	return a
}

func compareRows(t *testing.T, got, want []Row) {
	t.Helper()
	if len(got) != len(want) || len(want) == 0 {
		t.Fatalf("%d rows, %d are stored", len(got), len(want))
	}
	alpha := storedFalseAlarm / float64(len(want))
	for i, w := range want {
		g := got[i]
		if g.Condition != w.Condition || g.Method != w.Method || g.N != w.N || g.Set != w.Set || g.Rate != w.Rate {
			t.Fatalf("row %d is %+v, stored is %+v", i, g, w)
		}
		if !compatible(g, w, alpha) {
			t.Errorf("%s, %s, n %d, k %d, %s: %.5g of %d, stored %.5g (sd %.3g) of %d", g.Condition, g.Method, g.N, g.K, g.Set, g.Mean,
				g.Repetitions, w.Mean, w.SD, w.Repetitions)
		}
	}
}

// compatible reports whether two rows may have one distribution; if they have, it says no with probability about alpha.
func compatible(a, b Row, alpha float64) bool {
	if a.Rate {
		interval := func(r Row) (low, high float64) {
			low, high, _ = bounds.ClopperPearson(int64(math.Round(r.Mean*float64(r.Repetitions))), int64(r.Repetitions), alpha/2)
			return low, high
		}
		lowA, highA := interval(a)
		lowB, highB := interval(b)
		return lowA <= highB && lowB <= highA
	}
	spread := max(a.SD, b.SD) // of few runs a spread is found too small as easily as too large
	freedom := float64(max(1, max(a.Repetitions, b.Repetitions)-1))
	z := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: freedom}.Quantile(1 - alpha/2)
	limit := z * spread * math.Sqrt(1/float64(max(1, a.Repetitions))+1/float64(max(1, b.Repetitions)))
	return math.Abs(a.Mean-b.Mean) <= limit+1e-9*math.Abs(b.Mean)
}

// TestCompatible: rows a little apart are taken for the same, and rows far apart, or rates, are not.
func TestCompatible(t *testing.T) {
	stored := Row{Mean: 0.5, SD: 0.01, Repetitions: 100}
	rate := Row{Mean: 0.01, Repetitions: 1000, Rate: true}
	for _, c := range []struct {
		a, b Row
		want bool
	}{
		{Row{Mean: 0.505, SD: 0.01, Repetitions: 10}, stored, true},
		{Row{Mean: 0.53, SD: 0.01, Repetitions: 10}, stored, false},
		{Row{Mean: 0.05, Repetitions: 20, Rate: true}, rate, true},
		{Row{Mean: 0.75, Repetitions: 20, Rate: true}, rate, false},
		{Row{Mean: 0.51, SD: 0.01, Repetitions: 2}, pool(Row{Mean: 0.49, SD: 0.01, Repetitions: 50}, Row{Mean: 0.51, SD: 0.01, Repetitions: 50}), true},
		{Row{Mean: 7}, Row{Mean: 7}, true},
		{Row{Mean: 7}, Row{Mean: 7.001}, false},
	} {
		if compatible(c.a, c.b, 1e-6) != c.want {
			t.Errorf("%+v and %+v: want %v", c.a, c.b, c.want)
		}
	}
}

// TestCheckpoint: a checkpoint continues the run it is of, less a line that was cut short, and no other run.
func TestCheckpoint(t *testing.T) {
	path := filepath.Join(t.TempDir(), CheckpointFile)
	e := Experiment{Name: "x", Flags: []Flag{{Name: "size", Default: "10"}, {Name: "key", Secret: true}}}
	o := Options{Seed: 3, Set: map[string]string{"size": "20", "key": "hush"}}
	open := func(o Options) *Checkpoint {
		t.Helper()
		c, err := OpenCheckpoint(path, e, o)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	known := func(c *Checkpoint) (found []int) {
		t.Helper()
		for i := range 4 {
			var v float64
			ok, err := c.load("part", i, &v)
			if err != nil {
				t.Fatal(err)
			}
			if ok && v == math.Pi*float64(i) {
				found = append(found, i)
			}
		}
		return found
	}
	c := open(o)
	for i := range 3 {
		if err := c.store("part", i, math.Pi*float64(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Close(time.Second, 100); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "hush") {
		t.Error("the checkpoint has a secret")
	}
	if err := os.WriteFile(path, append(text, `{"part":"part","index":3,"val`...), 0o644); err != nil {
		t.Fatal(err)
	}
	c = open(o)
	if got := known(c); !reflect.DeepEqual(got, []int{0, 1, 2}) || c.before != time.Second || c.peak != 100 {
		t.Errorf("after a cut: %v known, %v, %d bytes", got, c.before, c.peak)
	}
	if err := c.store("part", 3, math.Pi*3); err != nil {
		t.Fatal(err)
	}
	c.Close(0, 0)
	c = open(o)
	if got := known(c); !reflect.DeepEqual(got, []int{0, 1, 2, 3}) {
		t.Errorf("after the cut's repair: %v known", got)
	}
	c.Close(0, 0)
	o.Seed++
	c = open(o)
	if got := known(c); got != nil {
		t.Errorf("another seed took %v", got)
	}
	c.Close(0, 0)
	o.Seed--
	if got := known(open(o)); got != nil {
		t.Errorf("the file of the other seed was overwritten, and yet %v known", got)
	}
}

// TestIndex: the page of all experiments has every one of them, what agrees and what does not.
func TestIndex(t *testing.T) {
	dir := t.TempDir()
	var reports []Report
	for _, name := range []string{"one", "two"} {
		e := Experiment{Name: name, Short: "what <" + name + "> measures", Paper: "as was said", Run: func(ctx context.Context, o Options) (Result, error) {
			_, _, err := Repeat(ctx, o, "part", 2, func(context.Context, int) (int, error) { return 1, nil })
			return Result{Experiment: name, Complete: true, Rows: []Row{{Mean: 1}}, Checks: []Check{Within("x", 1, 0.1, Row{Mean: float64(len(reports))})}}, err
		}}
		r, err := Perform(context.Background(), e, Options{}, filepath.Join(dir, name), "test")
		if err != nil {
			t.Fatal(err)
		}
		reports = append(reports, r)
	}
	if err := WriteIndex(dir, reports); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, IndexFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"what &lt;one&gt; measures", `href="two/report.html"`, "Not every comparison agrees", "All 1 comparisons agree"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}
