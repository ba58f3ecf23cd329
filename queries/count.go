package queries

import (
	"github.com/holdoutd/holdoutd/queries/expr"
	"github.com/holdoutd/holdoutd/rowfn"
)

var countKind = kind{
	name:  "count",
	doc:   "The number of holdout rows for which a condition holds: " + totalDoc("fraction"),
	price: price{"1, where units have several rows 2", "1"},
	examples: []string{
		`{"type":"count","of":"delay > 15"}`,
		`{"type":"count","where":"origin == 'SFO'"}`,
	},
	needsOne: []string{"of", "where"},
	make:     func() body { return new(count) },
}

// count is {"type":"count"}.
type count struct {
	Of    *expr.Syntax
	Where *expr.Syntax
	bearing
	guessing
}

func (q *count) members() []member {
	return append([]member{
		optional("of", expression{&q.Of}, "the condition: a row expression"),
		optional("where", expression{&q.Where}, "a condition that must hold as well; it can stand without of; costs nothing more"),
		q.bearing.member(),
	}, q.Guess.members()...)
}

func (q *count) rules(v *violations, pointer string) {
	if q.Of == nil && q.Where == nil && len(v.list) == 0 {
		v.add(pointer, `"of" is missing: the condition to count`)
	}
}

func (q *count) compile(c *compiler) *Plan {
	of, where := c.condition("of", q.Of), c.condition("where", q.Where)
	text := ""
	switch {
	case q.Of == nil:
		of, text = where, q.Where.Canonical()
	case q.Where == nil:
		text = q.Of.Canonical()
	default:
		of = rowfn.And(of, where)
		text = "(" + q.Of.Canonical() + ") && (" + q.Where.Canonical() + ")"
	}
	p := c.total(RowFunction{Value: of, Lo: 0, Hi: 1}, "fraction of "+text, "1 where "+text+", else 0")
	p.Words.Null = conditionNull
	return p
}
