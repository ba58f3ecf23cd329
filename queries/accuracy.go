package queries

import (
	"github.com/holdoutd/holdoutd/queries/expr"
	"github.com/holdoutd/holdoutd/queries/shape"
)

var accuracyKind = kind{
	name: "accuracy",
	doc: "The share of rows for which a classifier is right. A model with one output predicts true if its prediction is above the threshold. A model with classes predicts the class with the largest score, " +
		"and the first of them if several are equal.",
	price: price{"1, with where 2", "1"},
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
	bearing
	Guess guess
}

func (q *accuracy) members() []member {
	return append(append(q.prediction.members(labelDoc),
		q.prediction.thresholdMember(&q.Threshold),
		optional("where", expression{&q.Where}, whereDoc),
		q.prediction.skipping(),
		optional("weight", weightForm{&q.Weight}, weightDoc),
		q.bearing.member(),
	), q.Guess.members()...)
}

func (q *accuracy) guess() *guess { return &q.Guess }

func (q *accuracy) rules(v *violations, pointer string) {
	q.prediction.rules(v, pointer)
	q.leavesOut(v, pointer, &q.Where)
	q.Guess.rules(v, pointer, Range{Low: 0, High: 1})
}

func (q *accuracy) compile(c *compiler) *Plan {
	where := c.condition("where", q.Where)
	right, said := q.right(c, q.Threshold)
	if right == nil || len(c.list) > 0 {
		return nil
	}
	p := shape.Average(RowFunction{Value: right, Lo: 0, Hi: 1}, where, c.rowVotes(q.Weight))
	c.sayAverage(p, "accuracy of "+said, "1 where "+said+", else 0", q.Where, q.Weight)
	p.Words.Null = conditionNull
	c.watch(p, q.Label, nil, Range{}, where, countsAsNoLabel)
	return p
}
