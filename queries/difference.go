package queries

import (
	"fmt"

	"github.com/holdoutd/holdoutd/queries/expr"
	"github.com/holdoutd/holdoutd/queries/interval"
	"github.com/holdoutd/holdoutd/rowfn"
)

var differenceKind = kind{
	name: "difference",
	doc: "The mean of a number, clamped to a range, or the fraction of a condition, in one group of rows minus that in another. A row that is in both " +
		"groups counts in the first one only. With one condition the other group is all other rows. Its four sums are released as one vector: three " +
		"questions under gaussian, four if units have several rows. Under other mechanisms it costs four questions, as two means with where do, and " +
		"has a narrower interval.",
	examples: []string{
		`{"type":"difference","of":"delay","range":[-60,180],"between":["origin == 'SFO'","origin == 'OAK'"]}`,
		`{"type":"difference","of":"delay > 15","between":["distance < 500"]}`,
	},
	make: func() body { return new(difference) },
}

// difference is {"type":"difference"}.
type difference struct {
	Of      *expr.Syntax
	Range   Range
	Between []*expr.Syntax
	Where   *expr.Syntax
	Null    *float64
}

func (q *difference) members() []member {
	return []member{
		required("of", expression{&q.Of}, "the number to average, or a condition: a row expression"),
		optional("range", optionalRange{&q.Range}, "[low, high] of a number: values are clamped to it; a condition has none"),
		required("between", conditions{&q.Between, 1, 2}, "the first group and the second: conditions. With one condition the second group is all other rows"),
		optional("where", expression{&q.Where}, "a condition: only rows for which it holds count; costs nothing more"),
		optional("null", number{into: &q.Null}, "what a null value of a number counts as; default: the low end of the range"),
	}
}

func (q *difference) rules(v *violations, pointer string) {
	if q.Null != nil && q.Range.valid() && !q.Range.contains(*q.Null) {
		v.add(pointer+"/null", "must lie in the range")
	}
	if q.Null != nil && *q.Null == q.Range.Low { // the default has one spelling
		q.Null = nil
	}
}

func (q *difference) compile(c *compiler) *Plan {
	f, text := c.measured("of", q.Of, q.Range, q.Null)
	first := c.condition("between/0", q.Between[0])
	second := (*rowfn.Node)(nil)
	if len(q.Between) == 2 {
		second = c.condition("between/1", q.Between[1])
	}
	where := c.condition("where", q.Where)
	if len(c.list) > 0 {
		return nil
	}
	others := rowfn.Not(first)
	if second != nil {
		others = rowfn.And(second, others)
	}
	p := &Plan{Range: Range{f.Lo - f.Hi, f.Hi - f.Lo}, FromZero: true}
	for _, holds := range []*rowfn.Node{first, others} {
		if where != nil {
			holds = rowfn.And(holds, where)
		}
		p.Functions = append(p.Functions, split(f, holds)...)
	}
	p.releases = []Release{{Kind: Vector, Count: 4, Variance: contrastVariance(c.grouped)}}
	p.combine = func(o Outcome) Result {
		unit := Range{f.Lo, f.Hi}
		a, b := shareOf(o.Parts[0], o.Parts[1], unit), shareOf(o.Parts[2], o.Parts[3], unit)
		if a.Low == nil || b.Low == nil {
			return minus(a, b, interval.Whole(), false, p.Range)
		}
		return minus(a, b, interval.Interval{Low: *a.Low, High: *a.High}.Sub(interval.Interval{Low: *b.Low, High: *b.High}), true, p.Range)
	}
	q.say(c, p, text, f.Null)
	return p
}

// contrastVariance bounds the variances of the four functions, summed. Let v be their vector at a row, s its sum and S = Es. Of the
// four at most two are not 0, u and 1-u, so that |v|² <= s <= 1 but for the grid's step e: where u is halfway between two steps
// both are rounded up, and then s = 1+e while |v|² <= 1+e², for both are e at least. With p the share of such rows the
// variances add up to E|v|² - |Ev|² <= S - p(e-e²) - S²/4, which rises in S <= 1+pe, and is at most 1 - 1/4.
//
// The means of units of several rows are rounded once more, for which there is gridSlack, and one question.
func contrastVariance(grouped bool) float64 {
	if grouped {
		return 1 - 1.0/4 + 4*gridSlack
	}
	return 1 - 1.0/4
}

