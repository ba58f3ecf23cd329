package queries

import (
	"fmt"

	"github.com/holdoutd/holdoutd/queries/expr"
	"github.com/holdoutd/holdoutd/queries/interval"
	"github.com/holdoutd/holdoutd/rowfn"
)

var groupsKind = kind{
	name: "groups",
	doc: "The mean of a number, clamped to a range, in each category of a text column, and in all other rows together. One mean with where gives it " +
		"for one category; groups gives it for all. The categories are declared or the training part's. All sums are released as one vector: four " +
		"questions under gaussian, two for each category under other mechanisms. Categories for which no tokens are left are null.",
	examples: []string{
		`{"type":"groups","of":"delay","range":[-60,180],"by":"origin","values":["SFO","OAK","SJC"]}`,
		`{"type":"groups","of":"delay > 15 ? 1 : 0","range":[0,1],"by":"origin","values":["SFO","OAK"],"where":"distance < 500"}`,
	},
	make: func() body { return new(groups) },
}

// groups is {"type":"groups"}.
type groups struct {
	Of     *expr.Syntax
	Range  Range
	By     *expr.Syntax
	Values []string
	Where  *expr.Syntax
	Null   *float64
}

func (q *groups) members() []member {
	return []member{
		required("of", expression{&q.Of}, "the number to average: a row expression"),
		required("range", rangeForm{&q.Range}, rangeDoc),
		required("by", expression{&q.By}, "a text column"),
		optional("values", textsForm{&q.Values}, valuesDoc),
		optional("where", expression{&q.Where}, "a condition: only rows for which it holds count; costs nothing more"),
		optional("null", nullForm{number{into: &q.Null}, &q.Range}, nullDoc),
	}
}

func (q *groups) rules(v *violations, pointer string) { nullRule(v, pointer, q.Null, q.Range) }

func (q *groups) leastItems() int { return len(q.Values) }

// compile asks two row functions of each category. With u in [0,1] the place of a row's value in the range, they are u in the rows of
// the category, else 0, and 1-u in the rows of the category, else 0. Of a row's functions at most two are not 0 and all add up
// to at most 1, and so they do for a unit, whose rows share its vote. So the variances add up to no more than those of shares
// of twice as many categories, but for the grid's rounding, and the sum of the two means is the category's share of the rows, which is not released by itself.
func (q *groups) compile(c *compiler) *Plan {
	x, column, where := c.number("of", q.Of), c.textColumn("by", q.By), c.condition("where", q.Where)
	categories := c.categories("by", column, q.Values)
	if len(c.list) > 0 || c.failed != nil {
		return nil
	}
	null := orLow(q.Null, q.Range)
	f := RowFunction{Value: x, Lo: q.Range.Low, Hi: q.Range.High, Null: null}
	p := &Plan{Range: q.Range}
	for _, k := range categories {
		holds := k.holds
		if where != nil {
			holds = rowfn.And(holds, where)
		}
		p.Functions = append(p.Functions, split(f, holds)...)
	}
	p.releases = []Release{{Kind: Vector, Count: len(p.Functions), Variance: 1 - 1/float64(len(p.Functions)) + gridSlack*float64(len(p.Functions)), Optional: true}}
	p.combine = func(o Outcome) Result {
		items := make([]Item, len(categories))
		for i, k := range categories {
			items[i].Of = k.name
			if a, b := o.Parts[2*i], o.Parts[2*i+1]; !a.Missing && !b.Missing {
				items[i].is(shareOf(a, b, q.Range))
			}
		}
		return Result{Items: items}
	}
	q.say(c, p, categories, null)
	return p
}

// shareOf is a/(a+b), moved to a range: it rises with a and falls with b, which are free of each other.
func shareOf(a, b Part, r Range) Result {
	top, rest := min(max(a.Value, 0), 1), min(max(b.Value, 0), 1)
	bounds, bounded := interval.Interval{Low: 0, High: 1}, a.Bounded && b.Bounded
	over, under := a.interval(), b.interval()
	if over.Low > 0 {
		bounds.Low = interval.Point(over.Low).Div(interval.Point(over.Low).Add(interval.Point(under.High))).Low
	}
	if under.Low > 0 {
		bounds.High = interval.Point(over.High).Div(interval.Point(over.High).Add(interval.Point(under.Low))).High
	}
	if !(top+rest > 0) {
		result := finish(0, bounds, bounded, r, 1)
		result.Value = nil
		return result
	}
	return finish(top/(top+rest), bounds, bounded, r, 1)
}

func (q *groups) say(c *compiler, p *Plan, categories []category, null float64) {
	text, in, unit := fmt.Sprintf("%s clamped to %v", q.Of.Canonical(), q.Range), "", ""
	if q.Where != nil {
		in = " and " + q.Where.Canonical()
	}
	rows := ""
	if q.Where != nil {
		rows = " over the rows in which " + q.Where.Canonical()
	}
	if c.grouped {
		unit = "the mean over the unit's rows of "
		rows += ", every unit counting in a category by the share of its rows that are there"
	}
	names := ""
	for i, k := range categories {
		if i == maxNamed {
			names += ", …"
			break
		}
		if i > 0 {
			names += ", "
		}
		names += k.name
	}
	p.describe = Description{
		Functions: []string{
			fmt.Sprintf("%su, the place of %s in its range from 0 to 1, where the row is in the category%s, else 0, for each of %d categories: %s", unit, text, in, len(categories), names),
			unit + "1 - u in the same rows, else 0",
		},
		Combine: fmt.Sprintf("for each category, the first mean divided by the sum of both, moved to %v; undefined where that sum is not positive", q.Range),
		Null:    fmt.Sprintf("a null counts as %v; rows without a category are one of their own", null),
		Target:  c.target("the mean of %s in each category of %s%s", text, q.By.Canonical(), rows),
	}
}
