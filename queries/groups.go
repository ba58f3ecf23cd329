package queries

import (
	"fmt"

	"github.com/holdoutd/holdoutd/queries/expr"
	"github.com/holdoutd/holdoutd/queries/shape"
)

var groupsKind = kind{
	name: "groups",
	doc: "The mean of a number, clamped to a range, in each category of a text column, and in all other rows together. One mean with where gives it " +
		"for one category; groups gives it for all. The categories are declared or the training part's. All sums are released as one vector: four " +
		"questions under gaussian; under guess_and_check each category is one question, as one mean with where is; under other mechanisms two. Categories for which no tokens are left are null.",
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
	skip   bool
	itemGuesses
}

func (q *groups) members() []member {
	return []member{
		required("of", expression{&q.Of}, "the number to average: a row expression"),
		required("range", rangeForm{&q.Range}, rangeDoc),
		required("by", expression{&q.By}, "a text column"),
		optional("values", textsForm{&q.Values}, valuesDoc),
		optional("where", expression{&q.Where}, "a condition: only rows for which it holds count; costs nothing more"),
		optional("null", nullForm{skipping{number{into: &q.Null}, &q.skip}, &q.Range}, nullDoc),
		q.itemGuesses.member(),
	}
}

func (q *groups) rules(v *violations, pointer string) {
	nullRule(v, pointer, q.Null, q.Range)
	leaveOut(v, pointer, &q.skip, &q.Where, q.Of)
}

func (q *groups) leastItems() int { return len(q.Values) }

func (q *groups) compile(c *compiler) *Plan {
	x, column, where := c.number("of", q.Of), c.textColumn("by", q.By), c.condition("where", q.Where)
	categories := c.categories("by", column, q.Values)
	if len(c.list) > 0 || c.failed != nil {
		return nil
	}
	null := orLow(q.Null, q.Range)
	f := RowFunction{Value: x, Lo: q.Range.Low, Hi: q.Range.High, Null: null}
	p := shape.GroupsOf(f, categories, where, c.grouped)
	q.say(c, p, categories, null)
	c.watch(p, q.Of, x, q.Range, where, countsAs(null))
	return p
}

func (q *groups) say(c *compiler, p *Plan, categories []shape.Category, null float64) {
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
		names += k.Name
	}
	p.Words = Description{
		Functions: []string{
			fmt.Sprintf("%su, the place of %s in its range from 0 to 1, where the row is in the category%s, else 0, for each of %d categories: %s", unit, text, in, len(categories), names),
			unit + "1 - u in the same rows, else 0",
		},
		Combine: fmt.Sprintf("for each category, the first mean divided by the sum of both, moved to %v; undefined where that sum is not positive", q.Range),
		Null:    fmt.Sprintf("a null counts as %v; rows without a category are one of their own", null),
		Target:  c.target("the mean of %s in each category of %s%s", text, q.By.Canonical(), rows),
	}
	p.CheckWords = shape.CheckWords{Functions: []string{p.Words.Functions[0], unit + "1 in the same rows, else 0"}, Instead: p.Words.Combine,
		Combine: fmt.Sprintf("for each category, the sum of the first divided by that of the second, as one question, moved to %v", q.Range)}
}
