package shape

import (
	"github.com/holdoutd/holdoutd/queries/interval"
	"github.com/holdoutd/holdoutd/rowfn"
)

// Moments is the shape of an answer that is a formula of several means: over all rows, or over those in which where holds. The second
// costs one row function more, by which the others are divided, as in [Average].
type Moments struct {
	Functions   []rowfn.Function
	Conditional bool // the last function is the number to divide by
	Rows        bool // every row has one vote, where units hold several
	Ratios      bool // each released number is a ratio already: of its function's mean by that of the condition
	Range       Range
	Of          Formula
}

// Formula is a combination of means that is truly a function: from the means, in their own units, and the number of units, to the
// value and its interval. Without defined the answer has no value, as where a divisor is not positive.
type Formula func(means []Moment, n int64) (value float64, bounds interval.Interval, defined bool)

// MomentsOf are the means of functions, over the rows in which where holds; with rows every row has one vote. What is left to say is
// the formula and its range.
func MomentsOf(where *rowfn.Node, rows bool, functions ...rowfn.Function) Moments {
	if where == nil && !rows {
		return Moments{Functions: functions}
	}
	m := Moments{Conditional: true, Rows: rows}
	per, last := rowfn.UnitMean, rowfn.UnitAny
	if rows {
		per, last = rowfn.UnitShare, rowfn.UnitShare
	}
	for _, f := range functions {
		f.Where, f.PerUnit = where, per
		m.Functions = append(m.Functions, f)
	}
	m.Functions = append(m.Functions, rowfn.Function{Lo: 0, Hi: 1, Where: where, PerUnit: last})
	return m
}

// Plan is the plan of the formula of the means.
func (m Moments) Plan(r Range, of Formula) *Plan {
	m.Range, m.Of = r, of
	return &Plan{Functions: m.Functions, Range: r, FromZero: true, Shape: m}
}

// Moment is one mean in its own units.
type Moment struct {
	Value  float64
	Bounds interval.Interval
}

func (m Moments) items() []string { return nil }

func (m Moments) combine(o Outcome) Result {
	means, defined := m.read(o.Parts)
	value, bounds, exists := m.Of(means, o.N)
	return answer(value, bounds, bounded(o.Parts), defined && exists, m.Range)
}

// read takes the moments from what was released. They are not defined where, as far as can be told, where holds nowhere; then
// their bounds, which are valid nevertheless, are all they have.
func (m Moments) read(parts []Part) (means []Moment, defined bool) {
	count := len(m.Functions)
	defined = true
	if m.Conditional {
		count--
	}
	for i, f := range m.Functions[:count] {
		value, share := min(max(parts[i].Value, 0), 1), parts[i].interval()
		if m.Conditional {
			var ok bool
			value, share, ok = divide(parts[i], parts[count])
			defined = defined && ok
		}
		if m.Ratios && parts[i].unknown() {
			defined = false
		}
		width := interval.Point(f.Hi).Sub(interval.Point(f.Lo))
		bounds := interval.Point(f.Lo).Add(width.Mul(share)).Clip(f.Lo, f.Hi)
		means = append(means, Moment{f.Lo + (f.Hi-f.Lo)*value, bounds})
	}
	return means, defined
}

// Exact are the moments of a table whose exact means, in [0,1], of Functions are given; false where where holds nowhere in it.
func (m Moments) Exact(means []float64) (values []float64, ok bool) {
	parts := make([]Part, len(means))
	for i, mean := range means {
		parts[i].Value = mean
	}
	read, ok := m.read(parts)
	for _, one := range read {
		values = append(values, one.Value)
	}
	return values, ok
}

// Centered is z = (x - Center)/Scale of a number x that is clamped to a range, never null, with the scale that puts z within ±1.
// Spreads and products of deviations are the same about any center. The nearer it is to the mean, the less does the uncertainty of
// the mean widen their intervals.
type Centered struct {
	Center, Scale float64
	value         *rowfn.Node
	in            Range // of z
}

// CenteredAt centers x, which is clamped to r, at a place in r.
func CenteredAt(x *rowfn.Node, r Range, center float64) Centered {
	scale := max(center-r.Low, r.High-center)
	return Centered{center, scale,
		rowfn.Div(rowfn.Sub(r.Clamp(x), rowfn.Const(center)), rowfn.Const(scale)),
		Range{max((r.Low-center)/scale, -1), min((r.High-center)/scale, 1)}}
}

// Mean is the row function z.
func (z Centered) Mean() rowfn.Function {
	return rowfn.Function{Value: z.value, Lo: z.in.Low, Hi: z.in.High, Null: z.in.Low}
}

// Product is the row function z·y.
func (z Centered) Product(y Centered) rowfn.Function {
	a, b, c, d := z.in.Low*y.in.Low, z.in.Low*y.in.High, z.in.High*y.in.Low, z.in.High*y.in.High
	low, high := min(a, b, c, d), max(a, b, c, d)
	return rowfn.Function{Value: rowfn.Mul(z.value, y.value), Lo: low, Hi: high, Null: low}
}

// Square is the row function z².
func (z Centered) Square() rowfn.Function {
	return rowfn.Function{Value: rowfn.Mul(z.value, z.value), Lo: 0, Hi: max(z.in.Low*z.in.Low, z.in.High*z.in.High)}
}

// Minus is z - b·y, a number by itself, with no center of its own.
func (z Centered) Minus(b float64, y Centered) Centered {
	one, other := b*y.in.Low, b*y.in.High
	return Centered{0, 1, rowfn.Sub(z.value, rowfn.Mul(rowfn.Const(b), y.value)), Range{z.in.Low - max(one, other), z.in.High - min(one, other)}}
}

// Beyond is the row function f - r·g, with r >= 0. Where the mean of f is about r times that of g, as the training part has it, it varies less than f, and its
// mean tells their quotient more exactly than theirs do: what is left of the error of g's mean is a small part of it.
func Beyond(f rowfn.Function, r float64, g rowfn.Function) rowfn.Function {
	low := f.Lo - r*g.Hi
	return rowfn.Function{Value: rowfn.Sub(InUnits(f), rowfn.Mul(rowfn.Const(r), InUnits(g))), Lo: low, Hi: f.Hi - r*g.Lo, Null: low}
}
