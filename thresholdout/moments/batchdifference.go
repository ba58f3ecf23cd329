package moments

import "math"

// BatchDifference is how the difference of two groups' means is read that nothing is chosen after. Bets on both groups multiply; a pair of
// expectations is outside when all of the money must have grown e^level times, or when one of them is too large for its group alone.
type BatchDifference struct{ First, Second Batch }

// Parts of a side's probability of error: nine tenths for the pair, a twentieth for each group's own other end.
var (
	pairLevel = passLevel
	boxLevel  = math.Log(20)
)

// differenceCells is into how many cells the search cuts the first expectation's range; the interval is wider by about one of them.
const differenceCells = 128

// Sample is what the interval of a batch is made from: the sample's own mean, variance and number of units, computed from exact sums.
type Sample struct{ Mean, Variance, Units float64 }

// Low is a number below the first expectation minus the second, but for a probability of at most e^-level.
//
// Pairs are (r, s), s one minus the second expectation. The money falls as r or s rises, so that in a cell of r the least s that is not
// outside is at the cell's upper end.
func (d BatchDifference) Low(first, second Sample, level float64) float64 {
	if !(first.Units > 0 && second.Units > 0 && level >= 0) {
		return -1
	}
	turned := BatchDifference{d.First, d.Second.mirror()}
	other := Sample{1 - second.Mean, second.Variance, second.Units}
	most := d.First.High(first.Mean, first.Variance, first.Units, level+boxLevel)
	mostOther := turned.Second.High(other.Mean, other.Variance, other.Units, level+boxLevel)
	read := (level+pairLevel)*(1+levelSlack) + levelSlack
	bets := turned.bets(level)
	outside := func(r, s float64) bool { return bets.money(first, other, r, s) > read }
	// last is the largest x up to most with outside, or the least that is looked at.
	last := func(most float64, outside func(x float64) bool) float64 {
		lo, hi := 0.0, most
		if outside(most) {
			return most
		}
		for hi-lo > 1e-10 {
			if x := (lo + hi) / 2; outside(x) {
				lo = x
			} else {
				hi = x
			}
		}
		return lo
	}
	from := last(most, func(r float64) bool { return outside(r, mostOther) })
	least := most + mostOther
	for i := range differenceCells {
		a, b := from+(most-from)*float64(i)/differenceCells, from+(most-from)*float64(i+1)/differenceCells
		least = min(least, a+last(mostOther, func(s float64) bool { return outside(b, s) }))
	}
	return max(-1, least-1-endSlack)
}

// High is the mirror of Low.
func (d BatchDifference) High(first, second Sample, level float64) float64 {
	return -BatchDifference{d.Second, d.First}.Low(second, first, level)
}

// pairBets are stakes on both groups, and how the money is shared among them; all fixed beforehand.
type pairBets struct{ first, second, logWeights []float64 }

// bets plans each group's stakes for its own part of the level, that of its mean's variance; together for a few variances at a time.
func (d BatchDifference) bets(level float64) (p pairBets) {
	planned := func(b Batch) float64 {
		v := 0.25
		if len(b.Weights) > 0 && b.Weights[0] > 0.5 {
			v = b.Variances[0]
		}
		return v
	}
	v, w := planned(d.First), planned(d.Second)
	factors := []float64{1, 0.5, 2, 0.25, 4, 1.0 / 16, 16, 1.0 / 256, 256}
	for i, f := range factors {
		weight := (1 - plannedMoney) / 2 / float64(len(factors)-3)
		switch {
		case i == 0:
			weight = plannedMoney
		case i < 3:
			weight = (1 - plannedMoney) / 4
		}
		a, b := min(f*v, 0.25), min(f*w, 0.25)
		share := a / d.First.Units / (a/d.First.Units + b/d.Second.Units)
		stake := func(g Batch, variance, level float64) float64 {
			r := max(Low(g.Mean, variance, g.Units, level), 1e-12)
			return Stake(g.Mean, variance, r) / r
		}
		// One slope for both, so that the money is nearly the same along all pairs with one difference.
		slope := math.Sqrt(stake(d.First, a, share*level) * d.First.Units * stake(d.Second, b, (1-share)*level) * d.Second.Units)
		p.first = append(p.first, slope/d.First.Units)
		p.second = append(p.second, slope/d.Second.Units)
		p.logWeights = append(p.logWeights, math.Log(weight))
	}
	return p
}

// money is the logarithm of what the bets against the pair have become at least.
func (p pairBets) money(first, second Sample, r, s float64) float64 {
	r, s = max(r, 1e-12), max(s, 1e-12)
	logs := make([]float64, len(p.logWeights))
	for i, w := range p.logWeights {
		logs[i] = w + first.Units*first.capital(r, p.first[i]) + second.Units*second.capital(s, p.second[i])
	}
	return logSumExp(logs)
}

// capital is Capital at the sample's own mean and variance, with a stake in units of what is bet on; -Inf where the sample's mean is 0 and all is lost.
func (s Sample) capital(r, stake float64) float64 {
	lam := min(stake*r, largestStake)
	if s.Mean <= 0 {
		return math.Log1p(-lam)
	}
	return Capital(s.Mean, s.Variance, r, lam)
}
