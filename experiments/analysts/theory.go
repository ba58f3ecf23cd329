package analysts

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/holdoutd/holdoutd/thresholdout"
	"github.com/holdoutd/holdoutd/thresholdout/bounds"
)

// What theory says of a size at hand, beside how it grows in the limit. Of k answers, each errs by what its rows differ from the population and by
// its noise: a normal variable. The last answer is to the vote of all columns, weighted by their answers: over the rows the vote was made
// of it agrees with probability Phi(sqrt(sum r / n)), where r = 1/(1+4 n s^2) is how much of an answer's deviation is not noise of deviation s, and truly with probability 1/2.

// Breaks is the number of questions at which theory's mean of the largest error is the tolerance.
func (r Rival) Breaks(n int64, tolerance float64) (float64, error) {
	low, high := 2.0, 4.0
	for {
		e, err := r.Worst(n, int64(high))
		if err != nil {
			return 0, err
		}
		if e > tolerance {
			break
		}
		low, high = high, 2*high
	}
	for high/low > 1.002 && high-low > 1 {
		middle := math.Round(math.Sqrt(low * high))
		if middle == low || middle == high {
			break
		}
		e, err := r.Worst(n, int64(middle))
		if err != nil {
			return 0, err
		}
		if e > tolerance {
			high = middle
		} else {
			low = middle
		}
	}
	below, err := r.Worst(n, int64(low))
	if err != nil {
		return 0, err
	}
	above, err := r.Worst(n, int64(high))
	if err != nil {
		return 0, err
	}
	part := math.Log(tolerance/below) / math.Log(above/below)
	return low * math.Pow(high/low, part), nil
}

// spreads is how many of the noise's scales stand for all: they change slowly from answer to answer.
const spreads = 20

// Worst is theory's mean of the largest of k errors.
func (r Rival) Worst(n, k int64) (float64, error) {
	p, err := thresholdout.Plan(r.Spec(n, k))
	if err != nil {
		return 0, fmt.Errorf("experiments: %s, n %d, k %d: %w", r.Name, n, k, err)
	}
	noise, rows := r.noise(p), float64(n)
	if p.Mechanism == thresholdout.Split {
		rows = math.Floor(float64(n) / float64(k)) // each answer has rows of its own: there is nothing to adapt to
	}
	count := float64(k - 1)
	scales := make([]float64, min(spreads, int(k-1)))
	kept := 0.0
	for i := range scales {
		s := noise(int64((float64(i) + 0.5) / float64(len(scales)) * count))
		scales[i] = math.Hypot(0.5/math.Sqrt(rows), s)
		kept += count / float64(len(scales)) / (1 + 4*rows*s*s)
	}
	bias := 0.0
	if p.Mechanism != thresholdout.Split {
		bias = distuv.UnitNormal.CDF(math.Sqrt(kept/rows)) - 0.5
	}
	last := math.Hypot(0.5/math.Sqrt(rows), noise(k-1))
	// The mean of a variable from 0 up is the integral of its survival function.
	const steps = 300
	end := bias + 8*max(last, scales[0], scales[len(scales)-1])
	sum := 0.0
	for i := range steps {
		x := (float64(i) + 0.5) / steps * end
		within := math.Log(distuv.UnitNormal.CDF((x-bias)/last) - distuv.UnitNormal.CDF((-x-bias)/last))
		for _, s := range scales {
			within += count / float64(len(scales)) * math.Log1p(-2*distuv.UnitNormal.Survival(x/s))
		}
		sum += -math.Expm1(within) * end / steps
	}
	return sum, nil
}

// noise is the deviation of an answer's noise, by how many questions were asked before: as the plan promises it, whatever noise is then drawn.
func (r Rival) noise(p thresholdout.Guarantee) func(asked int64) float64 {
	switch p.Mechanism {
	case thresholdout.Naive, thresholdout.Split:
		return func(int64) float64 { return 0 }
	}
	constant := ConstantNoise(p)
	if p.Mechanism != thresholdout.Gaussian {
		return constant
	}
	return func(asked int64) float64 { return constant(asked) * bounds.ScheduledSigma(1, asked+1, p.Questions) }
}
