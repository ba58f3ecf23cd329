package pairs

import (
	"cmp"
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/dp/binomial"
	"github.com/holdoutd/holdoutd/thresholdout/bounds"
	"github.com/holdoutd/holdoutd/thresholdout/moments"
)

// Thresholds are the counts that decide what interval of the p-quantile may be printed, over n units at a level: [a,b], both ends
// within, where at most most units are below a and at least least are at or below b. Each side misses with probability at most e^-level,
// whatever is printed. -1 and n+1 say that there is none: only the range's own end is left.
//
// Units count once each, as 0 or 1, and need not be alike: the exact tail. Units of several rows count by shares of their rows; there Chernoff's inequality
// takes its place, and least is to be compared with a sum of shares.
func Thresholds(n int64, p, level float64, shares bool) (most, least int64) {
	if n < 1 || !(p > 0 && p < 1) || !(level >= 0) {
		return -1, max(n, 0) + 1
	}
	return threshold(n, p, level, shares), n - threshold(n, 1-p, level, shares)
}

// exactUnits is up to how many units binomial tails are computed exactly.
const exactUnits = 1 << 26

// threshold is the largest k <= np-1 with P(Bin(n,p) <= k) <= e^-level, -1 if there is none. The limit np-1 is Hoeffding's (1956): there units
// that are not alike have a smaller tail.
func threshold(n int64, p, level float64, shares bool) int64 {
	units := float64(n)
	level = level*(1+1e-12) + 1e-10
	rare := func(k int64) bool {
		if shares || n > exactUnits {
			return units*bounds.KL(float64(k)/units, p) >= level
		}
		if k == 0 {
			return units*math.Log1p(-p) <= -level
		}
		return binomial.LogUpper(units, units-float64(k), 1-p) <= -level // n-k or more of the others
	}
	lo, hi := int64(-1), int64(math.Floor(units*p*(1-1e-14)-1))+1
	for hi-lo > 1 { // the tail rises with k
		if mid := lo + (hi-lo)/2; rare(mid) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// bet is what is put on the count of a condition, or of shares of units, below a p-quantile: a unit that counts by b in [0,1], of which a in [0,b] is below, has a
// factor of at least won^(b-a) lost^a, whose expectation is at most 1 where the quantile is not below. The product over units is
// e^level or more with probability at most e^-level, whatever the number of units that count turns out to be (docs/proofs/pairs.md, section 1).
type bet struct{ won, lost float64 } // logarithms

// betOn is the best bet where so many units are planned to count: Chernoff's, if as many do. Where these are too few for any count it is of a loss that
// leaves nothing.
func betOn(planned int64, p, level float64) bet {
	n := float64(max(planned, 1))
	c := 0.0 // the largest share with n kl(c||p) >= level
	if n*bounds.KL(0, p) > level {
		low, high := 0.0, p
		for range 60 {
			if middle := (low + high) / 2; n*bounds.KL(middle, p) >= level {
				low = middle
			} else {
				high = middle
			}
		}
		c = low
	}
	return bet{math.Log((1 - c) / (1 - p)), math.Log(c / p)}
}

// most is the largest count that may be below where units count, together: -1 if there is none.
func (b bet) most(units, level float64) float64 {
	need := level + 1e-12*level + 1e-10
	switch {
	case units*b.won < need:
		return -1
	case math.IsInf(b.lost, -1):
		return -1
	}
	return (units*b.won - need) / (b.won - b.lost) * (1 - 1e-12)
}

// Span is a planned interval [Points[Low], Points[High]] of a quantile.
type Span struct{ Low, High int }

// Quantile is the check of a p-quantile: public points in ascending order, the range's own ends first and last, and the spans of its ranks, each
// within the next.
type Quantile struct {
	P      float64
	Points []float64
	Ranks  []Span
	// Planned is how many units are expected to count, of a condition or by shares; 0 where all units count, each as 0 or 1. What is promised does not depend on how
	// good the expectation is.
	Planned int64
	// PlannedLevel is the level that a bet on these is best for; 0 is the one that is read at. A quantile that is read at several levels names one, so that what is
	// printed at a lower level is within what is printed at a higher one.
	PlannedLevel float64
	// OneSide reads a pass at what one of its ends alone can miss by, and a failure at a twentieth of what both can.
	OneSide bool
}

// PassLevel is the level at which a span is printed that was planned, for a question at the level E; FailedLevel that of the innermost one.
func (q Quantile) PassLevel(level float64) float64 {
	if q.OneSide {
		level = max(level-math.Ln2+math.Log(20.0/19), 0)
	}
	return level
}

// FailedLevel is that at which a failure's span is printed.
func (q Quantile) FailedLevel(level float64) float64 {
	if q.OneSide {
		level += math.Log(10)
	}
	return level
}

// QuantileCounts are what a scan of the holdout tells, in parts of a unit: over the units of the question, N parts of them, how many are below each
// point, and how many are at it or below.
type QuantileCounts struct {
	Unit        int64 // how many parts one unit has
	Units       int64 // of the part, of which each may be off by half a part in each count
	N           int64
	Below, Upto []int64
}

// QuantileOutcome is what is known of the holdout after the question: the rank that passed, or 0 and the innermost span that may be printed.
type QuantileOutcome struct {
	Rank int
	Span Span
}

func (o QuantileOutcome) Failed() bool { return o.Rank == 0 }
func (o QuantileOutcome) Wide() bool   { return o.Rank > 1 }

// Valid says what is wrong with a check.
func (q Quantile) Valid() error {
	if !(q.P > 0 && q.P < 1) || len(q.Points) < 2 || len(q.Ranks) < 1 || len(q.Ranks) > 2 {
		return fmt.Errorf("pairs: no check of a %v-quantile has %d points and %d ranks", q.P, len(q.Points), len(q.Ranks))
	}
	for i := 1; i < len(q.Points); i++ {
		if !(q.Points[i-1] < q.Points[i]) {
			return fmt.Errorf("pairs: point %d of a quantile is not above the one before it", i)
		}
	}
	for l, r := range q.Ranks {
		if r.Low < 0 || r.Low > r.High || r.High >= len(q.Points) {
			return fmt.Errorf("pairs: rank %d is from point %d to %d of %d", l+1, r.Low, r.High, len(q.Points))
		}
		if l > 0 && (r.Low > q.Ranks[l-1].Low || r.High < q.Ranks[l-1].High) {
			return fmt.Errorf("pairs: rank %d is not around rank %d", l+1, l)
		}
	}
	return nil
}

// Outcome is the first rank that may be printed at the level of the question, or the innermost span.
func (q Quantile) Outcome(c QuantileCounts, level float64) (QuantileOutcome, error) {
	if err := q.Valid(); err != nil {
		return QuantileOutcome{}, err
	}
	innermost, err := q.Innermost(c, q.PassLevel(level))
	if err != nil {
		return QuantileOutcome{}, err
	}
	for l, r := range q.Ranks {
		if r.Low <= innermost.Low && r.High >= innermost.High {
			return QuantileOutcome{Rank: l + 1, Span: r}, nil
		}
	}
	if q.OneSide {
		innermost, err = q.Innermost(c, q.FailedLevel(level))
	}
	return QuantileOutcome{Span: innermost}, err
}

// Innermost is the shortest span of points that may be printed at a level, and so all that these counts say. Ranks are not looked at.
func (q Quantile) Innermost(c QuantileCounts, level float64) (Span, error) {
	if len(c.Below) != len(q.Points) || len(c.Upto) != len(q.Points) || c.N < 0 || c.Unit < 1 {
		return Span{}, fmt.Errorf("pairs: %d and %d counts for %d points", len(c.Below), len(c.Upto), len(q.Points))
	}
	for i := range c.Below {
		if c.Below[i] < 0 || c.Upto[i] < c.Below[i] || c.Upto[i] > c.N || i > 0 && c.Below[i] < c.Upto[i-1] {
			return Span{}, fmt.Errorf("pairs: counts at point %d are those of no %d units", i, c.N)
		}
	}
	most, least := q.thresholds(c, level)
	last := len(q.Points) - 1
	s := Span{0, last} // a range's end needs no check
	for i := range q.Points {
		if c.Below[i] <= most {
			s.Low = i
		}
	}
	for j := last; j >= 0; j-- {
		if c.Upto[j] >= least {
			s.High = j
		}
	}
	return s, nil
}

// thresholds are those of these counts, in parts of a unit.
func (q Quantile) thresholds(c QuantileCounts, level float64) (most, least int64) {
	if q.Planned == 0 {
		most, least = Thresholds(c.N/c.Unit, q.P, level, false)
		return most * c.Unit, least * c.Unit
	}
	// Values are rounded to parts, to the nearest: in doubt less may be printed.
	units, rounding := (float64(c.N)-float64(c.Units))/float64(c.Unit), float64(2*c.Units+1)
	end := func(p float64) int64 {
		k := betOn(q.Planned, p, cmp.Or(q.PlannedLevel, level)).most(units, level)*float64(c.Unit) - rounding
		if k < 0 {
			return -1
		}
		return int64(k)
	}
	return end(q.P), c.N - end(1-q.P)
}

// Dearest is what a failure adds to later levels: the logarithm of how many spans there are.
func (q Quantile) Dearest() moments.Nats {
	g := float64(len(q.Points))
	return moments.PriceOf(g * (g + 1) / 2)
}

// Interval is the span of the outcome. Every convention of "the p-quantile" lies in the set that it covers, from the least x with F(x) >= p to the
// largest with F(x-) <= p. A step for the grid of values is the caller's.
func (q Quantile) Interval(o QuantileOutcome) (low, high float64) {
	return q.Points[o.Span.Low], q.Points[o.Span.High]
}

// PlannedShares are the levels of the training part's distribution at which the ends of rank l are planned, z standard deviations beyond the
// thresholds at this level: the low end is the largest training value with at most below of the values below it, the high end the least with at least
// upto of them at or below it. 0 and 1 are the range's own ends, also where so few training units are beyond that the end is no good guess. units is
// how many of the holdout's units are expected, training how many there are in the training part.
func PlannedShares(units, training int64, p, level, z float64, shares bool) (below, upto float64) {
	most, least := Thresholds(units, p, level, shares)
	end := func(k int64) float64 {
		if k < 0 {
			return 0
		}
		c, s := float64(k)/float64(units), 1/float64(units)+1/float64(training)
		b := 2*c + z*z*s
		t := (b - math.Sqrt(max(0, b*b-4*c*c*(1+z*z*s)))) / (2 * (1 + z*z*s))
		if t*float64(training) < fewTraining {
			return 0
		}
		return t
	}
	return end(most), 1 - end(units-least)
}

// fewTraining is how many training units there are to be beyond a planned end; with fewer, honest questions fail in up to a third of cases.
const fewTraining = 4
