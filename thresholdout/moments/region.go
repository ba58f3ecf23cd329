package moments

import (
	"math"

	"github.com/holdoutd/holdoutd/thresholdout/bounds"
)

// Outward margins for floating point. All ends are computed to about 1e-15; a level is raised, and an end moved, by far more than that
// and by far less than a step of the grid, 2^-30, which is added to printed ends.
const (
	levelSlack = 1e-12 // relative
	endSlack   = 1e-13 // absolute
)

// Low is a number below the expectation r*, but for a probability of at most e^-level: r* is the ratio of the expected sums of A and B over the units,
// 0 <= A <= B <= 1, B 0 or 1. It holds whenever at least n units have B = 1, and the mean of A over them is at least mean and its
// variance at most variance. It is
//
//	min{ r : n kl(p||p r/u) <= level },   p = u^2/m2,   m2 = min(u^2+v, u),   u = mean, v = variance,
//
// rounded down; 0 where mean or n is not above 0. It rises with mean and n and falls with variance and level
// (docs/proofs/two-moments.md, section 2). With a variance of 1/4 or more it is the low end of [bounds.ChernoffInterval].
func Low(mean, variance, n, level float64) float64 {
	u := min(mean, 1)
	if !(u > 0 && n > 0 && level >= 0 && variance >= 0) {
		return 0
	}
	second := min(u*u+variance, u)
	x := bounds.ChernoffLow(n, min(u*u/second, 1), level*(1+levelSlack))
	return max(0, second/u*x-endSlack)
}

// High is a number above the expectation, but for a probability of at most e^-level, where the mean is at most mean: the mirror of [Low].
func High(mean, variance, n, level float64) float64 { return 1 - Low(1-mean, variance, n, level) }

// Capital is the logarithm of what a bet against the expectation r has become at least, per unit, where the mean is at least u > r and the
// variance at most v: (1-p) ln(1-lam) + p ln(1-lam+lam y/r), y = m2/u, with the stake 0 <= lam < 1. At a fixed stake it is a
// bound for every sample; the best stake is [Stake].
func Capital(u, v, r, stake float64) float64 {
	second := min(u*u+v, u)
	p, y := u*u/second, second/u
	capital := p * math.Log1p(stake*(y/r-1))
	if p < 1 {
		capital += (1 - p) * math.Log1p(-stake)
	}
	return capital
}

// Stake is the lam at which [Capital] is largest, 1-(1-p)/(1-r/y); its capital is kl(p||p r/u).
func Stake(u, v, r float64) float64 {
	second := min(u*u+v, u)
	p, y := u*u/second, second/u
	return min(max(1-(1-p)/(1-r/y), 0), 1)
}
