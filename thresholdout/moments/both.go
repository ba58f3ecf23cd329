package moments

import "math"

// BothLow is a number below r1 - r2, the difference of two conditional means over disjoint groups, but for a probability of at most e^-level, where beside
// the statements of both groups the holdout's own difference h1 - h2 is known to be at least gap. It is never below what [DifferenceLow] says without.
//
// A pair (r1,r2) is outside where bets that are fixed for it win at least e^level against every (h1,h2) that the statement allows. With parabolas under
// the logarithms what they win is concave in h1 along the line h1 - h2 = gap, so that it is least at one of the line's two ends; that is looked at
// (docs/proofs/groups-and-weights.md, section 1). Which pairs are outside is found by cells, each by the bets at its outer corner.
func BothLow(first, second Group, most [2]float64, gap, level float64) float64 {
	low := overshotDifference(first, second, level)
	j := both{first: first, second: second.mirror(), most: most, sum: 1 + gap}
	if !j.says(level) {
		return low
	}
	high := gap
	for range bothSteps {
		if middle := (low + high) / 2; j.excludes(middle, level) {
			low = middle
		} else {
			high = middle
		}
	}
	return max(-1, low-endSlack)
}

// BothHigh is the mirror of [BothLow]: the holdout's own difference is at most gap.
func BothHigh(first, second Group, most [2]float64, gap, level float64) float64 {
	return -BothLow(second, first, [2]float64{most[1], most[0]}, -gap, level)
}

const (
	bothSteps = 12 // halve what is between the end by both groups' margins and the guess
	bothDepth = 8  // halve the places of the first group's mean
	// bothSlack, in nats, is more than the rounding of the two groups' sums, whose terms cancel.
	bothSlack = 1e-6
	// mostStake keeps logarithms finite.
	mostStake = 0.9999
)

// both is one side of a statement about a difference, with 1 minus the second group's values in the place of these: their means are at least the groups' From, and add up to
// at least sum.
type both struct {
	first, second Group
	most          [2]float64 // units of each
	sum           float64
}

// says says that the sum tells more than both groups' own ends. Means are between 0 and 1.
func (j *both) says(level float64) bool {
	j.first.From = max(j.first.From, 0, j.sum-1)
	j.second.From = max(j.second.From, 0, j.sum-1)
	return level >= 0 && !math.IsInf(level, 1) && j.first.Units > 0 && j.second.Units > 0 && j.sum < 2 && j.sum > j.first.From+j.second.From
}

// excludes says that every pair (r,s) of expectations with r+s-1 <= difference is outside. Where r or s is below the low end of its own group it is; the other
// pairs are in cells of r.
func (j both) excludes(difference, level float64) bool {
	sum := 1 + difference
	from, to := j.first.overshot(level), sum-j.second.overshot(level)
	// The bets that are best in the Gaussian limit. Values of mean h in [0,1] have at most the variance h(1-h).
	varies := func(g Group, other float64) float64 {
		h := (g.From + j.sum - other) / 2
		return max(min(g.Variance, h*(1-h)), 1/g.Units) / g.Units
	}
	slope := (j.sum - sum) / (varies(j.first, j.second.From) + varies(j.second, j.first.From))
	return j.cells(from, to, sum, slope, level, 0)
}

// cells says that all pairs with r between from and to, and s below sum-r, are outside: each is below (to, sum-from), the corner of its cell.
func (j both) cells(from, to, sum, slope, level float64, depth int) bool {
	switch {
	case from >= to:
		return true
	case j.outside(to, sum-from, slope, level):
		return true
	case depth == bothDepth:
		return false
	}
	middle := (from + to) / 2
	return j.cells(from, middle, sum, slope, level, depth+1) && j.cells(middle, to, sum, slope, level, depth+1)
}

