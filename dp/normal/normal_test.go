package normal

import (
	"math"
	"testing"
)

// TestTails against numbers of 16 digits (Abramowitz and Stegun, table 26.1 and 26.2; the far ones by the continued fraction in
// rational arithmetic).
func TestTails(t *testing.T) {
	for _, c := range []struct{ x, log float64 }{
		{0, math.Log(0.5)}, {1, math.Log(0.15865525393145705)}, {3, math.Log(0.0013498980316300946)}, {-3, math.Log1p(-0.0013498980316300946)},
		{8, math.Log(6.22096057427178e-16)},
	} {
		if got := LogUpper(c.x); math.Abs(got-c.log) > 1e-13*(1-c.log) {
			t.Errorf("ln P(Z > %v) = %v, want %v", c.x, got, c.log)
		}
		if got := math.Log(Upper(c.x)); math.Abs(got-c.log) > 1e-13*(1-c.log) {
			t.Errorf("P(Z > %v): logarithm %v, want %v", c.x, got, c.log)
		}
	}
}

// TestMillsBounds: x/(1+x^2) < M(x) < 1/x for every x > 0 (Gordon 1941), which pins it far out; M is continuous where the way of computing it
// changes, and its fall over a step is the integral of 1 - x M, also where the difference cancels.
func TestMillsBounds(t *testing.T) {
	for x := 0.5; x < 1e8; x *= 1.7 {
		if m := Mills(x); !(m > x/(1+x*x)*(1-1e-15) && m < 1/x*(1+1e-15)) {
			t.Errorf("M(%v) = %v", x, m)
		}
		if far := LogUpper(x) + x*x/2 + math.Log(x) + logSqrt2Pi; far > 1e-9*(1+x*x) || far < -1/(x*x)-1e-9*(1+x*x) {
			t.Errorf("ln P(Z > %v) is %v", x, LogUpper(x))
		}
	}
	if below, above := Mills(25*(1-1e-14)), Mills(25); math.Abs(below/above-1) > 1e-12 {
		t.Errorf("M jumps at 25 from %v to %v", below, above)
	}
	for _, x := range []float64{-0.9, 0.3, 4, 6, 30} {
		for _, h := range []float64{1e-12, 1e-7, 1e-3, 0.0999, 0.1001, 1} {
			sum := 0.0
			const cells = 2000
			for i := range cells {
				u := x + h*(float64(i)+0.5)/cells
				sum += (1 - u*Mills(u)) * h / cells
			}
			if got := MillsFall(x, h); math.Abs(got/sum-1) > 1e-6 {
				t.Errorf("M(%v) - M(%v+%v) = %v, the integral is %v", x, x, h, got, sum)
			}
		}
	}
}

// TestUpperQuantile: it undoes Upper, far out too, on the side that promises less, and is turned at 1/2.
func TestUpperQuantile(t *testing.T) {
	for _, p := range []float64{.5, .4999, .3, .025, 1e-3, 1e-9, 1e-40, 1e-200, 1e-299} {
		z := UpperQuantile(p)
		if got := Upper(z); got > p || math.Abs(got/p-1) > 1e-11 {
			t.Errorf("above %v with probability %v, want %v", z, got, p)
		}
		if p > 1e-12 && p < .5 && math.Abs(UpperQuantile(1-p)+z) > 1e-12/p*1e-3 {
			t.Errorf("quantiles %v and %v are not turned", UpperQuantile(1-p), z)
		}
	}
}
