package shape

import (
	"github.com/holdoutd/holdoutd/queries/interval"
	"github.com/holdoutd/holdoutd/rowfn"
)

// GroupFacts are what the training part says of a group of rows: the mean over them of a number's place in its range, from 0 to 1, and the share of a unit's rows that are in
// the group, on the average over all units.
type GroupFacts struct{ Mean, Share float64 }

// pairedShares: the first mean has the difference's error in full, the others enter as products of two small numbers.
var pairedShares = []float64{0.8, 0.05, 0.05, 0.05, 0.05}

// Paired is the check, as one question, of the mean of f's value in the rows of one group minus that in another, where units have several rows, of which some may be in the one and some in the other. The
// groups' conditions exclude each other. Without rows of both in the training part there is none.
//
// Let A_i be the unit's mean of (u - g_i) in the rows of group i, else 0, and B_i its share of rows that are there, u being the place in the range and g_i what the training part says of it. Then
// r_1 - r_2 = g_1 - g_2 + E A_1/E B_1 - E A_2/E B_2, and with b_i what the training part says of E B_i,
//
//	E A_1/E B_1 - E A_2/E B_2 = E(A_1/b_1 - A_2/b_2) + E A_1 (1/E B_1 - 1/b_1) - E A_2 (1/E B_2 - 1/b_2).
//
// The first mean on the right varies as the difference does: what a unit's rows have in common in both groups cancels. What is left is made of products of two small numbers. All five are means over
// all units, checked together (docs/proofs/groups-and-weights.md, section 1). g and b change the interval, and not the target.
//
// low is added to the difference: what f is above the second group's function there, which is else the same.
func Paired(f rowfn.Function, first, second *rowfn.Node, one, other GroupFacts, low float64) *Checks {
	if !(one.Share > 0 && other.Share > 0) {
		return nil
	}
	u := rowfn.Div(rowfn.Sub(InUnits(f), rowfn.Const(f.Lo)), rowfn.Const(f.Hi-f.Lo))
	off := func(holds *rowfn.Node, g float64) rowfn.Function {
		return rowfn.Function{Value: rowfn.If(holds, rowfn.Sub(u, rowfn.Const(g)), rowfn.Const(0)), Lo: -g, Hi: 1 - g}
	}
	a, b := off(first, one.Mean), off(second, other.Mean)
	both := rowfn.Function{
		Value: rowfn.Sub(rowfn.Div(a.Value, rowfn.Const(one.Share)), rowfn.Div(b.Value, rowfn.Const(other.Share))),
		Lo:    min(a.Lo/one.Share, -b.Hi/other.Share), Hi: max(a.Hi/one.Share, -b.Lo/other.Share),
	}
	all := Moments{}
	return all.CheckedBy(Joint{Shares: pairedShares, Range: Range{low + f.Lo - f.Hi, low + f.Hi - f.Lo}, Of: pairedDifference(one, other, f.Hi-f.Lo, low)},
		both, a, b, rowfn.Function{Value: first, Lo: 0, Hi: 1}, rowfn.Function{Value: second, Lo: 0, Hi: 1})
}

// pairedDifference is the difference, in the units of a range of this width, of the five means of Paired, and low.
func pairedDifference(one, other GroupFacts, width, low float64) Formula {
	at := interval.Point(one.Mean).Sub(interval.Point(other.Mean))
	return func(m []Moment, _ int64) (float64, interval.Interval, bool) {
		value, bounds, defined := one.Mean-other.Mean+m[0].Value, at.Add(m[0].Bounds), true
		for i, g := range []GroupFacts{one, other} {
			off, share := m[1+i], m[3+i]
			defined = defined && share.Value > 0 && share.Bounds.Low > 0
			rest := off.Value * (1/share.Value - 1/g.Share)
			left := interval.Whole()
			if share.Bounds.Low > 0 {
				left = off.Bounds.Mul(interval.Point(1).Div(share.Bounds).Sub(interval.Point(1).Div(interval.Point(g.Share))))
			}
			if i == 0 {
				value, bounds = value+rest, bounds.Add(left)
			} else {
				value, bounds = value-rest, bounds.Sub(left)
			}
		}
		return low + value*width, bounds.Clip(-1, 1).Mul(interval.Point(width)).Add(interval.Point(low)), defined
	}
}
