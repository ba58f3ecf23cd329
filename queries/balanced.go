package queries

import (
	"fmt"
	"strings"

	"github.com/holdoutd/holdoutd/queries/expr"
	"github.com/holdoutd/holdoutd/queries/shape"
	"github.com/holdoutd/holdoutd/rowfn"
)

var balancedKind = kind{
	name: "balanced_accuracy",
	doc: "The balanced accuracy of a classifier of two classes: the mean of the shares of both that it gets right, in which a rare class counts as much as the other. " +
		"It predicts as in accuracy; of a model with two classes, rows of neither do not count. Of more classes ask for the recall of each.",
	price: price{"3, where units have several rows 4", "1"},
	examples: []string{
		`{"type":"balanced_accuracy","label":"delay > 15",` + retrievalModel + `}`,
		`{"type":"balanced_accuracy","label":"delay > 15","prediction":"distance > 1000","where":"origin == 'SFO'"}`,
		`{"type":"balanced_accuracy","label":"origin","model":{"softmax":{"classes":["SFO","OAK"],"intercepts":[0.1,0],"weights":{"distance":[0.001,-0.001]}}}}`,
	},
	needsOne: needsPrediction,
	make:     func() body { return new(balanced) },
}

// balanced is {"type":"balanced_accuracy"}. With s the share of rows of the class that are predicted to be of it, and f that of the others, it is (s + 1 - f)/2: half of a difference
// between two groups, and one half. So it is asked as a difference is.
type balanced struct {
	prediction
	Threshold *float64
	Where     *expr.Syntax
	guessing
}

func (q *balanced) members() []member {
	return append(append(q.prediction.members(labelDoc),
		q.prediction.thresholdMember(&q.Threshold),
		optional("where", expression{&q.Where}, "a condition: only rows for which it holds count, at no further cost"),
		q.prediction.skipping(),
	), q.Guess.members()...)
}

func (q *balanced) rules(v *violations, pointer string) {
	q.prediction.rules(v, pointer)
	q.leavesOut(v, pointer, &q.Where)
	q.Guess.rules(v, pointer, Range{Low: 0, High: 1})
}

func (q *balanced) compile(c *compiler) *Plan {
	where := c.condition("where", q.Where)
	d, ok := q.decision(c)
	if !ok || len(c.list) > 0 {
		return nil
	}
	first, second := d.among(where)
	p := shape.BothRight(d.picked, first, second, c.grouped)
	p.Checks = c.paired(shape.HalfWhere(d.picked, 0), first, second, 0.5)
	sayDecisions(c, p, fmt.Sprintf("1/2 where %s, else 0", d.said), d, q.Where)
	p.Words.Target = c.target("the balanced accuracy of what predicts %s where %s: the mean of the shares of both classes that are predicted right%s", d.name, d.said, d.rows(c, q.Where))
	c.watch(p, q.Label, nil, Range{}, where, countsAsNoLabel)
	return p
}

// decision is what a classifier of two classes says of a row.
type decision struct {
	picked, label, other *rowfn.Node // the class that counts is predicted; the row is of it; it is of the other
	said, name, classes  string      // that it is predicted; the class; of a model with classes, both
}

// decision is false after a violation.
func (q *balanced) decision(c *compiler) (d decision, ok bool) {
	truth, picked, classes := q.classes(c, q.Threshold)
	switch {
	case truth == nil:
		return d, false
	case classes == nil:
		d.name, d.said = q.Label.Canonical(), fmt.Sprintf("%s is above %v", q.name(), q.decidesAt(q.Threshold))
	case len(classes) != 2:
		c.add(c.pointer+"/model", fmt.Sprintf("has %d classes, and balanced accuracy is answered of two: ask for the recall of each class, with positive", len(classes)))
		return d, false
	default:
		d.name = fmt.Sprintf("that %s is %s", q.Label.Canonical(), classes[1].Text)
		d.said = fmt.Sprintf("the class of %s is %s", q.name(), classes[1].Text)
		d.classes = fmt.Sprintf("%s is %s or %s", q.Label.Canonical(), classes[0].Text, classes[1].Text)
	}
	d.picked, d.label, d.other = picked[1], truth[1], truth[0]
	return d, true
}

// among are the conditions that a row is of either class, among those in which where holds.
func (d decision) among(where *rowfn.Node) (first, second *rowfn.Node) {
	if where == nil {
		return d.label, d.other
	}
	return rowfn.And(d.label, where), rowfn.And(d.other, where)
}

// rows are the rows that it is about, in words.
func (d decision) rows(c *compiler, where *expr.Syntax) (rows string) {
	switch {
	case d.classes != "" && where != nil:
		rows = ", of the rows in which " + d.classes + " and " + where.Canonical()
	case d.classes != "":
		rows = ", of the rows in which " + d.classes
	case where != nil:
		rows = ", of the rows in which " + where.Canonical()
	}
	if c.grouped {
		rows += ", every unit counting in a class by the share of its rows that are there"
	}
	return rows
}

// sayDecisions says the means of u in the rows of either class, and how the answer is made of them.
func sayDecisions(c *compiler, p *Plan, u string, d decision, where *expr.Syntax) {
	unit := ""
	if c.grouped {
		unit = "the mean over the unit's rows of "
	}
	f := []string{
		fmt.Sprintf("%su, the place of %s in its range from 0 to 1, in rows of the class %s%s, else 0", unit, u, d.name, d.rows(c, where)),
		unit + "1 - u in the same rows, else 0",
		unit + "u in the rows of the other class, else 0",
		unit + "1 - u in the same rows, else 0",
	}
	p.Words = Description{
		Functions: f,
		Combine:   fmt.Sprintf("the first mean divided by the sum of the first two, minus the third divided by the sum of the last two, moved to %v; undefined where a class has no rows", p.Range),
		Null:      conditionNull,
	}
	p.CheckWords = shape.CheckWords{Functions: []string{f[0], unit + "1 in the same rows, else 0", f[2], unit + "1 in the same rows, else 0"}, Instead: p.Words.Combine,
		Combine: fmt.Sprintf("the sum of the first divided by that of the second, minus that of the third divided by that of the fourth, moved to %v, as one question", p.Range)}
	switch {
	case p.Checks != nil:
		p.CheckWords = shape.CheckWords{Functions: []string{
			unit + "(u - g)/b in the rows of the first class, minus (u - h)/c in those of the other, else 0; g and h are the training part's means of u in these rows, b and c its shares of them",
			unit + "u - g in the first rows, else 0", unit + "u - h in the second, else 0", unit + "1 in the first rows, else 0", unit + "1 in the second, else 0"},
			Instead: p.Words.Combine,
			Combine: fmt.Sprintf("g - h + the first mean + the second · (1/the fourth - 1/b) - the third · (1/the fifth - 1/c), moved to %v, as one question", p.Range)}
	case c.grouped:
		p.CheckWords.Combine = strings.TrimSuffix(p.CheckWords.Combine, "as one question") + "each quotient as one question"
	}
}
