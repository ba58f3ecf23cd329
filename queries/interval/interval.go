// Package interval is arithmetic on closed intervals of real numbers, rounded outward: the result of an operation holds
// the exact result for every choice of points from its operands. With intervals that hold simultaneously, what is
// computed from them holds at the same confidence.
package interval

import "math"

// Interval is the set of x with Low <= x <= High. Ends may be infinite, never NaN.
type Interval struct{ Low, High float64 }

// Point is the interval of one number.
func Point(x float64) Interval { return Interval{x, x} }

// Whole is the whole line.
func Whole() Interval { return Interval{math.Inf(-1), math.Inf(1)} }

// outward widens both ends by one step of float64, which covers the rounding of one operation.
func outward(low, high float64) Interval {
	if math.IsNaN(low) {
		low = math.Inf(-1)
	}
	if math.IsNaN(high) {
		high = math.Inf(1)
	}
	return Interval{math.Nextafter(low, math.Inf(-1)), math.Nextafter(high, math.Inf(1))}
}

// Add is a + b.
func (a Interval) Add(b Interval) Interval { return outward(a.Low+b.Low, a.High+b.High) }

// Sub is a - b, the two varying independently.
func (a Interval) Sub(b Interval) Interval { return outward(a.Low-b.High, a.High-b.Low) }

// Mul is a · b, the two varying independently.
func (a Interval) Mul(b Interval) Interval {
	p := [4]float64{product(a.Low, b.Low), product(a.Low, b.High), product(a.High, b.Low), product(a.High, b.High)}
	return outward(min(p[0], p[1], p[2], p[3]), max(p[0], p[1], p[2], p[3]))
}

// product takes 0 · infinity as 0: an infinite end stands for arbitrarily large numbers.
func product(x, y float64) float64 {
	if x == 0 || y == 0 {
		return 0
	}
	return float64(x * y)
}

// Div is a / b, the two varying independently; the whole line if b holds 0.
func (a Interval) Div(b Interval) Interval {
	if b.Low <= 0 && b.High >= 0 {
		return Whole()
	}
	return a.Mul(outward(1/b.High, 1/b.Low))
}

// Square is the set of x², narrower than a.Mul(a) where a holds 0.
func (a Interval) Square() Interval {
	low, high := math.Abs(a.Low), math.Abs(a.High)
	if low > high {
		low, high = high, low
	}
	if a.Contains(0) {
		low = 0
	}
	s := outward(low*low, high*high)
	return Interval{max(0, s.Low), s.High}
}

// Sqrt is the set of square roots of the part of a that is not negative; {0} if there is none.
func (a Interval) Sqrt() Interval {
	s := outward(math.Sqrt(max(0, a.Low)), math.Sqrt(max(0, a.High)))
	return Interval{max(0, s.Low), s.High}
}

// Clip is the part of a in [low, high], for a quantity that is known to lie there. Where a has no such part, it is
// the end that is nearest.
func (a Interval) Clip(low, high float64) Interval {
	return Interval{min(max(a.Low, low), high), max(min(a.High, high), low)}
}

// Contains reports whether x is in a.
func (a Interval) Contains(x float64) bool { return a.Low <= x && x <= a.High }

// Width is High - Low.
func (a Interval) Width() float64 { return a.High - a.Low }
