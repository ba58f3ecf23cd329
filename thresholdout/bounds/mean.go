package bounds

import (
	"math"

	"github.com/holdoutd/holdoutd/dp/binomial"
)

// Intervals that depend on the mean: narrower than Hoeffding's where it is far from one half. Each is an inversion: the set of all p
// for which the sample's mean is not too surprising, at a level that is fixed beforehand and the same for all p.

// ChernoffInterval is the set of means p with n kl(mean||p) <= level, for n independent values in [0,1]: each end misses with
// probability at most e^-level (Chernoff).
func ChernoffInterval(n, mean, level float64) (low, high float64) {
	return ChernoffLow(n, mean, level), ChernoffHigh(n, mean, level)
}

// ChernoffLow is the low end of [ChernoffInterval]: the least p with n kl(mean||p) <= level, from below.
func ChernoffLow(n, mean, level float64) float64 { return 1 - ChernoffHigh(n, 1-mean, level) }

// ChernoffHigh is the high end of [ChernoffInterval]: the largest p with n kl(mean||p) <= level, from above. A mean outside of [0,1] is taken for its end.
func ChernoffHigh(n, mean, level float64) float64 {
	mean = min(max(mean, 0), 1)
	if mean == 0 {
		return -math.Expm1(-level / n)
	}
	inside, outside := surely(n, mean, level)
	lo, hi := mean, 1.0
	for range 200 {
		p := (lo + hi) / 2
		if p <= lo || p >= hi {
			break
		}
		if p >= outside || p > inside && n*KL(mean, p) > level {
			hi = p
		} else {
			lo = p
		}
	}
	return hi
}

const (
	// sureSteps is how many steps of Newton's method are worth taking to save steps of a bisection.
	sureSteps = 12
	// sureAway is how far from the root nobody needs to look, as a share of its distance from the mean.
	sureAway = 0x1p-38
	// klError is more than the error of KL(q,p) as a share of |q-p|: terms of that size cancel in it.
	klError = 0x1p-48
)

// surely are numbers between which the root p > mean of n kl(mean||p) = level lies: at inside and below the divergence that is computed is at most level, at outside and above it is more, whatever is
// rounded. So a bisection need not compute it there, and ends at the same number. They are the mean and 1 where nothing is known.
func surely(n, mean, level float64) (inside, outside float64) {
	each := level / n
	p := mean + min(math.Sqrt(each/2), each+math.Sqrt(each*each+2*mean*each)) // beyond the root, for the divergence is at least 2(p-q)^2 and (p-q)^2/(2p)
	if !(p < 1 && level > 0 && p > mean) {
		return mean, 1
	}
	for range sureSteps { // the divergence is convex, so Newton's steps stay beyond the root
		step := (KL(mean, p) - each) * p * (1 - p) / (p - mean)
		if p -= step; !(p > mean) {
			return mean, 1
		}
		if step < (p-mean)*sureAway/4 {
			break
		}
	}
	away := (p-mean)*sureAway + 4*klError*p*(1-p) // where what is rounded is less than the divergence changes
	low, high := p-away, p+away
	rounding := klError*(p-mean) + klError*each
	if !(low > mean && high < 1) || n*(KL(mean, low)+rounding) > level || n*(KL(mean, high)-rounding) <= level {
		return mean, 1
	}
	return low, high
}

// KL is the divergence of Bernoulli(q) from Bernoulli(p), in nats.
func KL(q, p float64) float64 { return binomial.KL(q, p) }

// MeanInterval is the interval, in [0,1], around an answer with noise sigma by Chernoff's bound: Share pays for sampling, and
// Mechanism for noise beyond its quantile. rounding is how far the answer may be from the noisy mean beside. It is narrow for means
// near 0 or 1; since it uses the account's own M, which kind of interval an answer gets may depend on what was seen before it.
func (c Capped) MeanInterval(answer, sigma, rounding float64) (low, high float64, err error) {
	noise, err := c.noise(sigma)
	if err != nil {
		return 0, 0, err
	}
	noise += rounding
	level := c.Level(c.Share)
	return ChernoffLow(c.N, answer-noise, level), ChernoffHigh(c.N, answer+noise, level), nil
}

// FractionInterval is MeanInterval with the exact binomial tail, for a yes/no question about independent units of one law. The
// sample's mean is a whole number of units over N, so that the noise leaves the counts from within: the ends are MeanInterval's of
// the outermost counts or narrower. answer may be off its grid by gridSlack.
func (c Capped) FractionInterval(answer, sigma float64) (low, high float64, err error) {
	noise, err := c.noise(sigma)
	if err != nil {
		return 0, 0, err
	}
	level := c.Level(c.Share)
	fewest := min(math.Ceil(max(answer-noise-gridSlack, 0)*c.N), c.N)
	most := max(math.Floor(min(answer+noise+gridSlack, 1)*c.N), 0)
	if fewest > most { // the noise was beyond its quantile: no count is near
		fewest, most = most, fewest
	}
	low, high = binomialEnds(c.N, fewest, most, level)
	return low, high, nil
}

// gridSlack is how far a released answer may be from the noisy mean because it was rounded to a grid, and covers rounding
// in floating point: far less than one unit of as many as exactTrials.
const gridSlack = 1.0 / (1 << 29)

// noise is what noise of this scale exceeds on either side with probability Mechanism.
func (c Capped) noise(sigma float64) (float64, error) {
	if err := c.check(); err != nil || sigma == 0 {
		return 0, err
	}
	if err := checkNoise(sigma); err != nil {
		return 0, err
	}
	if err := check(MinUnits, 1, c.Mechanism); err != nil {
		return 0, err
	}
	return sigma * MaxNormalQuantile(1, c.Mechanism), nil
}

// exactTrials is up to how many trials the binomial tail is used. Beyond, Chernoff's bound is within a part in ten thousand of it.
const exactTrials = 1 << 26

// binomialEnds are the least p of which as many successes as fewest are no surprise at this level, and the largest of which as few as most
// are none.
func binomialEnds(n, fewest, most, level float64) (low, high float64) {
	if n > exactTrials {
		return ChernoffLow(n, fewest/n, level), ChernoffHigh(n, most/n, level)
	}
	return binomial.Low(n, fewest, level), binomial.High(n, most, level)
}

// Cells is the number of equal cells of [0,1] whose midpoints are within gamma of all in the cell: ceil(1/(2 gamma)).
func Cells(gamma float64) float64 { return max(1, math.Ceil(1/(2*gamma))) }
