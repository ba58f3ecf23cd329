package queries

import (
	"github.com/holdoutd/holdoutd/queries/expr"
	"github.com/holdoutd/holdoutd/queries/shape"
)

var fractionKind = kind{
	name:  "fraction",
	doc:   "The share of rows for which a condition holds. With where it is the share among the rows for which that condition holds.",
	price: price{"1, with where 2", "1"},
	examples: []string{
		`{"type":"fraction","of":"delay > 15 && distance < 500"}`,
		`{"type":"fraction","of":"delay > 15","where":"origin in ['SFO','OAK']"}`,
	},
	make: func() body { return new(fraction) },
}

// fraction is {"type":"fraction"}.
type fraction struct {
	Of     *expr.Syntax
	Where  *expr.Syntax
	skip   bool
	Weight Weight
	bearing
	Guess guess
}

func (q *fraction) members() []member {
	return append([]member{
		required("of", expression{&q.Of}, "the condition: a row expression"),
		optional("where", expression{&q.Where}, whereDoc),
		optional("null", skipForm{&q.skip}, skipOnly),
		optional("weight", weightForm{&q.Weight}, weightDoc),
		q.bearing.member(),
	}, q.Guess.members()...)
}

func (q *fraction) guess() *guess { return &q.Guess }

func (q *fraction) rules(v *violations, pointer string) {
	leaveOut(v, pointer, &q.skip, &q.Where, q.Of)
	q.Guess.rules(v, pointer, Range{Low: 0, High: 1})
}

func (q *fraction) compile(c *compiler) *Plan {
	f := RowFunction{Value: c.condition("of", q.Of), Lo: 0, Hi: 1}
	where := c.condition("where", q.Where)
	p := shape.Average(f, where, c.rowVotes(q.Weight))
	c.sayAverage(p, "fraction of "+q.Of.Canonical(), "1 where "+q.Of.Canonical()+", else 0", q.Where, q.Weight)
	p.Words.Null = conditionNull
	c.watch(p, q.Of, nil, Range{}, where, countsAsFalse)
	return p
}
