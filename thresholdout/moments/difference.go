package moments

import (
	"fmt"
	"math"
	"math/big"
	"slices"
)

// Group is what an answer says of one group, for the interval of a difference.
type Group struct {
	From, To float64 // the holdout's mean in the group is between them
	Variance float64 // it varies at most so much
	Units    float64 // over at least so many units
	Tails    Tails
}

func (g Group) low(level float64) float64  { return Low(g.From, g.Variance, g.Units, level) }
func (g Group) high(level float64) float64 { return High(g.To, g.Variance, g.Units, level) }

// overshot is [Tails.Overshot] of the group.
func (g Group) overshot(level float64) float64 {
	return g.Tails.Overshot(g.From, g.Variance, g.Units, level)
}

// DifferenceLow is a number below r1 - r2, the difference of two conditional means over disjoint groups, but for a probability of at most
// e^-level: a unit is in one group at most, so that bets on both multiply, and
//
//	low = min over t in [0,1] of low1(t level) - high2((1-t) level).
//
// That is convex in t. The search ends with the lower end of what may be between the last two places, by both terms' monotony.
func DifferenceLow(first, second Group, level float64) float64 {
	if !(level >= 0) || math.IsInf(level, 1) {
		return -1
	}
	at := func(t float64) float64 { return first.low(t*level) - second.high((1-t)*level) }
	const golden = 0.6180339887498949
	a, b := 0.0, 1.0
	x, y := b-golden*(b-a), a+golden*(b-a)
	fx, fy := at(x), at(y)
	for b-a > differencePrecision {
		if fx <= fy {
			b, y, fy = y, x, fx
			x = b - golden*(b-a)
			fx = at(x)
		} else {
			a, x, fx = x, y, fy
			y = a + golden*(b-a)
			fy = at(y)
		}
	}
	return max(-1, first.low(b*level)-second.high((1-a)*level)-endSlack)
}

// differencePrecision is how far the search for the shares of the level goes: below 1e-4 of the width of the steadier group, which is
// then narrower than the other by as much.
const differencePrecision = 1e-9

// overshotDifference is [DifferenceLow] by what the bets on both groups must come to together: no bet wins or loses more than at the end that its group has by itself.
func overshotDifference(first, second Group, level float64) float64 {
	mirrored := second.mirror()
	width := bestSpan(first.From, first.Variance, first.low(level)).or(bestSpan(mirrored.From, mirrored.Variance, mirrored.low(level))).width()
	return DifferenceLow(first, second, first.Tails.enough(level, width))
}

// mirror is what is said of 1 minus the values.
func (g Group) mirror() Group { g.From, g.To = 1-g.To, 1-g.From; return g }

// DifferenceCheck is the check of one question about the difference of the means of two groups. No unit may be in both: the caller sees to
// it by the form of the conditions; sums cannot show it. The ranks of both groups are one chain, so that both pass at the same rank or
// the question fails.
type DifferenceCheck struct {
	First, Second Check
	Both          []BothRank // of each rank; nil: ranks say nothing of both groups together
}

// BothRank is what a pass says of both groups together. It is a chain as the ranks of each are.
type BothRank struct {
	Away  int64    // the difference of the means is at most so far from that of the guesses + Shift, in steps of 2^-30
	Most  [2]int64 // at most so many units satisfy each condition
	Shift int64    // as that of a [Rank]
}

// boxRoom is how much wider each group's own margin is where both have one together: so wide that a guess of the difference hardly ever fails by it.
const boxRoom = 1.25

// PlanDifference is the check of the next question about a holdout of n units, without and with what a pass says of both groups together. The second's intervals are the
// narrower ones unless a group has few units.
func PlanDifference(first, second Training, n int64, z float64) (apart, joint DifferenceCheck, err error) {
	for _, group := range []struct {
		Training
		plan *Check
	}{{first, &apart.First}, {second, &apart.Second}} {
		if *group.plan, err = PlanWith(group.Training, n, z); err != nil {
			return apart, joint, err
		}
	}
	for _, one := range []*Check{&apart.First, &apart.Second} {
		if one.Silent() { // the other group alone says nothing of a difference that is worth a token
			apart.First.Ranks, apart.Second.Ranks = one.Ranks, one.Ranks
			apart.First.Cells, apart.Second.Cells = one.Cells, one.Cells
		}
	}
	joint.First, joint.Second = apart.First, apart.Second
	joint.First.Ranks, joint.Second.Ranks = slices.Clone(apart.First.Ranks), slices.Clone(apart.Second.Ranks)
	for l := range joint.First.Ranks {
		a, b := &joint.First.Ranks[l], &joint.Second.Ranks[l]
		joint.Both = append(joint.Both, BothRank{Away: int64(math.Ceil(math.Hypot(float64(a.Away), float64(b.Away)))), Most: [2]int64{first.most(n, a.Units), second.most(n, b.Units)}})
		a.Away, b.Away = int64(min(boxRoom*float64(a.Away), grid)), int64(min(boxRoom*float64(b.Away), grid))
	}
	return apart, joint, nil
}

