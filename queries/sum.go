package queries

import (
	"fmt"

	"github.com/holdoutd/holdoutd/queries/expr"
	"github.com/holdoutd/holdoutd/rowfn"
)

var sumKind = kind{
	name:  "sum",
	doc:   "The sum of a number over the rows of the holdout, each value clamped to a range. Nulls, and rows for which where does not hold, add nothing. It is " + totalDoc("mean"),
	price: price{"1, where units have several rows 2", "1"},
	examples: []string{
		`{"type":"sum","of":"distance","range":[0,3000]}`,
		`{"type":"sum","of":"delay","range":[-60,180],"where":"origin == 'SFO'"}`,
	},
	make: func() body { return new(sum) },
}

// sum is {"type":"sum"}.
type sum struct {
	Of    *expr.Syntax
	Range Range
	Where *expr.Syntax
	bearing
	guessing
}

func (q *sum) members() []member {
	return append([]member{
		required("of", expression{&q.Of}, "the number to add up: a row expression"),
		required("range", rangeForm{&q.Range}, "[low, high]: values are clamped to it"),
		optional("where", expression{&q.Where}, "a condition: other rows add nothing; costs nothing more"),
		q.bearing.member(),
	}, q.Guess.members()...)
}

func (q *sum) rules(*violations, string) {}

// compile asks one row function: the value clamped to its range, or 0, over the range widened to hold 0.
func (q *sum) compile(c *compiler) *Plan {
	value, where := c.number("of", q.Of), c.condition("where", q.Where)
	of := value
	wide := Range{Low: min(q.Range.Low, 0), High: max(q.Range.High, 0)}
	if wide != q.Range {
		value = rowfn.Clamp(value, q.Range.Low, q.Range.High)
	}
	text := fmt.Sprintf("%s clamped to %v", q.Of.Canonical(), q.Range)
	if where != nil {
		value = rowfn.If(where, value, rowfn.Const(0))
		text += " where " + q.Where.Canonical() + ", else 0"
	}
	p := c.total(RowFunction{Value: value, Lo: wide.Low, Hi: wide.High}, "mean of "+text, text)
	p.Words.Null = "a null adds nothing"
	c.watch(p, q.Of, of, q.Range, where, "") // as everywhere else, nulls add nothing
	return p
}
