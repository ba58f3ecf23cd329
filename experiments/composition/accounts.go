package composition

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/holdoutd/holdoutd/dp/account"
)

// Methods: run.Row.Method. The first are of Laplace noise.
const (
	basic        = "basic composition"
	advanced     = "advanced composition"
	optimal      = "best composition of private answers"
	concentrated = "zCDP"
	renyiFirst   = "Rényi divergence, first conversion"
	renyi        = "Rényi divergence"
	lossLaw      = "distribution of losses"
	gaussianZCDP = "Gaussian noise by zCDP"
	gaussianGDP  = "Gaussian noise, exactly"
)

// method is a kind of noise with an account of it.
type method struct {
	name string
	// within reports whether k answers of Laplace noise, each eps-private, are within a total.
	within func(eps float64, k int, t total) bool
	// largest is the largest such epsilon, where halving an interval takes too long.
	largest func(k int, t total) (float64, error)
	// multiplier is the standard deviation of Gaussian noise over an answer's sensitivity, for k answers.
	multiplier func(k int, t total) float64
}

var methods = []method{
	{name: basic, within: func(eps float64, k int, t total) bool { return account.Pure{Epsilon: eps, K: k}.Basic() <= t.eps }},
	{name: advanced, within: func(eps float64, k int, t total) bool {
		return account.Pure{Epsilon: eps, K: k}.Advanced(t.delta) <= t.eps
	}},
	{name: optimal, within: withinBest},
	{name: concentrated, within: func(eps float64, k int, t total) bool { return zcdp(eps, k).Epsilon(t.delta) <= t.eps }},
	{name: renyiFirst, within: func(eps float64, k int, t total) bool { return firstConversion(laplaceRDP(eps, k), t.delta) <= t.eps }},
	{name: renyi, within: func(eps float64, k int, t total) bool {
		spent, _ := laplaceRDP(eps, k).Epsilon(t.delta)
		return spent <= t.eps
	}},
	{name: lossLaw, largest: largestByLosses, within: func(eps float64, k int, t total) bool {
		all, err := laplaceLosses(eps, k)
		return err == nil && all.Delta(t.eps) <= t.delta
	}},
	{name: gaussianZCDP, multiplier: func(k int, t total) float64 {
		return math.Sqrt(float64(k) / (2 * float64(account.LargestZCDP(t.eps, t.delta))))
	}},
	{name: gaussianGDP, multiplier: func(k int, t total) float64 {
		return math.Sqrt(float64(k)) / float64(account.LargestGDP(t.eps, t.delta))
	}},
}

// covers reports whether a method says something of a total: what rounding may be off by in distributions of losses is not far below 1e-9.
func (m method) covers(t total) bool { return m.name != lossLaw || t.delta >= 1e-6 }

func withinBest(eps float64, k int, t total) bool {
	return account.Pure{Epsilon: eps, K: k}.OptimalDelta(t.eps) <= t.delta
}

func zcdp(eps float64, k int) account.ZCDP { return account.ZCDP(float64(k)) * account.PureZCDP(eps) }

func laplaceRDP(eps float64, k int) *account.RDP {
	r := account.NewRDP()
	r.Laplace(1/eps, k)
	return r
}

// firstConversion is epsilon = divergence + ln(1/delta)/(order-1), at the best order (Mironov, arXiv 1702.07476, Proposition 3).
func firstConversion(r *account.RDP, delta float64) float64 {
	best := math.Inf(1)
	orders, spent := r.Orders()
	for i, order := range orders {
		best = min(best, spent[i]+math.Log(1/delta)/(order-1))
	}
	return best
}

// firstDelta is the delta of the same conversion at an epsilon.
func firstDelta(r *account.RDP, eps float64) float64 {
	best := 1.0
	orders, spent := r.Orders()
	for i, order := range orders {
		best = min(best, math.Exp((order-1)*(spent[i]-eps)))
	}
	return best
}

// laplaceLosses are the losses of k answers of Laplace noise.
func laplaceLosses(eps float64, k int) (account.PLD, error) {
	one, err := account.LaplacePLD(1 / eps)
	if err != nil {
		return one, err
	}
	return one.Times(k)
}

const (
	// lossesLow and lossesHigh bound the search for the largest epsilon by distributions of losses, in what the best composition of private answers says: for many questions
	// it is the same, less what steps cost, and for few Laplace noise is better than what nothing else is known of.
	lossesLow, lossesHigh = 0.9, 1.5
	// lossesNear is how near the logarithm of delta has to be: an epsilon is then as near to a tenth of that.
	lossesNear = 1e-6
	// lossesLeast stands for a delta that is far too small, which would make chords steep.
	lossesLeast = 0.1
	// lossesTries bounds the search, which takes some ten.
	lossesTries = 60
)

