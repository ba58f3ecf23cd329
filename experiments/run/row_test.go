package run

import (
	"math"
	"testing"
)

// TestMeasured: a mean has Student's interval and a rate the exact one, which is wide also where nothing happened. An interval of the wrong
// kind shows.
func TestMeasured(t *testing.T) {
	same := func(v float64) float64 { return v }
	mean := Measured(Row{}, []float64{1, 2, 3, 6}, same)
	// Mean 3, variance 14/3, and the 97.5% quantile of Student's t with 3 degrees of freedom is 3.182446.
	if half := 3.182446 * math.Sqrt(14./12); mean.Mean != 3 || mean.Repetitions != 4 || math.Abs(mean.High-3-half) > 1e-5 || math.Abs(3-mean.Low-half) > 1e-5 {
		t.Errorf("mean of 1, 2, 3 and 6: %+v", mean)
	}
	// The ends of Clopper and Pearson for 0 and 2 of 10, by their tables.
	for _, c := range []struct {
		events    int
		low, high float64
	}{{0, 0, 0.3085}, {2, 0.0252, 0.5561}} {
		values := make([]float64, 10)
		for i := range c.events {
			values[i] = Indicator(true)
		}
		r := Measured(Row{Rate: true}, values, same)
		if r.Events() != int64(c.events) || math.Abs(r.Low-c.low) > 1e-4 || math.Abs(r.High-c.high) > 1e-4 {
			t.Errorf("%d of 10: %v to %v, want %v to %v", c.events, r.Low, r.High, c.low, c.high)
		}
	}
	if one := Measured(Row{}, []float64{7}, same); one.Mean != 7 || one.SD != 0 {
		t.Errorf("one value: %+v", one)
	}
}
