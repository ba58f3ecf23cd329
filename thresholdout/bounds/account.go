package bounds

import (
	"math"
)

// What steps other than one [0,1] mean with Gaussian noise add to the information I that has been released, in nats
// (docs/proofs/adaptive-hoeffding.md section 2 for Gaussian answers, docs/proofs/account.md for the rest). n is the number of units.

// Information is the price of one Gaussian answer, or of one vector with noise sigma in each coordinate: variance/(2 sigma^2 (n-1)).
// variance is a sure bound, over all samples, of the variance over the rows of what is averaged, for a vector the sum over
// coordinates: see RangeVariance, OneHotVariance, ClippedVariance.
func Information(n, variance, sigma float64) float64 { return variance / (2 * sigma * sigma * (n - 1)) }

// RangeVariance is the largest variance of values in [low, high]: 1/4 for a [0,1] row function.
func RangeVariance(low, high float64) float64 { return (high - low) * (high - low) / 4 }

// OneHotVariance is that of the d frequencies of a column with d values, summed: 1-1/d, at most four plain questions.
func OneHotVariance(d int) float64 { return 1 - 1/float64(d) }

// ClippedVariance is that of vectors clipped to Euclidean norm r, summed over coordinates: r^2.
func ClippedVariance(r float64) float64 { return r * r }

// PairedVariance is that of the difference of two published predictions' losses, values in [0,1] that differ on at most a share d of
// the rows: d.
func PairedVariance(d float64) float64 { return d }

// PairedRange is the range that such a difference has for Hoeffding's inequality: its mean's half-width is PairedRange(d) times that of a
// [0,1] mean with noise sigma/PairedRange(d). The target is the mean of the rows' expectations given their features
// (docs/proofs/account.md, section 6).
func PairedRange(d float64) float64 { return 2 * math.Sqrt(d) }

// Selection is the price of choosing among any number of candidates by the exponential mechanism, P(r) proportional to
// e^(eta s_r(S)) with scores s_r that are means of [0,1] functions (Gumbel noise of scale 1/eta, then the largest): about
// that of one Gaussian answer with sigma = 1/eta.
func Selection(n, eta float64) float64 { return eta * eta * (n + 2) / (8 * n * n) }

// Comparison is the price of one bit: whether q(S) plus logistic noise of scale 1/eta is above a number, or which of two
// candidates' scores is larger. variance is a sure bound of the row variance of q or of the difference: 1/4 for a [0,1] mean.
func Comparison(n, variance, eta float64) float64 { return eta * eta * variance / (8 * (n - 1)) }

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

// AdaptiveTail bounds the probability that q(S) is more than t above (or below) its expectation, for a [0,1] query chosen after I
// nats were released.
func AdaptiveTail(n, t, released float64) float64 {
	return math.Exp(logAdapted(n, 2*n*t*t, released))
}

// AdaptivePValue turns the p-value p of a test that was chosen after I nats were released into one that is valid: under the
// null hypothesis it is at most u with probability at most u. p must be valid for tests fixed beforehand. The number itself
// may be shown in the last round only, since it is an answer without noise.
func AdaptivePValue(n, p, released float64) float64 {
	if p <= 0 {
		return 0
	}
	return math.Exp(logAdapted(n, -math.Log(p), released))
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
