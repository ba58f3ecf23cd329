// Package normal holds the functions of the standard normal law that accounting and intervals are made of, without underflow and
// cancellation in the tails.
package normal

import "math"

// logSqrt2Pi is ln sqrt(2 pi).
const logSqrt2Pi = 0.91893853320467274178032973640561763

// Density is the standard normal density.
func Density(x float64) float64 { return math.Exp(-x*x/2) / math.Sqrt(2*math.Pi) }

// LogDensity is the logarithm of Density, which does not underflow.
func LogDensity(x float64) float64 { return -x*x/2 - logSqrt2Pi }

// Upper is P(N(0,1) > x); accurate in its tail, x > 0.
func Upper(x float64) float64 { return math.Erfc(x/math.Sqrt2) / 2 }

// LogUpper is the logarithm of Upper, which does not underflow.
func LogUpper(x float64) float64 {
	if x < 1 {
		return math.Log(Upper(x))
	}
	return math.Log(Mills(x)) + LogDensity(x)
}

// UpperQuantile is the z that a standard normal variable exceeds with probability p, 0 < p < 1, from the tail in which it lies, so that no digit of a small
// p is lost; by halving, to the last bits, and Upper of it is at most p where p is at most 1/2. Below 1e-300 it is not exact.
func UpperQuantile(p float64) float64 {
	if p > .5 {
		return -UpperQuantile(1 - p)
	}
	low, high := 0., 40.
	for range 70 {
		if middle := (low + high) / 2; Upper(middle) > p {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// Mills is Mills' ratio P(N(0,1) > x) / Density(x). It grows like sqrt(2 pi) e^(x^2/2) for x < 0.
func Mills(x float64) float64 {
	if x < 25 {
		return Upper(x) / Density(x)
	}
	// Laplace's continued fraction 1/(x + 1/(x + 2/(x + ...))), from its end; 20 terms are exact to the last bit here.
	tail := x
	for k := 20; k > 0; k-- {
		tail = x + float64(k)/tail
	}
	return 1 / tail
}

// MillsFall is Mills(x) - Mills(x+h) for x >= -1 and h > 0. For a small h it is the integral of -M' = 1 - tM(t), by Gauss
// and Legendre, for the difference would cancel.
func MillsFall(x, h float64) float64 {
	if h > 0.1 {
		return Mills(x) - Mills(x+h)
	}
	sum := 0.0
	for i, node := range [...]float64{0, math.Sqrt(5-2*math.Sqrt(10./7)) / 3, math.Sqrt(5+2*math.Sqrt(10./7)) / 3} {
		weight := [...]float64{128. / 225, (322 + 13*math.Sqrt(70)) / 900, (322 - 13*math.Sqrt(70)) / 900}[i]
		middle := x + h/2
		if i == 0 {
			sum += weight * millsSlope(middle)
			continue
		}
		sum += weight * (millsSlope(middle-node*h/2) + millsSlope(middle+node*h/2))
	}
	return sum * h / 2
}

// millsSlope is 1 - tM(t) = -M'(t), which is positive and about 1/t^2 for a large t. From the continued fraction above, with
// M = 1/(t + r): it is r M.
func millsSlope(t float64) float64 {
	if t < 5 {
		return 1 - t*Mills(t)
	}
	rest := t
	for k := 120; k > 1; k-- {
		rest = t + float64(k)/rest
	}
	r := 1 / rest
	return r / (t + r)
}
