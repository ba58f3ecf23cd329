package account

import "math"

// subsampled is the Gaussian mechanism on a Poisson sample: N(0, s^2) against (1-q) N(0, s^2) + q N(1, s^2).
//
// Its divergence of order a, in the worse direction and for any neighbours that differ in one example (Mironov, Talwar and
// Zhang, arXiv 1908.10530, section 3), is ln A / (a-1) with
//
//	A = E (1+u)^a,  u = q (e^{x/s - 1/(2 s^2)} - 1),  x ~ N(0,1)
//
// Both ways below sum A - 1, whose terms are positive, so that a small divergence keeps its digits: A is 1 + 1e-6 where
// training is private. For an integer a it is a binomial sum, for others the integral itself (the paper's two series
// alternate).
type subsampled struct{ rate, multiplier float64 }

func newSubsampled(rate, multiplier float64) subsampled {
	must(rate >= 0 && rate <= 1, "rate %v is not in [0,1]", rate)
	must(multiplier > 0 && !math.IsInf(multiplier, 1), "multiplier %v is not positive and finite", multiplier)
	return subsampled{rate, multiplier}
}

// SubsampledDivergence is the Rényi divergence of one step of [RDP.SubsampledGaussian] at an order in (1, MaxOrder].
func SubsampledDivergence(rate, multiplier, order float64) float64 {
	must(order > 1 && order <= MaxOrder, "order %v is not in (1, %v]", order, MaxOrder)
	return newSubsampled(rate, multiplier).divergence(order)
}

func (s subsampled) divergence(a float64) float64 {
	low := math.Floor(a)
	switch {
	case s.rate == 0:
		return 0
	case s.rate == 1:
		return a * float64(GaussianZCDP(1, s.multiplier))
	case a == low:
		return s.binomial(a) / (a - 1)
	case s.multiplier < leastMultiplier: // ln A is convex in a and 0 at 1: a chord between integers bounds it
		first := 0.0
		if low > 1 {
			first = s.binomial(low)
		}
		return ((low+1-a)*first + (a-low)*s.binomial(low+1)) / (a - 1)
	}
	return s.integral(a) / (a - 1)
}

// leastMultiplier bounds the nodes of the integral; less noise protects nothing anyway.
const leastMultiplier = 0.1

// binomial is ln A with A - 1 the sum over i >= 2 of C(a,i) (1-q)^{a-i} q^i (e^{i(i-1)/(2 s^2)} - 1): what is left out of
// the sum for A is the binomial law, whose sum is 1.
func (s subsampled) binomial(a float64) float64 {
	var sum logSum
	coefficient, odds := a*math.Log1p(-s.rate), math.Log(s.rate)-math.Log1p(-s.rate)
	for i := 1.0; i <= a; i++ {
		coefficient += math.Log((a-i+1)/i) + odds
		if i > 1 {
			sum.add(coefficient + logExpm1(i*(i-1)/(2*s.multiplier*s.multiplier)))
		}
	}
	return sum.log1p()
}

// integral is ln A with A - 1 = E (1+u)^a - 1 - a u, since E u = 0, by the trapezoidal rule. The integrand falls like the
// normal density about centres in [0, a/s] and is analytic for |Im x| < pi s, where 1+u becomes 0; steps of
// min(0.4, 0.3 s) leave an error around e^{-40} of the whole, which the tests compare with integer orders.
func (s subsampled) integral(a float64) float64 {
	const reach = 12 // e^{-72} of the density is beyond
	step := min(0.4, 0.3*s.multiplier)
	var sum logSum
	for x := -reach + step/2; x < a/s.multiplier+reach; x += step {
		u := s.rate * math.Expm1(x/s.multiplier-1/(2*s.multiplier*s.multiplier))
		power := a * math.Log1p(u) // ln (1+u)^a
		value := power
		switch {
		case math.IsInf(u, 1): // e^w is too large, ln u is not
			value = a * (math.Log(s.rate) + x/s.multiplier - 1/(2*s.multiplier*s.multiplier))
		case power < 40: // beyond, the other terms are below the last bit
			value = math.Log(bernoulli(a, u, power))
		}
		sum.add(value - x*x/2)
	}
	sum.scale += math.Log(step / math.Sqrt(2*math.Pi))
	return sum.log1p()
}

// bernoulli is (1+u)^a - 1 - a u, which is never negative.
func bernoulli(a, u, power float64) float64 {
	if au := math.Abs(a * u); au < 1e-3 { // the binomial series; its sixth term is below 1e-17 of the first
		term, sum := a*u, 0.0
		for i := 2.0; i < 8; i++ {
			term *= (a - i + 1) / i * u
			sum += term
		}
		return max(0, sum)
	}
	return max(0, math.Expm1(power)-a*u)
}

// logSum is the sum of e^term, e^scale times sum. Its zero value is 0 = e^0 * 0.
type logSum struct{ scale, sum float64 }

func (l *logSum) add(term float64) {
	switch {
	case math.IsInf(term, -1):
	case l.sum == 0:
		l.scale, l.sum = term, 1
	case term <= l.scale:
		l.sum += math.Exp(term - l.scale)
	default:
		l.scale, l.sum = term, l.sum*math.Exp(l.scale-term)+1
	}
}

// log1p is ln(1 + sum).
func (l *logSum) log1p() float64 {
	if value := l.scale + math.Log(l.sum); value > 700 {
		return value
	}
	return math.Log1p(l.sum * math.Exp(l.scale))
}

// logExpm1 is ln(e^x - 1) for x > 0.
func logExpm1(x float64) float64 {
	if x > 40 {
		return x
	}
	return math.Log(math.Expm1(x))
}
