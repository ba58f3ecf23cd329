package queries

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/holdoutd/holdoutd/queries/expr"
	"github.com/holdoutd/holdoutd/queries/shape"
)

// Limits of a quantile.
const (
	// DefaultSteps find a thousandth of the range: finer than the intervals of most guarantees are for most numbers.
	DefaultSteps = 10
	// MaxSteps: a search is summed in one pass over the rows, for all of the 2^(steps+1) row functions that it could ask.
	MaxSteps = 12
)

const quantileCost = "Where it is one question, the numbers of rows below each step of the resolution are compared with what the training part foresees. " +
	"Elsewhere, and in a test, it is a search, which costs a question a step: log2(1 + (high - low)/resolution), rounded up, or 10."

var quantileKind = kind{
	name:  "quantile",
	doc:   "The p-quantile of a number, clamped to a range: the least x with P(number <= x) >= p, up to a resolution. " + quantileCost,
	price: price{"10; 1 with rounds=1", "1"},
	examples: []string{
		`{"type":"quantile","of":"delay","range":[-60,180],"p":0.9}`,
		`{"type":"quantile","of":"delay","range":[-60,180],"p":0.25,"resolution":1,"where":"origin == 'SFO'"}`,
	},
	make: func() body { return new(quantile) },
}

var medianKind = kind{
	name:     "median",
	doc:      "The median of a number, clamped to a range: its quantile at p = 1/2. " + quantileCost,
	price:    price{"10; 1 with rounds=1", "1"},
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
	skip       bool
	median     bool
	guessing
}

func (q *quantile) members() []member {
	m := []member{
		required("of", expression{&q.Of}, "the number: a row expression"),
		required("range", rangeForm{&q.Range}, "[low, high]: values are clamped to it, and the search is within it"),
		required("p", number{into: &q.P, above: &zero}, "more than 0 and less than 1. For example 0.9: nine in ten rows do not exceed the answer"),
		optional("resolution", number{into: &q.Resolution, above: &zero},
			"the answer is one of low, low + resolution, low + 2·resolution, …, high; default: a 1023rd of the range. Half the resolution narrows the interval; in a search it costs one more question"),
		optional("where", expression{&q.Where}, "a condition: only rows for which it holds count; costs nothing more"),
		optional("null", nullForm{skipping{number{into: &q.Null}, &q.skip}, &q.Range}, nullDoc),
	}
	if q.median {
		m = slices.Delete(m, 2, 3)
	}
	return append(m, q.Guess.members()...)
}

func (q *quantile) rules(v *violations, pointer string) {
	nullRule(v, pointer, q.Null, q.Range)
	leaveOut(v, pointer, &q.skip, &q.Where, q.Of)
	if q.P != nil && *q.P >= 1 {
		v.add(pointer+"/p", "must be less than 1")
	}
	if q.Resolution == nil || !q.Range.Valid() {
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

// search is the bisection for the quantile.
func (q *quantile) search() shape.Search {
	rungs := int(q.cells())
	resolution := (q.Range.High - q.Range.Low) / float64(rungs)
	if q.Resolution != nil {
		resolution = *q.Resolution
	}
	return shape.Search{Low: q.Range.Low, High: q.Range.High, Resolution: resolution, Rungs: rungs, Steps: bits.Len(uint(rungs)), P: *q.P}
}

func (q *quantile) compile(c *compiler) *Plan {
	x, where := c.number("of", q.Of), c.condition("where", q.Where)
	if x == nil || len(c.list) > 0 {
		return nil
	}
	s, null := q.search(), orLow(q.Null, q.Range)
	p := s.Plan(x, null, where, c.grouped)
	q.say(c, p, s, null)
	if v := c.watch(p, q.Of, x, q.Range, where, countsAs(null)); v != nil {
		v.MostBelow, v.MostAbove = s.P, 1-s.P // a quantile is of the values within as long as it is among them
	}
	return p
}

func (q *quantile) say(c *compiler, p *Plan, s shape.Search, null float64) {
	text := fmt.Sprintf("%s clamped to %v", q.Of.Canonical(), q.Range)
	function := "1 where " + text + " is at most t, else 0"
	if c.grouped {
		function = "the mean over the unit's rows of " + function
	}
	function += fmt.Sprintf(", for one t in each of %d steps, out of the %d values %v, %v, …, below %v",
		s.Steps, s.Rungs, s.At(0), s.At(1), s.High)
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
		function += fmt.Sprintf("; %v where %s does not hold", s.P, q.Where.Canonical())
	}
	p.Words = Description{
		Functions: []string{function},
		Combine: fmt.Sprintf("the t at which the mean reaches %v, found by bisection and then by narrowing its interval: each step is chosen by the answers before it; "+
			"the interval is all t that no released mean excludes", s.P),
		Null: fmt.Sprintf("a null counts as %v", null),
		Target: c.target("the %v-quantile (the least t with P(%s <= t) >= %v)%s",
			s.P, text, s.P, rows),
	}
	counts := fmt.Sprintf("for each t of the %d values %v, %v, …, below %v: 1 where %s is at most t, else 0; and 1 where it is below the next t", s.Rungs, s.At(0), s.At(1), s.High, text)
	if c.grouped {
		counts = "the mean over the unit's rows of, " + counts
	}
	if q.Where != nil {
		counts += "; only where " + q.Where.Canonical() + ", which is counted, too"
	}
	p.Checks.Words = shape.CheckWords{Functions: []string{counts}, Instead: p.Words.Combine,
		Combine: fmt.Sprintf("the training part's t at which the share of rows reaches %v, as one question; the interval is between a t with so few rows below it, and one with so many up to it, as a quantile within can hardly have", s.P)}
}

// Share is a query of one question that says on which side of a number a quantile lies, for which its plan would search in several: the share of its rows that are not above the
// middle of its range. It is "" of a query that is no quantile.
func (q *Query) Share() string {
	search, ok := q.body.(*quantile)
	if !ok {
		return ""
	}
	middle := search.Range.Low + (search.Range.High-search.Range.Low)/2
	share := map[string]any{"type": fractionKind.name, "of": "(" + search.Of.Canonical() + ") <= " + shape.Edge(middle)}
	if of, err := expr.Parse(share["of"].(string)); err == nil { // the expression may be as long as one can be
		share["of"] = of.Canonical()
	}
	if search.Where != nil {
		share["where"] = search.Where.Canonical()
	}
	return string(mustMarshal(share))
}
