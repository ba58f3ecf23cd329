package leaderboard

import (
	"math"
	"testing"
)

// TestLadderBoard: the example of the authors' program, labels 1 0 1 1 1 0, and what the attack keeps of it.
func TestLadderBoard(t *testing.T) {
	b := &ladderBoard{n: 6}
	for _, c := range []struct {
		errors byte // one bit a label, the first lowest
		shown  float64
		keep   bool
	}{
		{0b011101, 4.0 / 6, false}, // 000000: on top, but worse than a coin
		{0b011100, 4.0 / 6, false}, // 100000: better by less than a standard error
		{0b011000, 2.0 / 6, true},  // 101000
	} {
		shown, _, keep, err := b.submit([]byte{c.errors, 0, 0, 0, 0, 0, 0, 0}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(shown-c.shown) > 1e-12 || keep != c.keep {
			t.Errorf("%06b: shown %v, kept %v; want %v, %v", c.errors, shown, keep, c.shown, c.keep)
		}
	}
}

// TestTheory: the published formula at the sizes of the reference.
func TestTheory(t *testing.T) {
	c := &cell{method: boardExact, n: 4000}
	for kept, want := range map[float64]float64{50: 0.46445901676098456, 200: 0.42919955131065965} {
		if got := c.theory(kept); math.Abs(got-want) > 1e-9 {
			t.Errorf("%v kept: %v, want %v", kept, got, want)
		}
	}
}

// TestBits: labels beyond the last are never errors, whatever the size.
func TestBits(t *testing.T) {
	for _, n := range []int{3, 63, 64, 65, 100} {
		c := &cell{method: boardLadder, n: n, k: 20}
		r, err := c.attack(7)
		if err != nil {
			t.Fatal(err)
		}
		if r.Final < 0 || r.Final > 1 || r.Shown > 1 || math.Abs(r.Final*float64(n)-math.Round(r.Final*float64(n))) > 1e-9 {
			t.Errorf("%d labels: final loss %v, shown %v", n, r.Final, r.Shown)
		}
	}
}
