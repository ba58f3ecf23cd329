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
	return chernoffLow(n, mean, level), chernoffHigh(n, mean, level)
}

// chernoffLow is the least p with n kl(mean||p) <= level, from below.
func chernoffLow(n, mean, level float64) float64 { return 1 - chernoffHigh(n, 1-mean, level) }

// chernoffHigh is the largest p with n kl(mean||p) <= level, from above. A mean outside of [0,1] is taken for its end.
func chernoffHigh(n, mean, level float64) float64 {
	mean = min(max(mean, 0), 1)
	lo, hi := mean, 1.0
	if mean == 0 {
		return -math.Expm1(-level / n)
	}
	for range 200 {
		p := (lo + hi) / 2
		if p <= lo || p >= hi {
			break
		}
		if n*KL(mean, p) > level {
			hi = p
		} else {
			lo = p
		}
	}
	return hi
}

// KL is the divergence of Bernoulli(q) from Bernoulli(p), in nats.
func KL(q, p float64) float64 { return binomial.KL(q, p) }

// ChernoffWidth is how far above (or below) a population mean of p the mean of n values gets with probability at most b: the w
// with n kl(p+w||p) = ln(1/b), or 1-p where even a mean of 1 is not that surprising. It is the tolerance of the moment generating
// function in Rogers et al. (AISTATS 2020).
func ChernoffWidth(n, p, b float64, above bool) float64 {
	if !above {
		p = 1 - p
	}
	level := math.Log(1 / b)
	lo, hi := 0.0, 1-p
	if p <= 0 || p >= 1 || n*KL(1, p) <= level {
		return max(hi, 0)
	}
	for hi-lo > 1e-15 {
		w := (lo + hi) / 2
		if w <= lo || w >= hi {
			break
		}
		if n*KL(p+w, p) > level {
			hi = w
		} else {
			lo = w
		}
	}
	return hi
}

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
	return chernoffLow(c.N, answer-noise, level), chernoffHigh(c.N, answer+noise, level), nil
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

// ClopperPearson is the exact interval for a probability from successes in trials: each end misses with probability at most
// beta/2.
func ClopperPearson(successes, trials int64, beta float64) (low, high float64, err error) {
	if err := check(max(trials, MinUnits), 1, beta); err != nil {
		return 0, 0, err
	}
	x := float64(successes)
	low, high = binomialEnds(float64(trials), x, x, math.Log(2/beta))
	return low, high, nil
}

// exactTrials is up to how many trials the binomial tail is used. Beyond, Chernoff's bound is within a part in ten thousand of it.
const exactTrials = 1 << 26

// binomialEnds are the least p of which as many successes as fewest are no surprise at this level, and the largest of which as few as most
// are none.
func binomialEnds(n, fewest, most, level float64) (low, high float64) {
	if n > exactTrials {
		return chernoffLow(n, fewest/n, level), chernoffHigh(n, most/n, level)
	}
	return binomial.Low(n, fewest, level), binomial.High(n, most, level)
}

// Cells is the number of equal cells of [0,1] whose midpoints are within gamma of all in the cell: ceil(1/(2 gamma)).
func Cells(gamma float64) float64 { return max(1, math.Ceil(1/(2*gamma))) }
