package adaptivity

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/holdoutd/holdoutd/thresholdout"
)

// predicted is the number of questions at which theory puts the mean of a run's largest error at the tolerance, for sizes as they are: no limit
// of large ones. It plays nothing. Answers about columns err by noise and sampling, independently. The last answer is about a vote of columns
// whose weights are proportional to what is known of their sampling errors; it errs by Phi(S) - 1/2 and by what is left of sampling.
func (r rival) predicted(n int64) (float64, error) {
	broken := error(nil)
	excess := func(k float64) float64 {
		e, err := r.expected(n, int64(math.Round(k)))
		if err != nil {
			broken = err
		}
		return e - tolerance
	}
	low, high := 2.0, 4.0
	for ; broken == nil && excess(high) < 0; high *= 2 {
		low = high
	}
	for broken == nil && high > 1.001*low+1 {
		if middle := math.Sqrt(low * high); excess(middle) < 0 {
			low = middle
		} else {
			high = middle
		}
	}
	if broken != nil {
		return 0, fmt.Errorf("experiments: %s with %d units: %w", r.name, n, broken)
	}
	below, above := excess(low), excess(high)
	return low - below*(high-low)/(above-below), nil
}

// expected is the mean of the largest error of k questions, by theory: the integral of the probability that it is beyond t.
func (r rival) expected(n, k int64) (float64, error) {
	if r.name == splitName {
		return largestOfSlices(n/k, k), nil
	}
	p, err := thresholdout.Plan(r.spec(n, k))
	if err != nil {
		return 0, err
	}
	units := float64(n)
	noise := func(int64) float64 { return 0 }
	if r.noise != nil {
		noise = r.noise(p)
	}
	known := 0.0 // S squared
	widths := make([]float64, 0, k-1)
	for j := range k - 1 {
		s := noise(j)
		known += 1 / (1 + 4*units*s*s) / units
		widths = append(widths, math.Sqrt(s*s+1/(4*units)))
	}
	lead := distuv.UnitNormal.CDF(math.Sqrt(known)) - 0.5
	// The columns' means are known, and with them a part of the vote's.
	last := math.Hypot(noise(k-1), math.Sqrt((0.25-1/(2*math.Pi))/units))
	const cells, farthest = 400, 0.5
	sum := 0.0
	for i := range cells {
		t := farthest * (float64(i) + 0.5) / cells
		within := math.Log(distuv.UnitNormal.CDF((t-lead)/last) - distuv.UnitNormal.CDF((-t-lead)/last))
		for _, w := range widths {
			if within < -40 {
				break
			}
			within += math.Log1p(-math.Erfc(t / w / math.Sqrt2))
		}
		sum += -math.Expm1(within) * farthest / cells
	}
	return sum, nil
}

// largestOfSlices is the mean of the largest error of k means of m coins each.
func largestOfSlices(m, k int64) float64 {
	coins := distuv.Binomial{N: float64(m), P: 0.5}
	sum := 0.0
	for off := 0.0; off <= float64(m)/2; off++ {
		// |count - m/2| is at most off + half, where half is that of an odd number of coins.
		half := float64(m%2) / 2
		below := off + half
		within := 1 - 2*coins.CDF(float64(m)/2-below-1)
		step := 1.0
		if off == 0 && half > 0 {
			sum += 0.5 // every error is at least half a coin
		}
		sum += (1 - math.Pow(within, float64(k))) * step
	}
	return sum / float64(m)
}
