package bounds

import (
	"math"
	"testing"
)

func TestNoiseWidth(t *testing.T) {
	const n, k, beta, sigma = 10000, 100, 0.05, 0.01
	constantNoise, err := ConstantNoise(n, k, beta, sigma)
	if err != nil {
		t.Fatal(err)
	}
	list := make([]float64, k)
	for j := range list {
		list[j] = sigma
	}
	w, err := NoiseWidth(n, list, beta)
	if err != nil || math.Abs(w/constantNoise.HalfWidth-1) > 1e-8 {
		t.Errorf("equal noise: %v, %v; want %v", w, err, constantNoise.HalfWidth)
	}
	each, err := AnswerWidths(n, list, beta)
	if err != nil {
		t.Fatal(err)
	}
	for j := 1; j < k; j++ {
		if each[j] <= each[j-1] {
			t.Fatalf("answer %d: %v after %v", j, each[j], each[j-1])
		}
	}
	if !(each[0] < w && w < each[k-1]) {
		t.Errorf("one width %v is not between the first's %v and the last's %v", w, each[0], each[k-1])
	}
	missed := 0.0
	released := 0.0
	for _, w := range each {
		missed += 2 * Miss(n, w, sigma, released)
		released += Information(n, 0.25, sigma)
	}
	if missed > beta*(1+1e-9) || missed < 0.98*beta { // the factor for rounding m is kept back
		t.Errorf("together they miss with %v, %v may", missed, beta)
	}
	// the schedule by its list, and the last answer without noise
	schedule, err := AdaptiveHoeffdingScheduled(n, k, beta)
	if err != nil {
		t.Fatal(err)
	}
	for j := range list {
		list[j] = ScheduledSigma(schedule.Sigma, int64(j+1), k)
	}
	if w, err = NoiseWidth(n, list, beta); err != nil || math.Abs(w/schedule.HalfWidth-1) > 1e-8 {
		t.Errorf("the schedule's noise: %v, %v; want %v", w, err, schedule.HalfWidth)
	}
	list[k-1] = 0
	if free, err := NoiseWidth(n, list, beta); err != nil || !(free < w) {
		t.Errorf("without noise at the end: %v, %v; with it %v", free, err, w)
	}
	for _, bad := range [][]float64{{}, {0, 0.1}, {0.1, -1}, {math.NaN()}, {math.Inf(1)}} {
		if _, err := NoiseWidth(n, bad, beta); err == nil {
			t.Errorf("%v was accepted", bad)
		}
		if _, err := AnswerWidths(n, bad, beta); err == nil {
			t.Errorf("%v was accepted", bad)
		}
	}
}

// TestPaired enumerates paired differences of coins: on a share d of the rows the difference is 1 or -1, elsewhere 0. The tail of
// their mean is at most e^(-n t^2/(2d)), which is Hoeffding's at the range PairedRange; the row variance is at most PairedVariance.
func TestPaired(t *testing.T) {
	for _, n := range []int{4, 10, 40} {
		for differ := 1; differ <= n; differ++ {
			d := float64(differ) / float64(n)
			tail := 0.0
			for heads := differ; heads >= 0; heads-- { // of differ fair coins; the mean is (2 heads - differ)/n
				tail += binomialMass(differ, heads)
				mean := float64(2*heads-differ) / float64(n)
				if mean <= 0 {
					break
				}
				unit := mean / PairedRange(d)
				if bound := math.Exp(-2 * float64(n) * unit * unit); tail > bound*(1+1e-12) {
					t.Fatalf("n=%d d=%v: the mean is at least %v with %v, the bound is %v", n, d, mean, tail, bound)
				}
				if variance := d - mean*mean; variance > PairedVariance(d) {
					t.Fatalf("variance %v", variance)
				}
			}
		}
	}
	n, sigma, d := 1000.0, 0.02, 0.1
	if a, b := Information(n, PairedVariance(d), sigma), Information(n, 0.25, sigma/PairedRange(d)); math.Abs(a-b) > 1e-12*a {
		t.Errorf("the price is %v, that of a [0,1] mean at the same scale %v", a, b)
	}
}