// most is as much above the expected units of the holdout as least is below.
func (t Training) most(n, least int64) int64 {
	if t.Units == 0 {
		return n
	}
	expected := float64(n) * float64(t.Units) / float64(t.All)
	return min(n, int64(math.Ceil(2*expected))-least)
}

// DifferenceOutcome is what is known of the holdout after a question about a difference.
type DifferenceOutcome struct {
	Rank  int      // 1, 2: the pass of both groups; 0: a failure
	Cells [2]int64 // of a failure
	Loss  int      // of a failure: the least rank that both groups' sums satisfy
}

func (o DifferenceOutcome) Failed() bool { return o.Rank == 0 }
func (o DifferenceOutcome) Wide() bool   { return o.Rank > 1 }

// Silent is [Check.Silent] of a difference.
func (c DifferenceCheck) Silent() bool { return c.First.Silent() && c.Second.Silent() }

// Valid says what is wrong with a check.
func (c DifferenceCheck) Valid() error {
	for _, g := range []Check{c.First, c.Second} {
		if err := g.Valid(); err != nil {
			return err
		}
		if g.Outward {
			return errOutward
		}
		if !g.Partial {
			return fmt.Errorf("moments: a difference is of two means under disjoint conditions; one has no condition")
		}
	}
	if c.First.N != c.Second.N || len(c.First.Ranks) != len(c.Second.Ranks) || c.Both != nil && len(c.Both) != len(c.First.Ranks) {
		return fmt.Errorf("moments: groups of one holdout with as many ranks each are needed")
	}
	for l, r := range c.Both {
		if r.Away < 0 || r.Away > 2*grid || max(r.Shift, -r.Shift) > 2*grid || r.Most[0] < c.First.Ranks[l].Units || r.Most[1] < c.Second.Ranks[l].Units ||
			l > 0 && (!within(c.Both[l-1].Away, c.Both[l-1].Shift, r.Away, r.Shift) || r.Most[0] < c.Both[l-1].Most[0] || r.Most[1] < c.Both[l-1].Most[1]) {
			return fmt.Errorf("moments: rank %d of both groups together has no such margins, or says more than the one before it: %+v", l+1, r)
		}
	}
	return nil
}

// Outcome compares both groups' sums with the margins.
func (c DifferenceCheck) Outcome(first, second Sums) (o DifferenceOutcome, err error) {
	if err := c.Valid(); err != nil {
		return o, err
	}
	if first.Units+second.Units > c.First.N {
		return o, fmt.Errorf("moments: %d and %d units of %d: a unit is in both groups, or the sums are of another holdout", first.Units, second.Units, c.First.N)
	}
	for _, s := range []Sums{first, second} {
		if err := s.check(); err != nil {
			return o, err
		}
	}
	if c.Silent() {
		return DifferenceOutcome{Rank: 1}, nil
	}
	holds := func(g Check, s Sums, r Rank) bool {
		return s.Units > 0 && s.Units >= r.Units && s.near(g.Guess+r.Shift, r.Away) && s.steady(r.Variance)
	}
	for l := range c.First.Ranks {
		if holds(c.First, first, c.First.Ranks[l]) && holds(c.Second, second, c.Second.Ranks[l]) && (c.Both == nil || c.together(first, second, c.Both[l])) {
			return DifferenceOutcome{Rank: l + 1}, nil
		}
	}
	if first.Units == 0 || second.Units == 0 {
		return DifferenceOutcome{Loss: failureRanks - 1}, nil
	}
	o.Cells = [2]int64{first.cell(c.First.Cells), second.cell(c.Second.Cells)}
	for o.Loss < failureRanks-1 && !(c.First.lost(first, o.Loss) && c.Second.lost(second, o.Loss)) {
		o.Loss++
	}
	return o, nil
}

