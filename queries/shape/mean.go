package shape

import (
	"github.com/holdoutd/holdoutd/queries/interval"
	"github.com/holdoutd/holdoutd/rowfn"
)

// Affine is the shape of an answer that is the mean of one row function, moved to a range: a mean of 0 is Low, a mean of 1 is High. With
// PerUnit the answer is that times the number of units.
type Affine struct {
	Low, High float64
	PerUnit   bool
}

func (a Affine) items() []string { return nil }

func (a Affine) combine(o Outcome) Result {
	return finish(o.Parts[0].Value, o.Parts[0].interval(), o.Parts[0].Bounded, Range{a.Low, a.High}, a.times(o.N))
}

func (a Affine) times(n int64) float64 {
	if a.PerUnit {
		return float64(n)
	}
	return 1
}

// PerUnit says that the answer is so much for each unit of the holdout, of which Range is about one.
func (p *Plan) PerUnit() bool { return p.Affine() != nil && p.Affine().PerUnit }

// Scale is how much the answer moves when the mean moves by one, in a holdout of n units.
func (a Affine) Scale(n int64) float64 { return (a.High - a.Low) * a.times(n) }

// Mean is the plan of the mean of a row function over all units.
func Mean(f rowfn.Function, perUnit bool) *Plan {
	r := Range{f.Lo, f.Hi}
	return &Plan{Functions: []rowfn.Function{f}, Range: r, Shape: Affine{f.Lo, f.Hi, perUnit}, Equations: Equations{{A: f, Whole: true, Range: r, PerUnit: perUnit}}}
}

// Average is the plan of a mean of f's value, over all rows or over those in which where holds; with rows, every row has one vote.
//
// Over everything with one vote a unit it is one row function. Else it is a ratio of sums over the rows that are asked about: of u, the
// place of the value in its range from 0 to 1, by that of 1 (with one vote a unit, of each unit's own mean of u, by 1 for the
// units that have such a row; with one vote a row, both as shares of the largest unit, than which no unit counts for more). The two row functions are u and 1-u, which add up
// to what u is divided by. From intervals of ±w, u/(u + (1-u)) is known within w by the share of such rows; u by that share, asked
// for itself, would be up to twice as uncertain, for an error of the divisor moves it too.
func Average(f rowfn.Function, where *rowfn.Node, rows bool) *Plan {
	if where == nil && !rows {
		return Mean(f, false)
	}
	f.Where = where
	if rows {
		f.PerUnit = rowfn.UnitShare
	}
	r := Range{f.Lo, f.Hi}
	all := rowfn.Function{Lo: 0, Hi: 1, Where: where, PerUnit: rowfn.UnitAny} // what u and 1-u add up to
	if rows {
		all.PerUnit = rowfn.UnitShare
	}
	return &Plan{Functions: []rowfn.Function{f, complement(f)}, Range: r, Shape: Share{Range: r}, Equations: Equations{{A: f, B: &all, Whole: !rows, Range: r}}}
}

// Weighted is the plan of a mean of f's value in which rows have weights: weight is a number from 0 to high, never null. With u in
// [0,1] the place of the value in its range and w in [0,1] the weight as a part of the largest one, it asks for the means of w·u and
// w·(1-u), as [GroupsOf] does: their sum is the mean of w, and their quotient has a narrower interval than that of w·u and w.
func Weighted(f rowfn.Function, weight *rowfn.Node, high float64, where *rowfn.Node, rows bool) *Plan {
	r := Range{f.Lo, f.Hi}
	part, value, width := rowfn.Div(weight, rowfn.Const(high)), r.Clamp(rowfn.OrElse(f.Value, f.Null)), rowfn.Const(r.High-r.Low)
	up := rowfn.Div(rowfn.Sub(value, rowfn.Const(r.Low)), width)
	down := rowfn.Div(rowfn.Sub(rowfn.Const(r.High), value), width)
	all := rowfn.Function{Value: part, Lo: 0, Hi: 1, Where: where}
	p := &Plan{Range: r, Shape: Share{Range: r}}
	for _, u := range []*rowfn.Node{up, down} {
		product := rowfn.Function{Value: rowfn.Mul(part, u), Lo: 0, Hi: 1, Where: where}
		if rows {
			product.PerUnit = rowfn.UnitShare
		}
		p.Functions = append(p.Functions, product)
	}
	all.PerUnit = p.Functions[0].PerUnit
	p.Equations = Equations{{A: p.Functions[0], B: &all, Range: r}}
	return p
}

