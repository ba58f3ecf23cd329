package run

import (
	"math"
	"testing"
)

// TestFitExponent: a power law's exponent is found exactly, and one with scatter is within its interval.
func TestFitExponent(t *testing.T) {
	x := []float64{1, 2, 4, 8}
	if f := FitExponent("", "", x, []float64{3, 12, 48, 192}); math.Abs(f.Exponent-2) > 1e-12 || f.High-f.Low > 1e-6 {
		t.Errorf("of 3 x^2: %+v", f)
	}
	if f := FitExponent("", "", x, []float64{3.3, 11, 50, 188}); f.Low > 2 || f.High < 2 || f.High-f.Low < 0.01 {
		t.Errorf("of about 3 x^2: %+v", f)
	}
}
