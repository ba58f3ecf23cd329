package moments

import (
	"fmt"
	"math"
)

// Batch is how a mean, or a conditional mean, is read that nothing is chosen after: in a batch fixed beforehand, or in the last round. Its answer
// is exact and its interval is made from the sample's own mean and variance. For each r, money is bet against the expectation r with
// stakes fixed beforehand, shared among a few variances; r is outside the interval when the money must have grown e^level times.
// (docs/proofs/two-moments.md, section 9.) The level pays for the union over the batch and for what was released before, see
// bounds.AdaptiveLevel.
type Batch struct {
	Units     float64   // about how many units satisfy the condition; by it stakes are planned
	Variances []float64 // what variances stakes are planned for
	Weights   []float64 // of the money on each; they add up to at most 1
}

// batchSteps is how far each variance is from the next: stakes that are a factor 2 off lose at most a tenth of the level.
const batchSteps = 2.0

// plannedMoney is the weight of the stakes for the planned variance and its two neighbours; where training and holdout are alike, reading at the
// sample's own variance costs its logarithm, .2 nats.
const plannedMoney = 0.8

// PlanBatch plans the stakes by the training part's variance, 0 for none, and about how many of the holdout's units satisfy the condition.
func PlanBatch(variance, units float64) (Batch, error) {
	if !(variance >= 0 && variance <= 0.25 && units >= 0 && units <= maxUnits) {
		return Batch{}, fmt.Errorf("moments: no batch is planned for a variance of %v over %v units", variance, units)
	}
	b := Batch{Units: max(units, 1)}
	rest := 1.0
	if variance > 0 {
		for i, w := range []float64{0.8, 0.1, 0.1} {
			b.Variances = append(b.Variances, min(variance*[]float64{1, batchSteps, 1 / batchSteps}[i], 0.25))
			b.Weights = append(b.Weights, plannedMoney*w)
		}
		rest -= plannedMoney
	}
	least := 1 / (b.Units * b.Units)
	steps := math.Ceil(math.Log(0.25/least)/math.Log(4)) + 1
	for i := range int(steps) {
		b.Variances = append(b.Variances, 0.25*math.Pow(4, -float64(i)))
		b.Weights = append(b.Weights, rest/steps)
	}
	return b, nil
}

// Low is a number below the expectation, but for a probability of at most e^-level; mean, variance and units are the sample's own, computed
// from its exact sums. Two sides cost twice e^-level.
func (b Batch) Low(mean, variance, units, level float64) float64 {
	if !(mean > 0 && units > 0 && variance >= 0 && level >= 0) {
		return 0
	}
	lo, hi := 0.0, min(mean, 1)
	for range 100 {
		r := (lo + hi) / 2
		if r <= lo || r >= hi {
			break
		}
		if b.money(r, mean, variance, units, level) > level*(1+levelSlack)+levelSlack {
			lo = r
		} else {
			hi = r
		}
	}
	return max(0, lo-endSlack)
}

// High is the mirror of Low.
func (b Batch) High(mean, variance, units, level float64) float64 {
	return 1 - b.Low(1-mean, variance, units, level)
}

// money is the logarithm of what the bets against r have become at least. No stake depends on the sample.
func (b Batch) money(r, mean, variance, units, level float64) float64 {
	best := math.Inf(-1)
	logs := make([]float64, len(b.Variances))
	for i, v := range b.Variances {
		logs[i] = math.Log(b.Weights[i]) + units*Capital(mean, variance, r, b.stake(r, v, level))
		best = max(best, logs[i])
	}
	if math.IsInf(best, -1) {
		return best
	}
	sum := 0.0
	for _, l := range logs {
		sum += math.Exp(l - best)
	}
	return best + math.Log(sum)
}

// stake is the best one against r at the mean where, with this variance and the planned units, the level is just reached, about.
func (b Batch) stake(r, variance, level float64) float64 {
	t := math.Sqrt(2*level*variance/b.Units) + level/(3*b.Units)
	u := min(r+t, 1-1e-9)
	v := min(variance, u*(1-u))
	return min(u*t/(v+u*t), 1-1e-9)
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

// Exact is the interval of the difference of two groups' means that nothing is chosen after: read at the sample's own means, at the planned variances
// and units of rank 1 where they are true, else by the units of rank 1 alone, else it is [-1,1]. These are one chain and another one,
// with nine tenths and a tenth of a side. Margins of the means are not needed.
func (c DifferenceCheck) Exact(first, second Sums, level float64) (low, high float64, err error) {
	if err := c.Valid(); err != nil {
		return -1, 1, err
	}
	if first.Units+second.Units > c.First.N {
		return -1, 1, fmt.Errorf("moments: %d and %d units of %d: a unit is in both groups", first.Units, second.Units, c.First.N)
	}
	level += passLevel
	var groups [2]Group
	steady := true
	for i, of := range []struct {
		Check
		Sums
	}{{c.First, first}, {c.Second, second}} {
		if err := of.check(); err != nil {
			return -1, 1, err
		}
		r := of.Ranks[0]
		if of.Units < max(r.Units, 1) {
			return -1, 1, nil
		}
		mean, _ := of.moments()
		groups[i] = Group{From: mean, To: mean, Variance: float64(r.Variance) / squares, Units: float64(r.Units)}
		steady = steady && of.steady(r.Variance)
	}
	if !steady {
		groups[0].Variance, groups[1].Variance = 1, 1
		level += failedLevel - passLevel
	}
	return max(-1, DifferenceLow(groups[0], groups[1], level)-2*gridError), min(1, DifferenceHigh(groups[0], groups[1], level)+2*gridError), nil
}
