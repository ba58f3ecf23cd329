package run

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestIndex: the page of all experiments has every one of them, what agrees and what does not.
func TestIndex(t *testing.T) {
	dir := t.TempDir()
	var reports []Report
	for _, name := range []string{"one", "two"} {
		e := Experiment{Name: name, Short: "what <" + name + "> measures", Paper: "as was said", Run: func(ctx context.Context, o Options) (Result, error) {
			_, _, err := Repeat(ctx, o, "part", 2, func(context.Context, int) (int, error) { return 1, nil })
			return Result{Experiment: name, Complete: true, Rows: []Row{{Mean: 1}}, Checks: []Check{{What: "x", Agrees: len(reports) == 1}}}, err
		}}
		r, err := Perform(context.Background(), e, Options{}, filepath.Join(dir, name), "test")
		if err != nil {
			t.Fatal(err)
		}
		reports = append(reports, r)
	}
	interrupted := Experiment{Name: "three", Short: "x", Run: func(context.Context, Options) (Result, error) {
		return Result{Experiment: "three", Checks: []Check{{Agrees: true}}}, context.Canceled
	}}
	r, err := Perform(context.Background(), interrupted, Options{}, filepath.Join(dir, "three"), "test")
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	reports = append(reports, r)
	if err := WriteIndex(dir, reports); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, IndexFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"what &lt;one&gt; measures", `href="two/report.html"`, "Not every comparison agrees", "All 1 comparisons agree",
		"Of 3 experiments 2 are complete", `<strong class="no">1 of 2 agree.</strong>`, "the smallest fault that it notices"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

// TestInterruptedDecidesNothing: neither result nor page of an interrupted run says that comparisons agree.
func TestInterruptedDecidesNothing(t *testing.T) {
	dir := t.TempDir()
	e := Experiment{Name: "one", Short: "x", Run: func(context.Context, Options) (Result, error) {
		return Result{Experiment: "one", Checks: []Check{{Agrees: true}}}, context.Canceled
	}}
	r, err := Perform(context.Background(), e, Options{}, dir, "test")
	if !errors.Is(err, context.Canceled) || r.Result.Agrees() {
		t.Errorf("agrees %v, error %v", r.Result.Agrees(), err)
	}
	text, err := os.ReadFile(filepath.Join(dir, ReportFile))
	if err != nil || strings.Contains(string(text), "comparisons agree") || !strings.Contains(string(text), "nothing is decided") {
		t.Errorf("the page of an interrupted run, %v:\n%s", err, text)
	}
}
