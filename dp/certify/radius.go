package certify

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/holdoutd/holdoutd/dp/minimum"
	"github.com/holdoutd/holdoutd/dp/normal"
)

// The certificates as functions of two numbers: top, a lower bound on the expected score of the predicted label, and rest, an
// upper bound on that of every other label, 0 <= top, rest <= 1. Each returns the radius within which (nearer than, not at) the
// order of the two cannot change, 0 where nothing is certified.

// below is how much radii are rounded down, so that errors of the last digits of quantiles and logarithms never enlarge one.
const below = 1 - 1e-12

// PixelDPHolds is the robustness condition of (eps,delta)-differentially private scores: top > e^(2 eps) rest + (1 + e^eps) delta
// (Lecuyer et al., arXiv:1802.03471, proposition 1 with the bounds of its section III.C).
func PixelDPHolds(top, rest, eps, delta float64) bool {
	return top > math.Exp(2*eps)*rest+(1+math.Exp(eps))*delta
}

// PixelDPEpsilon is the least eps that breaks [PixelDPHolds] for this delta, which is 0 where none >= 0 holds: the positive root
// of rest x^2 + delta x + delta - top in x = e^eps.
func PixelDPEpsilon(top, rest, delta float64) float64 {
	if !PixelDPHolds(top, rest, 0, delta) {
		return 0
	}
	// 2c/(-b - sqrt(b^2-4ac)) keeps its digits where rest is small or 0.
	return math.Log(2 * (top - delta) / (delta + math.Sqrt(delta*delta+4*rest*(top-delta))))
}

// PixelDPLaplace is the L1 radius for Laplace noise of this scale on each coordinate, which is (r/scale)-differentially private
// at distance r: scale ln(top/rest)/2.
func PixelDPLaplace(top, rest, scale float64) float64 {
	return below * scale * PixelDPEpsilon(top, rest, 0)
}

// Range of delta that [PixelDPGaussian] searches. The classical calibration is proved for sigma eps/r >= 3/2, where delta is 0.406
// at most; below 1e-12 a radius shrinks with delta by less than it gains.
const (
	minDelta, maxDelta = 1e-12, 0.4
	deltaGrid          = 160
)

// PixelDPGaussian is the L2 radius for Gaussian noise of standard deviation sigma, which is (eps,delta)-differentially private at
// distance r when sigma = r sqrt(2 ln(1.25/delta))/eps and eps <= 1 (Dwork, Roth 2014, theorem A.1): the largest over delta of
// sigma eps / sqrt(2 ln(1.25/delta)). The paper's code searches a grid of both and finds less by up to some parts in a thousand.
func PixelDPGaussian(top, rest, sigma float64) float64 {
	size := func(logDelta float64) float64 {
		delta := math.Exp(logDelta)
		return sigma * min(1, PixelDPEpsilon(top, rest, delta)) / math.Sqrt(2*math.Log(1.25/delta))
	}
	return below * maximum(size, math.Log(minDelta), math.Log(maxDelta), deltaGrid)
}

// SmoothingGaussian is the L2 radius of Cohen, Rosenfeld, Kolter (arXiv:1902.02918, theorem 1): sigma (Q(top) - Q(rest))/2 with the
// standard normal quantile Q. It is what Gaussian differential privacy says: noise sigma at distance r is (r/sigma)-GDP, so that an
// expected score p becomes no less than Phi(Q(p) - r/sigma) and no more than Phi(Q(p) + r/sigma) ([GaussianShift]). With
// rest = 1-top it is sigma Q(top).
func SmoothingGaussian(top, rest, sigma float64) float64 {
	if !(top > rest) {
		return 0
	}
	return below * sigma * (quantile(top) - quantile(rest)) / 2
}

// GaussianShift returns the least and the most that an expected score p becomes when its input moves by mu standard deviations of
// Gaussian noise: Phi(Q(p) -+ mu), the trade-off function of mu-GDP (arXiv:1905.02383, definition 2.6).
func GaussianShift(p, mu float64) (least, most float64) {
	q := quantile(p)
	return normal.Upper(mu - q), normal.Upper(-q - mu)
}

// SmoothingLaplace is the L1 radius for Laplace noise of this scale. At eps = r/scale pure differential privacy bounds an expected
// score p from both sides, e^-eps p <= p' <= e^eps p and the same for 1-p. The first pair gives scale ln(top/rest)/2, as
// [PixelDPLaplace]; top' >= 1 - e^eps (1-top) with rest' <= e^eps rest gives -scale ln(1 - top + rest); the larger holds (Teng, Lee,
// Yuan, "l1 adversarial robustness certificates", 2020, theorem 1).
func SmoothingLaplace(top, rest, scale float64) float64 {
	if !(top > rest) {
		return 0
	}
	return max(PixelDPLaplace(top, rest, scale), -below*scale*math.Log1p(rest-top))
}

// Orders of Rényi divergence that [RenyiGaussian] searches: it divides by the order, and beyond the largest the logarithm hardly grows.
const (
	minOrder, maxOrder = 1 + 1e-6, 1e4
	orderGrid          = 160
)

// RenyiGaussian is the L2 radius of Li, Chen, Wang, Carin (arXiv:1809.03113, theorem 2) for two expected frequencies with
// top + rest <= 1: r^2 is the largest over orders a > 1 of -(2 sigma^2/a) ln(1 - top - rest + 2 M), M the power mean of top and rest
// with exponent 1-a. [SmoothingGaussian] is larger always.
func RenyiGaussian(top, rest, sigma float64) float64 {
	if !(top > rest) || top+rest > 1+1e-12 {
		return 0
	}
	square := func(logExcess float64) float64 {
		a := 1 + math.Exp(logExcess)
		return -2 * sigma * sigma / a * math.Log1p(2*powerMean(top, rest, 1-a)-top-rest)
	}
	return below * math.Sqrt(max(0, maximum(square, math.Log(minOrder-1), math.Log(maxOrder-1), orderGrid)))
}

// powerMean is ((x^e + y^e)/2)^(1/e) for e < 0, with the smaller number taken out so that no power overflows.
func powerMean(x, y, e float64) float64 {
	small, large := min(x, y), max(x, y)
	if small <= 0 {
		return 0
	}
	return small * math.Pow((1+math.Pow(large/small, e))/2, 1/e)
}

// quantile of the standard normal distribution, infinite at 0 and 1.
func quantile(p float64) float64 {
	switch {
	case p <= 0:
		return math.Inf(-1)
	case p >= 1:
		return math.Inf(1)
	}
	return distuv.UnitNormal.Quantile(p)
}

// maximum is the largest value of f that is found on a grid from low to high and about its best point. For a certificate every value is
// valid, so that a search that misses the maximum loses width, not validity.
func maximum(f func(float64) float64, low, high float64, cells int) float64 {
	_, least := minimum.Scanned(func(x float64) float64 { return -f(x) }, low, high, cells, 1e-9)
	return -least
}
