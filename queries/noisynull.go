package queries

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Plain p-values of single tests, from the law that the released, noisy numbers have under the null (a noisy null). They are what a
// statistician would print who ran this test alone: right for a hypothesis that was fixed before anything was known of the units,
// and not to be read as one of many. So they are given only where nothing had been told of the units before: for the first request
// of a holdout, and under split, where each mean is of units of its own.

// freshness is what a plain p-value needs to know of a part.
type freshness struct {
	units int64   // that the part is a mean of
	sigma float64 // its noise
}

// fresh is the freshness that all parts share; false where one of them is not fresh, or where they differ.
func (o Outcome) fresh() (f freshness, ok bool) {
	for i, p := range o.Parts {
		if !p.Fresh || p.Units < 1 || i > 0 && (freshness{p.Units, p.Sigma}) != f {
			return freshness{}, false
		}
		f = freshness{p.Units, p.Sigma}
	}
	return f, len(o.Parts) > 0
}

// slack is what rounding to the grid may add to a deviation: in doubt a p-value is larger.
const slack = 0x1p-28

// meanPValue is that of a mean of values in [0,1] whose expectation is null: normal, with the largest variance that such values can
// have, null(1-null). It is a number for n in the hundreds; nil where the null leaves no room for chance.
func (f freshness) meanPValue(value, null float64, alternative string) *float64 {
	variance := null*(1-null)/float64(f.units) + f.sigma*f.sigma
	if !(null >= 0 && null <= 1 && variance > 0) {
		return nil
	}
	return sided((value-null)/math.Sqrt(variance), slack/math.Sqrt(variance), alternative)
}

// sided is the p-value of a standard normal deviation.
func sided(z, slack float64, alternative string) *float64 {
	var p float64
	switch alternative {
	case greater:
		p = distuv.UnitNormal.Survival(z - slack)
	case less:
		p = distuv.UnitNormal.CDF(z + slack)
	default:
		p = min(1, 2*distuv.UnitNormal.Survival(math.Abs(z)-slack))
	}
	return &p
}

// proportionPValue is exact: that of a share whose expectation is null, of independent rows of one law, with noise, clipped to [0,1].
// Two-sided it is the probability of a deviation at least as large, on either side.
func (f freshness) proportionPValue(value, null float64, alternative string) *float64 {
	if !(null > 0 && null < 1) {
		return nil
	}
	away := value - null
	if alternative == twoSided {
		away = math.Abs(away)
	}
	p := 0.0
	if alternative != less {
		p += f.reaches(null, null+away-slack)
	}
	if alternative == twoSided {
		away = -away
	}
	if alternative != greater {
		p += 1 - f.reaches(null, math.Nextafter(null+away+slack, 2))
	}
	p = min(max(p, 0), 1)
	return &p
}

// reaches is the probability that the released share is at least x: clipping makes it 1 for x <= 0 and 0 for x > 1.
func (f freshness) reaches(null, x float64) float64 {
	switch {
	case x <= 0:
		return 1
	case x > 1:
		return 0
	}
	n := float64(f.units)
	count := distuv.Binomial{N: n, P: null}
	if f.sigma == 0 {
		least := math.Ceil(x*n - 1e-9)
		if least <= 0 {
			return 1
		}
		return 1 - count.CDF(least-1)
	}
	// Beyond tails standard deviations, and 1/n for small n, lies less than 1e-15.
	sd := math.Sqrt(n * null * (1 - null))
	total := 0.0
	for k := max(0, math.Floor(n*null-tails*sd-tails)); k <= min(n, math.Ceil(n*null+tails*sd+tails)); k++ {
		total += math.Exp(count.LogProb(k)) * distuv.UnitNormal.Survival((x-k/n)/f.sigma)
	}
	return total
}

const tails = 9

// cellsPValue is that of shares of cells, all of them, whose expectations are null, by Pearson's statistic with the noise in its
// covariance (Kifer and Rogers, AISTATS 2017): chi-square with as many degrees of freedom as cells, one less without noise. It is
// asymptotic, for expected counts of five and more.
func (f freshness) cellsPValue(values, null []float64) *float64 {
	n, noise := float64(f.units), float64(f.units)*f.sigma*f.sigma
	// With u = sqrt(n) (value - null), its covariance is diag(null) - null null' + noise, inverted by Sherman and Morrison.
	var plain, cross, weight float64
	cells := 0
	for i, p := range null {
		d := p + noise
		if d <= 0 {
			if values[i] > 0 {
				zero := 0.0
				return &zero // a cell that cannot be
			}
			continue
		}
		u := math.Sqrt(n) * (values[i] - p)
		plain += u * u / d
		cross += u * p / d
		weight += p * p / d
		cells++
	}
	if f.sigma == 0 {
		cells, cross = cells-1, 0
	} else {
		plain += cross * cross / (1 - weight)
	}
	if cells < 1 {
		return nil
	}
	p := distuv.ChiSquared{K: float64(cells)}.Survival(plain)
	return &p
}

// plain is the test's own p-value, where it has one that is right.
func (q *test) plain(c *compiler) func(Outcome) *float64 {
	alone := q.Where == nil
	grouped := c.grouped
	return func(o Outcome) *float64 {
		f, ok := o.fresh()
		if !ok {
			return nil
		}
		switch {
		case q.Test == "mean" && alone:
			width := q.Range.High - q.Range.Low
			return f.meanPValue(o.Parts[0].Value, (q.equals()-q.Range.Low)/width, q.Alternative)
		case q.Test == "proportion" && alone && grouped: // a unit's share need not be 0 or 1
			return f.meanPValue(o.Parts[0].Value, q.equals(), q.Alternative)
		case q.Test == "proportion" && alone:
			return f.proportionPValue(o.Parts[0].Value, q.equals(), q.Alternative)
		case q.Test == "goodness-of-fit" && !grouped:
			values := make([]float64, len(o.Parts))
			for i, p := range o.Parts {
				values[i] = p.Value
			}
			return f.cellsPValue(values, q.expectedShares())
		}
		return nil
	}
}

// expectedShares are those of all cells, the last one's being what is left.
func (q *test) expectedShares() []float64 {
	return append(append([]float64{}, q.Expected...), max(0, 1-totalOf(q.Expected)))
}
