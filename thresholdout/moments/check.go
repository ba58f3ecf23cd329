package moments

import (
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/dp/binomial"
	"github.com/holdoutd/holdoutd/thresholdout/bounds"
)

// Rank is one set of margins of a check. What passes says: the mean is at most Away from the guess + Shift, the variance is at most Variance, and
// at least Units units satisfy the condition.
type Rank struct {
	Away     int64 // steps of 2^-30
	Variance int64 // steps of 2^-60; 2^60 says nothing
	Units    int64
	Shift    int64 // steps of 2^-30: of the middle of the margin from the guess, not 0 where one side has less room than the other
}

// within says that a margin leaves at most as much room as the next rank's, on either side of the guess.
func within(away, shift, nextAway, nextShift int64) bool {
	return away-shift <= nextAway-nextShift && away+shift <= nextAway+nextShift
}

// Check is how one question is checked, from public facts and earlier answers alone. Ranks are a chain: each says no more than the one before
// it. That is what lets all passes share one probability of error.
type Check struct {
	N       int64 // units of the holdout
	Guess   int64 // steps of 2^-30
	Partial bool  // a mean among the units with B = 1; false: over all units
	Binary  bool  // every unit's value is 0 or 1, and not Partial: the exact binomial tail serves
	Ranks   []Rank
	Cells   int64 // a failure says in which cell the mean is: cells are as wide as if there were so many of them in [0,1]
	Tails   Tails // by which its intervals are read
	OneSide bool  // passes are read at what one of their ends alone can miss by; false: before version 4 of guess_and_check
	Outward bool  // a failure's cells are counted outward from the widest margins, the nearest being the cheapest; false: all are alike, from 0 on
}

// Shares of a question's probability of error on each side: nine tenths for the chain of passes, a tenth for the chains of failures, one for
// each of their ranks.
var (
	passLevel   = math.Log(10.0 / 9)
	failedLevel = math.Log(10)
)

// beyond is what is added to the level E, at which 2 e^-E is what the question may miss by, to read an outcome that is one of so many ranks of failures, or a pass.
//
// A pass misses on one side only: the target is below what it says or above, and passes at both ranks have a point in common. So its end is read as if there were one side.
// Failures, whose cells lie on both sides, have a tenth of what the question may miss by, or a twentieth where all outcomes are one chain.
func beyond(oneSide, oneChain, failed bool, ranks float64) float64 {
	switch {
	case oneChain && !oneSide:
		return 0
	case oneChain && failed:
		return oneChainFailedLevel
	case oneChain:
		return oneChainPassLevel
	case failed:
		return failedLevel + math.Log(ranks)
	case oneSide:
		return passLevel - math.Ln2
	}
	return passLevel
}

var (
	oneChainPassLevel   = math.Log(20.0/19) - math.Ln2
	oneChainFailedLevel = math.Log(20) - math.Ln2
)

// failureRanks is T: how much of the variance and of the units a failure says. Rank t < T-1 says 4^t times the first margins.
const failureRanks = 4

// Outcome is what is known of the holdout after a question, and all of it.
type Outcome struct {
	Rank int   // 1, 2: the pass at this rank; 0: a failure
	Cell int64 // of a failure; counted outward it is 0 within the widest margins, 1, 2, ... above them and -1, -2, ... below
	Loss int   // of a failure: its rank t
}

// Failed says that the outcome costs a token.
func (o Outcome) Failed() bool { return o.Rank == 0 }

// Wide says that the outcome counts as a wide pass.
func (o Outcome) Wide() bool { return o.Rank > 1 }

// Valid says what is wrong with a check: its ranks must be a chain.
func (c Check) Valid() error {
	switch {
	case c.N < 1 || c.N > maxUnits:
		return fmt.Errorf("moments: %d units; between 1 and %d are possible", c.N, int64(maxUnits))
	case c.Guess < 0 || c.Guess > grid:
		return fmt.Errorf("moments: a guess of %d steps is not between 0 and %d", c.Guess, int64(grid))
	case c.Cells < 1 || c.Cells > maxCells:
		return fmt.Errorf("moments: %d cells; between 1 and %d are possible", c.Cells, int64(maxCells))
	case c.Binary && c.Partial:
		return fmt.Errorf("moments: the exact tail is for means over all units")
	case len(c.Ranks) < 1 || len(c.Ranks) > 2:
		return fmt.Errorf("moments: %d ranks; a check has one or two", len(c.Ranks))
	}
	for l, r := range c.Ranks {
		if r.Away < 0 || r.Away > grid || max(r.Shift, -r.Shift) > grid || r.Variance < 0 || r.Variance > squares || r.Units < 0 || r.Units > c.N || !c.Partial && r.Units != c.N {
			return fmt.Errorf("moments: rank %d has no such margins: %+v", l+1, r)
		}
		if l > 0 && (!within(c.Ranks[l-1].Away, c.Ranks[l-1].Shift, r.Away, r.Shift) || r.Variance < c.Ranks[l-1].Variance || r.Units > c.Ranks[l-1].Units) {
			return fmt.Errorf("moments: rank %d says more than rank %d; ranks must be a chain", l+1, l)
		}
	}
	return nil
}

