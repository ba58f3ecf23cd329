package run

import (
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"testing"

	"github.com/holdoutd/holdoutd/internal/stattest"
)

// checkAlpha is a false-alarm probability that simulations can measure.
const checkAlpha = 0.01

// checkRuns of each check, without a fault and with one.
const checkRuns = 1500

// failing is how many of checkRuns checks fail.
func failing(add func(c *Checks)) (count int) {
	for range checkRuns {
		var c Checks
		add(&c)
		for _, open := range c.open {
			if !open.decide(checkAlpha).Agrees {
				count++
			}
		}
	}
	return count
}

// numberOf is the last number of a text.
func numberOf(t *testing.T, text string) float64 {
	t.Helper()
	all := regexp.MustCompile(`[0-9.]+(e-?[0-9]+)?`).FindAllString(text, -1)
	if all == nil {
		t.Fatalf("no number in %q", text)
	}
	v, err := strconv.ParseFloat(all[len(all)-1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestChecksFailAsStated: without a fault a check fails as often as its share of the false alarm at most, and with a fault of the size that it says
// it notices in nine of ten runs (false alarm 1e-6 each). So limits are neither too wide nor too narrow.
func TestChecksFailAsStated(t *testing.T) {
	random := rand.New(rand.NewPCG(17, 1))
	normal := func(mean, sd float64, count int) []float64 {
		values := make([]float64, count)
		for i := range values {
			values[i] = mean + sd*random.NormFloat64()
		}
		return values
	}
	exactly := false // a row whose spread is not measured
	mean := func(m float64) Row {
		if exactly {
			return Row{Mean: m, SD: 2, Repetitions: 30}
		}
		return Measured(Row{}, normal(m, 2, 30), func(v float64) float64 { return v })
	}
	rate := func(p float64) Row {
		events := 0
		for range 100 {
			if random.Float64() < p {
				events++
			}
		}
		return Row{Mean: float64(events) / 100, Repetitions: 100, Rate: true}
	}
	var quantiles []float64
	for _, z := range []float64{-1.2816, -0.8416, -0.5244, -0.2533, 0, 0.2533, 0.5244, 0.8416, 1.2816} {
		quantiles = append(quantiles, 7+2*z)
	}
	stored := Stored{Mean: 7, SD: 2, Kurtosis: 3, Quantiles: quantiles, Repetitions: 1e6}
	pair := func(m, sd float64) []Pair { return []Pair{{At: "one", Values: normal(m, sd, 200), Stored: stored}} }
	for _, k := range []struct {
		name  string
		fault float64 // added to what is right, where it is not what the check says
		add   func(c *Checks, fault float64)
	}{
		{"mean", 0, func(c *Checks, f float64) { c.Equal("", 7, 0, mean(7+f)) }},
		{"mean at most", 0, func(c *Checks, f float64) { c.AtMost("", 7, mean(7+f)) }},
		{"mean at least", 0, func(c *Checks, f float64) { c.AtLeast("", 7, mean(7-f)) }},
		{"mean, with slack", 0, func(c *Checks, f float64) { c.Equal("", 7, 0.5, mean(7+max(0.5, f))) }},
		{"rate at most", 0, func(c *Checks, f float64) { c.AtMost("", 0.05, rate(max(0.05, f))) }},
		{"stored mean", 0, func(c *Checks, f float64) { c.worst("", "mean", pair(7+f, 2), Pair.mean) }},
		{"stored deviation", 0, func(c *Checks, f float64) { c.worst("", "deviation", pair(7, 2*max(1, f)), Pair.deviation) }},
		{"stored shape", 5, func(c *Checks, f float64) { c.worst("", "shape", pair(7+f, 2), Pair.shape) }},
	} {
		var one Checks
		exactly = true
		k.add(&one, 0)
		exactly = false
		if k.fault == 0 {
			k.fault = numberOf(t, one.open[0].decide(checkAlpha).Notices)
		}
		wrong := failing(func(c *Checks) { k.add(c, 0) })
		if err := stattest.AtMost(wrong, checkRuns, checkAlpha, 1e-6); err != nil {
			t.Errorf("%s: without a fault: %v", k.name, err)
		}
		// Limits that are made of a measured spread vary with it: power is a little off.
		found := failing(func(c *Checks) { k.add(c, k.fault) })
		if err := stattest.AtMost(checkRuns-found, checkRuns, 1.5*(1-Power), 1e-6); err != nil {
			t.Errorf("%s: with a fault of %v: %v", k.name, k.fault, err)
		}
	}
}

// TestSharesOfFalseAlarm: all comparisons of a run share one false-alarm probability, and arithmetic has none of it.
func TestSharesOfFalseAlarm(t *testing.T) {
	var c Checks
	c.Arithmetic("exact", 2, 1e-6, 2.1)
	c.Stated(FalseAlarm/2, Check{Agrees: true})
	for range 3 {
		c.Add(5, func(alpha float64) Check { return Check{Got: alpha, Agrees: true} })
	}
	sum := 0.0
	for _, check := range c.Decide() {
		sum += check.FalseAlarm
	}
	if first := c.Decide()[0]; math.Abs(sum-FalseAlarm) > 1e-12 || first.FalseAlarm != 0 || first.Agrees {
		t.Errorf("together %v; of arithmetic %+v", sum, first)
	}
}
