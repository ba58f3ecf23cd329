package pairs

import (
	"fmt"
	"math"
	"math/big"

	"github.com/holdoutd/holdoutd/thresholdout/moments"
)

// Spread is what a clustered statement says of how A-gB and B vary together, g the guess: at most, in steps of 2^-60.
type Spread struct {
	Own       int64 // the variance of A-gB
	Low, High int64 // its covariance with B is between these
	Size      int64 // the variance of B
}

// ClusteredRank is what a pass says: the mean of A-gB over all pairs is at most Away from 0, and that of B at least Size.
type ClusteredRank struct{ Away, Size int64 } // steps of 2^-30

// ClusteredCheck is how one question about the area of clustered units is checked. Rank 1 also says the spreads; rank 2, where there is one, does not.
type ClusteredCheck struct {
	Guess         int64 // of the ratio, steps of 2^-30
	Ranks         []ClusteredRank
	N1, N0        int64  // units of the halves
	First, Second Spread // of the first half's units' means over the other half, and of the second's
	Rest          Spread // over all pairs, less the first half's units'
	Cells         int64  // a failure says which of so many cells of [0,1] the ratio is in
	OneSide       bool   // a pass at rank 1 is read at what one of its ends alone can miss by
	OneEvent      bool   // matchings are read as one event a side, of which that is not proved
}

// Valid says what is wrong with a check: its ranks must be a chain.
func (c ClusteredCheck) Valid() error {
	if c.Guess < 0 || c.Guess > grid || c.Cells < 1 || c.Cells > grid || c.N1 < 0 || c.N0 < 0 || c.N1 > maxUnits || c.N0 > maxUnits {
		return fmt.Errorf("pairs: %+v is no check of clustered units", c)
	}
	for _, s := range []Spread{c.First, c.Second, c.Rest} {
		if s.Own < 0 || s.Size < 0 || s.Low > s.High || max(s.Own, s.Size, s.High, -s.Low) > squares/4 {
			return fmt.Errorf("pairs: %+v is no spread of clustered units", s)
		}
	}
	if len(c.Ranks) < 1 || len(c.Ranks) > 2 {
		return fmt.Errorf("pairs: a check has one rank or two, not %d", len(c.Ranks))
	}
	a, b := c.Ranks[0], c.Ranks[len(c.Ranks)-1]
	if a.Away < 0 || b.Away > grid || b.Away < a.Away || b.Size < 0 || a.Size < b.Size || a.Size > grid {
		return fmt.Errorf("pairs: rank 2 says more than rank 1; ranks must be a chain: %+v", c.Ranks)
	}
	return nil
}

// whole is the number of pairs, in parts.
func (s ClusteredSums) whole() *big.Int {
	pairs := new(big.Int).Mul(big.NewInt(s.N1), big.NewInt(s.N0))
	return pairs.Mul(pairs, s.Unit)
}

// Outcome compares the holdout's sums with the margins, in integers.
func (c ClusteredCheck) Outcome(s ClusteredSums) (Outcome, error) {
	if err := c.Valid(); err != nil {
		return Outcome{}, err
	}
	if s.A == nil || s.N1 != c.N1 || s.N0 != c.N0 || s.B.Sign() < 0 || s.A.Sign() < 0 || s.A.Cmp(s.B) > 0 {
		return Outcome{}, fmt.Errorf("pairs: no sums over pairs of %d and %d clustered units", c.N1, c.N0)
	}
	if c.Silent() {
		return Outcome{Rank: 1}, nil
	}
	if s.B.Sign() == 0 {
		return Outcome{Loss: losses - 1}, nil
	}
	whole := s.whole()
	off := new(big.Int).Lsh(s.A, 30)
	off.Sub(off, new(big.Int).Mul(s.B, big.NewInt(c.Guess))).Abs(off)
	large := func(r ClusteredRank) bool {
		return new(big.Int).Lsh(s.B, 30).Cmp(new(big.Int).Mul(whole, big.NewInt(r.Size))) >= 0
	}
	near := func(r ClusteredRank) bool {
		return large(r) && off.Cmp(new(big.Int).Mul(whole, big.NewInt(r.Away))) <= 0
	}
	steady := s.within(c)
	switch {
	case steady && near(c.Ranks[0]):
		return Outcome{Rank: 1}, nil
	case len(c.Ranks) > 1 && near(c.Ranks[1]):
		return Outcome{Rank: 2}, nil
	}
	cell := new(big.Int).Mul(s.A, big.NewInt(c.Cells))
	o := Outcome{Cell: min(cell.Div(cell, s.B).Int64(), c.Cells-1)}
	switch enough := large(c.Ranks[0]); {
	case enough && steady:
	case enough:
		o.Loss = 1
	default:
		o.Loss = 2
	}
	return o, nil
}

