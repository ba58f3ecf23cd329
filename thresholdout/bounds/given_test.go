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

// TestListsAreRounds: answers of which each is a round of its own are a list, so that both ways to the half-width agree, the last answer, which
// has no noise, among them. That last answer alone is [Exact]'s, and stands in AnswerWidths.
func TestListsAreRounds(t *testing.T) {
	for _, n := range []int64{500, 10_000, 1_000_000} {
		for _, sigma := range [][]float64{{0.02, 0}, {0.05, 0.01, 0}, {0.03, 0.02, 0.04, 0.01, 0}} {
			for _, beta := range []float64{0.05, 1e-6} {
				k := int64(len(sigma))
				rounds, err := RoundsNoise(n, k, beta, sigma)
				if err != nil {
					t.Fatal(err)
				}
				list, err := NoiseWidth(n, sigma, beta)
				if err != nil || math.Abs(list/rounds-1) > 1e-3 { // rounds keep a factor for rounding back
					t.Errorf("n=%d, noise %v, %v: %v as a list, %v as rounds, %v", n, sigma, beta, list, rounds, err)
				}
				each, err := AnswerWidths(n, sigma, beta)
				if err != nil {
					t.Fatal(err)
				}
				released := 0.0
				for _, s := range sigma[:k-1] {
					released += Information(float64(n), 0.25, s)
				}
				if last := Exact(float64(n), 1, beta/float64(k), released); math.Abs(each[k-1]/last-1) > 1e-6 {
					t.Errorf("n=%d, noise %v, %v: the last answer has ±%v, by itself ±%v", n, sigma, beta, each[k-1], last)
				}
			}
		}
	}
	if _, err := RoundsNoise(1000, 2, 0.05, []float64{0.1, 0.1, 0}); err == nil {
		t.Error("three rounds of two questions were accepted")
	}
	r, err := AdaptiveHoeffdingRounds(1000, 30, 3, 0.05)
	if err != nil {
		t.Fatal(err)
	}
	released := 0.0
	for i, s := range r.Sigma[:2] {
		released += float64(r.Size[i]) * Information(1000, 0.25, s)
	}
	if want := math.Sqrt(released / 2000); math.Abs(r.Adaptivity/want-1) > 1e-9 {
		t.Errorf("the adaptive part is %v, what is released costs %v", r.Adaptivity, want)
	}
}

// TestAdaptivePValue: fresh tests keep their p-value; once something is released a p-value grows, up to 1, and never falls below the plain one.
func TestAdaptivePValue(t *testing.T) {
	const n = 1000
	for _, released := range []float64{0, 0.1, 3} {
		last := 0.0
		for _, p := range []float64{0, 1e-300, 1e-9, 0.01, 0.5, 1} {
			got := AdaptivePValue(n, p, released)
			if !(got >= p*(1-1e-12) && got >= last && got <= 1) || released == 0 && math.Abs(got-p) > 1e-12*p || p == 0 && got != 0 {
				t.Errorf("p=%v after %v nats: %v, before it %v", p, released, got, last)
			}
			last = got
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