// OneChain says that all outcomes are one chain on each side: none says anything but how large or small the mean is. Then each side is one
// event, whatever the outcome, and no share is split.
func (c Check) OneChain() bool { return c.Binary || !c.Partial && c.Ranks[0].Variance >= squares/4 }

// nothing is a rank that says nothing, of a mean among some of the units.
var nothing = Rank{Away: grid, Variance: squares}

// Silent says that the check says nothing, and has no outcome but the pass: so few units of the training part satisfy the condition, or none, that the holdout need not have one. Whatever
// was found the interval would be all of [0,1], so that a failure would cost a token for nothing.
func (c Check) Silent() bool { return c.Partial && c.Ranks[0] == nothing }

// losses is T of this question: a variance of 1/4 says nothing, so ranks that would only say so are none.
func (c Check) losses() int {
	if c.OneChain() {
		return 1
	}
	if c.Partial {
		return failureRanks
	}
	t := 1
	for v := c.Ranks[0].Variance; v < squares/4 && t < failureRanks; v *= 4 {
		t++
	}
	return t
}

// Outcome compares the holdout's sums with the margins, in integers. It is the only place where the holdout is looked at.
func (c Check) Outcome(s Sums) (Outcome, error) {
	if err := c.Valid(); err != nil {
		return Outcome{}, err
	}
	if err := c.fits(s); err != nil {
		return Outcome{}, err
	}
	last := c.losses() - 1
	switch {
	case c.Silent():
		return Outcome{Rank: 1}, nil
	case s.Units == 0:
		return Outcome{Loss: last}, nil // no mean: a failure in cell 0 that says nothing
	}
	for l, r := range c.Ranks {
		if c.holds(s, r) {
			return Outcome{Rank: l + 1}, nil
		}
	}
	o := Outcome{Cell: c.cell(s)}
	for o.Loss < last && !c.lost(s, o.Loss) {
		o.Loss++
	}
	return o, nil
}

// fits is an error where the sums are those of no units, or of another number of them.
func (c Check) fits(s Sums) error {
	if err := s.check(); err != nil {
		return err
	}
	if s.Units > c.N || !c.Partial && s.Units != c.N {
		return fmt.Errorf("moments: sums over %d units for a check of %d", s.Units, c.N)
	}
	return nil
}

// holds says whether the sums, of at least one unit, satisfy a rank.
func (c Check) holds(s Sums, r Rank) bool {
	return s.Units >= r.Units && s.near(c.Guess+r.Shift, r.Away) && s.steady(r.Variance)
}

// varianceAt and unitsAt are what a failure of rank t, not the last, says.
func (c Check) varianceAt(t int) int64 {
	v := c.Ranks[0].Variance
	for ; t > 0; t-- {
		v = min(squares, 4*v)
	}
	return v
}

func (c Check) unitsAt(t int) int64 {
	if !c.Partial {
		return c.N
	}
	return c.Ranks[0].Units >> (2 * t)
}

// Price is what a failure adds to the levels of later questions: ln T, and minus the logarithm of its cell's weight. It is public, of each failure that there may be.
func (c Check) Price(o Outcome) Nats {
	if !c.Outward {
		return nats(math.Log(float64(c.Cells) * float64(c.losses())))
	}
	return nats(math.Log(float64(c.losses())/c.weight(o.Cell)) + priceSlack)
}

// Dearest is the most that a failure adds.
func (c Check) Dearest() Nats {
	if !c.Outward {
		return c.Price(Outcome{})
	}
	below, above := c.outside()
	return max(c.Price(Outcome{Cell: -below}), c.Price(Outcome{Cell: above}), c.Price(Outcome{}))
}

