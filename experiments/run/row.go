package run

import (
	"math"

	"gonum.org/v1/gonum/stat"

	"github.com/holdoutd/holdoutd/dp/binomial"
	"github.com/holdoutd/holdoutd/experiments/run/checks"
)

// Row is one measured number.
type Row struct {
	Condition   string  `json:"condition"` // who asks
	Method      string  `json:"method"`    // mechanism
	N           int64   `json:"n"`
	K           int64   `json:"k"`
	Confidence  float64 `json:"confidence,omitempty"`
	Set         string  `json:"set"` // what is measured
	Mean        float64 `json:"mean"`
	SD          float64 `json:"sd"`
	Low         float64 `json:"low"` // 95% interval of the mean
	High        float64 `json:"high"`
	Repetitions int     `json:"repetitions"`
	Kurtosis    float64 `json:"kurtosis,omitempty"` // fourth standardized moment; 3 for a normal law
	Rate        bool    `json:"rate,omitempty"`     // Mean is the share of the repetitions in which something happened
}

// Summarise makes the row the mean of values: with their standard deviation, and Student's 95% interval of the mean. One value has
// neither.
func (r *Row) Summarise(values []float64) {
	s := checks.Of(values)
	r.Mean, r.SD, r.Kurtosis = s.Mean, s.SD, s.Kurtosis
	half := studentQuantile(len(values)-1) * r.SD / math.Sqrt(float64(len(values)))
	r.Low, r.High = r.Mean-half, r.Mean+half
}

// MeanSD are the mean of values and their standard deviation, which is 0 for a single one.
func MeanSD(values []float64) (mean, sd float64) {
	if len(values) < 2 {
		return stat.Mean(values, nil), 0
	}
	return stat.MeanStdDev(values, nil)
}

// Measured completes a row by one number of each run: with their mean, or, where the row is a rate, with the share of runs in which
// the number is 1 and the interval of Clopper and Pearson.
func Measured[T any](r Row, runs []T, of func(T) float64) Row {
	values := make([]float64, len(runs))
	for i, run := range runs {
		values[i] = of(run)
	}
	r.Repetitions = len(runs)
	r.Summarise(values)
	if r.Rate {
		r.Low, r.High = RateInterval(r.Events(), int64(len(runs)), 0.05)
	}
	return r
}

// Events is how many of the repetitions a rate counts.
func (r Row) Events() int64 { return int64(math.Round(r.Mean * float64(r.Repetitions))) }

// Sample is what is known of the values that the row is the mean of.
func (r Row) Sample() checks.Sample {
	return checks.Sample{Mean: r.Mean, SD: r.SD, Runs: r.Repetitions, Kurtosis: r.Kurtosis, Low: r.Low, High: r.High}
}

// Count is what a rate counts.
func (r Row) Count() checks.Count {
	return checks.Count{Events: int(r.Events()), Runs: r.Repetitions}
}

// RateInterval is the interval of Clopper and Pearson for a probability, from events in a number of runs: either end misses with
// probability at most beta/2.
func RateInterval(events, runs int64, beta float64) (low, high float64) {
	level := math.Log(2 / beta)
	return binomial.Low(float64(runs), float64(events), level), binomial.High(float64(runs), float64(events), level)
}

// Indicator is 1 where something is so, and 0 where not: a rate is the mean of indicators.
func Indicator(so bool) float64 {
	if so {
		return 1
	}
	return 0
}

// Find is the row of a condition, a method, a size and a measure; an empty row where there is none.
func Find(rows []Row, condition, method string, n int64, set string) Row {
	for _, r := range rows {
		if r.Condition == condition && r.Method == method && r.N == n && r.Set == set {
			return r
		}
	}
	return Row{}
}
