package queries

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/holdoutd/holdoutd/queries/expr"
	"github.com/holdoutd/holdoutd/rowfn"
)

// Limits of a quantile.
const (
	// DefaultSteps find a thousandth of the range: finer than the intervals of most guarantees are for most numbers.
	DefaultSteps = 10
	// MaxSteps: a search is summed in one pass over the rows, for all of the 2^(steps+1) row functions that it could ask.
	MaxSteps = 12
)

const quantileCost = "It costs one question for each step of the search: log2(1 + (high - low)/resolution), rounded up; 10 for the default resolution"

var quantileKind = kind{
	name: "quantile",
	doc: "The p-quantile of a number, clamped to a range: the least x with P(number <= x) >= p, up to a resolution. It is found by a binary search " +
		"over the distribution function, with noise. " + quantileCost + ".",
	examples: []string{
		`{"type":"quantile","of":"delay","range":[-60,180],"p":0.9}`,
		`{"type":"quantile","of":"delay","range":[-60,180],"p":0.25,"resolution":1,"where":"origin == 'SFO'"}`,
	},
	make: func() body { return new(quantile) },
}

var medianKind = kind{
	name:     "median",
	doc:      "The median of a number, clamped to a range: its quantile at p = 1/2. " + quantileCost + ".",
	examples: []string{`{"type":"median","of":"delay","range":[-60,180],"resolution":1}`},
	make:     func() body { half := 0.5; return &quantile{P: &half, median: true} },
}

// quantile is {"type":"quantile"} and {"type":"median"}.
type quantile struct {
	Of         *expr.Syntax
	Range      Range
	P          *float64
	Resolution *float64
	Where      *expr.Syntax
	Null       *float64
	median     bool
}

func (q *quantile) members() []member {
	m := []member{
		required("of", expression{&q.Of}, "the number: a row expression"),
		required("range", rangeForm{&q.Range}, "[low, high]: values are clamped to it, and the search is within it"),
		required("p", number{into: &q.P, above: &zero}, "more than 0 and less than 1. For example 0.9: nine in ten rows do not exceed the answer"),
		optional("resolution", number{into: &q.Resolution, above: &zero},
			"the answer is one of low, low + resolution, low + 2·resolution, …, high; default: a 1023rd of the range. Half the resolution costs one more question and narrows the interval"),
		optional("where", expression{&q.Where}, "a condition: only rows for which it holds count; costs nothing more"),
		optional("null", nullForm{number{into: &q.Null}, &q.Range}, nullDoc),
	}
	if q.median {
		m = slices.Delete(m, 2, 3)
	}
	return m
}

func (q *quantile) rules(v *violations, pointer string) {
	nullRule(v, pointer, q.Null, q.Range)
	if q.P != nil && *q.P >= 1 {
		v.add(pointer+"/p", "must be less than 1")
	}
	if q.Resolution == nil || !q.Range.valid() {
		return
	}
	switch cells := q.cells(); {
	case cells < 2:
		v.add(pointer+"/resolution", "must be less than the width of the range")
	case cells > 1<<MaxSteps-1:
		v.add(pointer+"/resolution", fmt.Sprintf("divides the range into more than %d cells; use a coarser one or a narrower range", 1<<MaxSteps-1))
	}
}

// cells is how many cells of the resolution the range has. A part of 2^-20 of a cell at its end is a rounding of decimals.
func (q *quantile) cells() float64 {
	if q.Resolution == nil {
		return 1<<DefaultSteps - 1
	}
	return math.Ceil((q.Range.High-q.Range.Low) / *q.Resolution - 0x1p-20)
}

// ladder is the search of a quantile. Rung i, from 0, is the threshold low + i·resolution; P(x <= rung) >= p or not is what the
// search finds out, and the quantile is one of the rungs or high, which is rung number rungs.
type ladder struct {
	low, high  float64
	resolution float64
	rungs      int
	steps      int
	p          float64
}

func (q *quantile) ladder() ladder {
	rungs := int(q.cells())
	resolution := (q.Range.High - q.Range.Low) / float64(rungs)
	if q.Resolution != nil {
		resolution = *q.Resolution
	}
	return ladder{q.Range.Low, q.Range.High, resolution, rungs, bits.Len(uint(rungs)), *q.P}
}

// at is the threshold of a rung.
func (l ladder) at(rung int) float64 {
	switch {
	case rung <= 0:
		return l.low
	case rung >= l.rungs:
		return l.high
	}
	return min(l.low+float64(float64(rung)*l.resolution), l.high)
}

// The rungs are the nodes of a balanced binary search tree, numbered as a heap, and a gap between neighbours of what was asked is
// a subtree of it. In its step number s, from 0, a search can ask the nodes of the levels up to s.

// rung is the one of a node; of a node below a leaf, a neighbour of its gap, for such a node is asked in place of that.
func (l ladder) rung(node int) int {
	low, high := l.gap(node)
	return min(max((low+high)/2, 0), l.rungs-1)
}

