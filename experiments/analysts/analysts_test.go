package analysts

import (
	"math"
	"testing"

	"github.com/holdoutd/holdoutd/thresholdout"
)

// TestAttackReaches: on exact answers the last one is right as often as in theory, Phi(sqrt(k/n)) for log-odds weights and
// Phi(sqrt(2k/(pi n))) for signs, and the boosting attack's loss is 1-Phi(sqrt(k/(pi n))). The standard error of a mean of 40 runs
// with n = 1000 is 0.0025, so that 0.0125 and 0.004 for the formula's own error are five of them.
func TestAttackReaches(t *testing.T) {
	const n, k, runs = 1000, 1000, 40
	phi := func(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }
	for name, want := range map[string]float64{
		"single-adaptive":       phi(1) - 0.5,
		"single-adaptive, sign": phi(math.Sqrt(2/math.Pi)) - 0.5,
		"boosting":              phi(math.Sqrt(1/math.Pi)) - 0.5,
	} {
		p, err := thresholdout.Plan(thresholdout.Spec{Mechanism: thresholdout.Naive, N: n, Questions: k + 1})
		if err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for seed := range uint64(runs) {
			game, err := Play(named(t, name), NewHoldout(p, 0), seed, n, 0)
			if err != nil {
				t.Fatal(err)
			}
			sum += game.Last
		}
		if got := sum / runs; math.Abs(got-want) > 0.0165 {
			t.Errorf("%s moves the last answer by %.4f, theory says %.4f", name, got, want)
		}
	}
}

func named(t *testing.T, name string) Analyst {
	t.Helper()
	for _, a := range All {
		if a.Name == name {
			return a
		}
	}
	t.Fatalf("no analyst %q", name)
	return Analyst{}
}
