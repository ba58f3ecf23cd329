package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/session/workload"
	"github.com/holdoutd/holdoutd/thresholdout/compare"
)

func runPlan(args ...string) (string, error) {
	cmd := planCommand()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(args)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	err := cmd.Execute()
	return out.String(), err
}

func TestPlanPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/BOUNDS.md")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := runPlan("--table"); err != nil || got != string(page) {
		t.Errorf("the page differs from docs/BOUNDS.md, %v", err)
	}
	choosing, err := os.ReadFile("../../docs/CHOOSING.md")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := runPlan("--answers"); err != nil || len(got) < 500 || !strings.Contains(string(choosing), got) {
		t.Errorf("docs/CHOOSING.md has another table of answers, %v", err)
	}
	for _, flag := range []string{"--table", "--answers"} {
		if _, err := runPlan(flag, "--n", "100"); err == nil {
			t.Errorf("%s took a size", flag)
		}
	}
}

func TestPlanPrints(t *testing.T) {
	dir := t.TempDir()
	svg, png := filepath.Join(dir, "p.svg"), filepath.Join(dir, "p.png")
	text, err := runPlan("--n", "20000", "--half-width", "0.1", "--rounds", "3", "--training", "20000", "--plot", svg, "--plot", png)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"questions about a holdout of 20,000 units, 95% confidence", "splitting", "52", "QUESTIONS AT ±0.1", "recommended"} {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in %s", part, text)
		}
	}
	drawn, err := os.ReadFile(svg)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"sample splitting", "guess and check*", "in 3 rounds", "number of questions", "sans-serif"} {
		if !bytes.Contains(drawn, []byte(part)) {
			t.Errorf("no %q in the figure", part)
		}
	}
	if raster, err := os.ReadFile(png); err != nil || !bytes.HasPrefix(raster, []byte("\x89PNG")) {
		t.Errorf("no PNG: %v", err)
	}
	text, err = runPlan("--n", "20000", "--questions", "100", "--json")
	var report compare.Report
	if err != nil || json.Unmarshal([]byte(text), &report) != nil || report.Questions != 100 || len(report.Methods) == 0 {
		t.Errorf("%s, %v", text, err)
	}
}

func TestPlanOfAWorkload(t *testing.T) {
	text, err := runPlan("--n", "20000", "--training", "40000", "--workload", "6 accuracy, 2 groups of 3")
	for _, part := range []string{"* guess_and_check: questions=16 tokens=16", "gaussian, rounds=1: questions=14", "groups of 3 in 0..1", "create the holdout with mechanism=guess_and_check&questions=16", "max_questions=5"} {
		if err != nil || !strings.Contains(text, part) {
			t.Errorf("no %q in %v %s", part, err, text)
		}
	}
	text, err = runPlan("--n", "20000", "--training", "40000", "--workload", "6 accuracy, 2 groups of 3", "--json")
	var report struct {
		compare.Report
		Workload workload.Estimate
	}
	if err != nil || json.Unmarshal([]byte(text), &report) != nil || report.Questions != 16 || len(report.Workload.Plans) < 4 || report.Workload.Items[1].Count != 2 {
		t.Errorf("%v, %s", err, text)
	}
}

// TestPlanOfDefaults: without questions the plan is about the budget that a holdout of this size gets, and says so.
func TestPlanOfDefaults(t *testing.T) {
	text, err := runPlan("--n", "1500", "--training", "3500")
	if err != nil || !strings.Contains(text, "100 questions about a holdout of 1,500 units") || !strings.Contains(text, "no number of questions was named: there are 100, with 10 tokens") {
		t.Errorf("%v: %s", err, text)
	}
}

func TestPlanFlags(t *testing.T) {
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--questions", "10"}, "--n 10000"},
		{[]string{"--n", "100", "--questions", "-1"}, "--questions: "},
		{[]string{"--n", "100", "--questions", "10", "--plot", "p.pdf"}, "neither an .svg nor a .png"},
		{[]string{"--n", "100", "--questions", "10", "--half-width", "1"}, "--half-width: "},
		{[]string{"--n", "1", "--questions", "10"}, "--n: "},
		{[]string{"--n", "1", "--workload", "auc"}, "--n: "},
		{[]string{"--n", "100", "--workload", "5 acuracy"}, "--workload: "},
	} {
		if _, err := runPlan(c.args...); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %v", c.args, err)
		}
	}
}
