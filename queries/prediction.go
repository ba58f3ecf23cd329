package queries

import (
	"fmt"
	"maps"
	"slices"

	"github.com/holdoutd/holdoutd/queries/expr"
	"github.com/holdoutd/holdoutd/queries/model"
	"github.com/holdoutd/holdoutd/rowfn"
)

// prediction is the part that all questions about a model's quality share: what predicts, and the label.
type prediction struct {
	Model      *model.Model
	Features   map[string]*expr.Syntax
	Prediction *expr.Syntax
	Rows       rowPredictions
	Label      *expr.Syntax
	skip       bool
}

const (
	featuresDoc = "features of the model that are not columns, by name: row expressions that are numbers, or conditions, which count as 1 and 0"
	modelDoc    = "the model, as docs/MODELS.md describes: linear, softmax, trees, a network, a kernel machine, nearest neighbors or a mixture of these over the table's columns and what it computes of them"
	labelDoc    = "the truth: a condition, or a column of 0 and 1, for a model with one output; a column for one with classes"
)

func (q *prediction) members(label string) []member {
	return []member{
		labelled(expression{&q.Label}, label),
		optional("model", modelForm{&q.Model, &q.Features}, modelDoc),
		optional(computedMember, computedForm{&q.Features}, featuresDoc),
		optional("prediction", expression{&q.Prediction}, "instead of a model: a row expression, such as a column of predictions"),
		optional("predictions", rowPredictionsForm{&q.Rows}, "instead of a model, where the holdout has features=public: a number for each row of the download of features, in the order of row_id: the holdout's, then the check part's; also as bytes, or by the digest of numbers that were sent before. "+
			"Of several classes {\"classes\": […], \"of\": […]}, the numbers of each class (MODELS.md)"),
	}
}

// skipping is the member that leaves out rows without a label, and leavesOut what it does with the question's where.
func (q *prediction) skipping() member { return optional("null", skipForm{&q.skip}, skipTrue) }

func (q *prediction) leavesOut(v *violations, pointer string, where **expr.Syntax) {
	leaveOut(v, pointer, &q.skip, where, q.Label, q.Prediction)
}

// needsPrediction are the members of which one says what predicts.
var needsPrediction = []string{"model", "prediction", "predictions"}

func (q *prediction) rules(v *violations, pointer string) {
	given := 0
	for _, is := range []bool{q.Model != nil, q.Prediction != nil, q.Rows.given()} {
		if is {
			given++
		}
	}
	switch {
	case given > 1:
		v.add(pointer, `"model", "prediction" and "predictions" go without each other`)
	case given == 0 && len(v.list) == 0:
		v.add(pointer, `"model", "prediction" or "predictions" is missing: what predicts`)
	}
	featureRules(v, pointer, q.Model, q.Features)
}

// featureRules checks that a model reads what is computed for it, as a number.
func featureRules(v *violations, pointer string, m *model.Model, features map[string]*expr.Syntax) {
	read := map[string]bool{}
	if m != nil {
		_, read = m.Columns()
	}
	for _, name := range slices.Sorted(maps.Keys(features)) {
		if text, ok := read[name]; !ok || text {
			v.add(pointer+"/features/"+escape(name), "is no number that the model reads")
		}
	}
}

// name is the prediction in words.
func (q *prediction) name() string {
	if q.Model != nil {
		return "the model's prediction (sha256 " + q.Model.ID()[:12] + "…)"
	}
	if q.Rows.given() {
		return "the row's prediction (sha256 " + q.Rows.id()[:12] + "…)"
	}
	return q.Prediction.Canonical()
}

