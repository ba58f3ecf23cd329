package queries

import (
	"fmt"

	"github.com/holdoutd/holdoutd/queries/expr"
	"github.com/holdoutd/holdoutd/queries/shape"
	"github.com/holdoutd/holdoutd/rowfn"
)

var calibrationKind = kind{
	name: "calibration",
	doc: "A reliability diagram: for each bin of the predicted probability, the share of rows in it, the share of these that have the label, and their mean prediction. The form gap is one number for each bin: " +
		"how far the share of its rows that have the label is above their mean prediction. Predictions outside the edges are in no bin. Bins for which no tokens are left are null.",
	price: price{"5; gap 4", "1 a number"},
	examples: []string{
		`{"type":"calibration","label":"delay > 15","model":{"linear":{"intercept":-1.5,"weights":{"distance":0.0002},"link":"logit"}},"edges":[0,0.2,0.25,0.3,1]}`,
		`{"type":"calibration","label":"delay > 15","prediction":"min(distance / 5000, 1)","where":"origin == 'SFO'"}`,
		`{"type":"calibration","label":"delay > 15","prediction":"min(distance / 5000, 1)","edges":[0,0.2,0.4],"form":"gap"}`,
	},
	needsOne: needsPrediction,
	make:     func() body { return &calibration{Edges: tenths(), Form: formCurve} },
}

// calibration is {"type":"calibration"}.
type calibration struct {
	prediction
	Edges []float64
	Form  string
	Where *expr.Syntax
	itemGuesses
}

// The forms of a calibration.
const (
	formCurve = "curve"
	formGap   = "gap"
)

// tenths are the edges of ten bins of a probability.
func tenths() []float64 {
	edges := make([]float64, 11)
	for i := range edges {
		edges[i] = float64(i) / 10
	}
	return edges
}

func (q *calibration) members() []member {
	return append(q.prediction.members("the truth: a condition"),
		optional("edges", orElseEdges{edgesForm{&q.Edges}, tenths()}, fmt.Sprintf("rising numbers, 2 to %d of them: bins are [a, b) for neighbours, the last one [a, b]; default: tenths", MaxEdges)),
		optional("form", choice{&q.Form, []string{formCurve, formGap}}, "curve: of each bin three items, its share of the rows, the share of these that have the label, and their mean prediction; gap: of each bin one, the second of these minus the third"),
		optional("where", expression{&q.Where}, "a condition: only rows for which it holds are in a bin; costs nothing more"),
		q.prediction.skipping(),
		q.itemGuesses.member(),
	)
}

func (q *calibration) rules(v *violations, pointer string) {
	q.prediction.rules(v, pointer)
	q.leavesOut(v, pointer, &q.Where)
}

func (q *calibration) compile(c *compiler) *Plan {
	p, ok := q.predictor(c)
	label, where := c.truth(q.Label), c.condition("where", q.Where)
	if !ok || label == nil || !c.oneOutput(p) || len(c.list) > 0 {
		return nil
	}
	if q.Form == formGap {
		return q.gaps(c, p.number(), label, where)
	}
	plan := shape.BinsOf(p.number(), q.Edges, label, where, c.grouped)
	q.say(c, plan, len(q.Edges)-1)
	c.watch(plan, q.Label, nil, Range{}, where, countsAsNoLabel)
	return plan
}

// gaps asks, in each bin, for the mean of the label, 1 or 0, minus the prediction: a mean among the rows of a group.
func (q *calibration) gaps(c *compiler, x, label, where *rowfn.Node) *Plan {
	low, high := q.Edges[0], q.Edges[len(q.Edges)-1]
	gap := rowfn.Function{Value: rowfn.Sub(rowfn.If(label, rowfn.Const(1), rowfn.Const(0)), rowfn.Clamp(x, low, high)), Lo: -high, Hi: 1 - low, Null: -high}
	plan := shape.GroupsOf(gap, shape.BinsBetween(x, q.Edges), where, c.grouped)
	text := fmt.Sprintf("%s (1, else 0) minus %s", q.Label.Canonical(), q.name())
	sayGroups(c, plan, shape.BinsBetween(x, q.Edges), text, q.Where)
	plan.Words.Null = "a null in a condition makes it false; a row without a prediction is in no bin"
	plan.Words.Target = c.target("for each bin of the prediction, the mean of %s%s", text, c.rowsOf(q.Where, WeightUnit))
	c.watch(plan, q.Label, nil, Range{}, where, countsAsNoLabel)
	return plan
}

func (q *calibration) say(c *compiler, plan *Plan, bins int) {
	unit, in := "", ""
	if c.grouped {
		unit = "the mean over the unit's rows of: "
	}
	if q.Where != nil {
		in = " where " + q.Where.Canonical()
	}
	edges := ""
	for i, e := range q.Edges {
		edges = listed(edges, i, e)
	}
	plan.Words = Description{
		Functions: []string{
			fmt.Sprintf("%sfor each of %d bins of %s with the edges %s: 1 in the bin's rows%s with %s, else 0", unit, bins, q.name(), edges, in, q.Label.Canonical()),
			unit + "for each bin: 1 in its rows without it, else 0",
			unit + "for each bin: in its rows, the place of the prediction between the edges, from -1 to 1; else 0"},
		Combine: "share: the sum of a bin's first two means; label: the first by that sum; prediction: the middle of the bin, moved by half its width times the third by that sum; " +
			"undefined where the sum is not positive",
		Null: "a null in a condition makes it false; a row without a prediction is in no bin",
		Target: c.target("for each bin, the share of rows in it%s, the share of them with %s and their mean of %s%s", in, q.Label.Canonical(), q.name(),
			c.rowsOf(nil, WeightUnit)),
	}
	plan.CheckWords = shape.CheckWords{
		Functions: []string{
			fmt.Sprintf("%sfor each of %d bins of %s with the edges %s: 1 in the bin's rows%s, else 0", unit, bins, q.name(), edges, in),
			unit + "for each bin: 1 in its rows with " + q.Label.Canonical() + ", else 0",
			unit + "for each bin: in its rows, the place of the prediction between the edges, from 0 to 1; else 0"},
		Combine: "share: the mean of a bin's first; label: the sum of its second divided by that of its first; prediction: the sum of its third divided by that of its first, moved to the bin; each as one question",
		Instead: plan.Words.Combine}
}

// orElseEdges are edges with a default.
type orElseEdges struct {
	edgesForm
	otherwise []float64
}

func (f orElseEdges) canonical() any {
	if len(*f.into) == len(f.otherwise) {
		same := true
		for i, e := range *f.into {
			same = same && e == f.otherwise[i]
		}
		if same {
			return nil
		}
	}
	return f.edgesForm.canonical()
}
