package queries

import (
	"fmt"
	"slices"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries/expr"
	"github.com/holdoutd/holdoutd/queries/shape"
	"github.com/holdoutd/holdoutd/rowfn"
)

var groupsKind = kind{
	name: "groups",
	doc: "The mean of a number, clamped to a range, or the fraction of a condition, in each group of rows, and in all other rows together. Groups are the categories of a text column, values or ranges of a number, " +
		"or whether a condition holds; they are declared or the training part's. The groups other and null are left out where public facts exclude them. Groups for which no tokens are left are null. " +
		"Under guess_and_check a group with too few rows to compare with is null, too, and needs no token.",
	price: price{"4", "1 a group"},
	examples: []string{
		`{"type":"groups","of":"delay","range":[-60,180],"by":"origin","values":["SFO","OAK","SJC"]}`,
		`{"type":"groups","of":"delay > 15","by":"origin","values":["SFO","OAK"],"where":"distance < 500"}`,
		`{"type":"groups","of":"delay","range":[-60,180],"by":"distance","edges":[0,500,1000,3000]}`,
		`{"type":"groups","of":"delay","range":[-60,180],"by":"distance > 1000"}`,
	},
	make: func() body { return new(groups) },
}

// groups is {"type":"groups"}.
type groups struct {
	Of     *expr.Syntax
	Range  Range
	By     *expr.Syntax
	Values textsOrNumbers
	Edges  []float64
	Where  *expr.Syntax
	Null   *float64
	skip   bool
	itemGuesses
}

func (q *groups) members() []member {
	return []member{
		required("of", expression{&q.Of}, "the number to average, or a condition: a row expression"),
		optional("range", optionalRange{&q.Range}, "[low, high] of a number: values are clamped to it; a condition has none"),
		required("by", expression{&q.By}, "what makes the groups: a text column, a number or a condition. Items are named by the text, the number or the range; by true and false; and by other and null"),
		optional("values", textsOrNumbersForm{&q.Values}, "by a text or a number: the values, as a list; default: those of the column in the training part, at most the 100 most frequent. All other values are one group, other"),
		optional("edges", edgesOrNone{edgesForm{&q.Edges}}, fmt.Sprintf("by a number: rising numbers, 2 to %d of them. Groups are [a, b) for neighbours, the last one [a, b], and what is below, above and null", MaxEdges)),
		optional("where", expression{&q.Where}, "a condition: only rows for which it holds count; costs nothing more"),
		optional("null", nullForm{skipping{number{into: &q.Null}, &q.skip}, &q.Range}, nullDoc),
		q.itemGuesses.member(),
	}
}

func (q *groups) rules(v *violations, pointer string) {
	nullRule(v, pointer, q.Null, q.Range)
	if q.Edges != nil && q.Values.given() {
		v.add(pointer+"/edges", "goes without values")
	}
	leaveOut(v, pointer, &q.skip, &q.Where, q.Of)
}

func (q *groups) leastItems() int { return len(q.Values.texts) + len(q.Values.numbers) + len(q.Edges) }

func (q *groups) compile(c *compiler) *Plan {
	f, text := c.measured("of", q.Of, q.Range, q.Null)
	where, categories := c.condition("where", q.Where), q.groups(c)
	if len(c.list) > 0 || c.failed != nil {
		return nil
	}
	categories = q.possible(c, categories)
	p := shape.GroupsOf(f, categories, where, c.grouped)
	q.say(c, p, categories, text, f.Null)
	counts := countsAs(f.Null)
	if !q.Range.Valid() {
		counts = countsAsFalse
	}
	c.watch(p, q.Of, f.Value, q.Range, where, counts)
	return p
}

