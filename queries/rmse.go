package queries

import (
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/queries/expr"
	"github.com/holdoutd/holdoutd/queries/interval"
	"github.com/holdoutd/holdoutd/queries/shape"
	"github.com/holdoutd/holdoutd/rowfn"
)

var rmseKind = kind{
	name:  "rmse",
	doc:   "The root mean squared error of predictions of a number, each error clamped to ±max_error. The interval is that of the mean square, so it is wide if the error is a small part of max_error.",
	price: price{"1, with where 2", "1"},
	examples: []string{
		`{"type":"rmse","label":"delay","model":{"linear":{"intercept":10,"weights":{"distance":0.001}}},"max_error":120}`,
		`{"type":"rmse","label":"delay","prediction":"distance / 100","max_error":60,"where":"delay != null"}`,
	},
	needsOne: needsPrediction,
	make:     func() body { return new(rmse) },
}

// rmse is {"type":"rmse"}.
type rmse struct {
	prediction
	MaxError *float64
	Where    *expr.Syntax
	Weight   Weight
	guessing
}

func (q *rmse) members() []member {
	all := append(q.prediction.members(numberLabelDoc),
		required("max_error", number{into: &q.MaxError, above: &zero}, "larger errors count as this one; the smaller it is, the narrower the interval"),
		optional("where", expression{&q.Where}, whereDoc),
		q.prediction.skipping(),
		optional("weight", weightForm{&q.Weight}, weightDoc),
	)
	return append(all, q.Guess.members()...)
}

func (q *rmse) rules(v *violations, pointer string) {
	q.prediction.rules(v, pointer)
	q.leavesOut(v, pointer, &q.Where)
	if q.MaxError != nil && (*q.MaxError > math.Sqrt(MaxMagnitude) || *q.MaxError < math.Sqrt(MinWidth)) {
		v.add(pointer+"/max_error", fmt.Sprintf("must lie in [%g, %g]", math.Sqrt(MinWidth), math.Sqrt(MaxMagnitude)))
	}
}

func (q *rmse) compile(c *compiler) *Plan {
	where := c.condition("where", q.Where)
	label, predicted := q.numbers(c)
	if label == nil || len(c.list) > 0 {
		return nil
	}
	largest := *q.MaxError
	share := rowfn.Div(Range{Low: -largest, High: largest}.Clamp(rowfn.Sub(label, predicted)), rowfn.Const(largest))
	m := shape.MomentsOf(where, c.rowVotes(q.Weight), RowFunction{Value: rowfn.Mul(share, share), Lo: 0, Hi: 1, Null: 1})
	p := m.Plan(Range{Low: 0, High: largest}, func(m []shape.Moment, _ int64) (float64, interval.Interval, bool) {
		return math.Sqrt(max(m[0].Value, 0)) * largest, m[0].Bounds.Sqrt().Mul(interval.Point(largest)), true
	})
	root := m.Equation(p.Range)
	root.Link = shape.SquareRoot
	p.Equations = shape.Equations{root}
	errorText := fmt.Sprintf("%s - %s clamped to ±%v", q.Label.Canonical(), q.name(), largest)
	p.Words = Description{
		Functions: c.functionsOf(m, q.Where, fmt.Sprintf("the square of (%s)/%v", errorText, largest)),
		Combine:   fmt.Sprintf("the square root of the mean, times %v", largest),
		Null:      fmt.Sprintf("a row without a label or a prediction has the error %v", largest),
		Target:    c.target("the root of the mean square of %s%s", errorText, c.rowsOf(q.Where, q.Weight)),
	}
	c.watch(p, q.Label, nil, Range{}, where, fmt.Sprintf("have the error %v", largest))
	c.watch(p, q.Prediction, nil, Range{}, where, fmt.Sprintf("have the error %v", largest))
	return p
}
