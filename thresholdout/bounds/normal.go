package bounds

import (
	"math"

	"gonum.org/v1/gonum/integrate/quad"

	"github.com/holdoutd/holdoutd/dp/normal"
)

// logTwoTails is ln P(|Z| > t) for t >= 0, without underflow.
func logTwoTails(t float64) float64 {
	return math.Ln2 + normal.LogUpper(t)
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
		step := (logTwoTails(t) - log) * normal.Mills(t)
		t = max(t+step, 0)
		if math.Abs(step) <= 1e-15*(1+t) {
			break
		}
	}
	return t
}

// Deviations is the z beyond which a normal variable lies on one side with probability e^-level; 0 for levels below ln 2.
func Deviations(level float64) float64 {
	if !(level > math.Ln2) {
		return 0
	}
	return twoTailQuantile(math.Ln2 - level)
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
