package shape

import (
	"math"
	"slices"

	"github.com/holdoutd/holdoutd/queries/interval"
	"github.com/holdoutd/holdoutd/rowfn"
)

// Curve is the shape of the area under the ROC curve of a score that is counted in bins, with so many edges between them.
type Curve struct{ Edges int }

func (c Curve) items() []string { return nil }

func (c Curve) combine(o Outcome) Result { return areaOf(o.Parts, c.Edges) }

// CurveOf is the plan of the area of a score of which above says, for each edge, whether it is above the edge. label says which rows it
// should rank high, among those in which where holds.
//
// It asks, for both labels and each edge e, v = 1 in rows with the label and a score at most e, -1 in those with the label
// and a higher score, 0 in the others; and 1 in rows with the label, else 0.
//
// As one vector of numbers in [0,1] a row is (1+v)/2 at each edge, so it is at one half but for the edges of its own
// label: its squared distance from the middle of the cube is (B-1)/4 over the edges and 1/4 for the label itself, in
// all B/4 for B bins. The mean of a unit's rows is no farther from the middle, for a ball is convex. The variances add up to at most the mean
// squared distance from any fixed point. Cumulative shares as such would need twice that. v is made smaller by gridRoom, so that the
// grid's rounding does not carry a mean farther out.
//
// It has a form as one question, too: a tally where units are single rows, else [Clusters].
func CurveOf(above []*rowfn.Node, label, where *rowfn.Node, grouped bool) *Plan {
	groups, k := [2]*rowfn.Node{rowfn.Not(label), label}, len(above)
	p := &Plan{Range: Range{0, 1}, Shape: Curve{k}}
	for g, holds := range groups {
		if where != nil {
			groups[g] = rowfn.And(holds, where)
		}
		for _, higher := range above {
			v := rowfn.If(groups[g], rowfn.If(higher, rowfn.Const(-1), rowfn.Const(1)), rowfn.Const(0))
			p.Functions = append(p.Functions, rowfn.Function{Value: v, Lo: -1 - gridRoom, Hi: 1 + gridRoom})
		}
	}
	p.Functions = append(p.Functions, rowfn.Function{Value: groups[1], Lo: 0, Hi: 1})
	if where != nil {
		p.Functions = append(p.Functions, rowfn.Function{Value: groups[0], Lo: 0, Hi: 1})
	}
	p.Program = []Release{{Kind: Vector, Count: len(p.Functions), Variance: float64(k+len(p.Functions)-2*k) / 4}}
	if p.Checks = clustersOf(above, nil, label, where, Moved{p.Range}); !grouped {
		p.Checks = areaTally(above, nil, label, where).checks(Moved{p.Range})
	}
	return p
}

// CurvesOf is the plan of the area of the first score minus that of the second, of one label: both curves, and in a form of one question.
func CurvesOf(first, second []*rowfn.Node, label, where *rowfn.Node, grouped bool) *Plan {
	a, b := CurveOf(first, label, where, true), CurveOf(second, label, where, true)
	p := &Plan{Range: Range{-1, 1}, FromZero: true, Shape: Curves{len(first), len(second), len(a.Functions)},
		Functions: slices.Concat(a.Functions, b.Functions), Program: slices.Concat(a.Program, b.Program)}
	if p.Checks = clustersOf(first, second, label, where, Moved{p.Range}); !grouped {
		p.Checks = areaTally(first, second, label, where).checks(Moved{p.Range})
	}
	return p
}

// Curves is the shape of the area under the curve of a score with so many edges minus that of another. The first score's means are so many.
type Curves struct{ First, Second, Means int }

func (c Curves) items() []string { return nil }

func (c Curves) combine(o Outcome) Result {
	a, b := areaOf(o.Parts[:c.Means], c.First), areaOf(o.Parts[c.Means:], c.Second)
	bounds, defined, value := interval.Interval{}, a.Value != nil && b.Value != nil, 0.0
	if defined {
		value = *a.Value - *b.Value
	}
	known := bounded(o.Parts)
	if known {
		bounds = interval.Interval{Low: *a.Low, High: *a.High}.Sub(interval.Interval{Low: *b.Low, High: *b.High})
	}
	return answer(value, bounds, known, defined, Range{-1, 1})
}

