package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestNoneEscapes: packages and tests known for their goroutines are under the race detector, formulas are not, and a package that calls one which
// starts goroutines has a test under it or a reason.
func TestNoneEscapes(t *testing.T) {
	all, err := list()
	if err != nil {
		t.Fatal(err)
	}
	starting := map[string]bool{}
	for _, p := range all {
		starting[p.ImportPath] = p.starting
	}
	wholes := map[string]bool{
		"holdout/ledger/sqlite": true, "client": true, "queries/engine": true, "queries/kernel": true, "dataset": true, "dp/certify": true, "experiments/run": true,
		"holdout": false, "internal/api": false, "session": false, "thresholdout": false, "thresholdout/bounds": false, "dp/noise": false, "tests": false, "cmd/holdoutd": false,
	}
	parts := map[string][]string{
		"holdout":          {"TestStress", "TestVoidIsDebitedOnce", "TestLadderRace"},
		"tests/statements": {"TestEveryTypeAtOnce"},
		"internal/api":     {"TestManyAgents", "TestStreamsAreCounted"},
		"internal/turns":   {"TestManyGoroutines", "TestTurnPassesOn"},
	}
	needed := map[string]bool{} // reasons
	for _, p := range all {
		name := p.name()
		whole, some, err := p.racing()
		if err != nil {
			t.Fatal(err)
		}
		if want, ok := wholes[name]; ok && whole != want {
			t.Errorf("%s: under the detector as a whole: %v, want %v", name, whole, want)
		}
		for _, test := range parts[name] {
			if !slices.Contains(some, test) {
				t.Errorf("%s: %s is not under the detector", name, test)
			}
		}
		for _, test := range some {
			if test == "TestMain" || slow[test] != "" {
				t.Errorf("%s: %s is under the detector", name, test)
			}
		}
		if large[name] != "" && !p.starting {
			t.Errorf("%s starts no goroutines, and is said to be large", name)
		}
		calls := slices.ContainsFunc(p.Imports, func(other string) bool { return starting[other] })
		if !calls && !p.starting || whole || len(some) > 0 || slices.Contains(outside, name) {
			continue
		}
		if as := reasonOf(name); as != "" {
			needed[as] = true
			continue
		}
		t.Errorf("%s calls what starts goroutines: it needs a test under the detector, or a reason in quiet", name)
	}
	for name := range quiet {
		if !needed[name] {
			t.Errorf("%s is said to be quiet, and needs no reason", name)
		}
	}
}

// TestStarts: each way in which a file starts goroutines is seen, and nothing else is.
func TestStarts(t *testing.T) {
	for body, want := range map[string]bool{
		"go f()":                             true,
		"if true { go func() {}() }":         true,
		"var w sync.WaitGroup; w.Go(f)":      true,
		"g.TryGo(f)":                         true,
		"t.Parallel()":                       true,
		"b.RunParallel(nil)":                 true,
		"f(); /* go f() */ _ = `go f()`":     false,
		"var mu sync.Mutex; mu.Lock()":       false,
		"defer f()":                          false,
		"x := struct{ Go int }{1}; _ = x.Go": false,
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "a.go"), []byte("package a\nfunc a() { "+strings.ReplaceAll(body, ";", "\n")+" }"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := starts(dir, []string{"a.go"}); err != nil || got != want {
			t.Errorf("%s: %v, %v", body, got, err)
		}
	}
}
