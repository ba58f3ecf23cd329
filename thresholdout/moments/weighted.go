package moments

import (
	"fmt"
	"math"
	"math/big"

	"github.com/holdoutd/holdoutd/thresholdout/bounds"
)

// Weighted is what an answer says of the sums of A and B where B is any number in [0,1]: a weight, or the share of a unit's rows that
// satisfy a condition. All are means over all N units.
type Weighted struct {
	N     float64
	Guess float64 // g, in [0,1]
	Away  float64 // |mean(A-gB) - Shift| is at most it
	Shift float64
	Spread,
	Size float64 // mean (A-gB)^2 <= Spread, mean B >= Size
	MixedLow, MixedHigh float64 // mean (A-gB)B is between them
	SizeSquare          float64 // mean B^2 <= it
	Tails               Tails
	Rounding            float64 // how far a unit's A-rB may be from what it is without the grid: the ratio is that without it
}

// Low is a number below sum E A / sum E B, but for a probability of at most e^-level.
//
// A number r is rejected when a bet against it must have won: S = (g-r) Size - (Away - Shift) > 0 and N kl(u^2/w||u/w) > level with
// u = 1+S/r, w = 1+2S/r+max(Q,S^2)/r^2, Q = Spread + 2(g-r) MixedHigh + (g-r)^2 SizeSquare. Whatever r is rejected, all smaller
// expectations are (docs/proofs/groups-and-weights.md, section 2); the search for the largest is by bisection.
func (w Weighted) Low(level float64) float64 {
	if !(w.N > 0 && w.Size > 0 && level >= 0) {
		return 0
	}
	lo, hi := 0.0, min(w.Guess-(w.Away-w.Shift)/w.Size, 1)
	for range 100 {
		r := (lo + hi) / 2
		if r <= lo || r >= hi {
			break
		}
		if w.rejects(r, level) {
			lo = r
		} else {
			hi = r
		}
	}
	return max(0, lo-endSlack)
}

// weightedSlack is more than the rounding of the two sums in rejects, whose terms cancel.
const weightedSlack = 4e-15

func (w Weighted) rejects(r, level float64) bool {
	mean, second, ok := w.said(r)
	return ok && w.N*bounds.KL(min(mean*mean/second, 1), mean/second) > level*(1+levelSlack)+levelSlack
}

// said is what the statement says of 1 + (A-rB)/r: its mean, which is above 1, and its mean square. It is false where it says nothing against r.
func (w Weighted) said(r float64) (mean, second float64, ok bool) {
	gap := w.Guess - r
	shift, square := offGrid(gap*w.Size-(w.Away-w.Shift)-weightedSlack, w.Spread+2*gap*w.MixedHigh+gap*gap*w.SizeSquare+weightedSlack, w.Rounding)
	if !(shift > 0 && r > 0 && gap >= 0) { // beyond the guess, as a margin that is all on one side of it would have it, more weights are worse and not better
		return 0, 0, false
	}
	square = max(square, shift*shift)
	return 1 + shift/r, 1 + 2*shift/r + square/(r*r), true
}

// High is the mirror of Low: of B-A about 1-g.
func (w Weighted) High(level float64) float64 { return 1 - w.mirror().Low(level) }

func (w Weighted) mirror() Weighted {
	w.Guess, w.Shift, w.MixedLow, w.MixedHigh = 1-w.Guess, -w.Shift, -w.MixedHigh, -w.MixedLow
	return w
}

// overshot is Low by what the bet against it must come to.
func (w Weighted) overshot(level float64) float64 {
	first := w.Low(level)
	width := w.rangeAt(first)
	if low := w.Low(w.Tails.enough(level, width)); w.rangeAt(low) <= width {
		return low
	}
	return first
}

// rangeAt is the range of the bet that rejects r.
func (w Weighted) rangeAt(r float64) float64 {
	mean, second, ok := w.said(r)
	if !ok {
		return math.Inf(1)
	}
	return betRange((mean-1)/(second/mean-1)/r, r)
}

// WeightedSums are exact sums over all units of a part. Each unit's A and B are in steps of 2^-30, with 0 <= A <= B <= 2^30 after rounding.
type WeightedSums struct {
	Units                   int64
	A, B                    int64
	SquareA, Mixed, SquareB Wide // of A^2, AB, B^2 in steps of 2^-60
}

// Add adds one unit.
func (s *WeightedSums) Add(a, b int64) {
	s.Units++
	s.A += a
	s.B += b
	s.SquareA.AddSquare(a)
	s.Mixed.AddProduct(a, b)
	s.SquareB.AddSquare(b)
}

// WeightedRank is one set of margins of a weighted question; those of [Weighted] in steps of 2^-30, or of 2^-60 for squares.
type WeightedRank struct {
	Away, Size                              int64
	Spread, MixedLow, MixedHigh, SizeSquare int64
	Shift                                   int64 // of the middle of the margin Away from 0
}

// WeightedCheck is the check of one weighted question. Its ranks are a chain.
type WeightedCheck struct {
	N, Guess int64
	Ranks    []WeightedRank
	Cells    int64 // a failure says which of so many equal cells of [0,1] the ratio is in
	Tails    Tails // by which its intervals are read
	OneSide  bool  // as of [Check]
}

