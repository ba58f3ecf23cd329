package shape

import (
	"strconv"

	"github.com/holdoutd/holdoutd/queries/interval"
	"github.com/holdoutd/holdoutd/rowfn"
)

// Bins is the shape of a reliability diagram: of each bin of a prediction three items, its share of the rows, the share of these that
// have the label, and their mean prediction.
type Bins struct {
	Names []string  // of the bins
	Edges []float64 // one more
}

func (b Bins) items() []string {
	var names []string
	for _, name := range b.Names {
		names = append(names, name+binShare, name+binLabel, name+binPrediction)
	}
	return names
}

// What the items of a bin are called, after its name.
const (
	binShare      = " share"
	binLabel      = " label"
	binPrediction = " prediction"
)

func (b Bins) combine(o Outcome) Result {
	var items []Item
	for i, name := range b.Names {
		items = append(items, b.bin(o, i, name)...)
	}
	return Result{Items: items}
}

// BinsOf is the plan of the reliability of a prediction x between edges, of the rows in which where holds.
//
// It asks three row functions of each bin: 1 in its rows with the label, 1 in its rows without, and, in its rows, v in [-1,1], the
// place of the prediction between the bin's edges; 0 in all others.
//
// The variances of the first two of all B bins add up to at most 1 - 1/(2B), as in [SharesOf]. Of the third, as (1+v)/2, a row is
// at one half but for its own bin, where it is off by at most one half; so they add up to at most 1/4, as in [CurveOf].
func BinsOf(x *rowfn.Node, edges []float64, label, where *rowfn.Node, grouped bool) *Plan {
	bins := BinsBetween(x, edges)
	p := &Plan{Range: Range{0, 1}, Shape: Bins{Names(bins), edges}}
	var places []rowfn.Function
	for i, bin := range bins {
		holds := bin.Holds
		if where != nil {
			holds = rowfn.And(holds, where)
		}
		p.Functions = append(p.Functions, rowfn.Function{Value: rowfn.And(holds, label), Lo: 0, Hi: 1}, rowfn.Function{Value: rowfn.And(holds, rowfn.Not(label)), Lo: 0, Hi: 1})
		middle, half := middleOf(edges[i], edges[i+1])
		place := rowfn.Div(rowfn.Sub(x, rowfn.Const(middle)), rowfn.Const(half))
		within := rowfn.Function{Value: rowfn.If(holds, rowfn.Clamp(x, edges[i], edges[i+1]), rowfn.Const(edges[i])), Lo: edges[i], Hi: edges[i+1], Null: edges[i]}
		hit := rowfn.Function{Value: rowfn.If(rowfn.And(holds, label), rowfn.Const(1), rowfn.Const(0)), Lo: 0, Hi: 1}
		p.Equations = append(p.Equations, Equation{A: rowfn.Function{Value: holds, Lo: 0, Hi: 1}, Whole: true, Range: p.Range},
			among(hit, holds, grouped), among(within, holds, grouped))
		places = append(places, rowfn.Function{Value: rowfn.If(holds, rowfn.Clamp(place, -1, 1), rowfn.Const(0)), Lo: -1 - gridRoom, Hi: 1 + gridRoom})
	}
	cells := len(p.Functions)
	p.Functions = append(p.Functions, places...)
	p.Program = []Release{{Kind: Vector, Count: len(p.Functions), Variance: sharesVariance(cells, grouped) + 0.25, Optional: true}}
	return p
}

// BinsBetween are the bins of a number between edges.
func BinsBetween(x *rowfn.Node, edges []float64) []Category {
	var bins []Category
	last := len(edges) - 2
	for i := range last + 1 {
		inside, end := rowfn.OpLess, ")"
		if i == last {
			inside, end = rowfn.OpLessEq, "]"
		}
		bins = append(bins, Category{"[" + Edge(edges[i]) + ", " + Edge(edges[i+1]) + end, rowfn.And(rowfn.CompareTo(rowfn.OpGreaterEq, x, edges[i]), rowfn.CompareTo(inside, x, edges[i+1]))})
	}
	return bins
}

// Edge is a number as the shortest decimal, as the names of bins have it.
func Edge(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

func middleOf(a, b float64) (middle, half float64) { return a/2 + b/2, b/2 - a/2 }

// bin is the three items of one bin.
func (b Bins) bin(o Outcome, i int, name string) []Item {
	with, without, place := o.Parts[2*i], o.Parts[2*i+1], o.Parts[2*(len(b.Edges)-1)+i]
	if with.Missing || without.Missing || place.Missing {
		return []Item{{Of: name + binShare}, {Of: name + binLabel}, {Of: name + binPrediction}}
	}
	unit := Range{0, 1}
	bounded := with.Bounded && without.Bounded
	all := with.interval().Add(without.interval()).Clip(0, 1)
	share := answer(with.Value+without.Value, all, bounded, true, unit)
	label := shareOf(with, without, unit)

	low, high := b.Edges[i], b.Edges[i+1]
	middle, halfWidth := middleOf(low, high)
	inside := interval.Interval{Low: -1, High: 1}
	v := place.interval().Sub(interval.Point(0.5)).Mul(interval.Point(2 * (1 + gridRoom)))
	if all.Low > 0 {
		inside = v.Div(all).Clip(-1, 1)
	}
	bounds := interval.Point(middle).Add(inside.Mul(interval.Point(halfWidth)))
	sum := with.Value + without.Value
	value := middle + 2*half(place.Value)/sum*halfWidth
	prediction := answer(value, bounds.Clip(low, high), bounded && place.Bounded, sum > 0, Range{low, high})
	return []Item{
		{Of: name + binShare, Value: share.Value, Low: share.Low, High: share.High},
		{Of: name + binLabel, Value: label.Value, Low: label.Low, High: label.High},
		{Of: name + binPrediction, Value: prediction.Value, Low: prediction.Low, High: prediction.High},
	}
}
