package moments

import (
	"fmt"
	"math"
	"slices"
)

// Batch is how a mean, or a conditional mean, is read that nothing is chosen after: in a batch fixed beforehand, or in the last round. Its answer
// is exact and its interval is made from the sample's own moments. Money is bet against each expectation r, with stakes
// fixed beforehand and shared among a few variances; r is outside the interval when the money must have grown e^level times. The money
// falls as r rises, so that all below such an r is outside too (docs/proofs/two-moments.md, section 9). The level pays for the union over the
// batch and for what was released before, see bounds.AdaptiveLevel.
//
// Stakes do not depend on the level that an answer is read at: at a lower level its interval is within that at a higher one, as p-values ask.
type Batch struct {
	Mean      float64   // where the mean is expected
	Units     float64   // about how many units satisfy the condition
	Variances []float64 // what variances stakes are planned for
	Weights   []float64 // of the money on each; they add up to at most 1

	below, above []float64 // what is bet on each unit's A - rB, and on (1-r)B - (B-A), in units of it
}

// Shares of the money where the training part says a variance: of the stakes for it, for its multiples, and, the rest, for any variance at all. Where training
// and holdout are alike, reading at the sample's own variance so costs -ln .8, .2 nats. Small p-values are read by large stakes, those of small variances.
var stakeShares = []struct{ times, weight float64 }{{1, 0.8}, {1.0 / 2, 0.05}, {2, 0.03}, {1.0 / 4, 0.02}}

// PlanBatch plans the stakes by the training part's mean and variance, 1/2 and 0 without one, about how many of the holdout's units satisfy the
// condition, and the level at which most answers are read.
func PlanBatch(mean, variance, units, level float64) (Batch, error) {
	if !(mean >= 0 && mean <= 1 && variance >= 0 && variance <= 0.25 && units >= 0 && units <= maxUnits && level >= 0) {
		return Batch{}, fmt.Errorf("moments: no batch is planned for a mean of %v with a variance of %v over %v units at level %v", mean, variance, units, level)
	}
	units = max(units, 1)
	b := Batch{Mean: min(max(mean, 1/(units+1)), 1-1/(units+1)), Units: units}
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
	b.below, b.above = b.stakes(b.Mean, level), b.stakes(1-b.Mean, level)
	return b, nil
}

// stakes are those that would be best, for each variance, at the end of the interval that a sample with this mean would have.
func (b Batch) stakes(mean, level float64) []float64 {
	stakes := make([]float64, len(b.Variances))
	for i, v := range b.Variances {
		stakes[i] = stakeAt(mean, v, b.Units, level)
	}
	return stakes
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
	read := level*(1+levelSlack) + levelSlack
	lo, hi := 0.0, min(s.Mean, 1)
	for range 100 {
		r := (lo + hi) / 2
		if r <= lo || r >= hi {
			break
		}
		if b.money(s, r) > read {
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

// money is the logarithm of what the bets against r have become at least. No stake depends on the sample, and what they have become falls as r rises.
func (b Batch) money(s Sample, r float64) float64 {
	logs := make([]float64, len(b.below))
	for i, stake := range b.below {
		logs[i] = math.Log(b.Weights[i]) + s.Units*s.grown(r, stake)
	}
	return logSumExp(logs)
}

// largestStake keeps a bet from losing all.
const largestStake = 1 - 1e-9

func logSumExp(logs []float64) float64 {
	best := slices.Max(logs)
	if math.IsInf(best, -1) {
		return best
	}
	sum := 0.0
	for _, l := range logs {
		sum += math.Exp(l - best)
	}
	return best + math.Log(sum)
}

// Interval is both ends, each missing with probability at most e^-level; with a step of the grid. It is [0,1] where no
// unit satisfies the condition.
func (b Batch) Interval(s Sample, level float64) (low, high float64) {
	if !(s.Units > 0) {
		return 0, 1
	}
	return max(0, b.Low(s, level)-gridError), min(1, b.High(s, level)+gridError)
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
