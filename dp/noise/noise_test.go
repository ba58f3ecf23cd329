package noise

import (
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/holdoutd/holdoutd/internal/stattest"
)

// falseAlarm of each statistical check here; seeds are fixed, so a check that passes keeps passing.
const falseAlarm = 1e-6

func draws(n int, draw func() int64) []int64 {
	sample := make([]int64, n)
	for i := range sample {
		sample[i] = draw()
	}
	return sample
}

// normalLaw checks a sample against the rounding of N(0, scale^2): every integer where there are few, the distribution
// function where there are many.
func normalLaw(sample []int64, scale float64) error {
	if scale > 1000 {
		x := make([]float64, len(sample))
		for i, v := range sample {
			x[i] = float64(v) / scale
		}
		return stattest.Kolmogorov(x, distuv.UnitNormal.CDF, falseAlarm)
	}
	cdf := func(v float64) float64 { return distuv.UnitNormal.CDF(v / scale) }
	return integerLaw(sample, func(v int64) float64 { return cdf(float64(v)+0.5) - cdf(float64(v)-0.5) })
}

func laplaceLaw(sample []int64, scale float64) error {
	q := math.Exp(-1 / scale)
	return integerLaw(sample, func(v int64) float64 { return (1 - q) / (1 + q) * math.Pow(q, math.Abs(float64(v))) })
}

// integerLaw is a chi-square test over the integers that are expected at least 20 times, and all others together.
func integerLaw(sample []int64, mass func(int64) float64) error {
	counts := map[int64]int{}
	for _, v := range sample {
		counts[v]++
	}
	n := float64(len(sample))
	var observed []int
	var expected []float64
	rest, restMass := len(sample), 1.0
	for v := int64(-10000); v <= 10000; v++ {
		if p := mass(v); p*n >= 20 {
			observed, expected = append(observed, counts[v]), append(expected, p*n)
			rest -= counts[v]
			restMass -= p
		}
	}
	if restMass*n >= 20 {
		observed, expected = append(observed, rest), append(expected, restMass*n)
	} else if rest > 20+int(10*restMass*n) {
		return fmt.Errorf("%d of %d where %.3g are expected", rest, len(sample), restMass*n)
	}
	return stattest.ChiSquare(observed, expected, falseAlarm)
}

func TestRoundedNormalLaw(t *testing.T) {
	for i, scale := range []float64{0.3, 1, 1.75, 20, 1e9, 0x1p58} {
		s := Seeded(uint64(i) + 100)
		sample := draws(200_000, func() int64 { return RoundedNormal(s, scale) })
		if err := normalLaw(sample, scale); err != nil {
			t.Errorf("scale %v: %v", scale, err)
		}
		if normalLaw(sample, scale*1.05) == nil {
			t.Errorf("scale %v: noise 5%% too narrow went unnoticed", scale)
		}
	}
}

func TestDiscreteLaplaceLaw(t *testing.T) {
	for i, scale := range []uint64{1, 2, 15, 200} {
		s := Seeded(uint64(i) + 200)
		sample := draws(200_000, func() int64 { return DiscreteLaplace(s, scale) })
		if err := laplaceLaw(sample, float64(scale)); err != nil {
			t.Errorf("scale %v: %v", scale, err)
		}
		if laplaceLaw(sample, float64(scale)*1.05) == nil {
			t.Errorf("scale %v: noise 5%% too narrow went unnoticed", scale)
		}
	}
}

// TestLargeLaplace checks the scale where steps are far below a float64's resolution of the sum.
func TestLargeLaplace(t *testing.T) {
	s := Seeded(300)
	const scale = uint64(1) << 50
	x := make([]float64, 200_000)
	for i := range x {
		x[i] = float64(DiscreteLaplace(s, scale)) / float64(scale)
	}
	if err := stattest.Kolmogorov(x, distuv.Laplace{Mu: 0, Scale: 1}.CDF, falseAlarm); err != nil {
		t.Error(err)
	}
}

func TestSaturation(t *testing.T) {
	s := Seeded(400)
	for range 2000 {
		if v := DiscreteLaplace(s, 1<<62); v > Saturation || v < -Saturation {
			t.Fatalf("%d is beyond saturation", v)
		}
		if v := RoundedNormal(s, MaxScale); v > Saturation || v < -Saturation {
			t.Fatalf("%d is beyond saturation", v)
		}
	}
}

func TestBelowIsUniform(t *testing.T) {
	s := Seeded(500)
	counts, expected := make([]int, 7), make([]float64, 7)
	for range 70_000 {
		counts[s.Below(7)]++
	}
	for i := range expected {
		expected[i] = 10_000
	}
	if err := stattest.ChiSquare(counts, expected, falseAlarm); err != nil {
		t.Error(err)
	}
}

// TestStreamsAreForEver: recorded answers are replayed, but an answer that is recomputed after a crash must be the one
// that was about to be recorded. A change of any of these values breaks that.
func TestStreamsAreForEver(t *testing.T) {
	key := Key{0: 1, 31: 2}
	s := key.Stream("release", []byte("a"), []byte("b"))
	got := fmt.Sprint(s.Uint64(), RoundedNormal(s, 1e6), RoundedNormal(s, 1e15), DiscreteLaplace(s, 1e6), s.Below(1000))
	const want = "11430849368399653864 -474669 384395283184127 -650854 770"
	if got != want {
		t.Errorf("the stream is %s, it was %s", got, want)
	}
}

// TestStreamsDiffer: label and parts cannot be confused with each other.
func TestStreamsDiffer(t *testing.T) {
	key := Key{1}
	seen := map[uint64]string{}
	for name, s := range map[string]*Stream{
		"ab,c":      key.Stream("x", []byte("ab"), []byte("c")),
		"a,bc":      key.Stream("x", []byte("a"), []byte("bc")),
		"abc":       key.Stream("x", []byte("abc")),
		"label":     key.Stream("xa", []byte("b"), []byte("c")),
		"empty":     key.Stream("x", []byte("abc"), nil),
		"other key": Key{2}.Stream("x", []byte("abc")),
	} {
		first := s.Uint64()
		if other, twice := seen[first]; twice {
			t.Errorf("%s and %s have the same noise", name, other)
		}
		seen[first] = name
	}
}

func BenchmarkRoundedNormal(b *testing.B) {
	s := Seeded(1)
	for b.Loop() {
		RoundedNormal(s, 1e12)
	}
}

func BenchmarkDiscreteLaplace(b *testing.B) {
	s := Seeded(1)
	for b.Loop() {
		DiscreteLaplace(s, 1e12)
	}
}

func ExampleKey_Stream() {
	var key Key // 32 secret random bytes
	a := RoundedNormal(key.Stream("release", []byte("question 1")), 1e6)
	b := RoundedNormal(key.Stream("release", []byte("question 1")), 1e6)
	fmt.Println(a == b)
	// Output: true
}
