package bounds

import (
	"math"

	"gonum.org/v1/gonum/integrate/quad"
)

const (
	sqrt2Pi    = 2.50662827463100050241576528481104525
	logSqrt2Pi = 0.91893853320467274178032973640561763
)

// mills is Mills' ratio: the upper tail of the standard normal at x over its density.
func mills(x float64) float64 {
	if x < 20 {
		return sqrt2Pi / 2 * math.Erfc(x/math.Sqrt2) * math.Exp(x*x/2)
	}
	y := 1 / (x * x) // asymptotic; the first term left out is below 1e-11
	return (1 - y*(1-3*y*(1-5*y*(1-7*y*(1-9*y))))) / x
}

// logTwoTails is ln P(|Z| > t) for t >= 0, without underflow.
func logTwoTails(t float64) float64 {
	return math.Log(2*mills(t)) - t*t/2 - logSqrt2Pi
}

// MaxNormalTail is P(max |Z_j| > t) over k independent standard normal variables; k need not be an integer.
func MaxNormalTail(k, t float64) float64 {
	return -math.Expm1(k * math.Log1p(-math.Erfc(t/math.Sqrt2)))
}

// MaxNormalQuantile is z_k(b): with probability b, 0 < b < 1, the largest of k absolute standard normal variables is above it.
func MaxNormalQuantile(k, b float64) float64 {
	return twoTailQuantile(math.Log(-math.Expm1(math.Log1p(-b) / k)))
}

// twoTailQuantile is the t with ln P(|Z| > t) = log. ln P is concave and falls, so Newton's method from the right of the root
// stays there.
func twoTailQuantile(log float64) float64 {
	t := math.Sqrt(-2*log) + 1e-3
	for range 100 {
		step := (logTwoTails(t) - log) * mills(t)
		t = max(t+step, 0)
		if math.Abs(step) <= 1e-15*(1+t) {
			break
		}
	}
	return t
}

// legendre is the Gauss-Legendre rule of MaxNormalShortfall on [0,1].
var legendre = func() (rule struct{ at, weight [48]float64 }) {
	quad.Legendre{}.FixedLocations(rule.at[:], rule.weight[:], 0, 1)
	return rule
}()

// MaxNormalShortfall is ES_b(k), the mean of the largest of k absolute standard normal variables over its worst cases, which
// have probability b: z_k(b) + (1/b) Int from z_k(b) of P(max > t) dt. Accurate to 1e-10.
func MaxNormalShortfall(k, b float64) float64 {
	z := MaxNormalQuantile(k, b)
	reach := math.Sqrt(z*z+80) - z // beyond, the tail is below e^-40 of what it is at z
	sum := 0.0
	for i, at := range legendre.at {
		sum += legendre.weight[i] * MaxNormalTail(k, z+reach*at)
	}
	return z + reach*sum/b
}

// LogGDPDelta is the logarithm of the delta at eps of a mu-GDP mechanism (Dong, Roth, Su, arXiv 1905.02383, corollary 2.13):
// Phi(-eps/mu+mu/2) - e^eps Phi(-eps/mu-mu/2). With x = eps/mu-mu/2 it is phi(x) (m(x)-m(x+mu)), m Mills' ratio, which neither
// underflows nor cancels.
func LogGDPDelta(mu, eps float64) float64 {
	if mu == 0 {
		return math.Inf(-1)
	}
	x := eps/mu - mu/2
	density := -x*x/2 - logSqrt2Pi
	if x <= 0 {
		return math.Log(math.Max(0, phi(-x)-math.Exp(density)*mills(x+mu)))
	}
	const small = 1e-4 // there the difference is mu times the slope -m' = 1 - x m in its middle, up to mu^2 of it
	fall := mills(x) - mills(x+mu)
	if mu < small {
		fall = mu * fallOfMills(x+mu/2)
	}
	return density + math.Log(math.Max(0, fall))
}

// fallOfMills is -m'(x) = 1 - x m(x), x >= 0.
func fallOfMills(x float64) float64 {
	if x < 20 {
		return 1 - x*mills(x)
	}
	y := 1 / (x * x)
	return y * (1 - 3*y*(1-5*y*(1-7*y*(1-9*y))))
}
