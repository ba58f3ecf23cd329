// Package stattest has statistical checks that state their false-alarm probability. Each returns an error when the data would
// be that unlikely under the hypothesis; a test with a fixed seed then fails, or a planted fault must make it fail.
package stattest

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"
	"gonum.org/v1/gonum/stat/distuv"
)

// ChiSquare compares counts with their expectations: under the hypothesis it returns an error with probability about
// falseAlarm. Every expectation should be at least 5. Degrees of freedom are len(observed)-1.
func ChiSquare(observed []int, expected []float64, falseAlarm float64) error {
	if len(observed) != len(expected) || len(observed) < 2 {
		return fmt.Errorf("stattest: %d counts, %d expectations", len(observed), len(expected))
	}
	statistic := 0.0
	for i, e := range expected {
		if e < 5 {
			return fmt.Errorf("stattest: cell %d expects %v, the approximation needs 5", i, e)
		}
		d := float64(observed[i]) - e
		statistic += d * d / e
	}
	if p := 1 - (distuv.ChiSquared{K: float64(len(observed) - 1)}).CDF(statistic); p < falseAlarm {
		return fmt.Errorf("stattest: chi-square %.1f with %d cells: p = %.3g is below %v", statistic, len(observed), p, falseAlarm)
	}
	return nil
}

// Kolmogorov compares a sample with a continuous distribution function by the largest distance. The false-alarm
// probability is bounded, by the inequality of Dvoretzky, Kiefer, Wolfowitz and Massart.
func Kolmogorov(sample []float64, cdf func(float64) float64, falseAlarm float64) error {
	sorted := slices.Clone(sample)
	slices.Sort(sorted)
	n, distance := float64(len(sorted)), 0.0
	for i, x := range sorted {
		f := cdf(x)
		distance = max(distance, f-float64(i)/n, float64(i+1)/n-f)
	}
	if limit := math.Sqrt(math.Log(2/falseAlarm) / (2 * n)); distance > limit {
		return fmt.Errorf("stattest: the sample of %d is %.4g from its distribution, above %.4g (false alarm %v)", len(sorted), distance, limit, falseAlarm)
	}
	return nil
}

// AtMost checks that events of probability p, or less, could have happened this often in independent trials. Under that
// hypothesis it returns an error with probability at most falseAlarm (the exact binomial tail).
func AtMost(events, trials int, p, falseAlarm float64) error {
	if events <= 0 {
		return nil
	}
	if tail := mathext.RegIncBeta(float64(events), float64(trials-events+1), p); tail < falseAlarm {
		return fmt.Errorf("stattest: %d of %d, where at most %v was promised: probability %.3g is below %v", events, trials, p, tail, falseAlarm)
	}
	return nil
}

// Frequency checks both ways that events have probability p: at most falseAlarm for an error.
func Frequency(events, trials int, p, falseAlarm float64) error {
	if err := AtMost(events, trials, p, falseAlarm/2); err != nil {
		return err
	}
	return AtMost(trials-events, trials, 1-p, falseAlarm/2)
}