// areaOf computes the area from the means of v at k edges for the rows without and with the label, the share of rows with it
// and, where it is not the rest, that of rows without.
func areaOf(parts []Part, k int) Result {
	r := Range{0, 1}
	yes := parts[2*k]
	no, rest := Part{Value: 1 - yes.Value}, true
	if len(parts) > 2*k+1 {
		no, rest = parts[2*k+1], false
	}
	value, defined := 0.0, yes.Value > 0 && no.Value > 0
	if defined {
		value = area(curve(parts[:k], func(p Part) float64 { return half(p.Value) / no.Value }), curve(parts[k:2*k], func(p Part) float64 { return half(p.Value) / yes.Value }))
	}
	if !bounded(parts) {
		return answer(value, interval.Interval{}, false, defined, r)
	}
	bounds := interval.Interval{Low: 1, High: 0}
	within := interval.Interval{Low: 0, High: 1}
	for _, y := range pieces(yes.interval()) {
		others := []interval.Interval{within.Clip(1-y.High, 1-y.Low)}
		if !rest {
			others = pieces(no.interval())
		}
		for _, n := range others {
			low, high := areas(parts, k, y, n)
			bounds.Low, bounds.High = min(bounds.Low, low), max(bounds.High, high)
		}
	}
	return answer(value, bounds, true, defined, r)
}

// sharePieces is into how many pieces the interval of a label's share is cut. Within a piece both bounds take the worst share for each
// edge, so that pieces make the interval narrower; the union of all is valid.
const sharePieces = 16

func pieces(of interval.Interval) []interval.Interval {
	all := make([]interval.Interval, sharePieces)
	at := of.Low
	for i := range all {
		next := of.Low + of.Width()*float64(i+1)/sharePieces
		if i == sharePieces-1 {
			next = of.High
		}
		all[i] = interval.Interval{Low: at, High: max(at, next)}
		at = all[i].High
	}
	return all
}

// half is the mean of v/2 that a released mean stands for.
func half(mean float64) float64 { return (mean - 0.5) * (1 + gridRoom) }

// curve is the cumulative distribution of one label's scores over the bins: with m the mean of v/2 at an edge and s the share of
// the label, the share of its rows that is not above the edge is (m + s/2)/s = 1/2 + m/s.
func curve(parts []Part, quotient func(Part) float64) []float64 {
	c := make([]float64, len(parts)+2)
	for j, p := range parts {
		c[j+1] = min(max(0.5+quotient(p), 0), 1)
	}
	c[len(c)-1] = 1
	return c
}

// areas bounds the area where the shares of both labels lie in y and n. The area falls where more of the rows with the label
// are below an edge, and rises where more of those without are: between distributions that is so at every edge by itself. So its
// extremes over all distributions within bands are at the bands' own edges, made monotone.
func areas(parts []Part, k int, y, n interval.Interval) (low, high float64) {
	bands := func(parts []Part, share interval.Interval) (least, most []float64) {
		least = curve(parts, func(p Part) float64 {
			m := half(p.interval().Low) - rounding
			return quotient(m, share, m < 0)
		})
		most = curve(parts, func(p Part) float64 {
			m := half(p.interval().High) + rounding
			return quotient(m, share, m > 0)
		})
		for j := 1; j < len(least); j++ {
			least[j] = max(least[j], least[j-1])
		}
		for j := len(most) - 2; j >= 0; j-- {
			most[j] = min(most[j], most[j+1])
		}
		return least, most
	}
	least0, most0 := bands(parts[:k], n)
	least1, most1 := bands(parts[k:2*k], y)
	return area(least0, most1) - rounding, area(most0, least1) + rounding
}

// rounding is far more than float64 loses in a sum of a thousand products of numbers in [0,1].
const rounding = 1e-12

// quotient is m by the least share if so far as possible from 0, else by the largest.
func quotient(m float64, share interval.Interval, far bool) float64 {
	s := share.High
	if far {
		s = share.Low
	}
	switch {
	case s > 0:
		return m / s
	case m == 0:
		return 0
	}
	return math.Inf(1) * m
}

// area is the area under the ROC curve of two distributions over bins: the probability of a higher bin, and half that of the same.
func area(without, with []float64) float64 {
	sum := 0.0
	for j := 1; j < len(with); j++ {
		sum += (without[j] - without[j-1]) * (1 - (with[j]+with[j-1])/2)
	}
	return sum
}
