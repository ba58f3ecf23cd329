package queries

import (
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/queries/expr"
	"github.com/holdoutd/holdoutd/queries/interval"
	"github.com/holdoutd/holdoutd/rowfn"
)

var rmseKind = kind{
	name: "rmse",
	doc: "The root mean squared error of predictions of a number, each error clamped to ±max_error. It costs one question, two with where. The " +
		"interval is that of the mean square, so it is wide if the error is a small part of max_error.",
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
}

const numberLabelDoc = "the truth: a number"

func (q *rmse) members() []member {
	return append(q.prediction.members(numberLabelDoc),
		required("max_error", number{into: &q.MaxError, above: &zero}, "larger errors count as this one; the smaller it is, the narrower the interval"),
		optional("where", expression{&q.Where}, whereDoc),
		optional("weight", weightForm{&q.Weight}, weightDoc),
	)
}

func (q *rmse) rules(v *violations, pointer string) {
	q.prediction.rules(v, pointer)
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
	share := rowfn.Div(Range{-largest, largest}.clamp(rowfn.Sub(label, predicted)), rowfn.Const(largest))
	m := momentsOf(c, where, q.Weight, RowFunction{Value: rowfn.Mul(share, share), Lo: 0, Hi: 1, Null: 1})
	p := &Plan{Functions: m.functions, Range: Range{0, largest}, FromZero: true}
	p.combine = func(o Outcome) Result {
		means, bounded, defined := m.read(o)
		bounds := means[0].bounds.Sqrt().Mul(interval.Point(largest))
		return answer(math.Sqrt(max(means[0].value, 0))*largest, bounds, bounded, defined, p.Range)
	}
	errorText := fmt.Sprintf("%s - %s clamped to ±%v", q.Label.Canonical(), q.name(), largest)
	p.describe = Description{
		Functions: m.functionsOf(c, q.Where, fmt.Sprintf("the square of (%s)/%v", errorText, largest)),
		Combine:   fmt.Sprintf("the square root of the mean, times %v", largest),
		Null:      fmt.Sprintf("a row without a label or a prediction has the error %v", largest),
		Target:    c.target("the root of the mean square of %s%s", errorText, rowsOf(c, q.Where, q.Weight)),
	}
	return p
}

// numbers are the label and the prediction; nil with a violation.
func (q *prediction) numbers(c *compiler) (label, predicted *rowfn.Node) {
	p, ok := q.predictor(c)
	if !ok || !c.oneOutput(p) {
		return nil, nil
	}
	return c.number("label", q.Label), p.number()
}

var r2Kind = kind{
	name: "r2",
	doc: "The coefficient of determination of predictions of a number, 1 - E[(y - p)²]/Var[y], where label y and prediction p are clamped to a range. " +
		"An answer below -1 is given as -1. It costs three questions, four with where: for the squared error, and for two moments of the label about " +
		"a public center (the training part's mean, or the middle of the range if there is no training part).",
	examples: []string{
		`{"type":"r2","label":"delay","model":{"linear":{"intercept":10,"weights":{"distance":0.001}}},"range":[-60,180]}`,
		`{"type":"r2","label":"delay","prediction":"distance / 100","range":[-60,180],"where":"delay != null"}`,
	},
	needsOne: needsPrediction,
	make:     func() body { return new(r2) },
}

// r2 is {"type":"r2"}.
type r2 struct {
	prediction
	Range  Range
	Where  *expr.Syntax
	Weight Weight
}

func (q *r2) members() []member {
	return append(q.prediction.members(numberLabelDoc),
		required("range", rangeForm{&q.Range}, "[low, high]: label and prediction are clamped to it; the narrower it is, the narrower the interval"),
		optional("where", expression{&q.Where}, whereDoc),
		optional("weight", weightForm{&q.Weight}, weightDoc),
	)
}

func (q *r2) compile(c *compiler) *Plan {
	where := c.condition("where", q.Where)
	label, predicted := q.numbers(c)
	if label == nil || len(c.list) > 0 {
		return nil
	}
	r := q.Range
	width := r.High - r.Low
	label = rowfn.OrElse(label, r.Low)
	e := rowfn.Div(rowfn.Sub(r.clamp(label), r.clamp(predicted)), rowfn.Const(width))
	z := centeredAt(label, r, centers(c, "label", where, q.Weight, []Range{r}, label)[0])
	m := momentsOf(c, where, q.Weight, RowFunction{Value: rowfn.Mul(e, e), Lo: 0, Hi: 1, Null: 1}, z.mean(), z.square())
	p := &Plan{Functions: m.functions, Range: Range{-1, 1}, FromZero: true}
	p.combine = func(o Outcome) Result {
		means, bounded, defined := m.read(o)
		scale := width / z.scale
		variance := means[2].value - means[1].value*means[1].value
		defined = defined && variance > 0
		value := 1 - means[0].value/variance*scale*scale
		bounds := interval.Interval{Low: -1, High: 1}
		spread := means[2].bounds.Sub(means[1].bounds.Square()).Clip(0, 1)
		missed := means[0].bounds.Mul(interval.Point(width).Div(interval.Point(z.scale)).Square()).Clip(0, math.Inf(1))
		if spread.High > 0 {
			bounds.High = interval.Point(1).Sub(interval.Point(missed.Low).Div(interval.Point(spread.High))).High
		}
		if spread.Low > 0 {
			bounds.Low = interval.Point(1).Sub(interval.Point(missed.High).Div(interval.Point(spread.Low))).Low
		}
		return answer(value, bounds.Clip(-1, 1), bounded, defined, p.Range)
	}
	truth := fmt.Sprintf("%s clamped to %v", q.Label.Canonical(), r)
	deviation := fmt.Sprintf("(%s - %v) / %v", truth, z.center, z.scale)
	p.describe = Description{
		Functions: m.functionsOf(c, q.Where, fmt.Sprintf("the square of (%s - %s clamped alike) / %v", truth, q.name(), width), deviation, "the square of "+deviation),
		Combine: fmt.Sprintf("1 - the first mean · %v² / ((the third - the square of the second) · %v²), at least -1; undefined where the variance is not positive",
			width, z.scale),
		Null:   fmt.Sprintf("a null label counts as %v; a row without a prediction has the error %v", r.Low, width),
		Target: c.target("the coefficient of determination, at least -1, of %s clamped alike for %s%s", q.name(), truth, rowsOf(c, q.Where, q.Weight)),
	}
	return p
}
