package queries

import (
	"fmt"

	"github.com/holdoutd/holdoutd/queries/expr"
	"github.com/holdoutd/holdoutd/rowfn"
)

var accuracyKind = kind{
	name: "accuracy",
	doc: "The share of rows for which a classifier is right. A model with one output predicts true if its prediction is above the threshold. A model " +
		"with classes predicts the class with the largest score, and the first of them if several are equal. It costs one question, two with where.",
	examples: []string{
		`{"type":"accuracy","label":"delay > 15","model":{"linear":{"intercept":-1.5,"weights":{"distance":0.0002,"origin":{"SFO":0.3}},"link":"logit"}}}`,
		`{"type":"accuracy","label":"delay > 15","prediction":"distance > 1000","where":"origin == 'SFO'"}`,
		`{"type":"accuracy","label":"origin","model":{"softmax":{"classes":["SFO","OAK"],"intercepts":[0.1,0],"weights":{"distance":[0.001,-0.001]}}}}`,
	},
	needsOne: needsPrediction,
	make:     func() body { return new(accuracy) },
}

// accuracy is {"type":"accuracy"}.
type accuracy struct {
	prediction
	Threshold *float64
	Where     *expr.Syntax
	Weight    Weight
	Guess     guess
}

// defaultThreshold is of a probability.
const defaultThreshold = 0.5

const thresholdDoc = "true is predicted where the prediction, after its link, is above it; default: 0.5"

func (q *accuracy) members() []member {
	return append(append(q.prediction.members(labelDoc),
		optional("threshold", orElseForm{number{into: &q.Threshold}, defaultThreshold}, thresholdDoc),
		optional("where", expression{&q.Where}, whereDoc),
		optional("weight", weightForm{&q.Weight}, weightDoc),
	), q.Guess.members()...)
}

func (q *accuracy) guess() *guess { return &q.Guess }

func (q *accuracy) rules(v *violations, pointer string) {
	q.prediction.rules(v, pointer)
	q.Guess.rules(v, pointer, Range{0, 1})
}

func (q *accuracy) compile(c *compiler) *Plan {
	where := c.condition("where", q.Where)
	right, said := q.right(c, q.Threshold)
	if right == nil || len(c.list) > 0 {
		return nil
	}
	p := average(c, RowFunction{Value: right, Lo: 0, Hi: 1}, where, q.Weight)
	p.describeAverage(c, "accuracy of "+said, "1 where "+said+", else 0", q.Where, q.Weight)
	p.describe.Null = conditionNull
	return p
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
	p, ok := q.predictor(c)
	if !ok {
		return nil, nil
	}
	names := []string{"false", "true"}
	var label, picked []*rowfn.Node
	if p.classes != nil {
		if threshold != nil {
			c.add(c.pointer+"/threshold", "is for a model with one output; one with classes predicts the largest score")
		}
		names = names[:0]
		for _, class := range p.classes {
			names = append(names, class.Text)
		}
		label, picked = c.isClass(q.Label, p.classes), p.picked()
	} else if truth := c.condition("label", q.Label); truth != nil {
		above := p.above(*orDefault(threshold, defaultThreshold))
		label, picked = []*rowfn.Node{rowfn.Not(truth), truth}, []*rowfn.Node{rowfn.Not(above), above}
	}
	if label == nil {
		return nil, nil
	}
	cells := make([][]*rowfn.Node, len(label))
	for i := range label {
		for j := range picked {
			cells[i] = append(cells[i], rowfn.And(label[i], picked[j]))
		}
	}
	return cells, names
}

func orDefault(x *float64, otherwise float64) *float64 {
	if x == nil {
		return &otherwise
	}
	return x
}

// orElseForm is a number that is absent from the canonical form where it says its default.
type orElseForm struct {
	number
	otherwise float64
}

func (f orElseForm) canonical() any {
	if *f.into != nil && **f.into == f.otherwise {
		return nil
	}
	return f.number.canonical()
}

func (f orElseForm) schema() map[string]any {
	s := f.number.schema()
	s["default"] = f.otherwise
	return s
}
