package main

import (
	"encoding/json"
	"testing"
)

// TestBench measures for a moment. It would notice a bench that finds nothing to ask about, as on the card of a holdout that nobody has looked at.
func TestBench(t *testing.T) {
	out, errs, code := holdoutd(t, "bench", "--clients", "1,2", "--batch", "1,5", "--time", "200ms", "--json")
	if code != 0 {
		t.Fatalf("%d: %s", code, errs)
	}
	var said struct {
		Measurements []benchResult `json:"measurements"`
	}
	if err := json.Unmarshal([]byte(out), &said); err != nil || len(said.Measurements) != 4 {
		t.Fatalf("%v: %s", err, out)
	}
	for _, m := range said.Measurements {
		if m.Answers <= 0 || m.P50 <= 0 || m.P99 < m.P50 {
			t.Errorf("%+v", m)
		}
	}
}