// outside says that some bets against (r,s) win at least e^level whatever the statement allows: a bet on each group at its own end, or bets of one slope. Which
// bets are looked at is fixed by the pair, the statement and the level.
func (j both) outside(r, s, slope, level float64) bool {
	if r <= 0 || s <= 0 {
		return true // nothing is below
	}
	level = level*(1+levelSlack) + bothSlack
	single, either := 0.0, span{}
	for _, g := range []struct {
		Group
		r float64
	}{{j.first, r}, {j.second, s}} {
		if g.From > g.r {
			stake := min(Stake(g.From, g.Variance, g.r), mostStake)
			single += g.Units * Capital(g.From, g.Variance, g.r, stake)
			either = either.or(spanOf(stake/g.r, g.r))
		}
	}
	if single > j.first.Tails.enough(level, either.width()) {
		return true
	}
	// What bets of one slope win is nearly concave in the slope: the three best of a row of eleven are looked at more closely.
	left := func(slope float64) float64 {
		return j.wins(r, s, slope) - j.first.Tails.enough(level, j.width(r, s, slope))
	}
	best, at := left(slope), slope
	for _, factor := range []float64{0.25, 0.4, 0.55, 0.7, 0.8, 0.9, 1.1, 1.25, 1.5, 2} {
		if best > 0 {
			return true
		}
		if w := left(slope * factor); w > best {
			best, at = w, slope*factor
		}
	}
	return best > 0 || left(at*0.95) > 0 || left(at*1.05) > 0
}

// stakes are those of one slope against (r,s).
func (j both) stakes(r, s, slope float64) (first, second float64) {
	return min(slope*r/j.first.Units, mostStake), min(slope*s/j.second.Units, mostStake)
}

// width is the range of these bets, whichever group a unit is in.
func (j both) width(r, s, slope float64) float64 {
	first, second := j.stakes(r, s, slope)
	return spanOf(first/r, r).or(spanOf(second/s, s)).width()
}

// wins is what bets of one slope against (r,s) win at least, in nats. A group whose bet loses is taken to have as many units as it can.
func (j both) wins(r, s, slope float64) float64 {
	atFirst, atSecond := j.sum-j.second.From, j.sum-j.first.From // the other ends of the line
	one, other := j.stakes(r, s, slope)
	first := parabolaUnder(r, one, (j.first.From+atFirst)/2, j.first.Variance)
	second := parabolaUnder(s, other, (j.second.From+atSecond)/2, j.second.Variance)
	times := func(mean, least, most float64) float64 {
		if mean < 0 {
			return most * mean
		}
		return least * mean
	}
	at := func(h1, h2 float64) float64 {
		return times(first.mean(h1), j.first.Units, j.most[0]) + times(second.mean(h2), j.second.Units, j.most[1])
	}
	return min(at(j.first.From, atSecond), at(atFirst, j.second.From))
}

// parabola is a + b x + c x² under ln(1+lam(x/r-1)) for x >= 0, c <= 0, touching it at 0 and at some y.
type parabola struct {
	a, b, c  float64
	variance float64 // of the values, at most
	linear   bool    // their mean square is taken to be at most their mean, as it is in [0,1], and not their variance's
}

// parabolaUnder has y where the values of mean middle that vary most have it.
func parabolaUnder(r, stake, middle, variance float64) parabola {
	square := middle*middle + variance
	p := parabola{variance: variance, linear: square >= middle}
	if p.linear {
		square = middle
	}
	y := square / middle
	p.a = math.Log1p(-stake)
	top := stake * (y/r - 1)
	slope := stake / r / (1 + top)
	p.c = min(0, (slope*y-math.Log1p(top)+p.a)/(y*y))
	p.b = slope - 2*p.c*y
	return p
}

// mean is what the parabola's mean is at least over values of this mean: concave in it.
func (p parabola) mean(h float64) float64 {
	if p.linear {
		return p.a + (p.b+p.c)*h
	}
	return p.a + p.b*h + p.c*(h*h+p.variance)
}
