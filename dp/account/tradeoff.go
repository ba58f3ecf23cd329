package account

import (
	"math"

	"github.com/holdoutd/holdoutd/dp/normal"
)

// Curve is a guarantee as all its (epsilon, delta) at once: [GDP], [ZCDP], [PLD] and every [Accountant] are curves.
type Curve interface {
	// Delta is the least for which (eps, delta) holds, eps from 0.
	Delta(eps float64) float64
}

// Tradeoff is the testing reading of a guarantee: somebody who has seen all releases tests whether a unit is in the table, and is wrong with probability
// level where it is not. Tradeoff is the least probability to be wrong where it is (Wasserman and Zhou 2010; Dong, Roth and Su, arXiv 1905.02383). 1 -
// level protects perfectly. Of (eps, delta) it is the largest of 0, 1 - delta - e^eps level and e^-eps (1 - delta - level), and of a curve the largest over
// all eps.
//
// For [GDP] it is exact. For other curves eps goes over a grid: each eps gives a bound that holds, so that the result errs towards promising less, and for
// [Basic] it is exact again.
func Tradeoff(c Curve, level float64) float64 {
	must(level >= 0 && level <= 1, "level %v is not in [0,1]", level)
	if m, ok := c.(GDP); ok {
		return m.tradeoff(level)
	}
	best := 0.
	try := func(eps float64) {
		delta := c.Delta(eps)
		best = max(best, 1-delta-math.Exp(eps)*level, math.Exp(-eps)*(1-delta-level))
	}
	try(0)
	for exponent := -7.; exponent <= 7; exponent += 1. / 32 {
		try(math.Exp2(exponent))
	}
	if b, ok := c.(Basic); ok {
		try(b.epsilon)
	}
	return min(best, 1-level)
}

// tradeoff is Phi(Phi^-1(1-level) - mu).
func (m GDP) tradeoff(level float64) float64 {
	switch {
	case level == 0:
		if math.IsInf(float64(m), 1) {
			return 0
		}
		return 1
	case level == 1 || math.IsInf(float64(m), 1):
		return 0
	}
	return normal.Upper(float64(m) - normal.UpperQuantile(level))
}

// Advantage is how much better than by chance somebody tells two neighbours apart who has seen all releases: the largest of true minus false alarms, which
// is delta at epsilon 0, the total variation.
func Advantage(c Curve) float64 { return c.Delta(0) }

// Posterior is the Bayesian reading of a guarantee that is purely eps: whoever believed with probability prior that a unit is in the table believes it
// afterwards with at most this probability, whatever was released. The odds grow by e^eps at most. The belief that it is not is bounded the same way.
func Posterior(prior, eps float64) float64 {
	must(prior >= 0 && prior <= 1, "a belief of %v is not in [0,1]", prior)
	mustEpsilon(eps)
	if prior == 0 || prior == 1 {
		return prior
	}
	return 1 / (1 + (1-prior)/prior*math.Exp(-eps))
}

// Precision is the Bayesian reading of any guarantee: of those whom a test accuses of being in the table, the largest share that is, where a share prior of
// all who are tested is, and the test accuses a share level, in (0,1], of those who are not.
func Precision(c Curve, prior, level float64) float64 {
	must(prior >= 0 && prior <= 1, "a share of %v is not in [0,1]", prior)
	must(level > 0 && level <= 1, "level %v is not in (0,1]", level)
	right := prior * (1 - Tradeoff(c, level))
	if right == 0 {
		return 0
	}
	return right / (right + (1-prior)*level)
}
