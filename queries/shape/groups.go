package shape

import (
	"github.com/holdoutd/holdoutd/queries/interval"
	"github.com/holdoutd/holdoutd/rowfn"
)

// Groups is the shape of a [Share] in each of several categories: the means of two row functions each, as split makes them.
type Groups struct {
	Names []string
	Range Range
}

func (g Groups) items() []string { return g.Names }

func (g Groups) combine(o Outcome) Result {
	items := make([]Item, len(g.Names))
	for i, name := range g.Names {
		items[i].Of = name
		if a, b := o.Parts[2*i], o.Parts[2*i+1]; !a.Missing && !b.Missing {
			items[i].is(shareOf(a, b, g.Range))
		}
	}
	return Result{Items: items}
}

// GroupsOf is the plan of the means of f's value in each category, of the rows in which where holds.
//
// It asks two row functions of each category. With u in [0,1] the place of a row's value in the range, they are u in the rows of
// the category, else 0, and 1-u in the rows of the category, else 0. Of a row's functions at most two are not 0 and all add up
// to at most 1, and so they do for a unit, whose rows share its vote. So the variances add up to no more than those of shares
// of twice as many categories, but for the grid's rounding, and the sum of the two means is the category's share of the rows, which is not released by itself.
func GroupsOf(f rowfn.Function, categories []Category, where *rowfn.Node, grouped bool) *Plan {
	r := Range{f.Lo, f.Hi}
	p := &Plan{Range: r, Shape: Groups{Names: Names(categories), Range: r}}
	for _, k := range categories {
		holds := k.Holds
		if where != nil {
			holds = rowfn.And(holds, where)
		}
		two := split(f, holds)
		p.Functions, p.Equations = append(p.Functions, two...), append(p.Equations, among(two[0], holds, grouped))
	}
	p.Program = []Release{{Kind: Vector, Count: len(p.Functions), Variance: 1 - 1/float64(len(p.Functions)) + gridSlack*float64(len(p.Functions)), Optional: true}}
	return p
}

// split is a row function in the rows in which a condition holds, in two that add up to 1 there and are 0 elsewhere: its place u in
// its range, and 1 - u. The mean over these rows is their shareOf.
func split(f rowfn.Function, holds *rowfn.Node) []rowfn.Function {
	up := InUnits(f)
	return []rowfn.Function{
		{Value: rowfn.If(holds, up, rowfn.Const(f.Lo)), Lo: f.Lo, Hi: f.Hi, Null: f.Lo},
		{Value: rowfn.If(holds, rowfn.Neg(up), rowfn.Const(-f.Hi)), Lo: -f.Hi, Hi: -f.Lo, Null: -f.Hi},
	}
}

// Contrast is the shape of the difference of two shares, each of the means of two row functions and moved to a range.
type Contrast struct{ First, Second Range }

func (c Contrast) items() []string { return nil }

func (c Contrast) combine(o Outcome) Result {
	return c.First.minus(c.Second, shareOf(o.Parts[0], o.Parts[1], c.First), shareOf(o.Parts[2], o.Parts[3], c.Second))
}

// minus is a number in the range minus one in the other.
func (r Range) minus(other Range, a, b Result) Result {
	if a.Low == nil || b.Low == nil {
		return minus(a, b, interval.Whole(), false, r.less(other))
	}
	return minus(a, b, interval.Interval{Low: *a.Low, High: *a.High}.Sub(interval.Interval{Low: *b.Low, High: *b.High}), true, r.less(other))
}

// less is the range of a number in the range minus one in the other.
func (r Range) less(other Range) Range { return Range{r.Low - other.High, r.High - other.Low} }

// ContrastOf is the plan of the mean of f's value in the rows in which one condition holds minus that where the other does. The
// conditions exclude each other.
func ContrastOf(f rowfn.Function, first, second *rowfn.Node, grouped bool) *Plan {
	p := contrastOf(f, f, first, second, grouped)
	p.FromZero = true
	return p
}

// BothRight is the plan of half of the share of the rows in which the first condition holds that are picked, and half of that of the rows in which the second does that are not. It is the difference of the mean of
// 1/2 in the rows that are picked, else 0, and that of 0, else -1/2.
func BothRight(picked, first, second *rowfn.Node, grouped bool) *Plan {
	return contrastOf(HalfWhere(picked, 0), HalfWhere(picked, -0.5), first, second, grouped)
}

// HalfWhere is a row function that is a number, and one half more in rows that are picked.
func HalfWhere(picked *rowfn.Node, low float64) rowfn.Function {
	return rowfn.Function{Value: rowfn.If(picked, rowfn.Const(low+0.5), rowfn.Const(low)), Lo: low, Hi: low + 0.5, Null: low}
}

// contrastOf is the plan of the mean of f's value in the rows in which one condition holds minus that of g's where the other does. Their ranges are equally wide.
func contrastOf(f, g rowfn.Function, first, second *rowfn.Node, grouped bool) *Plan {
	shape, one, other := Contrast{Range{f.Lo, f.Hi}, Range{g.Lo, g.Hi}}, split(f, first), split(g, second)
	return &Plan{
		Functions: append(one, other...), Range: shape.First.less(shape.Second), Shape: shape,
		Program:   []Release{{Kind: Vector, Count: 4, Variance: contrastVariance(grouped)}},
		Equations: Equations{among(one[0], first, grouped), among(other[0], second, grouped)},
	}
}

// contrastVariance bounds the variances of the four functions, summed. Let v be their vector at a row, s its sum and S = Es. Of the
// four at most two are not 0, u and 1-u, so that |v|² <= s <= 1 but for the grid's step e: where u is halfway between two steps
// both are rounded up, and then s = 1+e while |v|² <= 1+e², for both are e at least. With p the share of such rows the
// variances add up to E|v|² - |Ev|² <= S - p(e-e²) - S²/4, which rises in S <= 1+pe, and is at most 1 - 1/4.
//
// The means of units of several rows are rounded once more, for which there is gridSlack, and one question.
func contrastVariance(grouped bool) float64 {
	if grouped {
		return 1 - 1.0/4 + 4*gridSlack
	}
	return 1 - 1.0/4
}

// minus is a - b with its interval.
func minus(a, b Result, bounds interval.Interval, bounded bool, r Range) Result {
	if a.Value == nil || b.Value == nil {
		return answer(0, bounds, bounded, false, r)
	}
	return answer(*a.Value-*b.Value, bounds, bounded, true, r)
}
