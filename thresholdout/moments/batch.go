package moments

import (
	"fmt"
	"math"
)

// Batch is how a mean, or a conditional mean, is read that nothing is chosen after: in a batch fixed beforehand, or in the last round. Its answer
// is exact and its interval is made from the sample's own moments. Money is bet against each expectation r, with stakes
// fixed beforehand and shared among a few variances; r is outside the interval when the money must have grown e^level times. The money
// falls as r rises, so that all below such an r is outside too (docs/proofs/final-batch.md, section 1). The level pays for the union over the
// batch and for what was released before, see bounds.AdaptiveLevel.
//
// Stakes do not depend on the level that an answer is read at: at a lower level its interval is within that at a higher one, as p-values ask.
type Batch struct {
	Mean      float64   // where the mean is expected
	Units     float64   // about how many units satisfy the condition
	Variances []float64 // what variances stakes are planned for
	Weights   []float64 // of the money on each; they add up to at most 1
	Tails     Tails     // by which it is known what they must come to

	below, above []bet // on each unit's A - rB, and on (1-r)B - (B-A)
}

// Parts of the probability of error where the training part says a variance: of the stakes for it, for its multiples, and, the rest, for any variance at all. Where training
// and holdout are alike, reading at the sample's own variance so costs -ln .9, .1 nats. Small p-values are read by large stakes, those of small variances.
var stakeShares = []struct{ times, weight float64 }{{1, 0.9}, {1.0 / 2, 0.03}, {1.0 / 4, 0.02}, {4, 0.01}}

// bet is a stake that is fixed beforehand. It is outside when the money has become so much that this has no larger probability than the part of e^-level that it has.
type bet struct {
	stake    float64 // in units of what is bet on
	logShare float64 // of its part, at most 0
	upTo     float64 // against expectations up to here its range is at most width
	width    float64
}

// planBet is the best one at the end of the interval that a sample of so many units with this mean and variance has. known is false where the mean is a guess.
func (t Tails) planBet(mean, variance, units, level, share float64, known bool) bet {
	b := bet{logShare: math.Log(share), upTo: 1, width: math.Inf(1)}
	b.stake = stakeAt(mean, variance, units, level)
	if share < leastShare {
		return b
	}
	b.stake = stakeAt(mean, variance, units, t.enough(level-b.logShare, betRange(b.stake, mean)))
	if known {
		b.upTo = High(mean, variance, units, level)
	}
	b.width = betRange(b.stake, b.upTo)
	return b
}

// leastShare is of what parts the bets' own range is used; the others are Markov's, which is quicker.
const leastShare = 0.01

// apart says that the bet's range is narrow enough to be of use, so that the bet is an event by itself. The others are one event together, by Markov's inequality for the sum of their money.
func (b bet) apart() bool { return b.width <= widestRange }

// someEnough says whether what bets have become is enough, at a level: one of those apart, or the others together. money is the logarithm of what each has become at least, and beyond whether it is against an
// expectation that it is not planned for.
func (t Tails) someEnough(bets []bet, level float64) func(money func(i int) float64, beyond func(i int) bool) bool {
	level = level*(1+levelSlack) + levelSlack
	within := make([]float64, len(bets))
	for i, b := range bets {
		within[i] = t.enough(level-b.logShare, b.width)
	}
	return func(money func(i int) float64, beyond func(i int) bool) bool {
		together := 0.0
		for i, b := range bets {
			won := money(i)
			switch {
			case !b.apart():
				together += math.Exp(won + b.logShare - level)
			case won > level-b.logShare || !beyond(i) && won > within[i]:
				return true
			}
			if together > 1 {
				return true
			}
		}
		return false
	}
}

