package shape

import (
	"math"
	"math/bits"
	"slices"

	"github.com/holdoutd/holdoutd/rowfn"
)

// Search is the shape of a quantile, which is found by asking one row function in each step, chosen by what was released in the steps
// before. Rung i, from 0, is the threshold Low + i·Resolution; P(x <= rung) >= P or not is what the search finds out, and the quantile is
// one of the rungs or High, which is rung number Rungs.
//
// Each row function belongs to one step, for a mechanism may have fresh rows for each; one that can be asked in several steps is
// listed for each of them.
type Search struct {
	Low, High  float64
	Resolution float64
	Rungs      int
	Steps      int // bits.Len(Rungs)
	P          float64
}

func (s Search) items() []string { return nil }

// Plan is the plan of the search over a number x, of the rows in which where holds; null is what a null x counts as. grouped says that units
// can hold several rows.
func (s Search) Plan(x *rowfn.Node, null float64, where *rowfn.Node, grouped bool) *Plan {
	p := &Plan{Range: Range{s.Low, s.High}, Shape: s}
	rungs, reached := make([]rowfn.Function, s.Rungs), make([]*rowfn.Node, s.Rungs) // those of one rung share their tree
	for i := range rungs {
		reached[i] = s.reached(x, null, i)
		rungs[i] = s.function(reached[i], where)
	}
	p.Checks = s.tally(x, reached, null, where, grouped).checks(Rung{s, where != nil})
	for step := range s.Steps {
		for node := range 2<<step - 1 {
			p.Functions = append(p.Functions, rungs[s.rung(node)])
		}
	}
	return p
}

// At is the threshold of a rung.
func (s Search) At(rung int) float64 {
	switch {
	case rung <= 0:
		return s.Low
	case rung >= s.Rungs:
		return s.High
	}
	return min(s.Low+float64(float64(rung)*s.Resolution), s.High)
}

// The rungs are the nodes of a balanced binary search tree, numbered as a heap, and a gap between neighbours of what was asked is
// a subtree of it. In its step number s, from 0, a search can ask the nodes of the levels up to s.

// rung is the one of a node; of a node below a leaf, a neighbour of its gap, for such a node is asked in place of that.
func (s Search) rung(node int) int {
	low, high := s.gap(node)
	return min(max((low+high)/2, 0), s.Rungs-1)
}

// gap is the rungs next to the subtree of a node, -1 and the number of rungs if there are none.
func (s Search) gap(node int) (low, high int) {
	low, high = -1, s.Rungs
	path := uint(node + 1) // its bits, after the first, are the way from the root
	for i := bits.Len(path) - 2; i >= 0; i-- {
		middle := (low + high) / 2
		if path>>i&1 == 1 {
			low = middle
		} else {
			high = middle
		}
	}
	return low, high
}

// firstOf is the first function of a step; there are 2^(step+1)-1 of it.
func firstOf(step int) int { return 2<<step - 2 - step }

func stepOf(function int) int {
	step := 0
	for firstOf(step+1) <= function {
		step++
	}
	return step
}

// searched is what the steps of a search have told.
type searched struct {
	asked []askedRung // by rung; of a rung that was asked twice, the later value and the common part of the intervals
	below int         // the quantile is above this rung, -1 if nothing is known
	most  int         // the quantile is at most this rung
}

type askedRung struct {
	rung, node int
	value      float64
	side       side
}

type side int8

const (
	isBelow side = iota - 1 // P(x <= rung) < p for sure
	isOpen                  // its interval holds p
	isAbove                 // P(x <= rung) >= p for sure
)

// tieTolerance is the rounding of released values and of row functions: a distribution function that is p is at least p.
const tieTolerance = 0x1p-29

// side is what a released part says. Where no interval is known the value is all there is.
func (s Search) side(p Part) side {
	low, high := p.Low, p.High
	if !p.Bounded {
		low, high = p.Value+tieTolerance, p.Value+tieTolerance
	}
	switch {
	case low >= s.P:
		return isAbove
	case high < s.P:
		return isBelow
	}
	return isOpen
}

// told is what released parts say, each of the rung that it was asked about. Which rungs were asked is a fact: it was decided by the
// intervals of the guarantee's own level. Parts that are read at other levels, as a p-value does, may lie on other sides of p, but they
// are about the same rungs.
func (s Search) told(released []Part) searched {
	k := searched{below: -1, most: s.Rungs}
	for step, p := range released {
		node := p.Function - firstOf(step)
		k.add(askedRung{s.rung(node), node, p.Value, s.side(p)})
	}
	return k
}

// Next is the row function to ask after these parts.
func (s Search) Next(released []Part) int {
	node := 0
	if step := len(released) - 1; step >= 0 {
		node = s.choose(s.told(released), released[step].Function-firstOf(step))
	}
	return firstOf(len(released)) + node
}

