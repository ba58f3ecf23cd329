package queries

import (
	"fmt"

	"github.com/holdoutd/holdoutd/queries/expr"
	"github.com/holdoutd/holdoutd/queries/shape"
	"github.com/holdoutd/holdoutd/rowfn"
)

var compareKind = kind{
	name: "compare",
	doc: "Whether b is better than a, by the mean of the difference b - a of each row: two models' accuracies or losses, two measurements; or two aucs, or two balanced accuracies, of the same label. " +
		"The verdict is yes if the whole interval is above by, no if none of it is, else undecided. Under guess_and_check the interval follows how much the differences vary, and is narrow where a and b seldom differ. " +
		"Elsewhere it is as wide as those of both means together; if both are near an end of their range, two queries can give a narrower result.",
	price: price{"1; of aucs or balanced accuracies what both cost", "1; of aucs what both cost where that is not 1"},
	examples: []string{
		`{"type":"compare","a":{"type":"mean","of":"delay","range":[-60,180]},"b":{"type":"mean","of":"distance / 10","range":[-60,180]}}`,
		`{"type":"compare","a":{"type":"accuracy","label":"delay > 15","prediction":"distance > 500"},"b":{"type":"accuracy","label":"delay > 15","prediction":"distance > 900"},"by":0.01}`,
		`{"type":"compare","a":{"type":"auc","label":"delay > 15","prediction":"distance","edges":[200,400,800,1600]},"b":{"type":"auc","label":"delay > 15","prediction":"0 - distance","edges":[-1600,-800,-400,-200]}}`,
	},
	make: func() body { return new(comparison) },
}

// comparison is {"type":"compare"}.
type comparison struct {
	A, B   *Query
	By     *float64
	Least  bool
	Where  *expr.Syntax
	Weight Weight
	bearing
	guessing
}

func (q *comparison) members() []member {
	return append([]member{
		required("a", operand{&q.A}, "what b is compared with: "+operandDoc+"; or an auc or a balanced_accuracy without where, if b is one"),
		required("b", operand{&q.B}, "what may be better: "+operandDoc+"; or an auc or a balanced_accuracy of the label of a, if a is one"),
		optional("by", defaultZero{number{into: &q.By}}, "how much better b must be for the verdict yes; default: 0"),
		optional("least", truth{&q.Least}, "true if less is better, as for a loss: the verdict is then yes if the whole interval of b - a is below -by"),
		optional("where", expression{&q.Where}, whereDoc),
		optional("weight", weightForm{&q.Weight}, weightDoc),
		q.bearing.member(),
	}, q.Guess.members()...)
}

func (q *comparison) nests() {}

func (q *comparison) rules(v *violations, pointer string) {
	if q.By != nil && *q.By < 0 {
		v.add(pointer+"/by", "must not be negative")
	}
}

func (q *comparison) compile(c *compiler) *Plan {
	if a, ok := q.A.body.(*balanced); ok {
		if b, ok := q.B.body.(*balanced); ok {
			return q.decisions(c, a, b)
		}
	}
	if a, ok := q.A.body.(*auc); ok {
		if b, ok := q.B.body.(*auc); ok {
			return q.areas(c, a, b)
		}
	}
	fa, a := c.single("a", q.A)
	fb, b := c.single("b", q.B)
	where := c.condition("where", q.Where)
	if a == nil || b == nil || len(c.list) > 0 {
		return nil
	}
	r := Range{Low: fb.Lo - fa.Hi, High: fb.Hi - fa.Lo}
	if problem := r.Problem(); problem != "" {
		c.add(c.pointer+"/b", "the range of the difference "+problem)
		return nil
	}
	f := RowFunction{Value: rowfn.Sub(shape.InUnits(fb), shape.InUnits(fa)), Lo: r.Low, Hi: r.High, Null: r.Low}
	p := shape.Average(f, where, c.rowVotes(q.Weight))
	p.FromZero = true
	text := fmt.Sprintf("b - a, with a the %s and b the %s", a.Words.Functions[0], b.Words.Functions[0])
	c.sayAverage(p, "mean of "+text, text, q.Where, q.Weight)
	q.decide(p, "Both means by themselves would cost one question more")
	p.Values = shape.ValuesAmong(where, a, b)
	p.Words.Null = "a: " + a.Words.Null + "; b: " + b.Words.Null
	return p
}

// decide adds the verdict, and what both operands would cost by themselves.
func (q *comparison) decide(p *Plan, alone string) {
	by := orZero(q.By)
	p.Decision = &shape.Decision{Bar: by, Least: q.Least}
	better := fmt.Sprintf("above %v", by)
	if q.Least {
		better = fmt.Sprintf("below %v", 0-by)
	}
	p.Words.Combine += "; b is better where the whole interval is " + better + ". " + alone
}

