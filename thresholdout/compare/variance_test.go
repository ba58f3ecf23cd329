package compare

import (
	"math"
	"testing"
)

// TestHalfWidthFollowsTheSpread: the half-width grows with the standard deviation of a question's values, in proportion where there are many units; a
// spread of 1/2 is a coin's, and is what the method's row says of a mean of which nothing is known, but that it is 0 or 1. It would notice a sample whose moments
// are not those that it is named for.
func TestHalfWidthFollowsTheSpread(t *testing.T) {
	for _, n := range []int64{10_000, 1_000_000} {
		last := 0.0
		for _, spread := range []float64{0.01, 0.03, 0.1, 0.25, 0.5} {
			half, err := FirstHalfWidth(Request{N: n, Questions: 100, Confidence: 0.95}, spread)
			if err != nil {
				t.Fatal(err)
			}
			if half <= last {
				t.Errorf("n %d: ±%v at a standard deviation of %v, ±%v at a smaller one", n, half, spread, last)
			}
			// Between the textbook's interval for one question and six times it.
			if times := half / (textbookZ * spread / math.Sqrt(float64(n))); !(times > 2.5 && times < 6) {
				t.Errorf("n %d, standard deviation %v: %v times a textbook's interval", n, spread, times)
			}
			last = half
			mean, variance := sample(n, spread).Moments()
			if math.Abs(mean-0.5) > 1e-8 || math.Abs(math.Sqrt(variance)/spread-1) > 1e-3 {
				t.Errorf("n %d: a sample of mean %v and variance %v for a standard deviation of %v", n, mean, variance, spread)
			}
		}
	}
	if _, err := FirstHalfWidth(Request{N: 1000, Questions: 10, Confidence: 0.95}, 0.4); err == nil {
		t.Error("a standard deviation for which there is no sample is taken")
	}
}
