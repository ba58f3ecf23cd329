package bounds

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/holdoutd/holdoutd/internal/stattest"
)

// TestAttack runs the attack on the scheduled mechanism itself: the largest error of all answers is beyond what Attack says in 5% of runs
// (false alarm 1e-6), and never, in so few, beyond the bound.
func TestAttack(t *testing.T) {
	const n, k, runs, beta = 400, 200, 600, 0.05
	bound, err := LastExact(n, k, beta)
	if err != nil {
		t.Fatal(err)
	}
	reached, err := Attack(n, k, beta, bound.Sigma)
	if err != nil {
		t.Fatal(err)
	}
	if reached >= bound.HalfWidth {
		t.Errorf("the attack reaches %v, the bound is %v", reached, bound.HalfWidth)
	}
	r := rand.New(rand.NewChaCha8([32]byte{41}))
	beyond, missed := 0, 0
	for range runs {
		score := make([]float64, n)
		largest := 0.0
		for j := int64(1); j < k; j++ { // whether a column agrees with the label, at each row
			agrees := make([]float64, n)
			mean := 0.0
			for l := range agrees {
				agrees[l] = float64(2*r.IntN(2) - 1)
				mean += (1 + agrees[l]) / (2 * n)
			}
			sigma := ScheduledSigma(bound.Sigma, j, k)
			answer := mean + sigma*r.NormFloat64()
			largest = max(largest, math.Abs(answer-0.5))
			weight := (answer - 0.5) / (sigma*sigma + 1/(4.0*n))
			for l := range score {
				score[l] += weight * agrees[l]
			}
		}
		right := 0.0
		for _, s := range score {
			if s > 0 {
				right++
			}
		}
		last := right / n
		largest = max(largest, math.Abs(last-0.5))
		if largest > reached {
			beyond++
		}
		if largest > bound.HalfWidth {
			missed++
		}
	}
	if err := stattest.Frequency(beyond, runs, beta, 1e-6); err != nil {
		t.Errorf("beyond %v: %v", reached, err)
	}
	if missed > 0 {
		t.Errorf("%d of %d runs miss", missed, runs)
	}
	t.Logf("%d of %d runs are beyond the attack's quantile", beyond, runs)
	if _, err := Attack(1, 1, beta, 0.1); err == nil {
		t.Error("one unit was accepted")
	}
}

// TestLevels: the half-width of noise that is planned, at its own beta, is the plan's; it widens as beta falls.
func TestLevels(t *testing.T) {
	const n, k = 10_000, 100
	schedule, err := AdaptiveHoeffdingScheduled(n, k, 0.05)
	if err != nil {
		t.Fatal(err)
	}
	rounds, err := AdaptiveHoeffdingRounds(n, k, 5, 0.05)
	if err != nil {
		t.Fatal(err)
	}
	constantNoise, err := AdaptiveHoeffding(n, k, 0.05)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		planned float64
		at      func(beta float64) (float64, error)
	}{
		"schedule": {schedule.HalfWidth, func(beta float64) (float64, error) { return ScheduledNoise(n, k, beta, schedule.Sigma) }},
		"constant": {constantNoise.HalfWidth, func(beta float64) (float64, error) { return GivenNoise(n, k, beta, constantNoise.Sigma) }},
		"rounds":   {rounds.HalfWidth, func(beta float64) (float64, error) { return RoundsNoise(n, k, beta, rounds.Sigma) }},
	} {
		if w, err := c.at(0.05); err != nil || math.Abs(w/c.planned-1) > 1e-8 {
			t.Errorf("%s: %v, %v; planned %v", name, w, err, c.planned)
		}
		last := 0.0
		for _, beta := range []float64{0.5, 0.05, 1e-3, 1e-6, 1e-9} {
			w, err := c.at(beta)
			if again, _ := c.at(beta); err != nil || !(w > last) || again != w {
				t.Errorf("%s: %v at %v, %v before, again %v, %v", name, w, beta, last, again, err)
			}
			last = w
		}
		if _, err := c.at(0); err == nil {
			t.Errorf("%s: beta 0 was accepted", name)
		}
	}
	if _, err := GivenNoise(n, k, 0.05, 0); err == nil {
		t.Error("no noise was accepted")
	}
	if _, err := RoundsNoise(n, k, 0.05, []float64{0.1, 0.1}); err == nil {
		t.Error("a last round with noise was accepted")
	}
}
