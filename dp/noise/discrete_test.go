package noise

import (
	"fmt"
	"math"
	"math/big"
	"testing"

	"github.com/holdoutd/holdoutd/internal/stattest"
)

// massOf is the law with these weights of |x|, normalised over ±reach, beyond which weights are nothing.
func massOf(reach int, weight func(x int) float64) func(int64) float64 {
	total := weight(0)
	for x := 1; x <= reach; x++ {
		total += 2 * weight(x)
	}
	return func(x int64) float64 {
		if x < 0 {
			x = -x
		}
		if x > int64(reach) {
			return 0
		}
		return weight(int(x)) / total
	}
}

func gaussianMass(variance float64) func(int64) float64 {
	return massOf(int(40*math.Sqrt(variance))+20, func(x int) float64 { return math.Exp(-float64(x) * float64(x) / (2 * variance)) })
}

// TestDiscreteGaussianLaw notices a variance that is 10% too small, and one that is the continuous, rounded Gaussian's at a variance of 1/4 (false alarm 1e-6 each).
func TestDiscreteGaussianLaw(t *testing.T) {
	for i, v := range []struct{ num, den uint64 }{{1, 4}, {1, 1}, {5, 2}, {4, 1}, {100, 1}, {12345, 7}} {
		s := Seeded(uint64(i) + 600)
		variance := float64(v.num) / float64(v.den)
		sample := draws(100_000, func() int64 { return DiscreteGaussian(s, v.num, v.den) })
		if err := integerLaw(sample, gaussianMass(variance)); err != nil {
			t.Errorf("variance %v: %v", variance, err)
		}
		if integerLaw(sample, gaussianMass(variance*1.1)) == nil {
			t.Errorf("variance %v: one that is 10%% too small went unnoticed", variance)
		}
		if v.den == 4 && normalLaw(sample, math.Sqrt(variance)) == nil {
			t.Error("the rounded normal law and the discrete one were not told apart")
		}
	}
}

// TestDiscreteGaussianNumbers: probabilities at a variance of 4 that were computed elsewhere (testdata: FORMULAS' discrete_gaussian_pmf), and the variance at 1.
func TestDiscreteGaussianNumbers(t *testing.T) {
	mass := gaussianMass(4)
	for x, want := range map[int64]float64{0: 0.19947114020071635, 1: 0.17603266338214976, 4: 0.02699548325659403} {
		if got := mass(x); math.Abs(got-want) > 1e-12 {
			t.Errorf("P(%d) = %v, want %v", x, got, want)
		}
	}
	variance := 0.0
	for x := int64(-40); x <= 40; x++ {
		variance += float64(x*x) * gaussianMass(1)(x)
	}
	if math.Abs(variance-.9999997888) > 1e-9 {
		t.Errorf("the variance is %v", variance)
	}
}

// TestLargeGaussian: where integers are many the law is the normal one.
func TestLargeGaussian(t *testing.T) {
	s := Seeded(620)
	sample := draws(20_000, func() int64 { return DiscreteGaussian(s, 1<<60, 1) })
	if err := normalLaw(sample, 0x1p30); err != nil {
		t.Error(err)
	}
	if normalLaw(sample, 0x1.2p30) == nil {
		t.Error("a scale that is 12% too large went unnoticed")
	}
}

func geometricMass(eps float64) func(int64) float64 {
	return massOf(int(60/eps)+2, func(x int) float64 { return math.Exp(-eps * float64(x)) })
}

// TestDrawsForScales: noise is drawn for scales from which it does not get near what an int64 holds, and for no sensitivity of 0 or epsilon that is none.
func TestDrawsForScales(t *testing.T) {
	for _, c := range []struct {
		e           Epsilon
		sensitivity uint64
		want        bool
	}{
		{Epsilon{1, 1}, 1, true}, {Epsilon{1, 1}, 0, false}, {Epsilon{}, 1, false}, {Epsilon{1, 0}, 1, false}, {Epsilon{0, 1}, 1, false},
		{Epsilon{1, 1}, 1 << 54, true}, {Epsilon{1, 1}, 1<<54 + 1, false}, {Epsilon{1, 1 << 30}, 1 << 24, true}, {Epsilon{1, 1 << 30}, 1<<24 + 1, false},
		{Epsilon{3, 1}, 3 << 54, true}, {Epsilon{3, 1}, 3<<54 + 1, false}, {Epsilon{64, 1}, 1 << 60, true}, {Epsilon{257, 1}, 1 << 62, true}, {Epsilon{257, 1}, 1<<62 + 1, false}, {Epsilon{1, 1 << 54}, 1 << 10, false},
	} {
		if got := c.e.Draws(c.sensitivity); got != c.want {
			t.Errorf("epsilon %d/%d for a sensitivity of %d: %v, want %v", c.e.Num, c.e.Den, c.sensitivity, got, c.want)
		}
	}
}

