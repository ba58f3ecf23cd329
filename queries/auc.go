package queries

import (
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/queries/expr"
	"github.com/holdoutd/holdoutd/queries/model"
	"github.com/holdoutd/holdoutd/queries/shape"
	"github.com/holdoutd/holdoutd/rowfn"
)

// Bins of an AUC. Each costs a question, and what lies within one bin is a tie; with ten equally full ones the AUC of the binned
// score is rarely off by a hundredth of that of the score itself.
const (
	DefaultAUCBins = 10
	MaxAUCBins     = 100
)

var aucKind = kind{
	name: "auc",
	doc: "The area under the ROC curve of a score that is counted in bins: how probable it is that a row with the label has a score in a higher bin than a row without it, where a tie counts one half. " +
		"Edges of bins are declared, or are quantiles of the score in the training part. Under guess_and_check take 50 bins or more.",
	price: price{"one a bin, with where one more", "1; where units have several rows, under thresholdout and split, two a bin"},
	examples: []string{
		`{"type":"auc","label":"delay > 15","model":{"linear":{"intercept":-1.5,"weights":{"distance":0.0002},"link":"logit"}},"edges":[0.2,0.3,0.4]}`,
		`{"type":"auc","label":"delay > 15","prediction":"distance","edges":[200,400,800,1600],"where":"origin == 'SFO'"}`,
	},
	needsOne: needsPrediction,
	make:     func() body { return new(auc) },
}

// auc is {"type":"auc"}.
type auc struct {
	prediction
	Edges []float64
	Bins  *float64
	Where *expr.Syntax
	guessing
}

func (q *auc) members() []member {
	all := append(q.prediction.members("the truth: a condition"),
		optional("edges", binEdges{&q.Edges}, fmt.Sprintf("the edges of the bins of the prediction, after its link: 1 to %d rising numbers; a bin is (e, e'] for neighbours", MaxAUCBins-1)),
		optional("bins", orElseForm{number{into: &q.Bins}, DefaultAUCBins}, fmt.Sprintf("how many bins to make of the training part's scores, 2 to %d; default: %d", MaxAUCBins, DefaultAUCBins)),
		optional("where", expression{&q.Where}, "a condition: only rows for which it holds count; under gaussian it costs one more question"),
		q.prediction.skipping(),
	)
	return append(all, q.Guess.members()...)
}

func (q *auc) rules(v *violations, pointer string) {
	q.prediction.rules(v, pointer)
	q.leavesOut(v, pointer, &q.Where)
	if q.Bins != nil && (*q.Bins != math.Floor(*q.Bins) || *q.Bins < 2 || *q.Bins > MaxAUCBins) {
		v.add(pointer+"/bins", fmt.Sprintf("must be a whole number from 2 to %d", MaxAUCBins))
	}
	if q.Bins != nil && q.Edges != nil {
		v.add(pointer+"/bins", "goes without edges")
	}
}

func (q *auc) compile(c *compiler) *Plan {
	above, label, where, edges := q.bins(c)
	if above == nil {
		return nil
	}
	plan := shape.CurveOf(above, label, where, c.grouped)
	q.say(c, plan, edges)
	c.watch(plan, q.Label, nil, Range{}, where, countsAsNoLabel)
	return plan
}

// bins are the conditions that the prediction is above each edge, the label, where and the edges in words; nil after a violation.
func (q *auc) bins(c *compiler) (above []*rowfn.Node, label, where *rowfn.Node, edges string) {
	p, ok := q.predictor(c)
	label, where = c.truth(q.Label), c.condition("where", q.Where)
	if !ok || label == nil || !c.oneOutput(p) {
		return nil, nil, nil, ""
	}
	above, edges = q.above(c, p, where)
	if len(c.list) > 0 || c.failed != nil {
		return nil, nil, nil, ""
	}
	return above, label, where, edges
}

