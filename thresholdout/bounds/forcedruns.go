package bounds

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// ForcedRuns bounds the errors of Thresholdout whose failures release the holdout mean plus Gaussian noise. For each
// prefix of passes and failures the run is an adaptive Gaussian mechanism that releases only what failures release; the union
// over the prefixes pays for the comparisons, whatever their noise (docs/proofs/adaptive-hoeffding.md, section 6).
// A third of beta goes to the sampling error, a third to the noise of comparisons, a third to the noise of releases.
type ForcedRuns struct {
	N          int64   // units of the holdout
	Questions  int64   // k
	Tokens     int64   // B, failures that may be answered
	Beta       float64 // 1-confidence
	Threshold  float64 // T
	Comparison float64 // sd of the Gaussian noise of each comparison
	Release    float64 // sd of the Gaussian noise of each release
}

// Sampling is tol_{j,f}: the deviation of any holdout mean that the analyst may ask for next from its expectation, after
// asked questions of which f failed.
func (r ForcedRuns) Sampling(asked, failed int64) float64 {
	return math.Sqrt(r.level(asked, failed) / (2 * float64(r.N)))
}

// level is that at which a deviation must be improbable over a fresh sample: for the union over the prefixes, and for what failures released.
func (r ForcedRuns) level(asked, failed int64) float64 {
	prefixes := math.Log(6*float64(r.Questions)*float64(r.Tokens+1)/r.Beta) + logBinomial(asked, failed)
	if failed == 0 {
		return prefixes // nothing was released
	}
	return AdaptiveLevel(float64(r.N), prefixes, float64(failed)*information(float64(r.N), r.Release))
}

// Within is the interval for the expectation of a question whose holdout mean is between low and high, by Chernoff's inequality at the level at which Sampling is Hoeffding's: each end
// stands for the same event at the same probability, whatever the mean is.
func (r ForcedRuns) Within(low, high float64, asked, failed int64) (from, to float64) {
	n, level := float64(r.N), r.level(asked, failed)
	return ChernoffLow(n, low, level), ChernoffHigh(n, high, level)
}

// deviation is the least t whose Hoeffding tail e^(-2nt^2) is as improbable as AdaptiveLevel asks for.
func deviation(n, level, released float64) float64 {
	return math.Sqrt(AdaptiveLevel(n, level, released) / (2 * n))
}

// ComparisonNoise is u: with probability 1-beta/3 no comparison's noise is above it.
func (r ForcedRuns) ComparisonNoise() float64 {
	each := -math.Expm1(math.Log1p(-r.Beta/3) / float64(r.Questions))
	return -r.Comparison * distuv.UnitNormal.Quantile(each)
}

// ReleaseNoise is sigma z: with probability 1-beta/3 no release's noise is beyond it.
func (r ForcedRuns) ReleaseNoise() float64 {
	if r.Tokens == 0 {
		return 0
	}
	each := -math.Expm1(math.Log1p(-r.Beta/3) / float64(r.Tokens))
	return -r.Release * distuv.UnitNormal.Quantile(each/2)
}

// Pass is the half-width around the training mean of a question that passed.
func (r ForcedRuns) Pass(asked, failed int64) float64 {
	return r.Threshold + r.ComparisonNoise() + r.Sampling(asked, failed)
}

// Fail is the half-width around the released holdout mean of a question that failed.
func (r ForcedRuns) Fail(asked, failed int64) float64 {
	return r.Sampling(asked, failed) + r.ReleaseNoise()
}

// TunedNoise is the noise, for comparisons and releases alike, that makes Pass narrowest when half of the tokens are spent:
// more of it widens every comparison, less of it lets failures release more.
func (r ForcedRuns) TunedNoise() float64 {
	n := float64(r.N)
	unit := r
	unit.Comparison = 1
	spent := max(float64(r.Tokens)/2, 1)
	return math.Sqrt(math.Sqrt(spent/(8*(n-1))) / (unit.ComparisonNoise() * math.Sqrt(2*n)))
}

// logBinomial is ln C(n, k) or a little more: for large n the logarithms of the gamma function cancel, so their rounding
// errors are added, and ln C(n, k) <= k ln(ne/k) takes over where it is smaller.
func logBinomial(n, k int64) float64 {
	if k <= 0 || k >= n {
		return 0
	}
	const relative = 1e-15 // of each logarithm, several times math.Lgamma's error
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	return min(a-b-c+relative*(a+b+c), float64(k)*(1+math.Log(float64(n)/float64(k))))
}