// together says whether both groups' sums satisfy what a rank says of both, exactly: |S1 N2 - S2 N1 - (G1-G2+Shift) N1 N2| <= Away N1 N2.
func (c DifferenceCheck) together(first, second Sums, r BothRank) bool {
	if first.Units > r.Most[0] || second.Units > r.Most[1] {
		return false
	}
	product := func(a, b int64) *big.Int { return new(big.Int).Mul(big.NewInt(a), big.NewInt(b)) }
	units := product(first.Units, second.Units)
	off := product(first.Sum, second.Units)
	off.Sub(off, product(second.Sum, first.Units))
	off.Sub(off, new(big.Int).Mul(units, big.NewInt(c.First.Guess-c.Second.Guess+r.Shift)))
	return off.Abs(off).Cmp(units.Mul(units, big.NewInt(r.Away))) <= 0
}

// WithHalfWidth is the check with one rank whose interval, at this level, lies within the difference of the guesses ± halfWidth: the largest margin of both groups together with which
// it does, to a part in some thousands. It is for a check that says something of both. All of it is public; it is false where no guess can pass.
func (c DifferenceCheck) WithHalfWidth(halfWidth, level float64) (DifferenceCheck, bool) {
	one, g := c, float64(c.First.Guess-c.Second.Guess)/grid
	one.First.Ranks, one.Second.Ranks, one.Both = c.First.Ranks[:1:1], c.Second.Ranks[:1:1], slices.Clone(c.Both[:1])
	holds := func(away int64) bool {
		one.Both[0].Away = away
		low, high := one.Interval(DifferenceOutcome{Rank: 1}, level)
		return low >= g-halfWidth && high <= g+halfWidth
	}
	most := c.First.Ranks[0].Away + c.Second.Ranks[0].Away // more is never seen
	lo, hi := int64(-1), most+1
	for hi-lo > 1+most/4096 {
		if mid := lo + (hi-lo)/2; holds(mid) {
			lo = mid
		} else {
			hi = mid
		}
	}
	if lo < 0 && !holds(0) {
		return c, false
	}
	one.Both[0].Away = max(lo, 0)
	return one, true
}

// lost says whether the sums satisfy what a failure of rank t, not the last, says.
func (c Check) lost(s Sums, t int) bool { return s.Units >= c.unitsAt(t) && s.steady(c.varianceAt(t)) }

// Dearest is what a failure adds to later levels: ln(c1 c2 T).
func (c DifferenceCheck) Dearest() Nats {
	return nats(math.Log(float64(c.First.Cells) * float64(c.Second.Cells) * failureRanks))
}

// Interval is that of the difference, at the level E of [Urn.Level], rounded outward with a step of the grid for each group.
func (c DifferenceCheck) Interval(o DifferenceOutcome, level float64) (low, high float64) {
	if c.Silent() {
		return -1, 1
	}
	first, second := c.First.group(o.Rank, o.Cells[0], o.Loss), c.Second.group(o.Rank, o.Cells[1], o.Loss)
	// The cells of two groups are no chain. With the cell of the group that has fewer of them fixed, those of the other are one.
	level = max(level+beyond(c.First.OneSide, false, o.Failed(), failureRanks*float64(min(c.First.Cells, c.Second.Cells))), 0)
	if c.Both != nil && !o.Failed() {
		r := c.Both[o.Rank-1]
		guess := c.First.Guess - c.Second.Guess + r.Shift
		most := [2]float64{float64(r.Most[0]), float64(r.Most[1])}
		low, high = BothLow(first, second, most, float64(guess-r.Away)/grid, level), BothHigh(first, second, most, float64(guess+r.Away)/grid, level)
	} else {
		low, high = overshotDifference(first, second, level), -overshotDifference(second, first, level)
	}
	return max(-1, low-2*gridError), min(1, high+2*gridError)
}

func (c Check) group(rank int, cell int64, loss int) (g Group) {
	g.Tails = c.Tails
	g.From, g.To, g.Variance, g.Units = c.said(Outcome{Rank: rank, Cell: cell, Loss: loss})
	return g
}

// Value is the difference of the guesses, or of the middles of the cells.
func (c DifferenceCheck) Value(o DifferenceOutcome) float64 {
	return c.First.Value(Outcome{Rank: o.Rank, Cell: o.Cells[0]}) - c.Second.Value(Outcome{Rank: o.Rank, Cell: o.Cells[1]})
}