// PlanBatch plans the stakes by the training part's mean and variance, 1/2 and 0 without one, about how many of the holdout's units satisfy the
// condition, and the level at which most answers are read.
func PlanBatch(mean, variance, units, level float64, tails Tails) (Batch, error) {
	if !(mean >= 0 && mean <= 1 && variance >= 0 && variance <= 0.25 && units >= 0 && units <= maxUnits && level >= 0) {
		return Batch{}, fmt.Errorf("moments: no batch is planned for a mean of %v with a variance of %v over %v units at level %v", mean, variance, units, level)
	}
	units = max(units, 1)
	b := Batch{Mean: min(max(mean, 1/(units+1)), 1-1/(units+1)), Units: units, Tails: tails}
	rest := 1.0
	if variance > 0 {
		for _, p := range stakeShares {
			b.Variances = append(b.Variances, min(p.times*variance, 0.25))
			b.Weights = append(b.Weights, p.weight)
			rest -= p.weight
		}
	}
	least := 1 / (units * units)
	steps := max(math.Ceil(math.Log(0.25/least)/math.Log(4)), 0) + 1 // stakes that are a factor 2 off lose at most a fourth of the level
	for i := range int(steps) {
		b.Variances = append(b.Variances, 0.25*math.Pow(4, -float64(i)))
		b.Weights = append(b.Weights, rest/steps)
	}
	b.below, b.above = b.bets(b.Mean, level, variance > 0), b.bets(1-b.Mean, level, variance > 0)
	return b, nil
}

// bets are those that would be best, for each variance, at the end of the interval that a sample with this mean would have.
func (b Batch) bets(mean, level float64, known bool) []bet {
	bets := make([]bet, len(b.Variances))
	for i, v := range b.Variances {
		bets[i] = b.Tails.planBet(mean, v, b.Units, level, b.Weights[i], known)
	}
	return bets
}

// stakeAt is the best stake at the low end that a sample of so many units with this mean and variance has, divided by that end.
func stakeAt(mean, variance, units, level float64) float64 {
	r := max(Low(mean, variance, units, level), 1e-12)
	return Stake(mean, variance, r) / r
}

// mirror is the plan for B-A.
func (b Batch) mirror() Batch {
	b.Mean, b.below, b.above = 1-b.Mean, b.above, b.below
	return b
}

// Low is a number below the expectation, but for a probability of at most e^-level, for the sample's own moments. Two sides cost twice e^-level.
func (b Batch) Low(s Sample, level float64) float64 {
	if !(s.Mean > 0 && s.Units > 0 && s.Variance >= 0 && level >= 0) {
		return 0
	}
	outside := b.outside(s, level)
	lo, hi := 0.0, min(s.Mean, 1)
	for range 100 {
		r := (lo + hi) / 2
		if r <= lo || r >= hi {
			break
		}
		if outside(r) {
			lo = r
		} else {
			hi = r
		}
	}
	return max(0, lo-endSlack)
}

// High is the mirror of Low.
func (b Batch) High(s Sample, level float64) float64 {
	return 1 - b.mirror().Low(s.mirror(), level)
}

// outside says of an expectation that the sample's bets against it have become enough. No stake depends on the sample. What they have become falls as r rises, and what is enough does not.
func (b Batch) outside(s Sample, level float64) func(r float64) bool {
	some := b.Tails.someEnough(b.below, level)
	return func(r float64) bool {
		return some(func(i int) float64 { return s.Units * s.grown(r, b.below[i].stake) }, func(i int) bool { return r > b.below[i].upTo })
	}
}

// largestStake keeps a bet from losing all.
const largestStake = 1 - 1e-9

// Interval is both ends, each missing with probability at most e^-level; with a step of the grid, which of weights is in what the bets have become. It is [0,1]
// where no unit satisfies the condition.
func (b Batch) Interval(s Sample, level float64) (low, high float64) {
	if !(s.Units > 0) {
		return 0, 1
	}
	step := gridError
	if s.rounding > 0 {
		step = 0
	}
	return max(0, b.Low(s, level)-step), min(1, b.High(s, level)+step)
}

// FractionInterval is Clopper and Pearson's for the mean of n expectations of values 0 or 1, of which count are 1: each end misses with probability at
// most e^-level. The units need not be alike. It is exact, and so narrower than [Batch.Interval]; nothing may be chosen after it, or a
// check's cells have to say count.
func FractionInterval(n, count int64, level float64) (low, high float64, err error) {
	if n < 1 || n > maxUnits || count < 0 || count > n || !(level >= 0) {
		return 0, 1, fmt.Errorf("moments: %d of %d units at level %v", count, n, level)
	}
	return countLow(n, count, level), 1 - countLow(n, n-count, level), nil
}
