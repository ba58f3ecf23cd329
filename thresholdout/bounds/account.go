package bounds

import (
	"math"
)

// What steps other than one [0,1] mean with Gaussian noise add to the information I that has been released, in nats
// (docs/proofs/adaptive-hoeffding.md section 2 for Gaussian answers, docs/proofs/account.md for the rest). n is the number of units.

// Information is the price of one Gaussian answer, or of one vector with noise sigma in each coordinate: variance/(2 sigma^2 (n-1)).
// variance is a sure bound, over all samples, of the variance over the rows of what is averaged, for a vector the sum over
// coordinates: see [OneHotVariance]; of a range r it is r^2/4.
func Information(n, variance, sigma float64) float64 { return variance / (2 * sigma * sigma * (n - 1)) }

// OneHotVariance is that of the d frequencies of a column with d values, summed: 1-1/d, at most four plain questions.
func OneHotVariance(d int) float64 { return 1 - 1/float64(d) }

// Selection is the price of choosing among any number of candidates by the exponential mechanism, P(r) proportional to
// e^(eta s_r(S)) with scores s_r that are means of [0,1] functions (Gumbel noise of scale 1/eta, then the largest): about
// that of one Gaussian answer with sigma = 1/eta.
func Selection(n, eta float64) float64 { return eta * eta * (n + 2) / (8 * n * n) }

// logAdapted is ln of the bound of the probability of an event that has probability e^-level over a fresh sample, when I nats
// are out: the least over integers 1 <= m < n of (n/m-1) I - (1-m/n) level, at most 0.
func logAdapted(n, level, released float64) float64 {
	if released <= 0 {
		return -level
	}
	if level <= released {
		return 0
	}
	m := tailM(n, level, released)
	return min(0, (n/m-1)*released-(1-m/n)*level)
}

// Exact is the half-width of answers without noise, count of them, whose intervals miss with probability at most share
// together, when I nats were released before any of them was chosen. Nothing may be chosen after them.
func Exact(n, count, share, released float64) float64 {
	level := math.Log(2 * count / share)
	if released <= 0 {
		return math.Sqrt(level / (2 * n))
	}
	return deviation(n, level, released)
}
