package selection

import (
	"math"
	"slices"
	"testing"
)

// TestPlay holds four plays of each kind against what the experiment is known for. It notices sides that were swapped, fresh data that is not, and a
// signal that is not there. The seeds are fixed; an accuracy of 4,000 rows has a deviation of 0.008, and the limits are five of a mean of four away.
func TestPlay(t *testing.T) {
	mean := map[string]float64{}
	for seed := range uint64(4) {
		for _, withSignal := range []bool{false, true} {
			rounds := Play(seed, withSignal)
			if len(rounds) != PlayedRounds || rounds[0].Columns != 1 || rounds[PlayedRounds-1].Columns != PlayedRounds {
				t.Fatalf("%d rounds, from %d on", len(rounds), rounds[0].Columns)
			}
			if seed == 0 && !slices.Equal(rounds, Play(seed, withSignal)) {
				t.Fatal("the same seed plays something else")
			}
			last := rounds[len(rounds)-1]
			if withSignal {
				mean["signal, fresh"] += rounds[9].Through.Fresh / 4
				continue
			}
			mean["standard, told"] += last.Standard.Told / 4
			mean["standard, fresh"] += last.Standard.Fresh / 4
			mean["through, off"] += math.Abs(last.Through.Told-last.Through.Fresh) / 4
		}
	}
	for _, c := range []struct {
		what      string
		low, high float64
	}{
		{"standard, told", 0.60, 0.66}, {"standard, fresh", 0.48, 0.52}, {"through, off", 0, 0.05}, {"signal, fresh", 0.56, 0.63},
	} {
		if got := mean[c.what]; got < c.low || got > c.high {
			t.Errorf("%s: %v, want %v to %v", c.what, got, c.low, c.high)
		}
	}
}
