package account

import "math"

// Filter admits releases while their total stays within a budget, also when the size of a release is chosen after seeing
// the earlier answers. Its zero value admits nothing. It is not safe for concurrent use.
type Filter struct {
	budget float64 // in units that add up
	spent  float64
	count  int
	unit   func(size float64) float64
}

// ZCDPFilter admits releases of size rho while the sum is at most budget (Whitehouse et al., arXiv 2203.05481,
// Theorem 1).
func ZCDPFilter(budget ZCDP) *Filter {
	must(budget >= 0, "rho %v is negative", float64(budget))
	return &Filter{budget: float64(budget), unit: func(rho float64) float64 { return rho }}
}

// GDPFilter admits Gaussian releases of size mu while the root of the sum of squares is at most budget (Smith and Thakurta,
// arXiv 2210.17520; Koskela, Tobaben and Honkela, arXiv 2209.15596). For tradeoff functions other than Gaussian there is no
// such filter.
func GDPFilter(budget GDP) *Filter {
	must(budget >= 0, "mu %v is negative", float64(budget))
	return &Filter{budget: float64(budget) * float64(budget), unit: func(mu float64) float64 { return mu * mu }}
}

// PureFilter admits eps-private releases while
//
//	sqrt(2 ln(1/slack) sum eps_i^2) + sum eps_i^2 / 2 <= eps
//
// so that all together are (eps, slack)-private (Whitehouse et al., arXiv 2203.05481, Theorem 2). That is a budget for the
// sum of squares.
func PureFilter(eps, slack float64) *Filter {
	mustEpsilon(eps)
	must(slack > 0 && slack <= 1, "slack %v is not in (0,1]", slack)
	ln := math.Log(1 / slack)
	root := 2 * eps / (math.Sqrt(2*ln+2*eps) + math.Sqrt(2*ln)) // of s^2/2 + sqrt(2 ln) s - eps
	return &Filter{budget: root * root, unit: func(eps float64) float64 { return eps * eps }}
}

// Spend admits a release of this size, or returns false and changes nothing.
func (f *Filter) Spend(size float64) bool {
	must(size >= 0, "size %v is negative", size)
	if f.unit == nil || f.spent+f.unit(size) > f.budget {
		return false
	}
	f.spent += f.unit(size)
	f.count++
	return true
}

// Count is how many releases were admitted.
func (f *Filter) Count() int { return f.count }

// Left is the share of the budget that is left, in [0,1].
func (f *Filter) Left() float64 {
	if f.budget == 0 {
		return 0
	}
	return 1 - f.spent/f.budget
}
