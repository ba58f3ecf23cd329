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

// TestSlope: the error of a slope is that of its points, carried through the line: of two points a factor e^2 apart that of either over 2, times the root of 2.
func TestSlope(t *testing.T) {
	x := []float64{1, math.Exp(2)}
	y := []Row{{Mean: 5, SD: 1, Repetitions: 4}, {Mean: 5 * math.Exp(3), SD: math.Exp(3), Repetitions: 4}}
	if slope, standard := Slope(x, y); math.Abs(slope-1.5) > 1e-12 || math.Abs(standard-0.1/math.Sqrt2) > 1e-12 {
		t.Errorf("slope %v +- %v", slope, standard)
	}
}
