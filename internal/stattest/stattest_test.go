package stattest

import (
	"flag"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"
)

// TestFalseAlarms: under the hypothesis the checks fail about as often as they say, and under another they do fail.
func TestFalseAlarms(t *testing.T) {
	r := rand.New(rand.NewChaCha8([32]byte{1}))
	const runs, size, alarm = 2000, 1000, 0.05
	var chi, ks, most int
	for range runs {
		counts, expected := make([]int, 8), make([]float64, 8)
		sample := make([]float64, size)
		events := 0
		for i := range sample {
			sample[i] = r.NormFloat64()
			counts[r.IntN(8)]++
			if r.Float64() < 0.1 {
				events++
			}
		}
		for i := range expected {
			expected[i] = size / 8.0
		}
		chi += failed(ChiSquare(counts, expected, alarm))
		ks += failed(Kolmogorov(sample, distuv.UnitNormal.CDF, alarm))
		most += failed(AtMost(events, size, 0.1, alarm))
		for i := range sample {
			sample[i] *= 2
		}
		if Kolmogorov(sample, distuv.UnitNormal.CDF, 1e-6) == nil || AtMost(3*events, size, 0.1, 1e-6) == nil {
			t.Fatal("a sample twice as wide, or three times the events, went unnoticed")
		}
	}
	// 5% of 2000 is 100; six standard deviations are 58.
	if chi > 158 || ks > 158 || most > 158 || chi < 42 {
		t.Errorf("false alarms in %d runs at 5%%: chi-square %d, Kolmogorov %d, binomial %d", runs, chi, ks, most)
	}
}

func failed(err error) int {
	if err != nil {
		return 1
	}
	return 0
}

// TestFurther: turns draw other cases, also with a seed that is set, and a turn draws what it drew before. It would notice turns that are all the first.
func TestFurther(t *testing.T) {
	before := flag.Lookup("rapid.seed").Value.String()
	if err := flag.Set("rapid.seed", "1"); err != nil {
		t.Fatal(err)
	}
	defer flag.Set("rapid.seed", before)
	drawn := func(turn int) (all []uint64) {
		rapid.Check(t, Further(turn, func(t *rapid.T) { all = append(all, rapid.Uint64().Draw(t, "n")) }))
		return all
	}
	first := drawn(0)
	for turn := range 3 {
		if got := drawn(turn); slices.Equal(got, first) != (turn == 0) || !slices.Equal(got, drawn(turn)) {
			t.Errorf("turn %d draws %v, the first one %v", turn, got[:3], first[:3])
		}
	}
}
