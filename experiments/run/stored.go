package run

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Stored is the distribution of one number, as another program found it.
type Stored struct {
	Mean        float64   `json:"mean"`
	SD          float64   `json:"sd"`
	Kurtosis    float64   `json:"kurtosis"`  // the fourth moment in squared variances: how much a measured variance varies
	Quantiles   []float64 `json:"quantiles"` // at the levels i/(q+1) of q quantiles
	Repetitions int       `json:"-"`
}

// Pair is one number of every run beside what is stored of it.
type Pair struct {
	At     string // which of several
	Values []float64
	Stored Stored
}

// Stored takes three checks of numbers of one kind: means, standard deviations and shapes are those that are stored. Each check shows the pair
// that comes nearest to its limit.
func (c *Checks) Stored(what string, pairs []Pair) {
	c.worst(what, "mean", pairs, Pair.mean)
	c.worst(what, "standard deviation", pairs, Pair.deviation)
	c.worst(what, "shape", pairs, Pair.shape)
}

// worst takes a check of the pair that is the largest part of its limit.
func (c *Checks) worst(what, kind string, pairs []Pair, compare func(p Pair, alpha float64) (c Check, part float64)) {
	c.Add(len(pairs), func(alpha float64) Check {
		worst, largest := Check{What: what + ": " + kind, Criterion: "none", Notices: "nothing", Agrees: true}, -1.0
		for _, p := range pairs {
			check, part := compare(p, alpha)
			if part > largest {
				check.What, check.Agrees = fmt.Sprintf("%s, %s: %s", what, p.At, kind), part <= 1
				if len(pairs) > 1 {
					check.What += fmt.Sprintf(", the farthest of %d", len(pairs))
				}
				worst, largest = check, part
			}
		}
		return worst
	})
}

// mean compares by the stored deviation: few runs do not know theirs.
func (p Pair) mean(alpha float64) (Check, float64) {
	r := Row{}
	r.Summarise(p.Values)
	freedom := float64(p.Stored.Repetitions - 1)
	errors := Student(1-alpha/2, freedom)
	c := Check{Expected: p.Stored.Mean, Got: r.Mean, Low: r.Low, High: r.High,
		Error: p.Stored.SD * math.Sqrt(1/float64(len(p.Values))+1/float64(p.Stored.Repetitions))}
	c.Criterion = fmt.Sprintf("off by at most %s, %.1f standard errors", shortNumber(errors*c.Error), errors)
	c.Notices = "a mean off by " + shortNumber((errors+Student(Power, freedom))*c.Error)
	// The stored numbers have eight digits.
	return c, math.Abs(r.Mean-p.Stored.Mean) / (errors*c.Error + 1e-7*math.Abs(p.Stored.Mean) + math.SmallestNonzeroFloat64)
}

// spreadRuns are from how many on a deviation may be too small: fewer values that lie on a grid, as accuracies do, may be equal by chance.
const spreadRuns = 20

// deviation compares variances by Fisher's F, with the degrees of freedom that the kurtosis leaves them.
func (p Pair) deviation(alpha float64) (Check, float64) {
	_, sd := MeanSD(p.Values)
	c := Check{Expected: p.Stored.SD, Got: sd, Low: sd, High: sd}
	if len(p.Values) < 2 || p.Stored.SD == 0 {
		c.Criterion, c.Notices = "none", "nothing"
		return c, 0
	}
	freedom := func(repetitions int) float64 { return float64(repetitions-1) * 2 / (max(3, p.Stored.Kurtosis) - 1) }
	f := distuv.F{D1: freedom(len(p.Values)), D2: freedom(p.Stored.Repetitions)}
	low, high := math.Sqrt(f.Quantile(alpha/2)), math.Sqrt(f.Quantile(1-alpha/2))
	ratio := sd / p.Stored.SD
	c.Criterion = fmt.Sprintf("%s to %s times what is expected", shortNumber(low), shortNumber(high))
	c.Notices = fmt.Sprintf("%s or %s times the deviation", shortNumber(low/math.Sqrt(f.Quantile(Power))), shortNumber(high/math.Sqrt(f.Quantile(1-Power))))
	part := max(0, math.Log(ratio)/math.Log(high))
	if len(p.Values) < spreadRuns {
		c.Criterion = fmt.Sprintf("at most %s times what is expected", shortNumber(high))
		c.Notices = fmt.Sprintf("%s times the deviation", shortNumber(high/math.Sqrt(f.Quantile(1-Power))))
		return c, part
	}
	return c, max(part, math.Log(ratio)/math.Log(low))
}

// shape compares distribution functions by the distance of Kolmogorov and Smirnov, at the stored quantiles. It is conservative for values
// on a grid.
func (p Pair) shape(alpha float64) (Check, float64) {
	farthest := 0.0
	for i, q := range p.Stored.Quantiles {
		level, below, upTo := float64(i+1)/float64(len(p.Stored.Quantiles)+1), 0, 0
		tie := 1e-5 * math.Abs(q) // stored quantiles have six digits
		for _, v := range p.Values {
			if v < q-tie {
				below++
			}
			if v <= q+tie {
				upTo++
			}
		}
		of := float64(len(p.Values))
		farthest = max(farthest, float64(below)/of-level, level-float64(upTo)/of)
	}
	limit := math.Sqrt(-math.Log(alpha/2)/2) * math.Sqrt(1/float64(len(p.Values))+1/float64(p.Stored.Repetitions))
	c := Check{Got: farthest, Low: farthest, High: farthest,
		Criterion: fmt.Sprintf("distribution functions at most %s apart", shortNumber(limit))}
	if limit >= 1 {
		c.Notices = "nothing: there are too few runs"
	} else {
		// A distance of its limit and this many standard deviations of a share at its largest is found.
		c.Notices = fmt.Sprintf("%s of the runs on another side", shortNumber(min(1, limit+distuv.UnitNormal.Quantile(Power)/2/math.Sqrt(float64(len(p.Values))))))
	}
	return c, farthest / limit
}