// groups are the groups of rows: each row is in one.
func (q *groups) groups(c *compiler) []shape.Category {
	name, column := q.By.Column()
	if column && slices.ContainsFunc(c.schema.Fields, func(f dataset.Field) bool { return f.Name == name && f.Kind == dataset.Text }) {
		switch {
		case q.Edges != nil:
			c.add(c.pointer+"/edges", "are of a number, and by is a text")
		case q.Values.numbers != nil:
			c.add(c.pointer+"/values", "must be texts, as by is")
		default:
			return c.categories("by", c.textColumn("by", q.By), q.Values.texts)
		}
		return nil
	}
	by, err := q.By.Check(c.schema)
	switch {
	case err != nil:
		c.expression(c.pointer+"/by", err)
		return nil
	case by.Type == rowfn.Condition:
		if q.Edges != nil || q.Values.given() {
			c.add(c.pointer+"/by", "is a condition, whose groups are true and false; values and edges are of texts and numbers")
			return nil
		}
		return truths(by, column)
	case by.Type != rowfn.Number:
		c.add(c.pointer+"/by", "must be a text column, a number or a condition; of a time take a part, such as getMonth(), or the number of days since another")
		return nil
	case q.Values.texts != nil:
		c.add(c.pointer+"/values", "must be numbers, as by is")
		return nil
	case q.Edges != nil:
		return binsOf(by, q.Edges)
	}
	return c.numbers(by, column, q.Values.numbers)
}

// possible leaves out the groups other and null of a column where public facts say that no row of any part is in them: they would cost a question each, and say nothing.
func (q *groups) possible(c *compiler, all []shape.Category) (kept []shape.Category) {
	name, column := q.By.Column()
	if !column || c.training == nil {
		return all
	}
	facts, ok := c.training.Column(name)
	if !ok {
		return all
	}
	known, full := c.everywhere(name)
	at := len(all) - 1 // null
	if all[at].Name != "null" {
		return all
	}
	rest := at - 1 // other
	if q.Edges != nil || all[rest].Name != "other" || !covers(c.training, name, all[:rest]) {
		rest = -1
	}
	for i, k := range all {
		if i == rest && known || i == at && facts.Nulls == 0 && full {
			continue
		}
		kept = append(kept, k)
	}
	return kept
}

// covers reports whether each value of a column in the training part is named by a category.
func covers(training TrainingPart, column string, categories []shape.Category) bool {
	named := make(map[string]bool, len(categories))
	for _, k := range categories {
		named[k.Name] = true
	}
	values := training.Texts(column)
	for _, x := range training.Numbers(column, maxDistinct) {
		values = append(values, shape.Edge(x))
	}
	return len(values) > 0 && !slices.ContainsFunc(values, func(value string) bool { return !named[value] })
}

func (q *groups) say(c *compiler, p *Plan, categories []shape.Category, text string, null float64) {
	rows := sayGroups(c, p, categories, text, q.Where)
	p.Words.Null = "rows of no group are one of their own, and so are nulls"
	p.Words.Target = c.target("the mean of %s in each group by %s%s", text, q.By.Canonical(), rows)
	if q.Range.Valid() {
		p.Words.Null = fmt.Sprintf("a null counts as %v; %s", null, p.Words.Null)
	} else {
		p.Words.Null = conditionNull + "; " + p.Words.Null
	}
}

// sayGroups says the row functions of a plan of [shape.GroupsOf] and how they are combined, and returns over which rows it is.
func sayGroups(c *compiler, p *Plan, categories []shape.Category, text string, where *expr.Syntax) (rows string) {
	in, unit := "", ""
	if where != nil {
		in = " and " + where.Canonical()
		rows = " over the rows in which " + where.Canonical()
	}
	if c.grouped {
		unit = "the mean over the unit's rows of "
		rows += ", every unit counting in a group by the share of its rows that are there"
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
			fmt.Sprintf("%su, the place of %s in its range from 0 to 1, where the row is in the group%s, else 0, for each of %d groups: %s", unit, text, in, len(categories), names),
			unit + "1 - u in the same rows, else 0",
		},
		Combine: fmt.Sprintf("for each group, the first mean divided by the sum of both, moved to %v; undefined where that sum is not positive", p.Range),
	}
	p.CheckWords = shape.CheckWords{Functions: []string{p.Words.Functions[0], unit + "1 in the same rows, else 0"}, Instead: p.Words.Combine,
		Combine: fmt.Sprintf("for each group, the sum of the first divided by that of the second, as one question, moved to %v", p.Range)}
	return rows
}
