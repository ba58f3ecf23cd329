package noise

import (
	"math"
	"testing"

	"github.com/holdoutd/holdoutd/internal/stattest"
)

// softmaxLaw checks how often each index came up against probabilities proportional to e^{-loss/scale}; those that are expected fewer
// than 20 times are taken together.
func softmaxLaw(counts []int, losses []uint64, scale float64) error {
	total, draws := 0.0, 0
	for i, l := range losses {
		total += math.Exp(-float64(l) / scale)
		draws += counts[i]
	}
	var observed []int
	var expected []float64
	rest, restExpected := 0, 0.0
	for i, l := range losses {
		if e := float64(draws) * math.Exp(-float64(l)/scale) / total; e >= 20 {
			observed, expected = append(observed, counts[i]), append(expected, e)
		} else {
			rest, restExpected = rest+counts[i], restExpected+e
		}
	}
	if restExpected >= 20 {
		observed, expected = append(observed, rest), append(expected, restExpected)
	} else if err := stattest.AtMost(rest, draws, min(1, restExpected/float64(draws)+1e-12), falseAlarm); err != nil {
		return err
	}
	return stattest.ChiSquare(observed, expected, falseAlarm)
}

// TestExponentialLaw: indices come up as the softmax of their losses says (false alarm 1e-6 each), and a scale a tenth off is noticed.
func TestExponentialLaw(t *testing.T) {
	draw := func(seed uint64, losses []uint64, scale uint64) []int {
		s, counts := Seeded(seed), make([]int, len(losses))
		for range 200_000 {
			counts[Exponential(s, losses, scale)]++
		}
		return counts
	}
	for i, c := range []struct {
		losses []uint64
		scale  uint64
	}{
		{[]uint64{0, 1, 2, 3, 10}, 1},
		{[]uint64{5, 0, 3, 17, 8, 8}, 7},
		{[]uint64{0, 1 << 40, 3 << 40, 1 << 42}, 1 << 41},
		{[]uint64{1 << 61, 0, 1 << 60}, 1 << 62},
	} {
		counts := draw(uint64(i)+900, c.losses, c.scale)
		if err := softmaxLaw(counts, c.losses, float64(c.scale)); err != nil {
			t.Errorf("losses %v, scale %d: %v", c.losses, c.scale, err)
		}
		if softmaxLaw(counts, c.losses, 1.1*float64(c.scale)) == nil {
			t.Errorf("losses %v: a scale of %d where %v was meant went unnoticed", c.losses, c.scale, 1.1*float64(c.scale))
		}
	}
	if err := softmaxLaw(draw(910, []uint64{0, 0, 0}, 1), []uint64{0, 0, 0}, 1); err != nil {
		t.Errorf("equal losses: %v", err)
	}
	if counts := draw(911, []uint64{0, 1 << 61}, 1<<50); counts[1] != 0 {
		t.Errorf("a loss of 2048 scales came up %d times", counts[1])
	}
}

// TestExponentialLimits: scales outside of the range are a programmer's error.
func TestExponentialLimits(t *testing.T) {
	for _, scale := range []uint64{0, 1<<62 + 1} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("scale %d was accepted", scale)
				}
			}()
			Exponential(Seeded(1), []uint64{0}, scale)
		}()
	}
	if i := Exponential(Seeded(1), []uint64{0}, 1<<62); i != 0 {
		t.Errorf("the only candidate is 0, not %d", i)
	}
}