// ScaleBy multiplies the answer of a plan of [Average] by a positive constant.
func (p *Plan) ScaleBy(factor float64) {
	p.Range = Range{p.Range.Low * factor, p.Range.High * factor}
	p.Equations[0].Range = p.Range
	switch p.Shape.(type) {
	case Affine:
		p.Shape = Affine{Low: p.Range.Low, High: p.Range.High}
	case Share:
		p.Shape = Share{Range: p.Range}
	default:
		panic("shape: only an average has a scale")
	}
}

// LinkBy makes the answer of a plan of [Average] under a condition the link of what it was. Its range is [0,1].
func (p *Plan) LinkBy(l Link) {
	p.Shape = Share{Range: p.Range, Link: l}
	p.Equations[0].Link = l
}

// complement is 1 minus a row function, in the rows in which its condition holds.
func complement(f rowfn.Function) rowfn.Function {
	if f.Value != nil && f.Value.Type == rowfn.Condition {
		f.Value = rowfn.Not(f.Value)
		return f
	}
	if f.Value != nil { // nil after a violation
		f.Value = rowfn.Neg(f.Value)
	}
	f.Lo, f.Hi, f.Null = 0-f.Hi, 0-f.Lo, 0-f.Null // no negative zero
	return f
}

// InUnits is how a row function's value is a number in the query's own units: clamped, never null.
func InUnits(f rowfn.Function) *rowfn.Node {
	switch {
	case f.Value == nil:
		return rowfn.Const(f.Hi)
	case f.Value.Type == rowfn.Condition:
		return rowfn.If(f.Value, rowfn.Const(1), rowfn.Const(0))
	}
	return rowfn.OrElse(rowfn.Clamp(f.Value, f.Lo, f.Hi), f.Null)
}

// Opposite is the row function with the other sign, so that the least mean is the largest.
func Opposite(f rowfn.Function) rowfn.Function {
	return rowfn.Function{Value: rowfn.Sub(rowfn.Const(0), InUnits(f)), Lo: -f.Hi, Hi: -f.Lo, Null: -f.Null}
}

// Share is the shape of a quotient a/(a+b) of the means of two row functions, or of its link, moved to a range.
type Share struct {
	Range Range
	Link  Link // the answer is this of the quotient
}

func (s Share) items() []string          { return nil }
func (s Share) combine(o Outcome) Result { return linkedShare(o.Parts[0], o.Parts[1], s.Range, s.Link) }

// shareOf is a/(a+b), moved to a range: it rises with a and falls with b, which are free of each other.
func shareOf(a, b Part, r Range) Result { return linkedShare(a, b, r, Identity) }

func linkedShare(a, b Part, r Range, l Link) Result {
	top, rest := min(max(a.Value, 0), 1), min(max(b.Value, 0), 1)
	bounds, bounded := interval.Interval{Low: 0, High: 1}, a.Bounded && b.Bounded
	over, under := a.interval(), b.interval()
	if over.Low > 0 {
		bounds.Low = interval.Point(over.Low).Div(interval.Point(over.Low).Add(interval.Point(under.High))).Low
	}
	if under.Low > 0 {
		bounds.High = interval.Point(over.High).Div(interval.Point(over.High).Add(interval.Point(under.Low))).High
	}
	if !(top+rest > 0) {
		_, bounds = l.of(0, bounds)
		result := finish(0, bounds, bounded, r, 1)
		result.Value = nil
		return result
	}
	value, bounds := l.of(top/(top+rest), bounds)
	return finish(value, bounds, bounded, r, 1)
}

// ratio is low + width · above/below, for a part that is never above the other at any unit.
func ratio(above, below Part, r Range) Result {
	value, quotient, defined := divide(above, below)
	result := finish(value, quotient, above.Bounded && below.Bounded, r, 1)
	if !defined {
		result.Value = nil
	}
	return result
}

// divide is above/below for a part that is never above the other at any unit: a number in [0,1] and its interval; undefined
// where below is not positive.
func divide(above, below Part) (value float64, quotient interval.Interval, defined bool) {
	quotient = interval.Interval{Low: 0, High: 1}
	if !(below.Value > 0) {
		return 0, quotient, false
	}
	a, b := above.interval(), below.interval()
	if b.High > 0 {
		quotient.Low = a.Div(interval.Point(b.High)).Low
	}
	if b.Low > 0 {
		quotient.High = a.Div(interval.Point(b.Low)).High
	}
	return min(min(max(above.Value, 0), 1)/min(below.Value, 1), 1), quotient.Clip(0, 1), true
}
