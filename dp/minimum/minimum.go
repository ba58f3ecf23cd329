// Package minimum finds the minimum of a function of one number: bounds and certificates choose their free constants by it. Every value
// that it returns is one of the function's, so a search that misses the minimum costs width and never validity.
package minimum

import "math"

// Brent is Brent's method on [a,b]: parabolas through the best three points where they help, golden section where not.
// Precision is absolute, of x. A value of +Inf is a wall. f is to have one minimum. It returns the place and the value there.
func Brent(f func(float64) float64, a, b, precision float64) (x, value float64) {
	const golden = 0.3819660112501051
	x = a + golden*(b-a)
	value = f(x)
	w, v, fw, fv := x, x, value, value
	step, before := 0.0, 0.0
	for range 200 {
		middle := (a + b) / 2
		if math.Abs(x-middle) <= 2*precision-(b-a)/2 {
			break
		}
		r, q := (x-w)*(value-fv), (x-v)*(value-fw)
		p := (x-v)*q - (x-w)*r
		if q = 2 * (q - r); q > 0 {
			p = -p
		}
		q = math.Abs(q)
		last := before
		before = step
		if math.Abs(p) < math.Abs(q*last/2) && p > q*(a-x) && p < q*(b-x) { // false for NaN
			step = p / q
			if u := x + step; u-a < 2*precision || b-u < 2*precision {
				step = math.Copysign(precision, middle-x)
			}
		} else {
			before = b - x
			if x >= middle {
				before = a - x
			}
			step = golden * before
		}
		u := x + step
		if math.Abs(step) < precision {
			u = x + math.Copysign(precision, step)
		}
		fu := f(u)
		if fu <= value {
			if u >= x {
				a = x
			} else {
				b = x
			}
			v, fv, w, fw, x, value = w, fw, x, value, u, fu
			continue
		}
		if u < x {
			a = u
		} else {
			b = u
		}
		if fu <= fw || w == x {
			v, fv, w, fw = w, fw, u, fu
		} else if fu <= fv || v == x || v == w {
			v, fv = u, fu
		}
	}
	return x, value
}

// Scanned is Brent after a scan of [a,b] in the given number of steps, for functions with flat or infinite ends.
func Scanned(f func(float64) float64, a, b float64, steps int, precision float64) (x, value float64) {
	step := (b - a) / float64(steps)
	best, least := 0, math.Inf(1)
	for i := range steps + 1 {
		if v := f(a + float64(i)*step); v < least {
			best, least = i, v
		}
	}
	at := a + float64(best)*step
	x, value = Brent(f, max(a, at-step), min(b, at+step), precision)
	if least < value {
		return at, least
	}
	return x, value
}
