// Package runtest is the test that every experiment has: that a small run of it can be interrupted and continued, writes all of its files,
// and finds what it is known to find.
package runtest

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"html"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/experiments/run"
)

var update = flag.Bool("update", false, "store the expectations of the experiment anew")

// Small are an experiment's options for tests, with the defaults of its own flags.
func Small(e run.Experiment, seed uint64) run.Options {
	o := e.Small
	o.Seed = seed
	o.Set = map[string]string{}
	for _, f := range e.Flags {
		o.Set[f.Name] = f.Default
	}
	maps.Copy(o.Set, e.Small.Set)
	return o
}

// Check holds a small run of an experiment, which is interrupted and continued on the way, against three things: all files of a report
// are written; the rows agree with the package's testdata/expectations.json; and they are those of a run that nobody interrupted.
// The last is arithmetic, and left out under the race detector.
func Check(t *testing.T, e run.Experiment) {
	dir := t.TempDir()
	resumed, err := interrupted(e, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("files", func(t *testing.T) { checkFiles(t, dir, resumed) })
	t.Run("expectations", func(t *testing.T) { checkExpectations(t, e, resumed.Result.Rows) })
	if UnderRace {
		return
	}
	t.Run("uninterrupted", func(t *testing.T) {
		whole, err := e.Run(t.Context(), Small(e, 1))
		if err != nil || !whole.Complete {
			t.Fatalf("complete %v, error %v", whole.Complete, err)
		}
		if got, want := numbers(t, resumed.Result), numbers(t, whole); got != want {
			t.Errorf("continued:\n%s\nuninterrupted:\n%s", got, want)
		}
	})
}

// numbers is what of a result has to be equal.
func numbers(t *testing.T, r run.Result) string {
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

// interrupted runs an experiment that is interrupted twice, once under the race detector, and then continued to its end.
func interrupted(e run.Experiment, dir string) (run.Report, error) {
	taken, stops := 0, []int{1, 2}
	if UnderRace {
		stops = stops[:1]
	}
	for _, stop := range stops {
		ctx, cancel := context.WithCancel(context.Background())
		o, calls := Small(e, 1), 0
		o.Progress = func(_ string, done, total int) {
			if calls++; calls > stop && done < total {
				cancel()
			}
		}
		r, err := run.Perform(ctx, e, o, dir, "test")
		cancel()
		switch {
		case !r.Written:
			return r, fmt.Errorf("an interrupted run wrote nothing: %w", err)
		case err != nil && (!errors.Is(err, context.Canceled) || r.Result.Complete):
			return r, fmt.Errorf("complete %v: %w", r.Result.Complete, err)
		case r.Provenance.Taken < taken:
			return r, fmt.Errorf("%d pieces taken from earlier sessions, %d before", r.Provenance.Taken, taken)
		}
		taken = r.Provenance.Taken
	}
	r, err := run.Perform(context.Background(), e, Small(e, 1), dir, "test")
	if err == nil && (!r.Result.Complete || r.Provenance.Taken == 0) {
		err = fmt.Errorf("complete %v, %d pieces taken", r.Result.Complete, r.Provenance.Taken)
	}
	return r, err
}

// checkFiles: all files of a run are there, and the report stands alone.
func checkFiles(t *testing.T, dir string, r run.Report) {
	names := []string{run.RowsFile, run.ResultFile, run.ProvenanceFile, run.ReportFile, run.CheckpointFile}
	for i := range r.Result.Figures {
		names = append(names, r.Result.FigureBase(i)+".svg", r.Result.FigureBase(i)+".png")
	}
	if len(r.Result.Figures) == 0 || len(r.Result.Checks) == 0 || len(r.Result.Notes) == 0 || r.Experiment.Paper == "" {
		t.Error("a result has a figure, a check, a note and what was to be expected")
	}
	for _, name := range names {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, run.ReportFile))
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

// Agrees holds a run of an experiment at its --quick size against what was expected: every check agrees. This is the test that planted faults
// of what the experiment measures have to fail (tests/faults/experiments.txt): the experiment itself finds them.
func Agrees(t *testing.T, e run.Experiment) {
	if UnderRace {
		t.Skip("arithmetic, which the race detector only slows down")
	}
	o := Small(e, 1)
	o.Quick, o.Repetitions = true, 0
	for _, f := range e.Flags {
		o.Set[f.Name] = f.Default
	}
	r, err := e.Run(t.Context(), o)
	if err != nil || !r.Complete || len(r.Checks) == 0 {
		t.Fatalf("complete %v, %d checks, error %v", r.Complete, len(r.Checks), err)
	}
	for _, c := range r.Disagreeing() {
		t.Errorf("%s: expected %.5g, came out %.5g; %s", c.What, c.Expected, c.Got, c.Criterion)
	}
}