func (k *searched) add(p askedRung) {
	i, again := slices.BinarySearchFunc(k.asked, p, func(a, b askedRung) int { return a.rung - b.rung })
	if again {
		k.asked[i].value = p.value
		if k.asked[i].side == isOpen {
			k.asked[i].side = p.side
		}
	} else {
		k.asked = slices.Insert(k.asked, i, p)
	}
	switch {
	case p.side == isBelow:
		k.below = max(k.below, p.rung)
	case p.side == isAbove:
		k.most = min(k.most, p.rung)
	}
}

// choose is the node to ask next. Until a rung's interval holds p that is bisection. From then on the ends of the
// quantile's interval are looked for: the gap between a rung that is surely on one side and the next that is open, the wider one first.
// If nothing is left to find there, the last rung is asked again.
func (s Search) choose(k searched, last int) int {
	best, widest := last, 1
	for i := 0; i <= len(k.asked); i++ {
		low, high, under, over := -1, s.Rungs, isBelow, isAbove
		if i > 0 {
			low, under = k.asked[i-1].rung, k.asked[i-1].side
		}
		if i < len(k.asked) {
			high, over = k.asked[i].rung, k.asked[i].side
		}
		if low >= k.below && high <= k.most && !(under == isOpen && over == isOpen) && high-low > widest {
			best, widest = s.between(low, high), high-low
		}
	}
	return best
}

// between is the root of the subtree between two neighbours among what was asked.
func (s Search) between(low, high int) int {
	for node := 0; ; {
		switch r := s.rung(node); {
		case r <= low:
			node = 2*node + 2
		case r >= high:
			node = 2*node + 1
		default:
			return node
		}
	}
}

// crossing is the rung at which the distribution function, as far as it was asked and by straight lines between, reaches p:
// monotone regression takes the noise out of its order.
func (s Search) crossing(asked []askedRung) int {
	type run struct {
		first, last int // rungs
		sum, count  float64
	}
	runs := []run{{-1, -1, 0, 1}}
	for _, p := range asked {
		runs = append(runs, run{p.rung, p.rung, p.value, 1})
		for n := len(runs); n > 2 && runs[n-2].sum*runs[n-1].count >= runs[n-1].sum*runs[n-2].count; n = len(runs) {
			runs[n-2] = run{runs[n-2].first, runs[n-1].last, runs[n-2].sum + runs[n-1].sum, runs[n-2].count + runs[n-1].count}
			runs = runs[:n-1]
		}
	}
	from, reached := runs[0], run{s.Rungs, s.Rungs, 1, 1}
	for _, r := range runs[1:] {
		if r.sum/r.count+tieTolerance >= s.P {
			reached = r
			break
		}
		from = r
	}
	a, b := from.sum/from.count, reached.sum/reached.count
	share := 1.0
	if b > a {
		share = min(max((s.P-a)/(b-a), 0), 1)
	}
	gap := reached.first - from.last
	return from.last + min(max(int(math.Ceil(share*float64(gap)-0x1p-20)), 1), gap)
}

// reached is whether x is at a rung or below.
func (s Search) reached(x *rowfn.Node, null float64, rung int) *rowfn.Node {
	threshold := s.At(rung)
	reached := rowfn.CompareTo(rowfn.OpLessEq, x, threshold)
	if null <= threshold {
		reached = rowfn.Or(reached, rowfn.IsNull(x))
	}
	return reached
}

// function is 1[x <= rung]; with where, p in other rows, so that its mean reaches p where the conditional distribution function does.
func (s Search) function(reached, where *rowfn.Node) rowfn.Function {
	if where == nil {
		return rowfn.Function{Value: reached, Lo: 0, Hi: 1}
	}
	otherwise := rowfn.If(where, rowfn.Const(0), rowfn.Const(s.P)) // which the functions of all rungs share
	return rowfn.Function{Lo: 0, Hi: 1, Value: rowfn.If(rowfn.And(where, reached), rowfn.Const(1), otherwise)}
}

// combine answers with the rung at which the search ended, and with all rungs that no released interval excludes. P(x <= t) rises
// with t, so that a rung below which it is surely less than p excludes all below, and one at which it is surely p all above.
func (s Search) combine(o Outcome) Result {
	k := s.told(o.Parts)
	rung := s.crossing(k.asked)
	if !bounded(o.Parts) {
		value := s.At(rung)
		return Result{Value: &value}
	}
	low, high := k.below, k.most // rung number below is excluded itself, but not what lies right above it
	if low >= high {             // the intervals contradict each other, so one of them has failed
		low, high = high-1, low+1
	}
	value, from, to := s.At(min(max(rung, low+1), high)), s.At(low), s.At(high)
	return Result{Value: &value, Low: &from, High: &to}
}
