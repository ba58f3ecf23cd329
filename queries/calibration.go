package queries

import (
	"fmt"

	"github.com/holdoutd/holdoutd/queries/expr"
	"github.com/holdoutd/holdoutd/queries/interval"
	"github.com/holdoutd/holdoutd/rowfn"
)

var calibrationKind = kind{
	name: "calibration",
	doc: "A reliability diagram: for each bin of the predicted probability, the share of rows in it, the share of these that have the label, and their " +
		"mean prediction. All are released as one vector: five questions under gaussian for any number of bins, three for each bin under other " +
		"mechanisms. Predictions outside the edges are in no bin.",
	examples: []string{
		`{"type":"calibration","label":"delay > 15","model":{"linear":{"intercept":-1.5,"weights":{"distance":0.0002},"link":"logit"}},"edges":[0,0.2,0.25,0.3,1]}`,
		`{"type":"calibration","label":"delay > 15","prediction":"min(distance / 5000, 1)","where":"origin == 'SFO'"}`,
	},
	needsOne: needsPrediction,
	make:     func() body { return &calibration{Edges: tenths()} },
}

// calibration is {"type":"calibration"}.
type calibration struct {
	prediction
	Edges []float64
	Where *expr.Syntax
}

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
		optional("where", expression{&q.Where}, "a condition: only rows for which it holds are in a bin; costs nothing more"),
	)
}

// compile asks three row functions of each bin: 1 in its rows with the label, 1 in its rows without, and, in its rows, v in [-1,1], the
// place of the prediction between the bin's edges; 0 in all others.
//
// The variances of the first two of all B bins add up to at most 1 - 1/(2B), as in shares. Of the third, as (1+v)/2, a row is
// at one half but for its own bin, where it is off by at most one half; so they add up to at most 1/4, as in auc.
func (q *calibration) compile(c *compiler) *Plan {
	p, ok := q.predictor(c)
	label, where := c.condition("label", q.Label), c.condition("where", q.Where)
	if !ok || label == nil || !c.oneOutput(p) || len(c.list) > 0 {
		return nil
	}
	x := p.number()
	bins := binsOf(x, q.Edges)
	plan := &Plan{Range: Range{0, 1}}
	var places []RowFunction
	for i, bin := range bins {
		if where != nil {
			bin.holds = rowfn.And(bin.holds, where)
		}
		plan.Functions = append(plan.Functions, RowFunction{Value: rowfn.And(bin.holds, label), Lo: 0, Hi: 1}, RowFunction{Value: rowfn.And(bin.holds, rowfn.Not(label)), Lo: 0, Hi: 1})
		middle, half := middleOf(q.Edges[i], q.Edges[i+1])
		place := rowfn.Div(rowfn.Sub(x, rowfn.Const(middle)), rowfn.Const(half))
		places = append(places, RowFunction{Value: rowfn.If(bin.holds, Range{-1, 1}.clamp(place), rowfn.Const(0)), Lo: -1 - gridRoom, Hi: 1 + gridRoom})
	}
	cells := float64(len(plan.Functions))
	plan.Functions = append(plan.Functions, places...)
	variance := 1 - 1/cells + 0.25
	if c.grouped {
		variance += gridSlack * cells
	}
	plan.releases = []Release{{Kind: Vector, Count: len(plan.Functions), Variance: variance}}
	plan.combine = func(o Outcome) Result {
		var items []Item
		for i, bin := range bins {
			items = append(items, q.bin(o, i, bin.name)...)
		}
		return Result{Items: items}
	}
	q.say(c, plan, len(bins))
	return plan
}

// binsOf are the bins of a number between edges.
func binsOf(x *rowfn.Node, edges []float64) []category {
	var bins []category
	last := len(edges) - 2
	for i := range last + 1 {
		inside, end := rowfn.OpLess, ")"
		if i == last {
			inside, end = rowfn.OpLessEq, "]"
		}
		bins = append(bins, category{"[" + edge(edges[i]) + ", " + edge(edges[i+1]) + end, rowfn.And(rowfn.CompareTo(rowfn.OpGreaterEq, x, edges[i]), rowfn.CompareTo(inside, x, edges[i+1]))})
	}
	return bins
}

func middleOf(a, b float64) (middle, half float64) { return a/2 + b/2, b/2 - a/2 }

// bin is the three items of one bin.
func (q *calibration) bin(o Outcome, i int, name string) []Item {
	with, without, place := o.Parts[2*i], o.Parts[2*i+1], o.Parts[2*(len(q.Edges)-1)+i]
	unit := Range{0, 1}
	bounded := with.Bounded && without.Bounded
	all := with.interval().Add(without.interval()).Clip(0, 1)
	share := answer(with.Value+without.Value, all, bounded, true, unit)
	label := shareOf(with, without, unit)

	a, b := q.Edges[i], q.Edges[i+1]
	middle, halfWidth := middleOf(a, b)
	inside := interval.Interval{Low: -1, High: 1}
	v := place.interval().Sub(interval.Point(0.5)).Mul(interval.Point(2 * (1 + gridRoom)))
	if all.Low > 0 {
		inside = v.Div(all).Clip(-1, 1)
	}
	bounds := interval.Point(middle).Add(inside.Mul(interval.Point(halfWidth)))
	sum := with.Value + without.Value
	value := middle + 2*half(place.Value)/sum*halfWidth
	prediction := answer(value, bounds.Clip(a, b), bounded && place.Bounded, sum > 0, Range{a, b})
	return []Item{
		{Of: name + " share", Value: share.Value, Low: share.Low, High: share.High},
		{Of: name + " label", Value: label.Value, Low: label.Low, High: label.High},
		{Of: name + " prediction", Value: prediction.Value, Low: prediction.Low, High: prediction.High},
	}
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
	plan.describe = Description{
		Functions: []string{
			fmt.Sprintf("%sfor each of %d bins of %s with the edges %s: 1 in the bin's rows%s with %s, else 0", unit, bins, q.name(), edges, in, q.Label.Canonical()),
			unit + "for each bin: 1 in its rows without it, else 0",
			unit + "for each bin: in its rows, the place of the prediction between the edges, from -1 to 1; else 0"},
		Combine: "share: the sum of a bin's first two means; label: the first by that sum; prediction: the middle of the bin, moved by half its width times the third by that sum; " +
			"undefined where the sum is not positive",
		Null: "a null in a condition makes it false; a row without a prediction is in no bin",
		Target: c.target("for each bin, the share of rows in it%s, the share of them with %s and their mean of %s%s", in, q.Label.Canonical(), q.name(),
			rowsOf(c, nil, WeightUnit)),
	}
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
