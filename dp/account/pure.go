package account

import "math"

// Pure is k releases, each (Epsilon, Delta)-differentially private; Delta is usually 0.
type Pure struct {
	Epsilon float64 // of one
	Delta   float64 // of one
	K       int
}

func (p Pure) must() {
	mustEpsilon(p.Epsilon)
	mustDelta(p.Delta)
	must(p.K >= 0, "%d releases", p.K)
}

// allDelta is the probability with which any of the K fails, were they independent: 1 - (1-Delta)^K.
func (p Pure) allDelta() float64 { return -math.Expm1(float64(p.K) * math.Log1p(-p.Delta)) }

// Basic is K Epsilon, at delta K Delta.
func (p Pure) Basic() float64 {
	p.must()
	return float64(p.K) * p.Epsilon
}

// Advanced is an epsilon of all at delta = slack + K Delta, also of releases chosen one by one:
//
//	sqrt(2 K ln(1/slack)) Epsilon + K Epsilon tanh(Epsilon/2)
//
// (Dwork, Rothblum and Vadhan 2010; the second term, at most K Epsilon^2/2, is the largest mean of a privacy loss
// bounded by Epsilon).
func (p Pure) Advanced(slack float64) float64 {
	p.must()
	must(slack > 0 && slack <= 1, "slack %v is not in (0,1]", slack)
	k := float64(p.K)
	return math.Sqrt(-2*k*math.Log(slack))*p.Epsilon + k*p.Epsilon*math.Tanh(p.Epsilon/2)
}

// OptimalDelta is the least delta for which (eps, delta) holds for all, whatever the releases are and however they are
// chosen (Kairouz, Oh and Viswanath, arXiv 1311.0776, Theorem 3.3): that of K randomized responses. The loss is
// (K-2i) Epsilon with binomial probability, so
//
//	delta = 1 - (1-Delta)^K (1 - sum_i P(i) (1 - e^{eps - (K-2i) Epsilon})_+)
func (p Pure) OptimalDelta(eps float64) float64 {
	p.must()
	mustEpsilon(eps)
	if math.IsInf(p.Epsilon, 1) && p.K > 0 && !math.IsInf(eps, 1) {
		return 1
	}
	k, sum := float64(p.K), 0.0
	truth, lie := -math.Log1p(math.Exp(-p.Epsilon)), -p.Epsilon-math.Log1p(math.Exp(-p.Epsilon))
	coefficient := 0.0 // ln C(K,i)
	for i := 0.0; i <= k; i++ {
		excess := (k-2*i)*p.Epsilon - eps
		if excess <= 0 {
			break
		}
		sum += math.Exp(coefficient+(k-i)*truth+i*lie) * -math.Expm1(-excess)
		coefficient += math.Log((k - i) / (i + 1))
	}
	return min(1, sum+p.allDelta()*(1-sum))
}

// Optimal is the least eps of all at delta, between the points of the theorem's grid too; +Inf where delta is below what
// Delta alone costs.
func (p Pure) Optimal(delta float64) float64 {
	mustDelta(delta)
	ok := func(eps float64) bool { return p.OptimalDelta(eps) <= delta }
	switch {
	case ok(0):
		return 0
	case !ok(p.Basic()):
		return math.Inf(1)
	}
	return smallest(0, p.Basic(), ok)
}
