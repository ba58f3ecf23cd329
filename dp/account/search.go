package account

import "math"

// smallest returns the least x in (low, high] for which ok holds, up to the last bits and on its side, when ok is false
// below some point and true above it. Halving works on the exponent first, so it is as good near 0 as far from it.
func smallest(low, high float64, ok func(float64) bool) float64 {
	for range 200 {
		middle := low + (high-low)/2
		if low >= 0 && high > 4*low { // geometric, with 1e-300 for 0
			middle = math.Sqrt(max(low, 1e-300)) * math.Sqrt(high)
		}
		if !(middle > low && middle < high) {
			break
		}
		if ok(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}

// largest returns the greatest x in [low, high) for which ok holds, when it holds below some point.
func largest(low, high float64, ok func(float64) bool) float64 {
	edge := smallest(low, high, func(x float64) bool { return !ok(x) })
	if below := math.Nextafter(edge, low); below > low {
		return below
	}
	return low
}

// doubled returns the first of x, 2x, 4x, ... for which ok holds, or +Inf.
func doubled(x float64, ok func(float64) bool) float64 {
	for !math.IsInf(x, 1) && !ok(x) {
		x *= 2
	}
	return x
}