// spreads are those of A-gB and B over the first half's units, the second's, and over all pairs less the first half's units: numerators over the square of
// [ClusteredSums.whole], in steps of 2^-60.
func (s ClusteredSums) spreads(g int64) (first, second, rest [3]*big.Int) {
	of := func(q Quadratic, times *big.Int) (scaled [3]*big.Int) {
		mixed, size := q.mixed(g), new(big.Int).Lsh(q.BB, 60)
		scaled = [3]*big.Int{q.at(g), mixed.Lsh(mixed, 30), size}
		for _, x := range scaled {
			x.Mul(x, times)
		}
		return scaled
	}
	less := func(x, y [3]*big.Int) (z [3]*big.Int) {
		for i := range z {
			z[i] = new(big.Int).Sub(x[i], y[i])
		}
		return z
	}
	total := new(big.Int).Lsh(s.A, 30) // of A-gB
	total.Sub(total, new(big.Int).Mul(s.B, big.NewInt(g)))
	size := new(big.Int).Lsh(s.B, 30)
	means := [3]*big.Int{new(big.Int).Mul(total, total), new(big.Int).Mul(total, size), new(big.Int).Mul(size, size)}
	n1, n0 := big.NewInt(s.N1), big.NewInt(s.N0)
	rows := of(s.First, n1)
	return less(rows, means), less(of(s.Second, n0), means), less(of(s.Squares, new(big.Int).Mul(n1, n0)), rows)
}

// within says whether the spreads are at most those of a check.
func (s ClusteredSums) within(c ClusteredCheck) bool {
	whole := s.whole()
	whole.Mul(whole, whole)
	first, second, rest := s.spreads(c.Guess)
	for i, limits := range []Spread{c.First, c.Second, c.Rest} {
		got := [][3]*big.Int{first, second, rest}[i]
		below := func(x *big.Int, limit int64) bool { return x.Cmp(new(big.Int).Mul(whole, big.NewInt(limit))) <= 0 }
		if !below(got[0], limits.Own) || !below(got[1], limits.High) || !below(new(big.Int).Neg(got[1]), -limits.Low) || !below(got[2], limits.Size) {
			return false
		}
	}
	return true
}

// Dearest is what a failure adds to later levels: ln(3c).
func (c ClusteredCheck) Dearest() moments.Nats { return moments.PriceOf(losses * float64(c.Cells)) }

// Value is the guess, or the middle of the cell.
func (c ClusteredCheck) Value(o Outcome) float64 {
	if o.Failed() {
		return (float64(o.Cell) + 0.5) / float64(c.Cells)
	}
	return float64(c.Guess) / grid
}

// Interval is that of the ratio r* of the sums of E A and of E B over all pairs of a unit of one half and one of the other, at the level E of [moments.Urn]; of a
// difference of two areas, 2 Low - 1 to 2 High - 1. Units are alike.
func (c ClusteredCheck) Interval(o Outcome, level float64) (low, high float64) {
	from, to, away, size := float64(o.Cell)/float64(c.Cells), float64(o.Cell+1)/float64(c.Cells), 0.0, c.Ranks[0].Size
	if !o.Failed() {
		r := c.Ranks[o.Rank-1]
		from, away, size = float64(c.Guess)/grid, float64(r.Away)/grid, r.Size
		to = from
	}
	switch {
	case o.Failed() && o.Loss == losses-1 || size == 0:
		return 0, 1
	case o.Rank == 1 || o.Failed() && o.Loss == 0:
		return c.between(from, to, away, level, o.Failed())
	}
	return c.matchings(from, to, away, size, level+c.matchingsLevel(clusteredMatchingsLevel))
}

// matchings is the interval where the mean of A is at least from times that of B, less away, at most to times it and away, and the mean of B is at least size. Of each matching the
// pairs' bets are independent, and a bet on the ratio needs no spread. At one size all statements of a side are a chain (docs/proofs/pairs.md, section 4).
func (c ClusteredCheck) matchings(from, to, away float64, size int64, level float64) (low, high float64) {
	b := float64(size)/grid - blur
	if b <= 0 {
		return 0, 1
	}
	m, off := b*float64(min(c.N1, c.N0)), (away+2*blur)/b
	low, high = Matchings(from-off, to+off, m, level)
	return max(0, low-slack), min(1, high+slack)
}

