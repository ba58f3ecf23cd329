package run

import (
	"math"
	"math/rand/v2"
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

// TestJackknifeExponent: the interval of an exponent whose points have a few per cent of scatter from repetition to repetition covers it in about 95% of the fits. An error that forgets
// the number of repetitions, or takes the line's residuals for it, covers far less or far more.
func TestJackknifeExponent(t *testing.T) {
	const fits, repetitions = 400, 20
	r, covered := rand.New(rand.NewPCG(1, 1)), 0
	x := []float64{1, 3, 10, 30}
	for range fits {
		values := make([][]float64, repetitions)
		for i := range values {
			for _, v := range x {
				values[i] = append(values[i], 3*v*v*math.Exp(0.2*r.NormFloat64()))
			}
		}
		f := JackknifeExponent("", "", repetitions, func(without int) ([]float64, []float64) {
			y := make([]float64, len(x))
			for i, row := range values {
				for j, v := range row {
					if i != without {
						y[j] += v
					}
				}
			}
			return x, y
		})
		if f.Low <= 2 && f.High >= 2 {
			covered++
		}
		if f.Freedom != repetitions-1 || f.High-f.Low > 0.2 || f.High-f.Low < 0.02 {
			t.Fatalf("%+v", f)
		}
	}
	// 380 are expected; five standard deviations are 22.
	if covered < 355 || covered == fits {
		t.Errorf("%d of %d intervals cover", covered, fits)
	}
}
