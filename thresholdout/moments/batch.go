package moments

import (
	"fmt"
	"math"
	"slices"
)

// Batch is how a mean, or a conditional mean, is read that nothing is chosen after: in a batch fixed beforehand, or in the last round. Its answer
// is exact and its interval is made from the sample's own mean and variance. Money is bet against each expectation r, with stakes
// fixed beforehand and shared among a few variances; r is outside the interval when the money must have grown e^level times. The money
// falls as r rises, so that all below such an r is outside too (docs/proofs/two-moments.md, section 9). The level pays for the union over the
// batch and for what was released before, see bounds.AdaptiveLevel.
type Batch struct {
	Mean      float64   // where the mean is expected
	Units     float64   // about how many units satisfy the condition
	Variances []float64 // what variances stakes are planned for
	Weights   []float64 // of the money on each; they add up to at most 1
}

// plannedMoney is the weight of the stakes for the planned variance, its two neighbours included, and of the planned one among them: where training
// and holdout are alike, reading at the sample's own variance costs -2 ln plannedMoney, .2 nats.
const plannedMoney = 0.9

// PlanBatch plans the stakes by the training part's mean and variance, 1/2 and 0 without one, and about how many of the holdout's units satisfy the
// condition.
func PlanBatch(mean, variance, units float64) (Batch, error) {
	if !(mean >= 0 && mean <= 1 && variance >= 0 && variance <= 0.25 && units >= 0 && units <= maxUnits) {
		return Batch{}, fmt.Errorf("moments: no batch is planned for a mean of %v with a variance of %v over %v units", mean, variance, units)
	}
	units = max(units, 1)
	b := Batch{Mean: min(max(mean, 1/(units+1)), 1-1/(units+1)), Units: units}
	rest := 1.0
	if variance > 0 {
		b.Variances = []float64{variance, variance / 2, min(2*variance, 0.25)}
		b.Weights = []float64{plannedMoney * plannedMoney, plannedMoney * (1 - plannedMoney) / 2, plannedMoney * (1 - plannedMoney) / 2}
		rest -= plannedMoney
	}
	least := 1 / (units * units)
	steps := max(math.Ceil(math.Log(0.25/least)/math.Log(4)), 0) + 1 // stakes that are a factor 2 off lose at most a fourth of the level
	for i := range int(steps) {
		b.Variances = append(b.Variances, 0.25*math.Pow(4, -float64(i)))
		b.Weights = append(b.Weights, rest/steps)
	}
	return b, nil
}

// stakes are what is bet on each unit's A - rB, in units of it, for each variance: the ones that would be best at the end of the planned sample's
// interval.
func (b Batch) stakes(level float64) []float64 {
	stakes := make([]float64, len(b.Variances))
	for i, v := range b.Variances {
		r := max(Low(b.Mean, v, b.Units, level), 1e-12)
		stakes[i] = Stake(b.Mean, v, r) / r
	}
	return stakes
}

// mirror is the plan for B-A.
func (b Batch) mirror() Batch {
	b.Mean = 1 - b.Mean
	return b
}

// Low is a number below the expectation, but for a probability of at most e^-level; mean, variance and units are the sample's own, computed
// from its exact sums. Two sides cost twice e^-level.
func (b Batch) Low(mean, variance, units, level float64) float64 {
	if !(mean > 0 && units > 0 && variance >= 0 && level >= 0) {
		return 0
	}
	stakes := b.stakes(level)
	lo, hi := 0.0, min(mean, 1)
	for range 100 {
		r := (lo + hi) / 2
		if r <= lo || r >= hi {
			break
		}
		if b.money(stakes, r, mean, variance, units) > level*(1+levelSlack)+levelSlack {
			lo = r
		} else {
			hi = r
		}
	}
	return max(0, lo-endSlack)
}

// High is the mirror of Low.
func (b Batch) High(mean, variance, units, level float64) float64 {
	return 1 - b.mirror().Low(1-mean, variance, units, level)
}

// money is the logarithm of what the bets against r have become at least. No stake depends on the sample, and it falls as r rises.
func (b Batch) money(stakes []float64, r, mean, variance, units float64) float64 {
	logs := make([]float64, len(stakes))
	for i, c := range stakes {
		logs[i] = math.Log(b.Weights[i]) + units*Capital(mean, variance, r, min(c*r, largestStake))
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

// Interval is both ends, each missing with probability at most e^-level, for the sums of a sample; with a step of the grid. It is [0,1] where no
// unit satisfies the condition.
func (b Batch) Interval(s Sums, level float64) (low, high float64, err error) {
	if err := s.check(); err != nil {
		return 0, 1, err
	}
	if s.Units == 0 {
		return 0, 1, nil
	}
	mean, variance := s.moments()
	n := float64(s.Units)
	return max(0, b.Low(mean, variance, n, level)-gridError), min(1, b.High(mean, variance, n, level)+gridError), nil
}

// FractionInterval is Clopper and Pearson's for the mean of n expectations of values 0 or 1, of which count are 1: each end misses with probability at
// most e^-level. The units need not be alike. It is exact, and so narrower than [Batch.Interval]; nothing may be chosen after it, or a
// check's cells have to say count.
func FractionInterval(n, count int64, level float64) (low, high float64, err error) {
	if n < 1 || n > maxUnits || count < 0 || count > n || !(level >= 0) {
		return 0, 1, fmt.Errorf("moments: %d of %d units at level %v", count, n, level)
	}
	mean := float64(count) / float64(n)
	return fractionLow(n, mean, level), 1 - fractionLow(n, 1-mean, level), nil
}
