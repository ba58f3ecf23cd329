package account

import (
	"fmt"
	"math"
)

// MaxMultiplier is the most noise that SubsampledMultiplier looks for: a signal a million times below the noise is none.
const MaxMultiplier = 1e6

// SubsampledMultiplier is the least noise multiplier with which that many steps of [RDP.SubsampledGaussian] are (eps,
// delta)-private by an account over DefaultOrders, to a relative 1e-4 on the side that promises less. An error says that
// it is above MaxMultiplier. eps and delta are above 0.
func SubsampledMultiplier(rate float64, steps int, eps, delta float64) (float64, error) {
	must(eps > 0 && delta > 0, "no noise gives epsilon %v at delta %v", eps, delta)
	ok := func(multiplier float64) bool {
		r := NewRDP()
		r.SubsampledGaussian(rate, multiplier, steps)
		got, _ := r.Epsilon(delta)
		return got <= eps
	}
	low, high := leastMultiplier, leastMultiplier
	for ; !ok(high); high *= 2 {
		if high > MaxMultiplier {
			return 0, fmt.Errorf("account: (%v, %v) over %d steps at rate %v needs a noise multiplier above %v", eps, delta, steps, rate, MaxMultiplier)
		}
		low = high
	}
	for high > low*(1+1e-4) {
		if middle := math.Sqrt(low * high); ok(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return high, nil
}
