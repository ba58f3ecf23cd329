package account

import (
	"math"
	"slices"
)

// RDP is an account in Rényi differential privacy (Mironov, arXiv 1702.07476): for each order a bound on the divergence
// between neighbours of everything released so far. It is not safe for concurrent use.
type RDP struct {
	orders []float64
	spent  []float64 // nats
}

// DefaultOrders are 1.1 to 10.9 by tenths, 11 to 64, and powers of two to 1024: small orders serve large epsilons, large
// orders small ones.
func DefaultOrders() []float64 {
	var orders []float64
	for i := 11; i < 110; i++ {
		orders = append(orders, float64(i)/10)
	}
	for i := 11; i <= 64; i++ {
		orders = append(orders, float64(i))
	}
	return append(orders, 128, 256, 512, 1024)
}

// NewRDP returns an empty account over these orders, each above 1 and at most MaxOrder; over DefaultOrders where there are
// none.
func NewRDP(orders ...float64) *RDP {
	if len(orders) == 0 {
		orders = DefaultOrders()
	}
	for _, a := range orders {
		must(a > 1 && a <= MaxOrder, "order %v is not in (1, %v]", a, MaxOrder)
	}
	return &RDP{slices.Clone(orders), make([]float64, len(orders))}
}

// MaxOrder bounds the sums that SubsampledGaussian makes.
const MaxOrder = 1 << 12

// Orders returns the orders and what is spent at each, in nats.
func (r *RDP) Orders() (orders, spent []float64) {
	return slices.Clone(r.orders), slices.Clone(r.spent)
}

func (r *RDP) add(times int, divergence func(order float64) float64) {
	must(times >= 0, "%d times", times)
	if times == 0 {
		return // also where one would spend infinitely much
	}
	for i, a := range r.orders {
		r.spent[i] += float64(times) * divergence(a)
	}
}

// ZCDP adds releases that spend rho together.
func (r *RDP) ZCDP(rho ZCDP) {
	must(rho >= 0, "rho %v is negative", float64(rho))
	r.add(1, func(a float64) float64 { return a * float64(rho) })
}

// Gaussian adds releases with Gaussian noise, multiplier = sigma / sensitivity.
func (r *RDP) Gaussian(multiplier float64, times int) {
	r.add(times, func(a float64) float64 { return a * float64(GaussianZCDP(1, multiplier)) })
}

// Laplace adds releases with Laplace noise, multiplier = scale / sensitivity (arXiv 1702.07476, Proposition 6).
func (r *RDP) Laplace(multiplier float64, times int) {
	must(multiplier > 0, "multiplier %v is not positive", multiplier)
	r.add(times, func(a float64) float64 {
		// ln(a/(2a-1) e^{(a-1)/b} + (a-1)/(2a-1) e^{-a/b}) / (a-1)
		large := math.Log(a/(2*a-1)) + (a-1)/multiplier
		small := math.Log((a-1)/(2*a-1)) - a/multiplier
		return max(0, large+math.Log1p(math.Exp(small-large))) / (a - 1)
	})
}

// SubsampledGaussian adds steps of DP-SGD: each takes every example into its batch independently with probability rate,
// and adds Gaussian noise of multiplier times the sensitivity (the clipping norm) to the batch's sum. Neighbours differ in
// one added or removed example.
func (r *RDP) SubsampledGaussian(rate, multiplier float64, steps int) {
	r.add(steps, newSubsampled(rate, multiplier).divergence)
}

// Epsilon is the least eps, and the order that gives it, for which (eps, delta) follows from the account, delta > 0. From
// divergence d at order a follows
//
//	eps = d + ln(1-1/a) - ln(a delta)/(a-1)
//
// (Canonne, Kamath and Steinke, arXiv 2004.00010, Proposition 12; Balle et al., arXiv 1905.09982, Theorem 21), and eps = 0
// where delta^2 >= 1-e^{-d}, since that bounds the total variation (Bretagnolle and Huber).
func (r *RDP) Epsilon(delta float64) (eps, order float64) {
	mustDelta(delta)
	must(delta > 0, "no epsilon follows for delta = 0")
	eps = math.Inf(1)
	for i, a := range r.orders {
		candidate := max(0, r.spent[i]+math.Log1p(-1/a)-math.Log(a*delta)/(a-1))
		if delta*delta >= -math.Expm1(-r.spent[i]) {
			candidate = 0
		}
		if candidate < eps {
			eps, order = candidate, a
		}
	}
	return eps, order
}

// Delta is the least delta, and the order that gives it, for which (eps, delta) follows from the account.
func (r *RDP) Delta(eps float64) (delta, order float64) {
	mustEpsilon(eps)
	delta = math.Inf(1)
	for i, a := range r.orders {
		candidate := math.Sqrt(-math.Expm1(-r.spent[i]))
		if from := math.Exp((a-1)*(r.spent[i]-eps+math.Log1p(-1/a))) / a; from < candidate {
			candidate = from
		}
		if candidate < delta {
			delta, order = candidate, a
		}
	}
	return delta, order
}
