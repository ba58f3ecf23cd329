package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	testprogram "github.com/holdoutd/holdoutd/tests/program"
)

// TestSmall: the program as make demo builds it says of what it leaves out how to get it, draws nothing, and plans as the whole one does.
func TestSmall(t *testing.T) {
	dir := t.TempDir()
	small := filepath.Join(dir, "small")
	if err := testprogram.Build(small, "-tags", "nomsgpack,nofigures,nopostgres"); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"experiment", "experiment list", "experiment freedman --quick", "experiment --help", "plan --n 1000 --plot " + filepath.Join(dir, "f.svg"),
		"ledger prepare postgres://owner@localhost/budgets", "serve --any-filesystem --ledger postgres://owner@localhost/budgets --addr 127.0.0.1:0 --data " + filepath.Join(dir, "data"),
		"verify " + filepath.Join(dir, "data") + " --ledger postgres://owner@localhost/budgets"} {
		cmd := exec.CommandContext(t.Context(), small, strings.Fields(line)...)
		out, err := cmd.CombinedOutput()
		if err == nil || cmd.ProcessState.ExitCode() != exitFailed || strings.Count(string(out), "\n") != 1 || !strings.Contains(string(out), "make build") {
			t.Errorf("%s: %v\n%s", line, err, out)
		}
	}
	if drawn, err := filepath.Glob(filepath.Join(dir, "*.svg")); err != nil || len(drawn) > 0 {
		t.Errorf("%v, it drew %v", err, drawn)
	}
	plan := []string{"plan", "--n", "20000", "--questions", "1000"}
	whole, err := exec.CommandContext(t.Context(), binary, plan...).Output()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), small, plan...).Output(); err != nil || string(out) != string(whole) {
		t.Errorf("%v\n%s\nthe whole program says\n%s", err, out, whole)
	}
}