// silent is a rank that says nothing: no weights make a mean of [0,1] violate it.
var silent = WeightedRank{Away: grid, Spread: squares, MixedLow: -squares, MixedHigh: squares, SizeSquare: squares}

// Silent is [Check.Silent] of a weighted question: all weights may be 0.
func (c WeightedCheck) Silent() bool { return c.Ranks[0] == silent }

// WeightedOutcome is what is known of the holdout after a weighted question.
type WeightedOutcome struct {
	Rank int   // 1, 2: the pass; 0: a failure
	Cell int64 // of a failure
	Loss int   // of a failure: 0, the weights' sums are as at rank 1; 1, nothing is said
}

func (o WeightedOutcome) Failed() bool { return o.Rank == 0 }
func (o WeightedOutcome) Wide() bool   { return o.Rank > 1 }

// weightedLosses is T of a weighted question.
const weightedLosses = 2

// Valid says what is wrong with a check: its ranks must be a chain.
func (c WeightedCheck) Valid() error {
	if c.N < 1 || c.N > maxUnits || c.Guess < 0 || c.Guess > grid || len(c.Ranks) < 1 || len(c.Ranks) > 2 || c.Cells < 1 || c.Cells > maxCells {
		return fmt.Errorf("moments: no weighted check has %d units, a guess of %d steps, %d ranks and %d cells", c.N, c.Guess, len(c.Ranks), c.Cells)
	}
	for l, r := range c.Ranks {
		if r.Away < 0 || max(r.Shift, -r.Shift) > grid || r.Size < 0 || r.Spread < 0 || r.SizeSquare < 0 || r.MixedLow > r.MixedHigh {
			return fmt.Errorf("moments: rank %d has no such margins: %+v", l+1, r)
		}
		if l == 0 {
			continue
		}
		if b := c.Ranks[l-1]; !within(b.Away, b.Shift, r.Away, r.Shift) || r.Size > b.Size || r.Spread < b.Spread || r.SizeSquare < b.SizeSquare || r.MixedLow > b.MixedLow || r.MixedHigh < b.MixedHigh {
			return fmt.Errorf("moments: rank %d says more than rank %d; ranks must be a chain", l+1, l)
		}
	}
	return nil
}

// Outcome compares the holdout's sums with the margins, in integers.
func (c WeightedCheck) Outcome(s WeightedSums) (WeightedOutcome, error) {
	if err := c.Valid(); err != nil {
		return WeightedOutcome{}, err
	}
	if s.Units != c.N || s.A < 0 || s.A > s.B || s.B > s.Units*grid {
		return WeightedOutcome{}, fmt.Errorf("moments: sums %d of A and %d of B over %d units, for a check of %d", s.A, s.B, s.Units, c.N)
	}
	g, n := big.NewInt(c.Guess), big.NewInt(s.Units)
	shift := func(x *big.Int, by uint) *big.Int { return new(big.Int).Lsh(x, by) }
	times := func(x, y *big.Int) *big.Int { return new(big.Int).Mul(x, y) }
	a, b := big.NewInt(s.A), big.NewInt(s.B)
	off := new(big.Int).Sub(shift(a, 30), times(g, b))                             // sum A-gB, 2^-60
	mixed := new(big.Int).Sub(shift(s.Mixed.big(), 30), times(g, s.SquareB.big())) // sum (A-gB)B, 2^-90
	spread := shift(s.SquareA.big(), 60)                                           // sum (A-gB)^2, 2^-120
	spread.Sub(spread, shift(times(g, s.Mixed.big()), 31))
	spread.Add(spread, times(times(g, g), s.SquareB.big()))
	atMost := func(x *big.Int, margin int64, by uint) bool {
		return x.Cmp(shift(times(n, big.NewInt(margin)), by)) <= 0
	}
	sized := func(r WeightedRank) bool {
		return atMost(new(big.Int).Neg(b), -r.Size, 0) && atMost(s.SquareB.big(), r.SizeSquare, 0)
	}
	for l, r := range c.Ranks {
		if atMost(off, r.Away+r.Shift, 30) && atMost(new(big.Int).Neg(off), r.Away-r.Shift, 30) && atMost(spread, r.Spread, 60) && atMost(mixed, r.MixedHigh, 30) &&
			atMost(new(big.Int).Neg(mixed), -r.MixedLow, 30) && sized(r) {
			return WeightedOutcome{Rank: l + 1}, nil
		}
	}
	if s.B == 0 {
		return WeightedOutcome{Loss: weightedLosses - 1}, nil // no ratio
	}
	cell := times(a, big.NewInt(c.Cells))
	o := WeightedOutcome{Cell: min(cell.Div(cell, b).Int64(), c.Cells-1)}
	if !sized(c.Ranks[0]) {
		o.Loss = 1
	}
	return o, nil
}

// Dearest is what a failure adds to later levels, ln(2c).
func (c WeightedCheck) Dearest() Nats { return PriceOf(weightedLosses * float64(c.Cells)) }

