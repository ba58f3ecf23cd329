package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
	if _, err := runPlan("--table", "--n", "100"); err == nil {
		t.Error("--table took a size")
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

func TestPlanFlags(t *testing.T) {
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--questions", "10"}, "--n 10000"},
		{[]string{"--n", "100"}, "--questions 1000"},
		{[]string{"--n", "100", "--questions", "10", "--plot", "p.pdf"}, "neither an .svg nor a .png"},
		{[]string{"--n", "100", "--questions", "10", "--half-width", "1"}, "--half-width: "},
		{[]string{"--n", "1", "--questions", "10"}, "--n: "},
	} {
		if _, err := runPlan(c.args...); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %v", c.args, err)
		}
	}
}
