package checks

import (
	"math"

	"gonum.org/v1/gonum/stat"
)

// Sample is what is known of one number of independent runs.
type Sample struct {
	Mean      float64
	SD        float64
	Runs      int
	Kurtosis  float64 // fourth standardized moment, 3 for a normal law; 0: not known, taken for normal
	Low, High float64 // interval of the mean, for the reader
}

// Of is the sample of these values, without an interval.
func Of(values []float64) Sample {
	s := Sample{Runs: len(values)}
	if s.Mean = stat.Mean(values, nil); len(values) > 1 {
		s.SD = stat.StdDev(values, nil)
	}
	var second, fourth float64
	for _, v := range values {
		square := (v - s.Mean) * (v - s.Mean)
		second += square / float64(len(values))
		fourth += square * square / float64(len(values))
	}
	if second > 0 {
		s.Kurtosis = fourth / (second * second)
	}
	s.Low, s.High = s.Mean, s.Mean
	return s
}

// standardError is that of the mean.
func (s Sample) standardError() float64 { return s.SD / math.Sqrt(float64(max(1, s.Runs))) }

// spreadFreedom are the degrees of freedom of a variance: runs less one for a normal law, fewer for a law with longer tails (Box 1953).
func (s Sample) spreadFreedom(kurtosis float64) float64 {
	if kurtosis <= leastKurtosis {
		kurtosis = leastKurtosis
	}
	return max(1, 2*float64(s.Runs-1)/(kurtosis-1))
}

// leastKurtosis keeps a variance of values that happen to lie at two places from being taken for known; 1.8 is that of a uniform law.
const leastKurtosis = 1.8