// Value is the guess, or the middle of the cell.
func (c WeightedCheck) Value(o WeightedOutcome) float64 {
	if o.Failed() {
		return (float64(o.Cell) + 0.5) / float64(c.Cells)
	}
	return float64(c.Guess) / grid
}

// Interval is the answer's, at the level E of [Urn.Level]. The target is the ratio of the expected sums of A and B, not rounded to the grid.
func (c WeightedCheck) Interval(o WeightedOutcome, level float64) (low, high float64) {
	if o.Failed() {
		if o.Loss > 0 {
			return 0, 1
		}
		level += beyond(c.OneSide, false, true, 1)
		low = c.sized(float64(o.Cell) / float64(c.Cells)).overshot(level)
		high = 1 - c.sized(float64(o.Cell+1)/float64(c.Cells)).mirror().overshot(level)
	} else {
		r := c.Ranks[o.Rank-1]
		w := Weighted{N: float64(c.N), Guess: float64(c.Guess) / grid, Away: float64(r.Away) / grid, Shift: float64(r.Shift) / grid, Size: float64(r.Size) / grid,
			Spread: float64(r.Spread) / squares, MixedLow: float64(r.MixedLow) / squares, MixedHigh: float64(r.MixedHigh) / squares, SizeSquare: float64(r.SizeSquare) / squares, Rounding: weightError, Tails: c.Tails}
		level = max(level+beyond(c.OneSide, false, false, 1), 0)
		low, high = w.overshot(level), 1-w.mirror().overshot(level)
	}
	return max(0, low), min(1, high)
}

// sized is all that follows for a ratio on one side of edge from the weights' sums alone: |A - edge B| <= B max(edge, 1-edge). It serves the side on
// which the ratio is.
func (c WeightedCheck) sized(edge float64) Weighted {
	r, far := c.Ranks[0], max(edge, 1-edge)
	square := float64(r.SizeSquare) / squares
	return Weighted{N: float64(c.N), Guess: edge, Size: float64(r.Size) / grid, SizeSquare: square,
		Spread: far * far * square, MixedLow: -far * square, MixedHigh: far * square, Rounding: weightError, Tails: c.Tails}
}

// Moment is a mean and a variance over the training part's units.
type Moment struct{ Mean, Variance float64 }

// WeightedTraining is what the training part tells of a weighted question with the guess g: moments of A-gB, (A-gB)^2, B, (A-gB)B and B^2.
type WeightedTraining struct {
	Units                          int64
	Guess                          float64
	Off, Spread, B, Mixed, SquareB Moment
}

// WeightsUnknown is the check of a question to whose weights the training part says nothing: it says nothing either, and has no outcome but the pass.
func WeightsUnknown(n int64) WeightedCheck {
	return WeightedCheck{N: n, Guess: grid / 2, Cells: 1, Ranks: []WeightedRank{silent}}
}

// PlanWeightedWith is the check of the next question about a holdout of n units. z is how many standard deviations rank 1 leaves room for.
func PlanWeightedWith(t WeightedTraining, n int64, z float64) (WeightedCheck, error) {
	if t.Units < 1 || n < 1 || n > maxUnits || !(t.Guess >= 0 && t.Guess <= 1) || !(t.B.Mean > 0) {
		return WeightedCheck{}, fmt.Errorf("moments: no weighted check is planned from %+v for %d units", t, n)
	}
	s := 1/float64(n) + 1/float64(t.Units)
	c := WeightedCheck{N: n, Guess: int64(math.Floor(t.Guess*grid + 0.5))}
	if !(z > 0 && z <= maxDeviations) {
		return WeightedCheck{}, fmt.Errorf("moments: room for %v standard deviations; between 0 and %v is possible", z, float64(maxDeviations))
	}
	for _, z := range []float64{z, 2 * z} {
		margin := func(m Moment) float64 { return z*math.Sqrt(max(0, m.Variance)*s) + z*z*s/2 }
		up := func(x, unit float64) int64 { return int64(math.Ceil(min(x, 1) * unit)) } // 1 says nothing
		c.Ranks = append(c.Ranks, WeightedRank{
			Away: up(math.Abs(t.Off.Mean)+margin(t.Off), grid), Size: max(0, int64(math.Floor((t.B.Mean-margin(t.B))*grid))),
			Spread: up(t.Spread.Mean+margin(t.Spread), squares), SizeSquare: up(t.SquareB.Mean+margin(t.SquareB), squares),
			MixedLow: -up(margin(t.Mixed)-t.Mixed.Mean, squares), MixedHigh: up(t.Mixed.Mean+margin(t.Mixed), squares),
		})
	}
	if c.Ranks[0].Size == 0 {
		c.Ranks, c.Cells = []WeightedRank{silent}, 1
		return c, nil
	}
	deviation := math.Sqrt(max(t.Spread.Mean, s)/float64(n)) / t.B.Mean // of the ratio
	c.Cells = int64(math.Exp2(min(max(math.Round(math.Log2(1/(2*deviation))), 0), math.Log2(maxCells))))
	return c, nil
}