// minus is a - b with its interval.
func minus(a, b Result, bounds interval.Interval, bounded bool, r Range) Result {
	if a.Value == nil || b.Value == nil {
		return answer(0, bounds, bounded, false, r)
	}
	return answer(*a.Value-*b.Value, bounds, bounded, true, r)
}

// split is a row function in the rows in which a condition holds, in two that add up to 1 there and are 0 elsewhere: its place u in
// its range, and 1 - u. The mean over these rows is their shareOf.
func split(f RowFunction, holds *rowfn.Node) []RowFunction {
	up := inUnits(f)
	down := rowfn.Neg(up)
	return []RowFunction{
		{Value: rowfn.If(holds, up, rowfn.Const(f.Lo)), Lo: f.Lo, Hi: f.Hi, Null: f.Lo},
		{Value: rowfn.If(holds, down, rowfn.Const(-f.Hi)), Lo: -f.Hi, Hi: -f.Lo, Null: -f.Hi},
	}
}

func (q *difference) say(c *compiler, p *Plan, text string, null float64) {
	second, unit, rows := "all other rows", "", ""
	if len(q.Between) == 2 {
		second = "the rows in which " + q.Between[1].Canonical() + " and not " + q.Between[0].Canonical()
	}
	if q.Where != nil {
		rows = ", of the rows in which " + q.Where.Canonical()
	}
	if c.grouped {
		unit = "the mean over the unit's rows of "
		rows += ", every unit counting in a group by the share of its rows that are there"
	}
	p.describe = Description{
		Functions: []string{
			unit + "u, the place of " + text + " in its range from 0 to 1, where " + q.Between[0].Canonical() + ", else 0",
			unit + "1 - u in the same rows, else 0",
			unit + "u in " + second + ", else 0",
			unit + "1 - u in the same rows, else 0",
		},
		Combine: fmt.Sprintf("the first mean divided by the sum of the first two, minus the third divided by the sum of the last two, times %v; undefined where such a sum is not positive", p.Range.High),
		Null:    conditionNull,
		Target:  c.target("the mean of %s in the rows in which %s minus that in %s%s", text, q.Between[0].Canonical(), second, rows),
	}
	if q.Range.valid() {
		p.describe.Null = fmt.Sprintf("a null counts as %v; %s", null, conditionNull)
	}
}

// measured is the row function of a member that is a number with a range or a condition without one, and what it is in words.
func (c *compiler) measured(name string, s *expr.Syntax, r Range, null *float64) (RowFunction, string) {
	n, err := s.Check(c.schema)
	if err != nil {
		c.expression(c.pointer+"/"+name, err)
		return RowFunction{}, ""
	}
	switch {
	case n.Type == rowfn.Condition && (r.valid() || null != nil):
		c.add(c.pointer+"/range", "a condition is 1 or 0; it has no range and no null")
	case n.Type == rowfn.Condition:
		return RowFunction{Value: n, Lo: 0, Hi: 1}, "(1 where " + s.Canonical() + ", else 0)"
	case n.Type != rowfn.Number:
		c.add(c.pointer+"/"+name, "must be a number or a condition")
	case !r.valid():
		c.add(c.pointer+"/range", "is missing: a number needs a range to be clamped to")
	default:
		return RowFunction{Value: n, Lo: r.Low, Hi: r.High, Null: orLow(null, r)}, fmt.Sprintf("%s clamped to %v", s.Canonical(), r)
	}
	return RowFunction{}, ""
}

// conditions is a list of expressions.
type conditions struct {
	into  *[]*expr.Syntax
	least int
	most  int
}

func (f conditions) read(v *violations, pointer string, in *value) {
	if in.kind != listValue || len(in.items) < f.least || len(in.items) > f.most {
		v.add(pointer, fmt.Sprintf("must be a list of %d to %d conditions", f.least, f.most))
		return
	}
	seen := map[string]bool{}
	for i, item := range in.items {
		var s *expr.Syntax
		at := fmt.Sprintf("%s/%d", pointer, i)
		expression{&s}.read(v, at, item)
		if s != nil && seen[s.Canonical()] {
			v.add(at, "occurs twice")
		} else if s != nil {
			seen[s.Canonical()] = true
		}
		*f.into = append(*f.into, s)
	}
}

func (f conditions) canonical() any {
	if *f.into == nil {
		return nil
	}
	all := make([]string, len(*f.into))
	for i, s := range *f.into {
		all[i] = s.Canonical()
	}
	return all
}

func (f conditions) schema() map[string]any {
	return map[string]any{"type": "array", "items": expression{}.schema(), "minItems": f.least, "maxItems": f.most, "uniqueItems": true}
}