// TestTwoSidedGeometricLaw notices an epsilon that is 5% larger than it should be.
func TestTwoSidedGeometricLaw(t *testing.T) {
	for i, e := range []struct{ num, den uint64 }{{1, 1}, {3, 1}, {1, 10}, {7, 5}, {3 << 44, 1 << 46}} {
		s := Seeded(uint64(i) + 640)
		eps := float64(e.num) / float64(e.den)
		sample := draws(200_000, func() int64 { return TwoSidedGeometric(s, e.num, e.den) })
		if err := integerLaw(sample, geometricMass(eps)); err != nil {
			t.Errorf("epsilon %v: %v", eps, err)
		}
		if integerLaw(sample, geometricMass(eps/1.05)) == nil {
			t.Errorf("epsilon %v: noise 5%% too narrow went unnoticed", eps)
		}
	}
}

// TestGeometricLaw notices noise that is 5% too narrow.
func TestGeometricLaw(t *testing.T) {
	const n = 200_000
	for i, e := range []struct{ num, den uint64 }{{1, 1}, {7, 5}, {3 << 44, 1 << 46}} {
		s := Seeded(uint64(i) + 2100)
		eps := float64(e.num) / float64(e.den)
		last := int64(math.Log(n/50) / eps) // for all that are as large, of which there are still some
		observed := make([]int, last+1)
		for range n {
			x := Geometric(s, e.num, e.den)
			if x < 0 {
				t.Fatalf("epsilon %v: %d", eps, x)
			}
			observed[min(x, last)]++
		}
		law := func(eps float64) []float64 {
			expected := make([]float64, last+1)
			for x := range last {
				expected[x] = n * -math.Expm1(-eps) * math.Exp(-eps*float64(x))
			}
			expected[last] = n * math.Exp(-eps*float64(last))
			return expected
		}
		if err := stattest.ChiSquare(observed, law(eps), 1e-6); err != nil {
			t.Errorf("epsilon %v: %v", eps, err)
		}
		if stattest.ChiSquare(observed, law(eps/1.05), 1e-6) == nil {
			t.Errorf("epsilon %v: noise 5%% too narrow went unnoticed", eps)
		}
	}
	if x := Geometric(Seeded(1), 1, 1<<62); x < 1<<40 {
		t.Errorf("of e^{-2^-62} it is %d", x)
	}
}

func staircaseMass(c Staircase) func(int64) float64 {
	eps := float64(c.Num) / float64(c.Den)
	return massOf(int(float64(c.Sensitivity)*(50/eps+2)), func(x int) float64 {
		k, i := x/int(c.Sensitivity), x%int(c.Sensitivity)
		if i >= int(c.Width) {
			k++
		}
		return math.Exp(-eps * float64(k))
	})
}

// TestStaircaseLaw notices stairs whose width is off by one, and an epsilon that is 5% larger.
func TestStaircaseLaw(t *testing.T) {
	// Of a tiny epsilon it is drawn as fast as of any: the steps are drawn together, and not one after the other.
	if x := (Staircase{1, 1 << 62, 1, 1}).Draw(Seeded(659)); x > -1<<50 && x < 1<<50 {
		t.Errorf("at an epsilon of 2^-62 it is %d", x)
	}
	for i, c := range []Staircase{{1, 1, 1, 1}, {2, 1, 5, 1}, {2, 1, 5, 3}, {1, 2, 10, 4}, {7, 2, 8, 8}} {
		s := Seeded(uint64(i) + 660)
		sample := draws(200_000, func() int64 { return c.Draw(s) })
		if err := integerLaw(sample, staircaseMass(c)); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
		if c.Width < c.Sensitivity {
			wrong := c
			wrong.Width++
			if integerLaw(sample, staircaseMass(wrong)) == nil {
				t.Errorf("%+v: a stair that is one wider went unnoticed", c)
			}
		}
		wrong := c
		wrong.Num, wrong.Den = 20*c.Num, 21*c.Den
		if integerLaw(sample, staircaseMass(wrong)) == nil {
			t.Errorf("%+v: an epsilon 5%% smaller went unnoticed", c)
		}
	}
}

// TestPrivate holds each law against its promise: shifted by the sensitivity no probability is more than e^eps times the other, and some one is.
func TestPrivate(t *testing.T) {
	for _, c := range []struct {
		name        string
		mass        func(int64) float64
		sensitivity int64
		eps         float64
	}{
		{"geometric", geometricMass(1.5), 1, 1.5},
		{"staircase", staircaseMass(Staircase{2, 1, 5, 2}), 5, 2},
		{"narrow staircase", staircaseMass(NewStaircase(6, 1, 40)), 40, 6},
	} {
		worst := 0.0
		for shift := int64(1); shift <= c.sensitivity; shift++ {
			for x := int64(-4 * c.sensitivity); x <= 4*c.sensitivity; x++ {
				worst = max(worst, math.Log(c.mass(x)/c.mass(x+shift)))
			}
		}
		if math.Abs(worst-c.eps) > 1e-9 {
			t.Errorf("%s: the largest privacy loss is %v, want %v", c.name, worst, c.eps)
		}
	}
}