// decisions compares two balanced accuracies, of one label: half of how much more often b is right in one class than a, and half of the same in the other.
func (q *comparison) decisions(c *compiler, a, b *balanced) *Plan {
	if a.Label.Canonical() != b.Label.Canonical() {
		c.add(c.pointer+"/b/label", "must be that of a: two balanced accuracies are compared on the same classes")
	}
	if a.Where != nil || b.Where != nil {
		c.add(c.pointer+"/where", "is for both: say it of the compare, and not of a or b")
	}
	if c.rowVotes(q.Weight) {
		c.add(c.pointer+"/weight", "goes without balanced_accuracy, for which every unit has one vote")
	}
	where := c.condition("where", q.Where)
	outer := c.pointer
	c.pointer = outer + "/a"
	one, ok := a.decision(c)
	c.pointer = outer + "/b"
	two, also := b.decision(c)
	c.pointer = outer
	if !ok || !also || len(c.list) > 0 {
		return nil
	}
	if one.classes != two.classes {
		c.add(c.pointer+"/b/model", "must have the classes of a's, in their order")
		return nil
	}
	half := func(picked *rowfn.Node) *rowfn.Node { return shape.HalfWhere(picked, 0).Value }
	f := RowFunction{Value: rowfn.Sub(half(two.picked), half(one.picked)), Lo: -0.5, Hi: 0.5, Null: -0.5}
	first, second := two.among(where)
	p := shape.ContrastOf(f, first, second, c.grouped)
	p.Checks = c.paired(f, first, second, 0)
	sayDecisions(c, p, fmt.Sprintf("(1/2 where %s, else 0) - (1/2 where %s, else 0)", two.said, one.said), two, q.Where)
	p.Words.Target = c.target("b's balanced accuracy minus a's: b predicts %s where %s, and a where %s%s", two.name, two.said, one.said, two.rows(c, q.Where))
	c.watch(p, a.Label, nil, Range{}, where, countsAsNoLabel)
	q.decide(p, "Both by themselves would cost twice as much")
	return p
}

// MaxPairBins is how many bins two scores, or two numbers, can have multiplied: each pair of bins is a row function.
const MaxPairBins = 4096

// areas compares two areas under the ROC curve, of one label.
func (q *comparison) areas(c *compiler, a, b *auc) *Plan {
	if a.Label.Canonical() != b.Label.Canonical() {
		c.add(c.pointer+"/b/label", "must be that of a: two areas are compared on the same pairs of rows")
	}
	for _, o := range []struct {
		name  string
		where *expr.Syntax
	}{{"a", a.Where}, {"b", b.Where}} {
		if o.where != nil {
			c.add(c.pointer+"/"+o.name+"/where", "is for both: say it of the compare")
		}
	}
	if c.rowVotes(q.Weight) {
		c.add(c.pointer+"/weight", "goes without auc, for which every unit has one vote")
	}
	if c.condition("where", q.Where); len(c.list) > 0 {
		return nil
	}
	outer := c.pointer
	at := func(name string, of auc) (above []*rowfn.Node, label, where *rowfn.Node, plan *Plan) {
		of.Where = q.Where
		c.pointer = outer + "/" + name
		above, label, where, edges := of.bins(c)
		if above != nil {
			plan = shape.CurveOf(above, label, where, c.grouped)
			of.say(c, plan, edges)
		}
		c.pointer = outer
		return above, label, where, plan
	}
	first, label, where, one := at("b", *b)
	second, _, _, two := at("a", *a)
	if len(c.list) > 0 || c.failed != nil {
		return nil
	}
	if (len(first)+1)*(len(second)+1) > MaxPairBins {
		c.add(c.pointer+"/b", fmt.Sprintf("has %d bins and a has %d: multiplied they must not be above %d", len(first)+1, len(second)+1, MaxPairBins))
		return nil
	}
	p := shape.CurvesOf(first, second, label, where, c.grouped)
	p.Words = Description{
		Combine: "b's area minus a's, each made of its own means: " + one.Words.Combine,
		Null:    one.Words.Null,
		Target:  "b's minus a's: b is " + one.Words.Target + "; a is " + two.Words.Target,
	}
	for _, f := range one.Words.Functions {
		p.Words.Functions = append(p.Words.Functions, "b: "+f)
	}
	for _, f := range two.Words.Functions {
		p.Words.Functions = append(p.Words.Functions, "a: "+f)
	}
	p.Checks.Words = shape.CheckWords{Functions: []string{"b: " + one.Checks.Words.Functions[0], "a: " + two.Checks.Words.Functions[0], "1 in rows above an edge of b and an edge of a, for each pair of edges", "the same in rows without the label"},
		Instead: p.Words.Combine, Combine: "of all pairs of a row with the label and one without, how much more often b's score of the first is higher than a's, from the numbers of rows in each pair of bins, as one question; rows are taken to be alike"}
	if c.grouped {
		p.Checks.Words.Functions = append(p.Checks.Words.Functions[:2], "each of these in rows without the label", "the products of two of all these")
		p.Checks.Words.Combine = "of all pairs of a row with the label in a unit of one half of the units, and a row without it in a unit of the other half, or the other way round, how much more often b's score of the first is higher than a's, " +
			"every unit having one vote, which its rows share; from the sums over each half, as one question; units are taken to be alike"
	}
	c.watch(p, a.Label, nil, Range{}, where, countsAsNoLabel)
	q.decide(p, "Both areas by themselves would cost two questions, under mechanisms that do not check statistics as much as together")
	return p
}
