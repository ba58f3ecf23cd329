package moments

import (
	"math"
	"sync"
)

// A product K of independent bets, whose expectation is at most 1, is e^l or more with probability at most e^-l: Markov's inequality. It is sharp where K is e^l whenever it is that much.
// A product of many small bets overshoots: where it is at least e^l it is mostly far above, and the probability is smaller by a factor that follows from the range of the bets alone, whatever their law
// is (docs/proofs/overshoot.md). For bets that are small it is nearly the normal law's: the level E is reached at about E - ln(sqrt(4 pi E)).

// betRange is the range w of the logarithm of what one bet of stake (A - rB) makes of its money, 0 <= A <= B <= 1; +Inf where it may lose all.
func betRange(stake, r float64) float64 { return spanOf(stake, r).width() }

// span is what may become of the money of a bet at one unit: between 1-lose and 1+win times as much.
type span struct{ lose, win float64 }

func spanOf(stake, r float64) span { return span{lose: stake * r, win: stake * (1 - r)} }

// or is that of a unit of which is not known which of two bets it is for: units that are not alike may win by the one and lose by the other, so that the range is that of both together and not the larger of both.
func (s span) or(other span) span { return span{max(s.lose, other.lose), max(s.win, other.win)} }

// width is the range of the logarithm.
func (s span) width() float64 {
	least := 1 - s.lose
	if !(least > 0) {
		return math.Inf(1)
	}
	return math.Log1p(s.win) - math.Log(least)
}

// Tails says how it was worked out what bets must come to. It belongs to the version of a stored guarantee, whose intervals go on as they were.
type Tails uint8

const (
	BestTilts  Tails = iota // every tilt that is tried counts
	FirstTilts              // those alone whose first factor is at most 1, to fewer halvings: half-widths are up to 4% wider
)

// enough is an l so that independent bets with this range come to e^l or more with probability at most e^-level. It is at most the level, and rises with it.
func (t Tails) enough(level, width float64) float64 {
	if !(width <= widestRange && level > 0) {
		return level
	}
	// Between two levels of the table: that of the lower one with all that is missing to the level, or that of the higher one. The range is rounded up.
	i := min(math.Floor(level/levelStep), highestLevel/levelStep)
	w := int(math.Ceil(math.Log2(max(width, narrowestRange)) * rangeSteps))
	l := i*levelStep - gainOf(gainCell{int(i), w, t}) + (level - i*levelStep)
	if level < highestLevel {
		l = min(l, (i+1)*levelStep-gainOf(gainCell{int(i) + 1, w, t}))
	}
	return l
}

// Overshot is [Low] by what its bet must come to: below the expectation but for a probability of at most e^-level, where Low takes Markov's inequality for the same bet.
func (t Tails) Overshot(mean, variance, n, level float64) float64 {
	return Low(mean, variance, n, t.enough(level, rangeOf(mean, variance, Low(mean, variance, n, level))))
}

// OvershotHigh is the mirror of [Tails.Overshot].
func (t Tails) OvershotHigh(mean, variance, n, level float64) float64 {
	return 1 - t.Overshot(1-mean, variance, n, level)
}

// rangeOf is at least the range of every bet that is best against an expectation from r on, of samples with this mean and variance. The best stake, divided by the expectation, is (u-r)/(r(y-r)), which falls as r rises.
func rangeOf(mean, variance, r float64) float64 {
	if !(r > 0 && mean > r) {
		return math.Inf(1)
	}
	return betRange(Stake(mean, variance, r)/r, min(mean, 1))
}

// bestSpan is that of every bet that is best against an expectation from r on, of samples with this mean and variance: the best stake times the expectation, (u-r)/(y-r), falls as r rises, and so does what is won.
func bestSpan(mean, variance, r float64) span {
	if !(r > 0 && mean > r) {
		return span{lose: 1}
	}
	return spanOf(Stake(mean, variance, r)/r, min(r, 1))
}

// The table of gains, of which each is worked out when it is needed first.
const (
	levelStep      = 0.5
	highestLevel   = 100
	rangeSteps     = 4 // for a factor 2
	narrowestRange = 1.0 / 256
	widestRange    = 2.0
)

// gainCell is a level and a range of the table, as numbers of steps.
type gainCell struct {
	level, width int
	tails        Tails
}

var gains sync.Map // gainCell to float64

func gainOf(c gainCell) float64 {
	if gain, ok := gains.Load(c); ok {
		return gain.(float64)
	}
	gain := 0.0
	if c.level > 0 {
		gain = c.tails.gainAt(float64(c.level)*levelStep, math.Exp2(float64(c.width)/rangeSteps))
	}
	gains.Store(c, gain)
	return gain
}