// blur is more than A - rB, for any r in [0,1], is moved by the grid: a unit's shares of rows are rounded to the nearest of 2^-30.
const blur = 1.0 / (1 << 27)

// Levels at which the projection of clustered units is read beyond E: that of a pass and that of a cell are about a kernel each, so that each has an event D of its own. A pass
// has .8 and .05 of a side, cells .025 and .025. Matchings have .05 at the size of rank 1, and .05 at one other: that of rank 2, or in a report the sample's own. That one is no plan: over all sizes
// that a sample may have, e times what a level says is proved, so that it is read at 1 more (docs/proofs/pairs.md, section 4).
var (
	clusteredFailedLevel          = math.Log(40)
	clusteredFailedDeviationLevel = math.Log(40)
	clusteredMatchingsLevel       = math.Log(20)
	clusteredOwnMatchingsLevel    = 1 + math.Log(20)
)

// matchingsLevel is the level beyond E at which matchings are read: what is proved, or what version 4 of guess_and_check took.
func (c ClusteredCheck) matchingsLevel(proved float64) float64 {
	if c.OneEvent {
		return matchingsLevel
	}
	return proved
}

// between is the common part of the projection's interval and of the matchings', where the spreads are as planned.
func (c ClusteredCheck) between(from, to, away, level float64, failed bool) (low, high float64) {
	low, high = c.matchings(from, to, away, c.Ranks[0].Size, level+c.matchingsLevel(clusteredMatchingsLevel))
	beyond, other := passLevel, level+deviationLevel
	switch {
	case failed:
		beyond, other = clusteredFailedLevel, level+clusteredFailedDeviationLevel
	case c.OneSide:
		beyond -= math.Ln2
	}
	p := c.projection()
	low = max(low, p.low(from, away, max(level+beyond, 0), other, low)-slack)
	high = min(high, 1-p.mirror().low(1-to, away, max(level+beyond, 0), other, 1-high)+slack)
	return max(0, low), min(1, high)
}

// projection is what rank 1 says of clustered units, as numbers: with variances and covariances of A-gB and B.
type projection struct {
	guess, size         float64 // g, and the least mean of B
	n1, n0              float64
	first, second, rest [4]float64 // Own, Low, High and Size of each Spread
}

func (c ClusteredCheck) projection() projection {
	of := func(s Spread) [4]float64 {
		return [4]float64{float64(s.Own) / squares, float64(s.Low) / squares, float64(s.High) / squares, float64(s.Size) / squares}
	}
	return projection{float64(c.Guess) / grid, float64(c.Ranks[0].Size) / grid, float64(c.N1), float64(c.N0), of(c.First), of(c.Second), of(c.Rest)}
}

// mirror is what is said of B-A in the place of A.
func (p projection) mirror() projection {
	of := func(s [4]float64) [4]float64 { return [4]float64{s[0], -s[2], -s[1], s[3]} }
	p.guess, p.first, p.second, p.rest = 1-p.guess, of(p.first), of(p.second), of(p.rest)
	return p
}

// spreadAt is the most that A-rB can vary where t = g-r: that of (A-gB) + tB.
func spreadAt(s [4]float64, t float64) float64 {
	mixed := s[2]
	if t < 0 {
		mixed = s[1]
	}
	sd := math.Sqrt(max(0, s[0]+2*t*mixed+t*t*s[3])) + blur
	return min(0.25, sd*sd)
}

// excluded reports whether the ratio r is too low to be true, but for probabilities of e^-level and e^-other, where the mean of A is at least from times that of B, less away: the
// projection's statement about the kernel r+A-rB, whose mean is r where the ratio is.
func (p projection) excluded(r, from, away, level, other float64) bool {
	t := p.guess - r
	u := r - away + (from-r)*p.size - blur
	if !(u > r && r > 0) {
		return false
	}
	s := Statement{N1: p.n1, N0: p.n0, V1: spreadAt(p.first, t), V0: spreadAt(p.second, t), Rest: spreadAt(p.rest, t)}
	return s.excludes(r, min(u, 1), level, other)
}

// low is a ratio that is excluded, or known: the search looks for the largest, and whatever it finds may be printed.
func (p projection) low(from, away, level, other, known float64) float64 {
	if p.excluded(known, from, away, level, other) || known <= 0 {
		a, b := known, min(from, 1)
		for b-a > 1e-9 {
			if mid := (a + b) / 2; p.excluded(mid, from, away, level, other) {
				a = mid
			} else {
				b = mid
			}
		}
		return a
	}
	return known
}

