package queries

import (
	"fmt"

	"github.com/holdoutd/holdoutd/queries/expr"
	"github.com/holdoutd/holdoutd/queries/shape"
)

var meanKind = kind{
	name:  "mean",
	doc:   "The mean of a number, clamped to a range. With where it is that of the rows for which the condition holds.",
	price: price{"1, with where 2", "1"},
	examples: []string{
		`{"type":"mean","of":"delay","range":[-60,180]}`,
		`{"type":"mean","of":"delay","range":[-60,180],"where":"origin == 'SFO'"}`,
		`{"type":"mean","of":"delay","range":[-60,180],"weights":{"of":"distance / 1000","range":[0,3]}}`,
		`{"type":"mean","of":"log(distance)","range":[0,10],"null":5,"weight":"row","note":"after the meeting"}`,
	},
	make: func() body { return new(mean) },
}

// mean is {"type":"mean"}.
type mean struct {
	Of      *expr.Syntax
	Range   Range
	Where   *expr.Syntax
	Null    *float64
	skip    bool
	Weight  Weight
	Weights *weights
	bearing
	Guess guess
}

func (q *mean) members() []member {
	return append([]member{
		required("of", expression{&q.Of}, "the number to average: a row expression"),
		required("range", rangeForm{&q.Range}, rangeDoc),
		optional("where", expression{&q.Where}, whereDoc),
		optional("null", nullForm{skipping{number{into: &q.Null}, &q.skip}, &q.Range}, nullDoc),
		optional("weight", weightForm{&q.Weight}, weightDoc),
		optional("weights", weightsForm{&q.Weights}, weightsDoc),
		q.bearing.member(),
	}, q.Guess.members()...)
}

func (q *mean) guess() *guess { return &q.Guess }

func (q *mean) rules(v *violations, pointer string) {
	nullRule(v, pointer, q.Null, q.Range)
	leaveOut(v, pointer, &q.skip, &q.Where, q.Of)
	q.Guess.rules(v, pointer, q.Range)
}

func (q *mean) compile(c *compiler) *Plan {
	f := RowFunction{Value: c.number("of", q.Of), Lo: q.Range.Low, Hi: q.Range.High, Null: orLow(q.Null, q.Range)}
	where := c.condition("where", q.Where)
	text := fmt.Sprintf("%s clamped to %v", q.Of.Canonical(), q.Range)
	if q.Weights != nil {
		p := c.weighted(f, q.Weights, where, q.Weight)
		if p != nil {
			c.sayWeighted(p, text, q.Weights, q.Where, q.Weight, f.Null)
			c.watch(p, q.Of, f.Value, q.Range, where, countsAs(f.Null))
		}
		return p
	}
	p := shape.Average(f, where, c.rowVotes(q.Weight))
	c.sayAverage(p, "mean of "+text, text, q.Where, q.Weight)
	p.Words.Null = fmt.Sprintf("a null counts as %v", f.Null)
	c.watch(p, q.Of, f.Value, q.Range, where, countsAs(f.Null))
	return p
}
