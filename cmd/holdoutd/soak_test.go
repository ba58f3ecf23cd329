package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/holdout/ledger/postgres/pgtest"
)

// soakedWell runs a short soak, which must find everything in order, and must have done what it is for.
func soakedWell(t *testing.T, flags ...string) {
	t.Helper()
	out, errs := done(t, append([]string{"bench", "soak", "--clients", "6", "--json"}, flags...)...)
	var r soakResult
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v: %s%s", err, out, errs)
	}
	t.Logf("%+v", r)
	if r.Kills < 1 || r.Answers < soakSmall || r.Replays < r.Answers-soakSmall || r.Refused == 0 || r.Entries < r.Answers+3 || r.Memory[2] == 0 {
		t.Errorf("the soak did too little: %+v", r)
	}
}

// TestSoak: a short soak of the real server, which is killed meanwhile, finds everything in order.
func TestSoak(t *testing.T) { soakedWell(t, "--time", "4s", "--kill", "1s") }

// TestSoakShared is TestSoak of two servers on one ledger.
func TestSoakShared(t *testing.T) {
	soakedWell(t, "--time", "5s", "--kill", "1500ms", "--servers", "2", "--ledger", pgtest.Shared(t).New(t).Address())
}

// TestSoakMemory: memory that grows with time is told from what a collector leaves, also where the beginning took more than the middle.
func TestSoakMemory(t *testing.T) {
	for _, c := range []struct {
		megabytes [3]int64
		grows     bool
	}{{[3]int64{100, 110, 115}, false}, {[3]int64{160, 90, 170}, false}, {[3]int64{100, 200, 300}, true}, {[3]int64{1000, 1100, 1300}, false}, {[3]int64{1000, 1200, 1600}, true}, {[3]int64{0, 0, 0}, false}} {
		if err := grown([]int64{c.megabytes[0] << 20, c.megabytes[1] << 20, c.megabytes[2] << 20}); (err != nil) != c.grows {
			t.Errorf("%v: %v", c.megabytes, err)
		}
	}
}

// TestSoakFlags: what makes no sense is refused, and nothing is started.
func TestSoakFlags(t *testing.T) {
	for flags, want := range map[string]string{
		"--servers 2":         "name it with --ledger",
		"--time 0s":           "must be more than 0",
		"--clients 0":         "must be more than 0",
		"--kill -1s":          "must be more than 0",
		"--ledger @/no/where": "cannot read",
	} {
		if out, errs, code := holdoutd(t, append([]string{"bench", "soak"}, strings.Fields(flags)...)...); code == 0 || !strings.Contains(errs, want) {
			t.Errorf("%s: %d %s%s", flags, code, out, errs)
		}
	}
}