// excludes reports whether the expectation r of the kernel is too low to be true, where its mean over all pairs is at least u > r, but for probabilities of e^-level and e^-other: the
// bets against all means t of class 0 win the level together, at the stake that is best where the worst t is.
func (s Statement) excludes(r, u, level, other float64) bool {
	w := s.deviation(other)
	best := func(v, mean, below float64) float64 { // per unit, at the best stake
		if below >= mean {
			return 0
		}
		return moments.Capital(mean, v, below, moments.Stake(mean, v, below))
	}
	at := func(t float64) float64 { return s.N1*best(s.V1, u, t) + s.N0*best(w*w, t, r) }
	a, b := narrowed(r, u, at)
	stake := min(moments.Stake((a+b)/2, w*w, r), largestOdds*r/(1+largestOdds*r))
	// At a fixed stake the sum falls and then rises in t (docs/proofs/pairs.md, section 3), its first term falls, and its second rises.
	fixed := func(t float64) float64 { return s.N1*best(s.V1, u, t) + s.N0*moments.Capital(t, w*w, r, stake) }
	a, b = narrowed(0, u, fixed)
	return s.N1*best(s.V1, u, b)+s.N0*moments.Capital(max(a, math.SmallestNonzeroFloat64), w*w, r, stake) >= level*(1+1e-12)+1e-12
}

// narrowed is where a function that falls and then rises is least: between two numbers, near each other.
func narrowed(a, b float64, f func(float64) float64) (from, to float64) {
	const golden = 0.6180339887498949
	x, y := b-golden*(b-a), a+golden*(b-a)
	fx, fy := f(x), f(y)
	for range 36 {
		if fx <= fy {
			b, y, fy = y, x, fx
			x = b - golden*(b-a)
			fx = f(x)
		} else {
			a, x, fx = x, y, fy
			y = a + golden*(b-a)
			fy = f(y)
		}
	}
	return a, b
}

// Exact is the interval of a question that nothing is chosen after, in a final report, read at the sample's own ratio. Where the planned statement is not true the matchings' interval is left.
func (c ClusteredCheck) Exact(s ClusteredSums, level float64) (low, high float64, err error) {
	if err := c.Valid(); err != nil {
		return 0, 1, err
	}
	ratio, size, ok := s.Ratio()
	if !ok || c.Silent() {
		return 0, 1, nil
	}
	if size >= float64(c.Ranks[0].Size)/grid && s.within(c) {
		low, high = c.between(ratio, ratio, 0, level, false)
	} else {
		low, high = 0, 1
	}
	l, h := c.matchings(ratio, ratio, 0, int64(size*grid), level+c.matchingsLevel(clusteredOwnMatchingsLevel))
	return max(low, l), min(high, h), nil
}

// Foreseen is Exact of a sample with this ratio of which the planned statement is true.
func (c ClusteredCheck) Foreseen(ratio, level float64) (low, high float64) {
	if c.Silent() {
		return 0, 1
	}
	return c.between(ratio, ratio, 0, level, false)
}

// Ratio is that of A and B, with the mean of B; false where B is 0 throughout.
func (s ClusteredSums) Ratio() (ratio, size float64, ok bool) {
	if s.B == nil || s.B.Sign() == 0 {
		return 0, 0, false
	}
	return quotient(s.A, s.B), quotient(s.B, s.whole()), true
}

// Others is Ratio over the pairs of different units, where both halves are the same units.
func (s ClusteredSums) Others() (ratio float64, ok bool) {
	a, b := new(big.Int).Sub(s.A, s.OwnA), new(big.Int).Sub(s.B, s.OwnB)
	if b.Sign() <= 0 {
		return 0, false
	}
	return min(max(quotient(a, b), 0), 1), true
}

func quotient(a, b *big.Int) float64 { x, _ := new(big.Rat).SetFrac(a, b).Float64(); return x }

