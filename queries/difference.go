package queries

import (
	"fmt"
	"strings"

	"github.com/holdoutd/holdoutd/queries/expr"
	"github.com/holdoutd/holdoutd/queries/shape"
	"github.com/holdoutd/holdoutd/rowfn"
)

var differenceKind = kind{
	name: "difference",
	doc: "The mean of a number, clamped to a range, or the fraction of a condition, in one group of rows minus that in another. With one condition the other group is all other rows. " +
		"A row that is in both groups counts in the first one only. The interval is narrower than that of two means with where.",
	price: price{"3, where units have several rows 4", "1"},
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
	skip    bool
	Guess   guess
}

func (q *difference) guess() *guess { return &q.Guess }

func (q *difference) members() []member {
	return append([]member{
		required("of", expression{&q.Of}, "the number to average, or a condition: a row expression"),
		optional("range", optionalRange{&q.Range}, "[low, high] of a number: values are clamped to it; a condition has none"),
		required("between", conditions{&q.Between, 1, 2}, "the first group and the second: conditions. With one condition the second group is all other rows"),
		optional("where", expression{&q.Where}, "a condition: only rows for which it holds count; costs nothing more"),
		optional("null", skipping{number{into: &q.Null}, &q.skip}, nullDoc),
	}, q.Guess.members()...)
}

func (q *difference) rules(v *violations, pointer string) {
	if q.Null != nil && q.Range.Valid() && !q.Range.Contains(*q.Null) {
		v.add(pointer+"/null", "must lie in the range")
	}
	if q.Null != nil && *q.Null == q.Range.Low { // the default has one spelling
		q.Null = nil
	}
	leaveOut(v, pointer, &q.skip, &q.Where, q.Of)
	q.Guess.rules(v, pointer, differences(q.Range))
}

// differences are those of two means in the range; of fractions, where there is none.
func differences(r Range) Range {
	if r == (Range{}) {
		return Range{Low: -1, High: 1}
	}
	return Range{Low: r.Low - r.High, High: r.High - r.Low}
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
	if where != nil {
		first, others = rowfn.And(first, where), rowfn.And(others, where)
	}
	p := shape.ContrastOf(f, first, others, c.grouped)
	p.Checks = c.paired(f, first, others, 0)
	q.say(c, p, text, f.Null)
	c.watch(p, q.Of, f.Value, q.Range, where, countsAs(f.Null))
	return p
}

// paired is the check of a difference of two groups as one question where units have several rows; nil where it needs none, or where the training part has no rows of a group: it is then made of
// two questions. (Of single rows the difference of two roots is one question, and no training part has to say anything.)
func (c *compiler) paired(f RowFunction, first, second *rowfn.Node, low float64) *shape.Checks {
	if !c.grouped || c.training == nil || c.holdoutOnly {
		return nil
	}
	share := func(holds *rowfn.Node) RowFunction { return RowFunction{Value: holds, Lo: 0, Hi: 1} }
	within := func(holds *rowfn.Node) RowFunction {
		return RowFunction{Value: rowfn.If(holds, shape.InUnits(f), rowfn.Const(f.Lo)), Lo: f.Lo, Hi: f.Hi, Null: f.Lo}
	}
	means := c.trainingMeans("between", "", within(first), within(second), share(first), share(second))
	if means == nil || means[2] == 0 || means[3] == 0 {
		return nil
	}
	return shape.Paired(f, first, second, shape.GroupFacts{Mean: min(means[0]/means[2], 1), Share: means[2]}, shape.GroupFacts{Mean: min(means[1]/means[3], 1), Share: means[3]}, low)
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
	p.Words = Description{
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
	f := p.Words.Functions
	p.CheckWords = shape.CheckWords{Functions: []string{f[0], unit + "1 in the same rows, else 0", f[2], unit + "1 in the same rows, else 0"}, Instead: p.Words.Combine,
		Combine: fmt.Sprintf("the sum of the first divided by that of the second, minus that of the third divided by that of the fourth, times %v, as one question", p.Range.High)}
	switch {
	case p.Checks != nil:
		p.CheckWords = shape.CheckWords{Functions: []string{
			unit + fmt.Sprintf("(u - g)/b in the rows in which %s, minus (u - h)/c in %s, else 0; u is the place of %s in its range from 0 to 1, g and h are the training part's means of it in these rows, b and c its shares of them", q.Between[0].Canonical(), second, text),
			unit + "u - g in the first rows, else 0", unit + "u - h in the second, else 0", unit + "1 in the first rows, else 0", unit + "1 in the second, else 0"},
			Instead: p.Words.Combine,
			Combine: fmt.Sprintf("(g - h + the first mean + the second · (1/the fourth - 1/b) - the third · (1/the fifth - 1/c)) · %v, as one question", p.Range.High)}
	case c.grouped:
		p.CheckWords.Combine = strings.TrimSuffix(p.CheckWords.Combine, "as one question") + "each quotient as one question"
	}
	if q.Range.Valid() {
		p.Words.Null = fmt.Sprintf("a null counts as %v; %s", null, conditionNull)
	}
}
