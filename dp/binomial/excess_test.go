package binomial

import (
	"math"
	"math/big"
	"testing"
)

// exactExcess is E(X-t)_+ of Bin(n,p) in exact arithmetic.
func exactExcess(n int64, t, p float64) float64 {
	sum := exact(0)
	for x := int64(math.Floor(t)) + 1; x <= n; x++ {
		beyond := new(big.Float).SetPrec(precision).Sub(exact(float64(x)), exact(t))
		sum.Add(sum, beyond.Mul(beyond, exactTerm(n, x, p)))
	}
	f, _ := sum.Float64()
	return f
}

// TestLogExcess holds it against the sum in exact arithmetic, whole and broken ends among them.
func TestLogExcess(t *testing.T) {
	for _, n := range []int64{1, 2, 9, 300} {
		for _, p := range []float64{0.001, 0.3, 0.5, 0.97} {
			for _, share := range []float64{0, 0.1, 0.5, 0.999} {
				at := float64(n) * (p + (1-p)*share)
				if at >= float64(n) {
					continue
				}
				want := exactExcess(n, at, p)
				if got := math.Exp(logExcess(float64(n), at, p)); math.Abs(got/want-1) > 1e-9 {
					t.Errorf("E(Bin(%d,%v) - %v)+: %v, the sum is %v", n, p, at, got, want)
				}
			}
		}
	}
	if !math.IsInf(logExcess(5, 5, 0.3), -1) {
		t.Error("nothing is beyond n")
	}
}

// TestLowOfExcess: at the end the excess is what it may be, from below.
func TestLowOfExcess(t *testing.T) {
	for _, n := range []int64{1, 3, 40, 300} {
		for _, share := range []float64{0.01, 0.4, 0.93, 0.999} {
			for _, level := range []float64{1, 7, 40, 300} {
				at := share * float64(n)
				low := LowOfExcess(float64(n), at, level)
				if low == at/float64(n) || low == 0 {
					continue
				}
				if ratio := exactExcess(n, at, low) * math.Exp(level); ratio > 1+1e-12 || ratio < 1-1e-6 {
					t.Errorf("%d, %v at %v: the excess at %v is %v times what it may be", n, at, level, low, ratio)
				}
			}
		}
	}
	if LowOfExcess(10, 0, 3) != 0 || LowOfExcess(10, -2, 3) != 0 || LowOfExcess(10, 10, 3) != 1 {
		t.Error("the ends of the range")
	}
	if low := LowOfExcess(1e6, 5e5, -20); low != 0.5 {
		t.Errorf("where all is allowed the end is %v", low)
	}
}