func (q *auc) say(c *compiler, plan *Plan, edges string) {
	in := ""
	if q.Where != nil {
		in = " where " + q.Where.Canonical()
	}
	of, unit := fmt.Sprintf("%s%s", q.Label.Canonical(), in), ""
	if c.grouped {
		unit = "the mean over the unit's rows of "
	}
	over := ""
	if q.Where != nil {
		over = " over the rows in which " + q.Where.Canonical()
	}
	plan.Words = Description{
		Functions: []string{
			fmt.Sprintf("%sfor each edge %s of %s: 1 in rows without %s whose score is not above the edge, -1 in those whose score is, 0 in the others", unit, edges, q.name(), of),
			fmt.Sprintf("%sthe same in rows with %s", unit, of), unit + "1 where " + of + ", else 0"},
		Combine: "the area under the curve through the shares of both labels whose scores are above each edge, made of the means; undefined where a label has no rows",
		Null:    "a null in a condition makes it false; a prediction that is null is in the lowest bin",
		Target:  c.target("the area under the ROC curve of %s in bins that end at %s, for %s, ties counting one half%s%s", q.name(), edges, q.Label.Canonical(), over, c.rowsOf(nil, WeightUnit)),
	}
	if q.Where != nil {
		plan.Words.Functions = append(plan.Words.Functions, unit+"1 in rows without "+of+", else 0")
	}
	plan.Checks.Words = shape.CheckWords{Functions: []string{fmt.Sprintf("%s1 in rows with %s, else 0, and for each edge %s of %s: 1 in those of them whose score is above the edge", unit, of, edges, q.name()), "the same in rows without it"},
		Instead: plan.Words.Combine, Combine: "of all pairs of a row with the label and one without, the share in which the first has the higher score, from the numbers of rows in each bin, as one question; rows are taken to be alike"}
	if c.grouped {
		plan.Checks.Words.Functions = append(plan.Checks.Words.Functions, "the products of two of these")
		plan.Checks.Words.Combine = "of all pairs of a row with the label in a unit of one half of the units, and a row without it in a unit of the other half, or the other way round, the share in which the first has the higher score, " +
			"every unit having one vote, which its rows share; from the sums over each half, as one question; units are taken to be alike"
	}
}

// above are the conditions that the prediction is above each edge, with the edges in words; nil with a violation.
func (q *auc) above(c *compiler, p predictor, where *rowfn.Node) (above []*rowfn.Node, said string) {
	if q.Edges != nil {
		x := p.number()
		for i, e := range q.Edges {
			above = append(above, rowfn.CompareTo(rowfn.OpGreater, x, e))
			said = listed(said, i, e)
		}
		return above, said
	}
	score := p.number()
	if p.condition == nil && p.link == model.Logit {
		score = p.scores[0] // the link keeps the order
	}
	edges := c.trainingQuantiles("edges", score, where, int(*orDefault(q.Bins, DefaultAUCBins)))
	for i, e := range edges {
		above = append(above, rowfn.CompareTo(rowfn.OpGreater, score, e))
		if p.condition == nil && p.link == model.Logit {
			e = 1 / (1 + math.Exp(-e))
		}
		said = listed(said, i, e)
	}
	return above, said
}

// binEdges is a list of at least one rising number.
type binEdges struct{ into *[]float64 }

func (f binEdges) read(v *violations, pointer string, in *value) {
	if in.kind != listValue || len(in.items) < 1 || len(in.items) >= MaxAUCBins {
		v.add(pointer, fmt.Sprintf("must be a list of 1 to %d rising numbers", MaxAUCBins-1))
		return
	}
	var edges []float64
	for i, item := range in.items {
		x, ok := item.float()
		if !ok || i > 0 && x <= edges[i-1] {
			v.add(fmt.Sprintf("%s/%d", pointer, i), "must be a finite number above the one before it")
			return
		}
		edges = append(edges, x)
	}
	*f.into = edges
}

func (f binEdges) canonical() any {
	if *f.into == nil {
		return nil
	}
	return *f.into
}

func (f binEdges) schema() map[string]any {
	return map[string]any{"type": "array", "items": map[string]any{"type": "number"}, "minItems": 1, "maxItems": MaxAUCBins - 1}
}
