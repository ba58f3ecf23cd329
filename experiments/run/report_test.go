package run

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/experiments/run/checks"
)

// TestIndex: the page of all experiments has every one of them, what agrees and what does not.
func TestIndex(t *testing.T) {
	dir := t.TempDir()
	var reports []Report
	for _, name := range []string{"one", "two"} {
		e := Experiment{Name: name, Short: "what <" + name + "> measures", Paper: "as was said", Run: func(ctx context.Context, o Options) (Result, error) {
			_, _, err := Repeat(ctx, o, "part", 2, func(context.Context, int) (int, error) { return 1, nil })
			r := Result{Experiment: name, Complete: true, Rows: []Row{{Mean: 1}}}
			r.Compare([]checks.Comparison{checks.Exactly("x", 1, 0.1, float64(len(reports)))})
			return r, err
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
	for _, want := range []string{"what &lt;one&gt; measures", `href="two/report.html"`, "Not every comparison agrees", "All 1 comparisons agree", "anything beyond 0.1"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

// TestInterruptedSaysNothing: of a run that was interrupted neither the page nor the page of all says that anything agrees, whatever was finished.
func TestInterruptedSaysNothing(t *testing.T) {
	dir := t.TempDir()
	e := Experiment{Name: "one", Short: "a measure", Paper: "as was said", Run: func(ctx context.Context, o Options) (Result, error) {
		r := Result{Experiment: "one", Rows: []Row{{Mean: 1}}}
		r.Compare([]checks.Comparison{checks.Exactly("x", 1, 0.1, 1)})
		return r, context.Canceled
	}}
	r, err := Perform(context.Background(), e, Options{}, filepath.Join(dir, "one"), "test")
	if !errors.Is(err, context.Canceled) || r.Result.Agrees() || len(r.Result.Checks) != 0 {
		t.Fatalf("%v, %+v", err, r.Result)
	}
	if err := WriteIndex(dir, []Report{r}); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{filepath.Join(dir, "one", ReportFile), filepath.Join(dir, IndexFile)} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "comparisons agree") || strings.Contains(string(text), "✓") || !strings.Contains(string(text), "Interrupted") {
			t.Errorf("%s speaks of agreement, or not of the interruption", file)
		}
	}
}