// TestStaircaseIsNarrower: at epsilon 6 the mean of |X| is near e^{-3}·Sensitivity/(1-e^{-6}), where that of Laplace noise is a sixth of the sensitivity.
func TestStaircaseIsNarrower(t *testing.T) {
	const sensitivity = 1000
	mass := staircaseMass(NewStaircase(6, 1, sensitivity))
	mean := 0.0
	for x := int64(1); x < 20*sensitivity; x++ {
		mean += 2 * float64(x) * mass(x)
	}
	want := sensitivity * math.Exp(-3) / (1 - math.Exp(-6)) // Theorem 7 there
	if math.Abs(mean/want-1) > 0.02 || mean > sensitivity/6.0/3 {
		t.Errorf("the mean of |X| is %v, want about %v", mean, want)
	}
}

// TestRatio notices a digit that is compared the wrong way round.
func TestRatio(t *testing.T) {
	s := Seeded(680)
	for _, c := range []struct{ a, b int64 }{{0, 5}, {5, 5}, {1, 3}, {2, 3}, {1, 2}, {999, 1000}} {
		yes := 0
		for range 100_000 {
			if s.ratio(big.NewInt(c.a), big.NewInt(c.b)) {
				yes++
			}
		}
		if p := float64(c.a) / float64(c.b); p == 0 && yes > 0 || p == 1 && yes < 100_000 {
			t.Errorf("%d/%d: %d of 100000", c.a, c.b, yes)
		} else if err := stattest.Frequency(yes, 100_000, p, falseAlarm); p > 0 && p < 1 && err != nil {
			t.Errorf("%d/%d: %v", c.a, c.b, err)
		}
	}
}

func TestRefused(t *testing.T) {
	for name, draw := range map[string]func(s *Stream){
		"no variance":         func(s *Stream) { DiscreteGaussian(s, 0, 1) },
		"variance over 0":     func(s *Stream) { DiscreteGaussian(s, 1, 0) },
		"large variance":      func(s *Stream) { DiscreteGaussian(s, MaxVariance+1, 1) },
		"epsilon 0":           func(s *Stream) { TwoSidedGeometric(s, 0, 1) },
		"epsilon over 0":      func(s *Stream) { TwoSidedGeometric(s, 1, 0) },
		"small epsilon":       func(s *Stream) { TwoSidedGeometric(s, 1, 1<<63) },
		"no stair":            func(s *Stream) { Staircase{1, 1, 5, 0}.Draw(s) },
		"stairs of epsilon 0": func(s *Stream) { Staircase{0, 1, 5, 2}.Draw(s) },
		"too wide a stair":    func(s *Stream) { Staircase{1, 1, 5, 6}.Draw(s) },
		"e^(-1/0)":            func(s *Stream) { BernoulliExp(s, 1, 0) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s was accepted", name)
				}
			}()
			draw(Seeded(1))
		}()
	}
}

func BenchmarkDiscreteGaussian(b *testing.B) {
	s := Seeded(1)
	for b.Loop() {
		DiscreteGaussian(s, 1<<40, 1)
	}
}

func BenchmarkTwoSidedGeometric(b *testing.B) {
	s := Seeded(1)
	for b.Loop() {
		TwoSidedGeometric(s, 1, 10)
	}
}

func BenchmarkStaircase(b *testing.B) {
	s, c := Seeded(1), NewStaircase(2, 1, 1<<30)
	for b.Loop() {
		c.Draw(s)
	}
}

// A count with epsilon 0.1: the noise is two-sided geometric.
func ExampleTwoSidedGeometric() {
	count := int64(1234)
	s := Seeded(7) // a service takes a Stream of its secret Key
	fmt.Println(count + TwoSidedGeometric(s, 1, 10))
	// Output: 1235
}

// A count of sensitivity 1 with rho = 1/200 of concentrated privacy: a variance of 100.
func ExampleDiscreteGaussian() {
	s := Seeded(7)
	fmt.Println(1234 + DiscreteGaussian(s, 100, 1))
	// Output: 1235
}

// A sum of whole euros, of which one row moves at most 1000, at epsilon 4: the staircase is narrower there than Laplace noise.
func ExampleStaircase() {
	s := Seeded(7)
	fmt.Println(1_000_000 + NewStaircase(4, 1, 1000).Draw(s))
	// Output: 999884
}