// Missed is a failure that is just missed: the cell beside the widest margins on the side that has more room.
func (c Check) Missed() Outcome {
	if !c.Outward {
		return Outcome{Cell: min(int64(float64(c.Guess)/grid*float64(c.Cells)), c.Cells-1)}
	}
	switch below, above := c.outside(); {
	case above > 0 && above >= below:
		return Outcome{Cell: 1}
	case below > 0:
		return Outcome{Cell: -1}
	}
	return Outcome{}
}

// Value is the answer: the guess where it passed, the middle of the cell where it failed. The target is in the interval; the value
// need not be in its middle.
func (c Check) Value(o Outcome) float64 {
	switch {
	case o.Failed() && c.Outward:
		from, to := c.cellSteps(o.Cell)
		return float64((from+to)/2) / grid
	case o.Failed():
		return (float64(o.Cell) + 0.5) / float64(c.Cells)
	}
	return float64(c.Guess) / grid
}

// Interval is the answer's, at the level E of [Urn.Level]: a function of the outcome and public facts alone. Ends are rounded outward, with a
// step of the grid for the rounding of the units' values.
func (c Check) Interval(o Outcome, level float64) (low, high float64) {
	from, to, variance, units := c.said(o)
	if units <= 0 && c.Partial || !(level >= 0) {
		return 0, 1
	}
	switch {
	case c.Binary:
		level = max(level+beyond(c.OneSide, true, o.Failed(), 1), 0)
		low, high = fractionLow(c.N, from, level), 1-fractionLow(c.N, 1-to, level)
	default:
		level = max(level+beyond(c.OneSide, c.OneChain(), o.Failed(), float64(c.losses())), 0)
		low, high = c.Tails.Overshot(from, variance, units, level), c.Tails.OvershotHigh(to, variance, units, level)
	}
	return max(0, low-gridError), min(1, high+gridError)
}

// Widest is how far, at most, an end of a failure's interval at a level is from its value: half a cell, or the widest margins where the mean may be within them, and Hoeffding's deviation at the worst of the failure's levels, than which no bound
// here is wider. Under a condition the holdout may have no units of it, and the interval is all that is possible.
func (c Check) Widest(level float64) float64 {
	if c.Partial || !(level >= 0) {
		return 1
	}
	level += failedLevel + math.Log(failureRanks)
	n := float64(c.N)
	half := 0.5 / float64(c.Cells)
	if c.Outward && c.within() {
		half = max(half, float64(c.Ranks[len(c.Ranks)-1].Away)/grid)
	}
	return half + math.Sqrt(level*(1+levelSlack)/(2*n)) + 2/n + 2*gridError
}

// said is the statement of an outcome: the mean is between from and to, the variance at most variance, of at least units units.
func (c Check) said(o Outcome) (from, to, variance, units float64) {
	if !o.Failed() {
		r := c.Ranks[o.Rank-1]
		middle := c.Guess + r.Shift
		return float64(middle-r.Away) / grid, float64(middle+r.Away) / grid, float64(r.Variance) / squares, float64(r.Units)
	}
	from, to = c.cellEnds(o.Cell)
	switch {
	case o.Loss < c.losses()-1:
		return from, to, float64(c.varianceAt(o.Loss)) / squares, float64(c.unitsAt(o.Loss))
	case c.Partial:
		return from, to, 1, 0
	}
	return from, to, 1, float64(c.N)
}

// fractionLow is below the mean of the expectations of n values that are 0 or 1, but for a probability of at most e^-level, where their mean is
// at least from, in exact steps: Clopper and Pearson's end. Units need not be alike: the sum's tail is at most the binomial one
// at the same mean wherever it is a unit or more beyond (Hoeffding 1956), hence the least of the two ends.
func fractionLow(n int64, from, level float64) float64 {
	return countLow(n, int64(math.Ceil(from*float64(n)*(1-4e-16))), level) // from is in steps of 2^-30: at most one rounding
}

// countLow is the same where at least so many are 1.
func countLow(n, ones int64, level float64) float64 {
	if ones <= 0 {
		return 0
	}
	count := float64(ones)
	var low float64
	if n <= exactUnits {
		low = binomial.Low(float64(n), count, level*(1+levelSlack)+levelSlack)
	} else {
		low = bounds.ChernoffLow(float64(n), count/float64(n), level*(1+levelSlack))
	}
	return max(0, min(low, (count-1)/float64(n))-endSlack)
}

// exactUnits is up to how many units the exact tail is computed; beyond, Chernoff's end is within a part in ten thousand of it.
const exactUnits = 1 << 26
