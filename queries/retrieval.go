package queries

import (
	"fmt"
	"slices"

	"github.com/holdoutd/holdoutd/queries/expr"
	"github.com/holdoutd/holdoutd/queries/model"
	"github.com/holdoutd/holdoutd/queries/shape"
	"github.com/holdoutd/holdoutd/rowfn"
)

// What retrieval asks of a classifier about one class, the positive one: each is a mean in the rows in which a condition holds.

const (
	retrievalDoc     = "A model with one output predicts true if its prediction is above the threshold; of a model with classes, positive names the class that counts."
	retrievalModel   = `"model":{"linear":{"intercept":-1.5,"weights":{"distance":0.0002,"origin":{"SFO":0.3}},"link":"logit"}},"threshold":0.2`
	retrievalClasses = `"label":"origin","positive":"SFO","model":{"softmax":{"classes":["SFO","OAK"],"intercepts":[0.1,0],"weights":{"distance":[0.001,-0.001]}}}`
)

func retrievalExamples(name string) []string {
	return []string{
		`{"type":"` + name + `","label":"delay > 15",` + retrievalModel + `}`,
		`{"type":"` + name + `","label":"delay > 15","prediction":"distance > 1000","where":"origin == 'SFO'"}`,
		`{"type":"` + name + `",` + retrievalClasses + `}`,
	}
}

var precisionKind = kind{
	name:     "precision",
	doc:      "The precision of a classifier: the share of the rows that it predicts positive in which the label is positive. " + retrievalDoc,
	price:    price{"2", "1"},
	examples: retrievalExamples("precision"),
	needsOne: needsPrediction,
	make:     func() body { return &retrieval{what: precision} },
}

var recallKind = kind{
	name:     "recall",
	doc:      "The recall of a classifier: the share of the rows with a positive label that it predicts positive. " + retrievalDoc,
	price:    price{"2", "1"},
	examples: retrievalExamples("recall"),
	needsOne: needsPrediction,
	make:     func() body { return &retrieval{what: recall} },
}

var f1Kind = kind{
	name:     "f1",
	doc:      "The F1 score of a classifier, the harmonic mean of precision and recall. It is 2J/(1+J), where J is the share of rows whose label and prediction are both positive among the rows in which any of them is; the interval is that of J, moved. " + retrievalDoc,
	price:    price{"2", "1"},
	examples: retrievalExamples("f1"),
	needsOne: needsPrediction,
	make:     func() body { return &retrieval{what: f1} },
}

// measure is what of a classifier is asked.
type measure uint8

const (
	precision measure = iota
	recall
	f1
)

// retrieval is {"type":"precision"}, {"type":"recall"} and {"type":"f1"}.
type retrieval struct {
	prediction
	Threshold *float64
	Positive  *oneClass
	Where     *expr.Syntax
	Weight    Weight
	Guess     guess
	what      measure
}

func (q *retrieval) members() []member {
	all := append(q.prediction.members(labelDoc),
		optional("positive", classForm{&q.Positive}, "of a model with classes: the class that counts as positive"),
		q.prediction.thresholdMember(&q.Threshold),
		optional("where", expression{&q.Where}, "a condition: only rows for which it holds count, at no further cost"),
		q.prediction.skipping(),
		optional("weight", weightForm{&q.Weight}, weightDoc),
	)
	return append(all, q.Guess.members()...)
}

func (q *retrieval) guess() *guess { return &q.Guess }

func (q *retrieval) rules(v *violations, pointer string) {
	q.prediction.rules(v, pointer)
	q.leavesOut(v, pointer, &q.Where)
	q.Guess.rules(v, pointer, Range{Low: 0, High: 1})
}

func (q *retrieval) compile(c *compiler) *Plan {
	where := c.condition("where", q.Where)
	truth, picked, said := q.positive(c)
	if truth == nil || len(c.list) > 0 {
		return nil
	}
	of, among, name, value, in := picked, truth, "recall, which is the fraction of rows that "+said.picked+",", said.picked, said.truth
	switch q.what {
	case precision:
		of, among, name, value, in = truth, picked, "precision, which is the fraction of "+said.truth+",", said.truth, said.picked
	case f1:
		of, among = rowfn.And(truth, picked), rowfn.Or(truth, picked)
		value, in = fmt.Sprintf("(%s) and (%s)", said.truth, said.picked), fmt.Sprintf("(%s) or (%s)", said.truth, said.picked)
		name = "fraction of " + value
	}
	if where != nil {
		among, in = rowfn.And(among, where), fmt.Sprintf("(%s) and (%s)", in, q.Where.Canonical())
	}
	p := shape.Average(RowFunction{Value: of, Lo: 0, Hi: 1}, among, c.rowVotes(q.Weight))
	c.sayAmong(p, name, "1 where "+value+", else 0", in, q.Weight)
	p.Words.Null = conditionNull
	if q.what == f1 {
		p.LinkBy(shape.Dice)
		p.Words.Combine += "; with J for that, 2J/(1+J)"
		p.Words.Target = "the F1 score, which is 2J/(1+J) where J is " + p.Words.Target
	}
	c.watch(p, q.Label, nil, Range{}, where, countsAsNoLabel)
	return p
}

// retrievalWords are the two conditions in words.
type retrievalWords struct{ truth, picked string }

// positive are the conditions that the label is the positive class and that it is predicted; nil with a violation.
func (q *retrieval) positive(c *compiler) (truth, picked *rowfn.Node, said retrievalWords) {
	label, predicted, classes := q.classes(c, q.Threshold)
	said.truth = q.Label.Canonical()
	switch {
	case label == nil:
	case classes == nil && q.Positive != nil:
		c.add(c.pointer+"/positive", "is for a model with classes; of one with one output the label says what is positive")
	case classes == nil:
		said.picked = fmt.Sprintf("%s is above %v", q.name(), q.decidesAt(q.Threshold))
		if q.Prediction != nil {
			if _, err := q.Prediction.CheckCondition(c.schema); err == nil {
				said.picked = q.name()
			}
		}
		return label[1], predicted[1], said
	case q.Positive == nil:
		c.add(c.pointer+"/positive", "is missing: the class that counts as positive")
	default:
		at := slices.IndexFunc(classes, q.Positive.is)
		if at < 0 {
			c.add(c.pointer+"/positive", "is no class of the model")
			break
		}
		said.truth = fmt.Sprintf("%s is %s", said.truth, classes[at].Text)
		said.picked = fmt.Sprintf("the class of %s is %s", q.name(), classes[at].Text)
		return label[at], predicted[at], said
	}
	return nil, nil, said
}

// oneClass is a class of a model by its value in the label: a text, or a number.
type oneClass struct {
	text    string
	number  float64
	numeric bool
}

func (o *oneClass) is(c model.Class) bool {
	if o.numeric {
		return c.Numeric && c.Number == o.number
	}
	return !c.Numeric && c.Text == o.text
}

// classForm is a class.
type classForm struct{ into **oneClass }

func (f classForm) read(v *violations, pointer string, in *value) {
	if x, ok := in.float(); ok {
		*f.into = &oneClass{number: x, numeric: true}
		return
	}
	if in.kind != textValue {
		v.wrongType(pointer, "a text or a number: a class of the model", in)
		return
	}
	*f.into = &oneClass{text: in.text}
}

func (f classForm) canonical() any {
	switch {
	case *f.into == nil:
		return nil
	case (*f.into).numeric:
		return (*f.into).number
	}
	return (*f.into).text
}

func (f classForm) schema() map[string]any {
	return map[string]any{"oneOf": []any{map[string]any{"type": "string"}, map[string]any{"type": "number"}}}
}