// PlanClustered is the check from the training part's sums, whose halves are both all of its units, for a holdout of n units, where the narrowest margin leaves room for z
// standard deviations (moments.Deviations); guess is that of the ratio, in steps of 2^-30. An error says that there are too few units with rows of both labels for a plan.
func PlanClustered(t ClusteredSums, guess, n int64, z float64) (ClusteredCheck, error) {
	c := ClusteredCheck{Guess: guess, N1: n / 2, N0: n - n/2}
	if c.N1 < 1 || n > maxUnits || t.N1 != t.N0 || t.N1 < 2 || !(z > 0) || guess < 0 || guess > grid || t.B == nil {
		return c, fmt.Errorf("pairs: no plan from %d units for %d, with the guess %d", t.N1, n, guess)
	}
	ratio, size, ok := t.Ratio()
	if !ok || !(ratio >= 0) {
		return c, fmt.Errorf("pairs: no units with rows of both labels for a plan")
	}
	half := float64(t.N1) / 2 // each unit is in one half of the holdout
	s1, s0 := 1/float64(c.N1)+1/half, 1/float64(c.N0)+1/half
	numbers := t.spreadNumbers(guess)
	scale, sizes := max(numbers[0][0]+numbers[2][0], 0), numbers[0][2]+numbers[2][2]+size*size // the mean squares of A-gB and of B over pairs
	// Where few units have rows of one label these few have all of the variance, and B says how few: it varies as much beside its mean.
	few := 8 * (1 + 2*numbers[0][2]/(size*size))
	planned := func(v [3]float64, s float64) Spread {
		room := func(v, scale float64) float64 { return z*v*math.Sqrt(few*s) + z*z*s*scale/8 }
		up := func(v float64) int64 { return int64(min(math.Ceil(v*squares), squares/4)) }
		own, mixed, size := max(v[0], 0), v[1], max(v[2], 0)
		both := room(math.Sqrt(own*size), math.Sqrt(scale*sizes))
		return Spread{Own: up(own + room(own, scale)), Low: -up(both - mixed), High: up(mixed + both), Size: up(size + room(size, sizes))}
	}
	c.First, c.Second, c.Rest = planned(numbers[0], s1), planned(numbers[1], s0), planned(numbers[2], s1+s0)
	// Bernstein's room beside the normal one, for pairs of this scale.
	margin := func(k float64, of int, scale float64) float64 {
		return k * (z*math.Sqrt(max(numbers[0][of], 0)*s1+max(numbers[1][of], 0)*s0) + z*z*s0*math.Sqrt(scale)/6)
	}
	for k := 1.0; k <= 2; k++ {
		c.Ranks = append(c.Ranks, ClusteredRank{Away: int64(min(math.Ceil(margin(k, 0, scale)*grid), grid)), Size: int64(max(0, math.Floor((size-margin(k, 2, sizes))*grid)))})
	}
	if c.Ranks[0].Size == 0 {
		return c, fmt.Errorf("pairs: too few units with rows of both labels for a plan")
	}
	width := margin(1, 0, scale) / size // of the ratio
	c.Cells = int64(math.Exp2(min(max(math.Round(math.Log2(z/(2*max(width, 1e-6)))), 0), 20)))
	return c, nil
}

// spreadNumbers are [ClusteredSums.spreads] as numbers, for plans.
func (s ClusteredSums) spreadNumbers(g int64) (all [3][3]float64) {
	whole := s.whole()
	whole.Mul(whole, whole).Lsh(whole, 60)
	first, second, rest := s.spreads(g)
	for i, x := range [][3]*big.Int{first, second, rest} {
		for j := range x {
			all[i][j] = quotient(x[j], whole)
		}
	}
	return all
}

// WithHalfWidth is the check with one rank whose interval, at this level, lies within guess ± halfWidth: the largest margin with which it does. It is false where no guess can pass.
func (c ClusteredCheck) WithHalfWidth(halfWidth, level float64) (ClusteredCheck, bool) {
	one, g := c, float64(c.Guess)/grid
	one.Ranks = []ClusteredRank{c.Ranks[0]}
	holds := func(away int64) bool {
		one.Ranks[0].Away = away
		low, high := one.Interval(Outcome{Rank: 1}, level)
		return low >= g-halfWidth && high <= g+halfWidth
	}
	var ok bool
	if one.Ranks[0].Away, ok = widestMargin(holds); !ok {
		return c, false
	}
	return one, true
}

// Silent reports whether the check says nothing: it is that of the function SilentClustered, but for the guess.
func (c ClusteredCheck) Silent() bool { r := c.Ranks[0]; return r.Size == 0 && r.Away == grid }

// SilentClustered is a check of n units that says nothing: it passes whatever the sums are, and its interval is [0,1].
func SilentClustered(n int64) ClusteredCheck {
	all, any := ClusteredRank{Away: grid}, Spread{squares / 4, -squares / 4, squares / 4, squares / 4}
	return ClusteredCheck{Guess: grid / 2, Ranks: []ClusteredRank{all, all}, N1: n / 2, N0: n - n/2, First: any, Second: any, Rest: any, Cells: 1}
}