// predictor builds the prediction; false with a violation where it does not fit the schema.
func (q *prediction) predictor(c *compiler) (p predictor, ok bool) {
	c.fitted = true
	c.looksFor(q)
	if q.Model != nil {
		return c.model(q.Model, q.Features)
	}
	if q.Rows.given() {
		return c.rowPredictions(q.Rows)
	}
	n, err := q.Prediction.Check(c.schema)
	switch {
	case err != nil:
		c.expression(c.pointer+"/prediction", err)
	case n.Type == rowfn.Condition:
		return predictor{condition: n}, true
	case n.Type == rowfn.Number:
		return predictor{scores: []*rowfn.Node{n}, link: model.Identity}, true
	default:
		c.add(c.pointer+"/prediction", "must be a number or a condition")
	}
	return p, false
}

// defaultThreshold is of a probability.
const defaultThreshold = 0.5

const thresholdDoc = "true is predicted where the prediction, after its link, is above it; default: the model's own threshold, else 0.5"

// decidesAt is the threshold of a prediction: the one that was asked for, else the model's own, else one half.
func (q *prediction) decidesAt(asked *float64) float64 {
	switch {
	case asked != nil:
		return *asked
	case q.Model != nil && q.Model.Threshold() != nil:
		return *q.Model.Threshold()
	}
	return defaultThreshold
}

// thresholdForm is the member "threshold". Canonically it says the one that decides, wherever it came from, unless that is one half: the model's own
// is no part of its form.
type thresholdForm struct {
	number
	of     *prediction
	unless func() bool // nothing is decided; nil: it is
}

func (f thresholdForm) canonical() any {
	at := f.of.decidesAt(*f.into)
	if at == defaultThreshold || f.unless != nil && f.unless() {
		return nil
	}
	return at
}

func (q *prediction) thresholdMember(into **float64) member {
	return optional("threshold", thresholdForm{number: number{into: into}, of: q}, thresholdDoc)
}

// right is whether the predicted class is the label, with the same in words; nil with a violation.
func (q *prediction) right(c *compiler, threshold *float64) (*rowfn.Node, string) {
	cells, _ := q.cells(c, threshold)
	if cells == nil {
		return nil, ""
	}
	right := &rowfn.Node{Op: rowfn.OpOr, Type: rowfn.Condition}
	for i, row := range cells {
		right.Args = append(right.Args, row[i])
	}
	return right, fmt.Sprintf("the class of %s is %s", q.name(), q.Label.Canonical())
}

// cells are the conditions that the label is class i and the predicted class j, with the names of the classes; nil with a
// violation.
func (q *prediction) cells(c *compiler, threshold *float64) ([][]*rowfn.Node, []string) {
	label, picked, classes := q.classes(c, threshold)
	if label == nil {
		return nil, nil
	}
	names := []string{"false", "true"}
	if classes != nil {
		names = names[:0]
		for _, class := range classes {
			names = append(names, class.Text)
		}
	}
	cells := make([][]*rowfn.Node, len(label))
	for i := range label {
		for j := range picked {
			cells[i] = append(cells[i], rowfn.And(label[i], picked[j]))
		}
	}
	return cells, names
}

// classes are, for each class, the conditions that the label is it and that it is predicted; of a model with one output, for false and true, and then classes is nil. No
// label is a violation.
func (q *prediction) classes(c *compiler, threshold *float64) (label, picked []*rowfn.Node, classes []model.Class) {
	p, ok := q.predictor(c)
	if !ok {
		return nil, nil, nil
	}
	if p.classes != nil {
		if threshold != nil {
			c.add(c.pointer+"/threshold", "is for a model with one output; one with classes predicts the largest score")
		}
		return c.isClass(q.Label, p.classes), p.picked(), p.classes
	}
	truth := c.truth(q.Label)
	if truth == nil {
		return nil, nil, nil
	}
	above := p.above(q.decidesAt(threshold))
	return []*rowfn.Node{rowfn.Not(truth), truth}, []*rowfn.Node{rowfn.Not(above), above}, nil
}

// numbers are the label and the prediction; nil with a violation.
func (q *prediction) numbers(c *compiler) (label, predicted *rowfn.Node) {
	p, ok := q.predictor(c)
	if !ok || !c.oneOutput(p) {
		return nil, nil
	}
	return c.number("label", q.Label), p.number()
}
