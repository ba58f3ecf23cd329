package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestNoneEscapes: packages known for their goroutines are tested under the race detector, for their own, for their tests' and for those of
// what they call; packages of formulas are not. A rule that misses one of these kinds, or a build tag's files, turns it red.
func TestNoneEscapes(t *testing.T) {
	all, err := list()
	if err != nil {
		t.Fatal(err)
	}
	racing := concurrent(all)
	for name, want := range map[string]bool{
		"holdout": true, "holdout/ledger/sqlite": true, "internal/api": true, "internal/turns": true, "cmd/holdoutd": true, "client": true,
		"queries/engine": true, "queries/kernel": true, "dataset": true, "dp/certify": true, "experiments/run": true, "tests": true,
		"session":              true, // calls queries/engine
		"experiments/coverage": true, // hands functions to experiments/run
		"thresholdout":         false, "thresholdout/bounds": false, "dp/noise": false, "dp/account": false,
	} {
		if got, ok := racing[module+name]; !ok || got != want {
			t.Errorf("%s: %v, there %v; want %v", name, got, ok, want)
		}
	}
	if len(racing) != len(all) {
		t.Errorf("%d of %d packages have their place", len(racing), len(all))
	}
}

// TestSomeOfTheLarge: of a large package the tests that start goroutines are under the detector, and those of a file that says so; each large package is concurrent.
func TestSomeOfTheLarge(t *testing.T) {
	all, err := list()
	if err != nil {
		t.Fatal(err)
	}
	racing, seen := concurrent(all), 0
	for _, p := range all {
		if large[p.name()] == "" {
			continue
		}
		seen++
		if !racing[p.ImportPath] {
			t.Errorf("%s starts no goroutines, and is said to be large", p.name())
		}
		names, err := p.racingTests()
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range map[string][]string{"holdout": {"TestStress", "TestVoidIsDebitedOnce", "TestLadderRace"}, "internal/api": {"TestManyAgents", "TestStreamsAreCounted"}}[p.name()] {
			if !slices.Contains(names, name) {
				t.Errorf("%s: %s is not under the detector", p.name(), name)
			}
		}
		if slices.Contains(names, "TestMain") {
			t.Error("TestMain is no test")
		}
	}
	if seen != len(large) {
		t.Errorf("%d of %d large packages exist", seen, len(large))
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
