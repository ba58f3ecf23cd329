package queries

import (
	"fmt"

	"github.com/holdoutd/holdoutd/queries/expr"
)

var meanKind = kind{
	name: "mean",
	doc:  "The mean of a number, clamped to a range. With where it is the mean over the rows for which the condition holds.",
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
	Weight  Weight
	Weights *weights
	Guess   guess
}

func (q *mean) members() []member {
	return append([]member{
		required("of", expression{&q.Of}, "the number to average: a row expression"),
		required("range", rangeForm{&q.Range}, "[low, high]: values are clamped to it; the narrower it is, the narrower the interval"),
		optional("where", expression{&q.Where}, whereDoc),
		optional("null", nullForm{number{into: &q.Null}, &q.Range}, "what a null value counts as; default: the low end of the range"),
		optional("weight", weightForm{&q.Weight}, weightDoc),
		optional("weights", weightsForm{&q.Weights}, weightsDoc),
	}, q.Guess.members()...)
}

const (
	whereDoc  = "a condition: only rows for which it holds count; costs one more question"
	weightDoc = "what has one vote: unit or row; default: unit. With row a unit of m rows has min(m, c) votes, where c is the card's largest_unit, so that the mean of y is E[mean of y in the unit · min(m, c)]/E[min(m, c)]. Where units have several rows, row costs one more question"
)

func (q *mean) guess() *guess { return &q.Guess }

func (q *mean) rules(v *violations, pointer string) {
	if q.Null != nil && q.Range.valid() && !q.Range.contains(*q.Null) {
		v.add(pointer+"/null", "must lie in the range")
	}
	q.Guess.rules(v, pointer, q.Range)
}

func (q *mean) compile(c *compiler) *Plan {
	f := RowFunction{Value: c.number("of", q.Of), Lo: q.Range.Low, Hi: q.Range.High, Null: q.Range.Low}
	if q.Null != nil {
		f.Null = *q.Null
	}
	where := c.condition("where", q.Where)
	text := fmt.Sprintf("%s clamped to %v", q.Of.Canonical(), q.Range)
	if q.Weights != nil {
		p := weightedAverage(c, f, q.Weights, where, q.Weight)
		if p != nil {
			p.describeWeighted(c, text, q.Weights, q.Where, q.Weight, f.Null)
		}
		return p
	}
	p := average(c, f, where, q.Weight)
	p.describeAverage(c, "mean of "+text, text, q.Where, q.Weight)
	p.describe.Null = fmt.Sprintf("a null counts as %v", f.Null)
	return p
}

// nullForm is the member "null": absent where it says the default, the low end of the range.
type nullForm struct {
	number
	in *Range
}

func (f nullForm) canonical() any {
	if *f.into != nil && **f.into == f.in.Low {
		return nil
	}
	return f.number.canonical()
}