// gainAt is level - l for the least l at which bets with this range are proved to come to e^l with probability at most e^-level, or a little less.
func (t Tails) gainAt(level, width float64) float64 {
	// l - ln overshoot(l) rises with l. No more is looked for than the normal law has, whose factor is 1/sqrt(4 pi l).
	least, l := max(level-math.Log(math.Sqrt(4*math.Pi*level)), 0), level
	for range t.gainHalvings() {
		if mid := (least + l) / 2; mid-math.Log(t.overshoot(mid, width)) >= level {
			l = mid
		} else {
			least = mid
		}
	}
	return level - l
}

// gainHalvings leave a thousandth of a nat at most: what is enough is then monotone in the range to as much. The first table was left at a hundredth.
func (t Tails) gainHalvings() int {
	if t == FirstTilts {
		return 9
	}
	return 13
}

// overshoot is a factor f, at most 1, with P(K >= e^l) <= f e^-l for every product K of independent bets with this range. It falls as l rises.
//
// With Q the law of density K, and s the deviation of ln K under it, which nobody knows: for each theta >= 0
//
//	f <= exp(theta (s^2 g(w) - l) + (theta s)^2 g(theta w)) overshot((1+theta) s e^(-theta w/2), (1+theta) w),   g(x) = (e^x-1-x)/x^2,
//
// and the largest over s of the least over some theta is f. The first factor rises with s and the second falls.
func (t Tails) overshoot(l, width float64) float64 {
	if !(l > 0) {
		return 1
	}
	above := 1.3 * math.Sqrt(2*l)
	worst := overshot(above, width) // all larger s, with theta = 0
	for above > 1e-3 {
		below := above / deviationStep
		// Of normal sums the best theta has s^2/2 - l + s^2 theta = 1/(1+theta).
		x := l/(above*above) - 0.5
		if x > -0.9 {
			x += 1 / (above * above * (1 + max(x, 0)))
		}
		tilt := math.Log1p(width*max(x, 0)) / width
		least, chernoff := 1.0, 1.0
		for _, times := range [...]float64{1, 0.85, 1.2, 0} {
			theta := tilt * times
			grown := math.Exp(theta*(above*above*excess(width)-l) + theta*theta*above*above*excess(theta*width))
			chernoff = min(chernoff, grown)
			if least > worst && (t == BestTilts || grown <= 1) { // the best theta has a first factor that is often above 1
				least = min(least, grown*overshot((1+theta)*below*math.Exp(-theta*width/2), (1+theta)*width))
			}
		}
		worst = max(worst, least)
		if chernoff <= worst { // all smaller s
			return min(worst, 1)
		}
		above = below
	}
	return 1
}

// deviationStep is the quotient of neighbouring s.
const deviationStep = 1.02

// excess is (e^x-1-x)/x^2.
func excess(x float64) float64 {
	if x < 1e-2 {
		return 0.5 + x*(1.0/6+x*(1.0/24+x/100))
	}
	return (math.Expm1(x) - x) / (x * x)
}

// overshot is at least the expectation of e^-(L-l) where L >= l, 0 elsewhere, whatever l is: L a sum of independent numbers, each with a range of at most width, with a standard deviation of s or more. For
// h >= width it is
//
//	1/pi times the integral over t in [0, 2 pi/h] of (1/sqrt(1+t^2) + a - 1) exp(-2 (s/w)^2 sin^2(tw/2)),   a = h/(1-e^-h).
func overshot(s, width float64) float64 {
	if s < leastDeviation {
		return 1
	}
	return min(overshotBy(s, width, overshotCells)*(1+quadratureSlack), 1)
}

// overshotBy is the formula's number, by so many cells in each part of the integral.
func overshotBy(s, width float64, cells int) float64 {
	h := bandOver * width
	whole, most := h/-math.Expm1(-h), 2*math.Pi/h
	quotient := 2 * s * s / (width * width)
	at := func(t float64) float64 {
		sine := math.Sin(t * width / 2)
		return (1/math.Sqrt(1+t*t) + whole - 1) * math.Exp(-quotient*sine*sine)
	}
	middle := min(most, 7/s) // beyond is next to nothing, but at the end, where the sine falls again
	return (integral(at, 0, middle, cells) + integral(at, middle, most, cells)) / math.Pi
}

// bandOver is h/w: the least is 1, at which the integral's end is that of a lattice's period.
const bandOver = 1.2

// quadratureSlack is more than the relative error of the integrals by so many cells, of this deviation or more.
const (
	quadratureSlack = 3e-4
	overshotCells   = 48
	leastDeviation  = 0.3 // below, next to nothing is gained, and more cells would be needed
)

func integral(f func(float64) float64, from, to float64, cells int) float64 {
	step, sum := (to-from)/float64(cells), 0.0
	for i := range cells {
		sum += f(from + (float64(i)+0.5)*step)
	}
	return sum * step
}
