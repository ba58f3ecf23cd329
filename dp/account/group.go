package account

import "math"

// Group is what k units together are protected by where one is by e, such as a user of at most k rows: (k eps, delta (1 + e^eps + ... + e^{(k-1) eps})), by
// going from one table to the other in k steps (Dwork and Roth 2014, Theorem 2.2, for any delta).
func (e Approximate) Group(k int) Approximate {
	must(k >= 1, "a group of %d", k)
	delta := 0.
	if e.Delta > 0 {
		factor := float64(k)
		if e.Epsilon > 0 { // from the largest term, so that nothing is infinite over infinite
			factor = math.Exp(float64(k-1)*e.Epsilon) * math.Expm1(-float64(k)*e.Epsilon) / math.Expm1(-e.Epsilon)
		}
		delta = min(1, e.Delta*factor)
	}
	return Approximate{float64(k) * e.Epsilon, delta}
}

// Group is what k units together are protected by: k² rho (Bun and Steinke, arXiv 1605.02065, Proposition 1.9).
func (z ZCDP) Group(k int) ZCDP {
	must(k >= 1, "a group of %d", k)
	return ZCDP(float64(k) * float64(k) * float64(z))
}

// Group is what k units together are protected by: k mu (Dong, Roth and Su, arXiv 1905.02383, Theorem 2.14).
func (m GDP) Group(k int) GDP {
	must(k >= 1, "a group of %d", k)
	return GDP(float64(k) * float64(m))
}

// Group is an account of what 2^c units together are protected by, c from 0: order a with divergence d becomes order a/2^c with 3^c d, of the orders from
// 2^{c+1} (Mironov, arXiv 1702.07476, Proposition 2). It panics where no order is as large.
func (r *RDP) Group(c int) *RDP {
	must(c >= 0 && c <= 10, "a group of 2^%d", c)
	g := &RDP{}
	for i, a := range r.orders {
		if c == 0 || a >= math.Exp2(float64(c)+1) {
			g.orders = append(g.orders, a/math.Exp2(float64(c)))
			g.spent = append(g.spent, r.spent[i]*math.Pow(3, float64(c)))
		}
	}
	must(len(g.orders) > 0, "no order is from 2^%d", c+1)
	return g
}
