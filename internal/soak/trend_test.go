package soak

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/internal/stattest"
)

// process makes samples of one process, one a second.
func process(n int, value func(i int) float64) (samples []Sample) {
	for i := range n {
		samples = append(samples, Sample{At: time.Duration(i) * time.Second, Values: map[string]float64{"m": value(i)}})
	}
	return samples
}

// TestTrendFalseAlarms: noise around 0, with no growth let pass, is said to grow with the stated probability at most. It would notice a
// standard error that is too small. The test's own false alarm is 1e-6.
func TestTrendFalseAlarms(t *testing.T) {
	const runs = 20_000
	random := rand.New(rand.NewPCG(20261123, 0))
	alarms := 0
	for range runs {
		samples := process(200, func(int) float64 { return random.NormFloat64() })
		if trendOf(Measure{Metric: "m", Unit: 1}, 0, samples).Verdict == Grows {
			alarms++
		}
	}
	if err := stattest.AtMost(alarms, runs, trendAlarm, 1e-6); err != nil {
		t.Error(err)
	}
}

// TestTrendVerdicts: a leak is found below the teeth of a collector, a level is called flat, a short run is not called anything, and a life
// that a kill cut off is not compared with the next one's level.
func TestTrendVerdicts(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 0))
	teeth := func(i int) float64 { return 100 + 4*float64(i%17)/17 + random.NormFloat64() }
	m := Measure{Name: "m", Metric: "m", Unit: 1, Slack: 2}
	killed := process(60, func(int) float64 { return 10 })
	for _, s := range process(300, teeth) {
		s.Life, s.At = 1, s.At+time.Minute
		killed = append(killed, s)
	}
	for _, c := range []struct {
		name    string
		samples []Sample
		want    string
	}{
		{"teeth", process(400, teeth), Flat},
		{"a leak of a tenth in the run", process(400, func(i int) float64 { return teeth(i) + 20*float64(i)/400 }), Grows},
		{"caches that fill at the start", process(400, func(i int) float64 { return teeth(i) + 30*float64(min(i, 80))/80 }), Flat},
		{"too short", process(12, teeth), Undecided},
		{"too noisy", process(400, func(int) float64 { return 100 + 100*random.NormFloat64() }), Undecided},
		{"killed after a minute", killed, Flat},
	} {
		if got := trendOf(m, 0, c.samples); got.Verdict != c.want {
			t.Errorf("%s: %+v, not %s", c.name, got, c.want)
		}
	}
}
