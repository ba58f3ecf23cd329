package main

import (
	"encoding/json"
	"testing"

	"github.com/holdoutd/holdoutd/internal/soak"
)

// TestSoak is a short soak of the real program, with kills: books balance and nothing is left behind. It is what the faults of
// tests/faults/soak.txt are planted for. Whether memory is flat takes minutes: holdoutd bench load.
func TestSoak(t *testing.T) {
	out, errs, code := holdoutd(t, "bench", "load", "--time", "8s", "--clients", "6", "--disturb", "1500ms", "--seed", "20261123", "--json")
	var r soak.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("exit code %d: %v\n%s", code, err, errs)
	}
	for _, wrong := range r.Wrong {
		t.Error(wrong)
	}
	if (code == 0) != (len(r.Wrong) == 0) {
		t.Errorf("exit code %d with %d broken promises", code, len(r.Wrong))
	}
	if r.Disturbed["kill"] == 0 || len(r.Books) != 5 {
		t.Errorf("%v disturbances, %d holdouts: the run shows nothing", r.Disturbed, len(r.Books))
	}
	for _, b := range r.Books {
		if b.Answers == 0 || b.InDoubt != 0 {
			t.Errorf("%+v", b)
		}
	}
	for _, k := range r.Kinds {
		if k.Done == 0 && k.Kind != "upload" && k.Kind != "again" {
			t.Errorf("no %s was done: %v", k.Kind, k.Not)
		}
	}
}
