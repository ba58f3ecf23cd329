package minimum

import (
	"math"
	"testing"
)

// TestMinimum finds minima that have a wall beside them, and inside a scan of a function that is flat elsewhere.
func TestMinimum(t *testing.T) {
	x, v := Brent(func(x float64) float64 {
		if x < 1 {
			return math.Inf(1)
		}
		return x + 4/x
	}, -5, 20, 1e-8)
	if math.Abs(x-2) > 1e-6 || math.Abs(v-4) > 1e-12 {
		t.Errorf("minimum %v at %v, want 4 at 2", v, x)
	}
	x, v = Scanned(func(x float64) float64 { return min(1, (x-3)*(x-3)) }, -50, 50, 100, 1e-8)
	if math.Abs(x-3) > 1e-6 || v > 1e-12 {
		t.Errorf("scanned minimum %v at %v, want 0 at 3", v, x)
	}
}