// largestByLosses looks for the epsilon at which delta is the total's, along chords that are halved where one end stays (Illinois).
func largestByLosses(k int, t total) (float64, error) {
	of := func(x float64) (float64, error) {
		all, err := laplaceLosses(math.Exp(x), k)
		return math.Log(max(all.Delta(t.eps)/t.delta, lossesLeast)), err
	}
	best, err := method{within: withinBest}.epsilon(k, t)
	if err != nil {
		return 0, err
	}
	low, high := math.Log(best*lossesLow), math.Log(best*lossesHigh)
	below, err := of(low)
	if err != nil {
		return 0, err
	}
	above, err := of(high)
	if err != nil {
		return 0, err
	}
	if below > 0 || above < 0 {
		return 0, fmt.Errorf("experiments: %d questions: no epsilon between %v and %v has a delta of %v by its losses", k, math.Exp(low), math.Exp(high), t.delta)
	}
	side := 0
	for range lossesTries {
		x := (low*above - high*below) / (above - below)
		at, err := of(x)
		switch {
		case err != nil:
			return 0, err
		case math.Abs(at) < lossesNear:
			return math.Exp(x), nil
		case at < 0:
			if low, below = x, at; side < 0 {
				above /= 2
			}
			side = -1
		default:
			if high, above = x, at; side > 0 {
				below /= 2
			}
			side = 1
		}
	}
	return math.Exp(low), nil
}

// largestEpsilon bounds the search: no question of a total of 1 may have as much.
const largestEpsilon = 4

// searchSteps halve a range of logarithms of 20 until it is below 1e-10.
const searchSteps = 38

// epsilon is the largest epsilon of each of k questions that is within a total, from below.
func (m method) epsilon(k int, t total) (float64, error) {
	if m.largest != nil {
		return m.largest(k, t)
	}
	low, high := math.Log(t.eps/float64(k)/100), math.Log(largestEpsilon)
	for range searchSteps {
		if middle := (low + high) / 2; m.within(math.Exp(middle), k, t) {
			low = middle
		} else {
			high = middle
		}
	}
	return math.Exp(low), nil
}

func (m method) isLaplace() bool { return m.multiplier == nil }

func (m method) part(k int, t total) (part, error) {
	if m.isLaplace() {
		eps, err := m.epsilon(k, t)
		return part{Epsilon: eps, SD: laplaceSD(eps), Width: laplaceWidth(eps, k)}, err
	}
	sd := m.multiplier(k, t) / rows
	return part{SD: sd, Width: sd * -distuv.UnitNormal.Quantile(missEach(k)/2)}, nil
}

const (
	// beingBetter is by how much of the noise: with a delta every account of few questions gains next to nothing.
	beingBetter = 1e-3
	// mostToBeBetter bounds the search for firstBetter.
	mostToBeBetter = 1000
)

// firstBetter is the fewest questions at which a method has less noise than basic composition, 0 where it never has.
func (m method) firstBetter(t total) int {
	for k := 1; k <= mostToBeBetter; k++ {
		eps := t.eps / float64(k) / (1 - beingBetter)
		if m.isLaplace() && m.within(eps, k, t) || !m.isLaplace() && m.multiplier(k, t)/rows < laplaceSD(eps) {
			return k
		}
	}
	return 0
}

func newPlan(t total, k int) ([]part, error) {
	parts := make([]part, len(methods))
	for i, m := range methods {
		if !m.covers(t) {
			continue
		}
		var err error
		if parts[i], err = m.part(k, t); err != nil {
			return nil, err
		}
		if k == 1 && m.name != basic {
			parts[i].First = m.firstBetter(t)
		}
	}
	return parts, nil
}

// form is how a textbook writes advanced composition.
type form struct {
	name    string
	epsilon func(t total, k int) float64
}

// Forms of advanced composition in use, for the lecture's example.
var forms = []form{
	{"advanced composition, its first term alone", firstTerm},
	{"advanced composition with k eps (e^eps - 1)", func(t total, k int) float64 {
		low, high := 0.0, firstTerm(t, k)
		for range 100 {
			if e := (low + high) / 2; t.eps*e/firstTerm(t, k)+float64(k)*e*math.Expm1(e) <= t.eps {
				low = e
			} else {
				high = e
			}
		}
		return low
	}},
	{"advanced composition, twice its first term", func(t total, k int) float64 { return firstTerm(t, k) / 2 }}, // Dwork and Roth 2014, Corollary 3.21
}

// firstTerm is the epsilon of each question where sqrt(2k ln(1/delta)) eps is the whole total.
func firstTerm(t total, k int) float64 { return t.eps / math.Sqrt(2*float64(k)*math.Log(1/t.delta)) }
