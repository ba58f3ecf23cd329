package main

import (
	"testing"
	"time"
)

// TestPace: the time left is that of the pieces that are missing at the pace of this session: what an earlier one did does not count.
func TestPace(t *testing.T) {
	var p pace
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		part        string
		done, total int
		after       time.Duration
		begins      bool
		want        string
	}{
		{"games", 40, 100, 0, true, ""},
		{"games", 50, 100, 20 * time.Second, false, ", about 1m40s left"},
		{"games", 99, 100, 118 * time.Second, false, ", about 2s left"},
		{"games", 100, 100, 120 * time.Second, false, ""},
		{"bounds", 1, 3, 130 * time.Second, true, ""},
		{"bounds", 2, 3, 130 * time.Second, false, ", about 1s left"},
	} {
		if begins := p.step(c.part, c.done, c.total, start.Add(c.after)); begins != c.begins || p.text() != c.want {
			t.Errorf("%s, %d of %d: begins %v, %q, want %q", c.part, c.done, c.total, begins, p.text(), c.want)
		}
	}
}
