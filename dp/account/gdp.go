package account

import (
	"math"

	"github.com/holdoutd/holdoutd/dp/normal"
)

// GDP is mu of Gaussian differential privacy (Dong, Roth and Su, arXiv 1905.02383): neighbours are as hard to tell apart
// as N(0,1) and N(mu,1). It is at least 0.
type GDP float64

// GaussianGDP is what one release with Gaussian noise of standard deviation sigma spends, exactly: sensitivity / sigma.
func GaussianGDP(sensitivity, sigma float64) GDP {
	must(sensitivity >= 0 && sigma > 0, "sensitivity %v, sigma %v", sensitivity, sigma)
	return GDP(sensitivity / sigma)
}

// ComposeGDP is what all of them together spend: the root of the sum of squares (their Corollary 3.3).
func ComposeGDP(parts ...GDP) GDP {
	sum := 0.0
	for _, m := range parts {
		must(m >= 0, "mu %v is negative", float64(m))
		sum = math.Hypot(sum, float64(m))
	}
	return GDP(sum)
}

// Delta is the least delta for which (eps, delta) holds:
//
//	Phi(-eps/mu + mu/2) - e^eps Phi(-eps/mu - mu/2)
//
// (their Corollary 2.13; Balle and Wang, arXiv 1805.06530, Theorem 8). With x = eps/mu - mu/2 and Mills' ratio M it is
// phi(x) (M(x) - M(x+mu)), since e^eps phi(x+mu) = phi(x); that has no large factor and no small one.
func (m GDP) Delta(eps float64) float64 {
	mu := float64(m)
	must(mu >= 0, "mu %v is negative", mu)
	mustEpsilon(eps)
	switch {
	case mu == 0 || math.IsInf(eps, 1):
		return 0
	case math.IsInf(mu, 1):
		return 1
	}
	x := eps/mu - mu/2
	if x < -1 { // M grows like e^{x^2/2}; both terms are far from 0 and from each other, or their difference is near 1
		return normal.Upper(x) - normal.Density(x)*normal.Mills(x+mu)
	}
	return normal.Density(x) * normal.MillsFall(x, mu)
}

// LogDelta is the logarithm of Delta, also where Delta underflows.
func (m GDP) LogDelta(eps float64) float64 {
	mu := float64(m)
	x := eps/mu - mu/2
	if !(x >= -1 && mu > 0) || math.IsInf(x, 1) || math.IsInf(mu, 1) {
		return math.Log(m.Delta(eps))
	}
	return normal.LogDensity(x) + math.Log(normal.MillsFall(x, mu))
}

// Epsilon is the least eps for which (eps, delta) holds: +Inf for delta = 0, unless mu is 0.
func (m GDP) Epsilon(delta float64) float64 {
	mustDelta(delta)
	if m.Delta(0) <= delta {
		return 0
	}
	ok := func(eps float64) bool { return m.Delta(eps) <= delta }
	if delta == 0 || math.IsInf(float64(m), 1) {
		return math.Inf(1)
	}
	return smallest(0, doubled(1, ok), ok)
}

// LargestGDP is the largest mu that is (eps, delta)-private; 0 for delta = 0.
func LargestGDP(eps, delta float64) GDP {
	mustEpsilon(eps)
	mustDelta(delta)
	if delta == 0 {
		return 0
	}
	ok := func(mu float64) bool { return GDP(mu).Delta(eps) <= delta }
	if delta == 1 || math.IsInf(eps, 1) {
		return GDP(math.Inf(1))
	}
	return GDP(largest(0, doubled(1, func(mu float64) bool { return !ok(mu) }), ok))
}

// GaussianSigma is the least standard deviation of Gaussian noise that makes a release of this sensitivity (eps,
// delta)-private, eps and delta above 0: the analytic Gaussian mechanism (arXiv 1805.06530, Algorithm 1). The textbook's
// sqrt(2 ln(1.25/delta)) sensitivity/eps is larger for small eps and not private for large.
func GaussianSigma(sensitivity, eps, delta float64) float64 {
	must(sensitivity >= 0, "sensitivity %v is negative", sensitivity)
	return sensitivity / float64(LargestGDP(eps, delta))
}
