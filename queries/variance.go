package queries

import (
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/queries/expr"
	"github.com/holdoutd/holdoutd/queries/interval"
	"github.com/holdoutd/holdoutd/queries/shape"
	"github.com/holdoutd/holdoutd/rowfn"
)

var varianceKind = kind{
	name: "variance",
	doc: "The variance of a number, clamped to a range. It is E[(x-c)²] - (E[x]-c)² about a public center c: the training part's mean, or without one the middle of the range. " +
		"The center changes the interval, and not the target.",
	price: price{"2, with where 3", "1"},
	examples: []string{
		`{"type":"variance","of":"delay","range":[-60,180]}`,
		`{"type":"variance","of":"delay","range":[-60,180],"where":"origin == 'SFO'","null":0}`,
	},
	make: func() body { return new(spread) },
}

var stddevKind = kind{
	name:  "stddev",
	doc:   "The standard deviation of a number, clamped to a range: the square root of its variance.",
	price: price{"2, with where 3", "1"},
	examples: []string{
		`{"type":"stddev","of":"delay","range":[-60,180]}`,
		`{"type":"stddev","of":"delay","range":[-60,180],"ddof":1}`,
	},
	make: func() body { return &spread{root: true} },
}

// spread is {"type":"variance"} and {"type":"stddev"}.
type spread struct {
	Of     *expr.Syntax
	Range  Range
	Where  *expr.Syntax
	Null   *float64
	skip   bool
	Weight Weight
	Ddof   *float64
	root   bool
	guessing
}

func (q *spread) members() []member {
	return append([]member{
		required("of", expression{&q.Of}, "the number: a row expression"),
		required("range", rangeForm{&q.Range}, rangeDoc),
		optional("where", expression{&q.Where}, whereDoc),
		optional("null", nullForm{skipping{number{into: &q.Null}, &q.skip}, &q.Range}, nullDoc),
		optional("weight", weightForm{&q.Weight}, weightDoc),
		optional("ddof", ddofForm{&q.Ddof}, "1 divides by the number of units minus 1. The interval is about the population, where the two are the same"),
	}, q.Guess.members()...)
}

func (q *spread) rules(v *violations, pointer string) {
	nullRule(v, pointer, q.Null, q.Range)
	leaveOut(v, pointer, &q.skip, &q.Where, q.Of)
	if q.Ddof != nil && *q.Ddof != 0 && (q.Where != nil || q.Weight == WeightRow) {
		v.add(pointer+"/ddof", "goes without where and weight: how many rows they leave is itself not known")
	}
}

func (q *spread) compile(c *compiler) *Plan {
	x, where := c.number("of", q.Of), c.condition("where", q.Where)
	if x == nil || len(c.list) > 0 {
		return nil
	}
	null, of := orLow(q.Null, q.Range), x
	x = rowfn.OrElse(x, null)
	z := shape.CenteredAt(x, q.Range, c.centers("of", where, q.Weight, []Range{q.Range}, x)[0])
	m := shape.MomentsOf(where, c.rowVotes(q.Weight), z.Mean(), z.Square())
	half := q.Range.High/2 - q.Range.Low/2
	p := m.Plan(Range{Low: 0, High: half * half}, q.formula(z.Scale))
	if q.root {
		p = m.Plan(Range{Low: 0, High: half}, q.formula(z.Scale))
	}
	p.Checks = m.CheckedBy(shape.Joint{Shares: varianceShares, Range: p.Range, Of: q.formula(z.Scale)}, z.Mean(), z.Square())
	text := fmt.Sprintf("%s clamped to %v", q.Of.Canonical(), q.Range)
	deviation := fmt.Sprintf("(%s - %v) / %v", text, z.Center, z.Scale)
	name, formula := "variance", fmt.Sprintf("(the mean of the second - the square of the mean of the first) · %v²", z.Scale)
	if q.root {
		name, formula = "standard deviation", "the square root of "+formula
	}
	p.Words = Description{
		Functions: c.functionsOf(m, q.Where, deviation, "the square of "+deviation),
		Combine:   formula,
		Null:      fmt.Sprintf("a null counts as %v", null),
		Target:    c.target("the %s of %s%s", name, text, c.rowsOf(q.Where, q.Weight)),
	}
	c.sayJoint(p, m, q.Where, p.Words.Combine, deviation, "the square of "+deviation)
	c.watch(p, q.Of, of, q.Range, where, countsAs(null))
	if q.Ddof != nil && *q.Ddof != 0 {
		p.Words.Combine += ", the variance times n/(n-1)"
	}
	return p
}

// formula takes the variance from the means of z and z². Both ends of the interval are reached: the variance rises with the mean
// of z² and falls with the distance of the mean of z from 0, which are free of each other as far as the parts say.
func (q *spread) formula(scale float64) shape.Formula {
	half := q.Range.High/2 - q.Range.Low/2
	return func(m []shape.Moment, n int64) (float64, interval.Interval, bool) {
		correction := 1.0
		if q.Ddof != nil && *q.Ddof != 0 && n > 1 {
			correction = float64(n) / float64(n-1)
		}
		value := (m[1].Value - m[0].Value*m[0].Value) * correction * scale * scale
		bounds := m[1].Bounds.Sub(m[0].Bounds.Square()).Mul(interval.Point(scale).Square()).Clip(0, half*half)
		if q.root {
			return math.Sqrt(max(value, 0)), bounds.Sqrt(), true
		}
		return value, bounds, true
	}
}

// ddofForm is 0, which is the default, or 1.
type ddofForm struct{ into **float64 }

func (f ddofForm) read(v *violations, pointer string, in *value) {
	x, ok := in.float()
	if !ok || x != 0 && x != 1 {
		v.add(pointer, "must be 0 or 1")
		return
	}
	*f.into = &x
}

func (f ddofForm) canonical() any {
	if *f.into == nil || **f.into == 0 {
		return nil
	}
	return **f.into
}

func (f ddofForm) schema() map[string]any {
	return map[string]any{"type": "integer", "enum": []int{0, 1}, "default": 0}
}
