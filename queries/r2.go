package queries

import (
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/queries/expr"
	"github.com/holdoutd/holdoutd/queries/interval"
	"github.com/holdoutd/holdoutd/queries/shape"
	"github.com/holdoutd/holdoutd/rowfn"
)

var r2Kind = kind{
	name: "r2",
	doc: "The coefficient of determination of predictions of a number, 1 - E[(y - p)²]/Var[y], where label y and prediction p are clamped to a range. An answer below -1 is given as -1. " +
		"Under guess_and_check the interval follows how much the squared errors differ from what the training part's R² makes of the label's squared deviations.",
	price: price{"3, with where 4", "1"},
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
	guessing
}

func (q *r2) members() []member {
	all := append(q.prediction.members(numberLabelDoc),
		required("range", rangeForm{&q.Range}, "[low, high]: label and prediction are clamped to it; the narrower it is, the narrower the interval"),
		optional("where", expression{&q.Where}, whereDoc),
		q.prediction.skipping(),
		optional("weight", weightForm{&q.Weight}, weightDoc),
	)
	return append(all, q.Guess.members()...)
}

func (q *r2) rules(v *violations, pointer string) {
	q.prediction.rules(v, pointer)
	q.leavesOut(v, pointer, &q.Where)
}

func (q *r2) compile(c *compiler) *Plan {
	where := c.condition("where", q.Where)
	label, predicted := q.numbers(c)
	if label == nil || len(c.list) > 0 {
		return nil
	}
	r := q.Range
	width := r.High - r.Low
	of := label
	label = rowfn.OrElse(label, r.Low)
	e := rowfn.Div(rowfn.Sub(r.Clamp(label), r.Clamp(predicted)), rowfn.Const(width))
	square := RowFunction{Value: rowfn.Mul(e, e), Lo: 0, Hi: 1, Null: 1}
	z, missed := q.about(c, where, label, square)
	m := shape.MomentsOf(where, c.rowVotes(q.Weight), square, z.Mean(), z.Square())
	p := m.Plan(Range{Low: -1, High: 1}, determination(width, z.Scale))
	times := width / z.Scale * (width / z.Scale)
	p.Checks = m.CheckedBy(shape.Joint{Shares: r2Shares, Range: p.Range, Of: determinationBeyond(missed, times)}, shape.Beyond(square, missed, z.Square()), z.Square(), z.Mean())
	truth := fmt.Sprintf("%s clamped to %v", q.Label.Canonical(), r)
	deviation := fmt.Sprintf("(%s - %v) / %v", truth, z.Center, z.Scale)
	p.Words = Description{
		Functions: c.functionsOf(m, q.Where, fmt.Sprintf("the square of (%s - %s clamped alike) / %v", truth, q.name(), width), deviation, "the square of "+deviation),
		Combine: fmt.Sprintf("1 - the first mean · %v² / ((the third - the square of the second) · %v²), at least -1; undefined where the variance is not positive",
			width, z.Scale),
		Null:   fmt.Sprintf("a null label counts as %v; a row without a prediction has the error %v", r.Low, width),
		Target: c.target("the coefficient of determination, at least -1, of %s clamped alike for %s%s", q.name(), truth, c.rowsOf(q.Where, q.Weight)),
	}
	c.watch(p, q.Label, of, r, where, countsAs(r.Low))
	c.sayJoint(p, m, q.Where, fmt.Sprintf("1 - %v · (%v + (the first mean + %v · (the third)²)/(the second - (the third)²)), at least -1; undefined where the divisor is not positive", times, missed, missed),
		fmt.Sprintf("the square of (%s - %s clamped alike) / %v, less %v times the second", truth, q.name(), width, missed), "the square of "+deviation, deviation)
	return p
}

// about is the label about its center, and what the mean of the square of the error is by the variance of that in the training part: at most what makes an answer of -1, and
// that where it is not known.
func (q *r2) about(c *compiler, where, label *rowfn.Node, square RowFunction) (z shape.Centered, missed float64) {
	middle := q.Range.Low/2 + q.Range.High/2
	first := shape.CenteredAt(label, q.Range, middle)
	at, means := c.centersAnd([]RowFunction{square, first.Square()}, "label", where, q.Weight, []Range{q.Range}, label)
	z = shape.CenteredAt(label, q.Range, at[0])
	most := 2 * z.Scale * z.Scale / ((q.Range.High - q.Range.Low) * (q.Range.High - q.Range.Low))
	if means == nil {
		return z, most
	}
	away, by := (at[0]-middle)/first.Scale, first.Scale/z.Scale
	variance := max(means[1]-away*away, 0) * by * by
	if !(means[0] < most*variance) {
		return z, most
	}
	return z, means[0] / variance
}

// determination is 1 - E[e²]/Var[y], at least -1, from the means of e², where e is the error as a part of width, and of z and z², where z
// is the label about its center as a part of scale.
func determination(width, scale float64) shape.Formula {
	return func(m []shape.Moment, _ int64) (float64, interval.Interval, bool) {
		ratio := width / scale
		variance := m[2].Value - m[1].Value*m[1].Value
		bounds := interval.Interval{Low: -1, High: 1}
		spread := m[2].Bounds.Sub(m[1].Bounds.Square()).Clip(0, 1)
		missed := m[0].Bounds.Mul(interval.Point(width).Div(interval.Point(scale)).Square()).Clip(0, math.Inf(1))
		if spread.High > 0 {
			bounds.High = interval.Point(1).Sub(interval.Point(missed.Low).Div(interval.Point(spread.High))).High
		}
		if spread.Low > 0 {
			bounds.Low = interval.Point(1).Sub(interval.Point(missed.High).Div(interval.Point(spread.Low))).Low
		}
		return 1 - m[0].Value/variance*ratio*ratio, bounds.Clip(-1, 1), variance > 0
	}
}