// gap is the rungs next to the subtree of a node, -1 and the number of rungs if there are none.
func (l ladder) gap(node int) (low, high int) {
	low, high = -1, l.rungs
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
func (l ladder) side(p Part) side {
	low, high := p.Low, p.High
	if !p.Bounded {
		low, high = p.Value+tieTolerance, p.Value+tieTolerance
	}
	switch {
	case low >= l.p:
		return isAbove
	case high < l.p:
		return isBelow
	}
	return isOpen
}

// told is what released parts say, each of the rung that it was asked about. Which rungs were asked is a fact: it was decided by the
// intervals of the guarantee's own level. Parts that are read at other levels, as a p-value does, may lie on other sides of p, but they
// are about the same rungs.
func (l ladder) told(released []Part) searched {
	k := searched{below: -1, most: l.rungs}
	for step, p := range released {
		node := p.Function - firstOf(step)
		k.add(askedRung{l.rung(node), node, p.Value, l.side(p)})
	}
	return k
}

// next is the row function to ask after these parts.
func (l ladder) next(released []Part) int {
	node := 0
	if step := len(released) - 1; step >= 0 {
		node = l.choose(l.told(released), released[step].Function-firstOf(step))
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
func (l ladder) choose(k searched, last int) int {
	best, widest := last, 1
	for i := 0; i <= len(k.asked); i++ {
		low, high, under, over := -1, l.rungs, isBelow, isAbove
		if i > 0 {
			low, under = k.asked[i-1].rung, k.asked[i-1].side
		}
		if i < len(k.asked) {
			high, over = k.asked[i].rung, k.asked[i].side
		}
		if low >= k.below && high <= k.most && !(under == isOpen && over == isOpen) && high-low > widest {
			best, widest = l.between(low, high), high-low
		}
	}
	return best
}

// between is the root of the subtree between two neighbours among what was asked.
func (l ladder) between(low, high int) int {
	for node := 0; ; {
		switch r := l.rung(node); {
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
func (l ladder) crossing(asked []askedRung) int {
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
	from, reached := runs[0], run{l.rungs, l.rungs, 1, 1}
	for _, r := range runs[1:] {
		if r.sum/r.count+tieTolerance >= l.p {
			reached = r
			break
		}
		from = r
	}
	a, b := from.sum/from.count, reached.sum/reached.count
	share := 1.0
	if b > a {
		share = min(max((l.p-a)/(b-a), 0), 1)
	}
	gap := reached.first - from.last
	return from.last + min(max(int(math.Ceil(share*float64(gap)-0x1p-20)), 1), gap)
}

func (q *quantile) compile(c *compiler) *Plan {
	x, where := c.number("of", q.Of), c.condition("where", q.Where)
	if x == nil || len(c.list) > 0 {
		return nil
	}
	l, null := q.ladder(), orLow(q.Null, q.Range)
	p := &Plan{Range: q.Range, combine: l.combine}
	rungs := make([]RowFunction, l.rungs) // those of one rung share their tree
	for i := range rungs {
		rungs[i] = l.function(x, null, where, i)
	}
	for step := range l.steps {
		for node := range 2<<step - 1 {
			p.Functions = append(p.Functions, rungs[l.rung(node)])
		}
	}
	p.search = &search{steps: l.steps, step: stepOf, next: l.next}
	q.say(c, p, l, null)
	return p
}

// function is 1[x <= rung]; with where, p in other rows, so that its mean reaches p where the conditional distribution function does.
func (l ladder) function(x *rowfn.Node, null float64, where *rowfn.Node, rung int) RowFunction {
	threshold := l.at(rung)
	reached := rowfn.CompareTo(rowfn.OpLessEq, x, threshold)
	if null <= threshold {
		reached = rowfn.Or(reached, rowfn.IsNull(x))
	}
	if where == nil {
		return RowFunction{Value: reached, Lo: 0, Hi: 1}
	}
	otherwise := rowfn.If(where, rowfn.Const(0), rowfn.Const(l.p)) // which the functions of all rungs share
	return RowFunction{Lo: 0, Hi: 1, Value: rowfn.If(rowfn.And(where, reached), rowfn.Const(1), otherwise)}
}

// combine answers with the rung at which the search ended, and with all rungs that no released interval excludes. P(x <= t) rises
// with t, so that a rung below which it is surely less than p excludes all below, and one at which it is surely p all above.
func (l ladder) combine(o Outcome) Result {
	k := l.told(o.Parts)
	rung := l.crossing(k.asked)
	bounded := true
	for _, p := range o.Parts {
		bounded = bounded && p.Bounded
	}
	if !bounded {
		value := l.at(rung)
		return Result{Value: &value}
	}
	low, high := k.below, k.most // rung number below is excluded itself, but not what lies right above it
	if low >= high {             // the intervals contradict each other, so one of them has failed
		low, high = high-1, low+1
	}
	value, from, to := l.at(min(max(rung, low+1), high)), l.at(low), l.at(high)
	return Result{Value: &value, Low: &from, High: &to}
}

func (q *quantile) say(c *compiler, p *Plan, l ladder, null float64) {
	text := fmt.Sprintf("%s clamped to %v", q.Of.Canonical(), q.Range)
	function := "1 where " + text + " is at most t, else 0"
	if c.grouped {
		function = "the mean over the unit's rows of " + function
	}
	function += fmt.Sprintf(", for one t in each of %d steps, out of the %d values %v, %v, …, below %v",
		l.steps, l.rungs, l.at(0), l.at(1), l.high)
	rows := ""
	switch {
	case q.Where != nil && c.grouped:
		rows = " over the rows in which " + q.Where.Canonical() + ", a unit counting by the share of its rows that these are"
	case q.Where != nil:
		rows = " over the rows in which " + q.Where.Canonical()
	case c.grouped:
		rows = ", every unit having one vote, which its rows share"
	}
	if q.Where != nil {
		function += fmt.Sprintf("; %v where %s does not hold", l.p, q.Where.Canonical())
	}
	p.describe = Description{
		Functions: []string{function},
		Combine: fmt.Sprintf("the t at which the mean reaches %v, found by bisection and then by narrowing its interval: each step is chosen by the answers before it; "+
			"the interval is all t that no released mean excludes", l.p),
		Null: fmt.Sprintf("a null counts as %v", null),
		Target: c.target("the %v-quantile (the least t with P(%s <= t) >= %v)%s",
			l.p, text, l.p, rows),
	}
}
