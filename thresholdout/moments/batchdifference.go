package moments

import "math"

// BatchDifference is how the difference of two groups' means is read that nothing is chosen after. Bets on both groups multiply; a pair of
// expectations is outside when all of the money must have grown e^level times, or when one of them is too large for its group alone. Stakes are fixed beforehand,
// and do not depend on the level that an answer is read at.
type BatchDifference struct {
	first, second Batch
	below, above  pairBets // against small differences, and against large ones
}

// PlanBatchDifference plans the stakes by the plans of both groups, and the level at which most answers are read.
func PlanBatchDifference(first, second Batch, level float64) BatchDifference {
	d := BatchDifference{first: first, second: second}
	d.below = betsOn(first, second.mirror(), level)
	d.above = betsOn(second, first.mirror(), level)
	return d
}

// Parts of a side's probability of error: 49 fiftieths for the pair, a hundredth for each group's own other end, which cuts far from it.
var (
	pairLevel = math.Log(50.0 / 49)
	boxLevel  = math.Log(100)
)

// differenceCells is into how many cells the search cuts the first expectation's range; the interval is wider by about one of them.
const differenceCells = 128

// Low is a number below the first expectation minus the second, but for a probability of at most e^-level.
//
// Pairs are (r, s), s one minus the second expectation. The money falls as r or s rises, so that in a cell of r the least s that is not
// outside is at the cell's upper end.
func (d BatchDifference) Low(first, second Sample, level float64) float64 {
	if !(first.Units > 0 && second.Units > 0 && level >= 0) {
		return -1
	}
	other := second.mirror()
	most := d.first.High(first, level+boxLevel)
	mostOther := d.second.mirror().High(other, level+boxLevel)
	outside := d.below.outside(first, other, level+pairLevel)
	// last is an x between lo and hi with outside, next to one without; lo where the search finds none.
	last := func(lo, hi, precision float64, outside func(x float64) bool) float64 {
		for hi-lo > precision {
			if x := (lo + hi) / 2; outside(x) {
				lo = x
			} else {
				hi = x
			}
		}
		return lo
	}
	from := most
	if !outside(most, mostOther) {
		from = last(0, most, 1e-10, func(r float64) bool { return outside(r, mostOther) })
	}
	least, s := most+mostOther, mostOther
	cell := (most - from) / differenceCells
	for i := range differenceCells {
		// The ends of the cells' ranges are nearly on a line.
		a, b := from+cell*float64(i), from+cell*float64(i+1)
		beyond := func(s float64) bool { return outside(b, s) }
		if near := max(s-4*cell, 0); beyond(near) {
			s = last(near, s, cell/64, beyond)
		} else {
			s = last(0, near, cell/64, beyond)
		}
		least = min(least, a+s)
	}
	return max(-1, least-1-endSlack)
}

// High is the mirror of Low.
func (d BatchDifference) High(first, second Sample, level float64) float64 {
	return -BatchDifference{first: d.second, second: d.first, below: d.above}.Low(second, first, level)
}

// Interval is both ends, each missing with probability at most e^-level, with a step of the grid for each group. It is [-1,1] where a group has no unit.
func (d BatchDifference) Interval(first, second Sample, level float64) (low, high float64) {
	if !(first.Units > 0 && second.Units > 0) {
		return -1, 1
	}
	return max(-1, d.Low(first, second, level)-2*gridError), min(1, d.High(first, second, level)+2*gridError)
}

// pairBets are stakes on both groups, fixed beforehand; the parts of the probability of error and the ranges are of the pairs.
type pairBets struct {
	first, second []bet
	tails         Tails
}

// pairShares are the parts of the probability of error, for multiples of the planned variances.
var pairShares = []struct{ times, share float64 }{{1, 0.9}, {1.0 / 2, 0.02}, {2, 0.01}, {1.0 / 4, 0.02}, {4, 0.01}, {1.0 / 16, 0.01}, {16, 0.01}, {1.0 / 256, 0.01}, {256, 0.01}}

// betsOn plans each group's stakes for its own part of the level, that of its mean's variance; together for a few variances at a time.
func betsOn(first, second Batch, level float64) (p pairBets) {
	p.tails = first.Tails
	v, w := first.variance(), second.variance()
	for _, x := range pairShares {
		a, b := min(x.times*v, 0.25), min(x.times*w, 0.25)
		part := a / first.Units / (a/first.Units + b/second.Units)
		// One slope for both, so that the money is nearly the same along all pairs with one difference.
		slope := func(level float64) float64 {
			return math.Sqrt(stakeAt(first.Mean, a, first.Units, part*level) * first.Units * stakeAt(second.Mean, b, second.Units, (1-part)*level) * second.Units)
		}
		pair := func(slope float64) (one, other bet) {
			one = fixedBet(slope/first.Units, High(first.Mean, a, first.Units, 4*level+boxLevel), x.share)
			other = fixedBet(slope/second.Units, High(second.Mean, b, second.Units, 4*level+boxLevel), x.share)
			one.width = one.planned().or(other.planned()).width()
			other.width = one.width
			return one, other
		}
		guess, _ := pair(slope(level))
		one, other := pair(slope(first.Tails.enough(level-guess.logShare, guess.width)))
		p.first, p.second = append(p.first, one), append(p.second, other)
	}
	return p
}

func fixedBet(stake, upTo, share float64) bet {
	return bet{stake: stake, logShare: math.Log(share), upTo: upTo}
}

// planned is what the bet wins and loses at most, against any expectation up to the planned one.
func (b bet) planned() span { return span{lose: b.stake * b.upTo, win: b.stake} }

// variance is the one that a batch is planned for; 1/4 without one.
func (b Batch) variance() float64 {
	if len(b.Weights) > 0 && b.Weights[0] == stakeShares[0].weight {
		return b.Variances[0]
	}
	return 0.25
}

// outside says of a pair that the sample's bets against it have become enough.
func (p pairBets) outside(first, second Sample, level float64) func(r, s float64) bool {
	some := p.tails.someEnough(p.first, level)
	return func(r, s float64) bool {
		r, s = max(r, 1e-12), max(s, 1e-12)
		return some(func(i int) float64 {
			return first.Units*first.grown(r, p.first[i].stake) + second.Units*second.grown(s, p.second[i].stake)
		}, func(i int) bool { return r > p.first[i].upTo || s > p.second[i].upTo })
	}
}
