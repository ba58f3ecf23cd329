package account

import "math"

// ZCDP is rho of zero-concentrated differential privacy (Bun and Steinke, arXiv 1605.02065). It is at least 0, and what
// several releases spend is the sum.
type ZCDP float64

// GaussianZCDP is what one release with Gaussian noise of standard deviation sigma spends: sensitivity^2 / (2 sigma^2).
func GaussianZCDP(sensitivity, sigma float64) ZCDP {
	must(sensitivity >= 0 && sigma > 0, "sensitivity %v, sigma %v", sensitivity, sigma)
	ratio := sensitivity / sigma
	return ZCDP(ratio * ratio / 2)
}

// PureZCDP bounds what an eps-differentially private release spends: eps^2/2 (their Proposition 1.4).
func PureZCDP(eps float64) ZCDP {
	mustEpsilon(eps)
	return ZCDP(eps * eps / 2)
}

// Delta is a delta for which (eps, delta) holds, by Canonne, Kamath and Steinke (arXiv 2004.00010, Corollary 13):
//
//	min over a > 1 of exp((a-1)(a rho - eps)) (1-1/a)^a / (a-1)
//
// The exponent's derivative in a is (2a-1) rho - eps + ln(1-1/a), which grows, so the minimum is where it is 0.
func (z ZCDP) Delta(eps float64) float64 {
	rho := float64(z)
	must(rho >= 0, "rho %v is negative", rho)
	mustEpsilon(eps)
	switch {
	case rho == 0 || math.IsInf(eps, 1) || !math.IsInf(rho, 1) && math.IsInf(eps/rho, 1): // the last is e^{-eps²/(4 rho)}, or less
		return 0
	case math.IsInf(rho, 1):
		return 1
	}
	b := smallest(0, min((eps+1)/(2*rho)+1, math.MaxFloat64), func(b float64) bool { // b = a-1
		return (2*b+1)*rho-eps-math.Log1p(1/b) >= 0
	})
	// a ln(1-1/a) - ln(a-1) = -b ln(1+1/b) - ln(1+b): no number here is lost beside 1 where rho is large and b small.
	return min(1, math.Exp(b*((1+b)*rho-eps)-b*math.Log1p(1/b)-math.Log1p(b)))
}

// Epsilon is the least eps for which that Delta is at most delta: +Inf for delta = 0, unless rho is 0.
func (z ZCDP) Epsilon(delta float64) float64 {
	mustDelta(delta)
	ok := func(eps float64) bool { return z.Delta(eps) <= delta }
	switch {
	case ok(0):
		return 0
	case delta == 0 || math.IsInf(float64(z), 1):
		return math.Inf(1)
	}
	return smallest(0, doubled(1, ok), ok)
}

// LargestZCDP is the largest rho whose Delta at eps is at most delta; 0 for delta = 0.
func LargestZCDP(eps, delta float64) ZCDP {
	mustEpsilon(eps)
	mustDelta(delta)
	switch {
	case delta == 0:
		return 0
	case delta == 1 || math.IsInf(eps, 1):
		return ZCDP(math.Inf(1))
	}
	ok := func(rho float64) bool { return ZCDP(rho).Delta(eps) <= delta }
	return ZCDP(largest(0, doubled(1, func(rho float64) bool { return !ok(rho) }), ok))
}
