package shape

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/queries/interval"
)

// TestAreasAreReached: the bounds of an area under the curve are those of the curves within the bands at whose points one of the bands'
// ends stands, in order. Of these there are few enough to try all.
func TestAreasAreReached(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const k = 3
		parts := make([]Part, 2*k)
		band := make([]interval.Interval, 2*k) // of the cumulative shares: 1/2 + m/s with s = 1/2
		for i := range parts {
			a, b := float64(rapid.IntRange(0, 8).Draw(t, "end"))/8, float64(rapid.IntRange(0, 8).Draw(t, "end"))/8
			band[i] = interval.Interval{Low: min(a, b), High: max(a, b)}
			release := func(cumulative float64) float64 { return (cumulative-0.5)/2/(1+gridRoom) + 0.5 }
			parts[i] = Part{Low: release(band[i].Low), High: release(band[i].High), Bounded: true}
		}
		least, most := math.Inf(1), math.Inf(-1)
		curves := func(of []interval.Interval) (all [][]float64) {
			for a := 0; a <= 8; a++ {
				for b := a; b <= 8; b++ {
					for c := b; c <= 8; c++ {
						curve := []float64{0, float64(a) / 8, float64(b) / 8, float64(c) / 8, 1}
						inside := true
						for j, i := range of {
							inside = inside && curve[j+1] >= i.Low && curve[j+1] <= i.High
						}
						if inside {
							all = append(all, curve)
						}
					}
				}
			}
			return all
		}
		for _, without := range curves(band[:k]) {
			for _, with := range curves(band[k:]) {
				x := area(without, with)
				least, most = min(least, x), max(most, x)
			}
		}
		if math.IsInf(least, 1) {
			return // no curve is within the bands
		}
		s := interval.Point(0.5)
		low, high := areas(parts, k, s, s)
		if math.Abs(low-least) > 1e-6 || math.Abs(high-most) > 1e-6 {
			t.Fatalf("bands %v: areas from %v to %v, those of all curves from %v to %v", band, low, high, least, most)
		}
	})
}

// TestPiecesCover: the pieces of an interval are next to one another, from its low end to its high end.
func TestPiecesCover(t *testing.T) {
	of := interval.Interval{Low: 0.1, High: 0.7}
	at := of.Low
	for _, p := range pieces(of) {
		if p.Low != at || p.High < p.Low || p.Width() > of.Width()/sharePieces*(1+1e-9) {
			t.Fatalf("a piece %v after %v", p, at)
		}
		at = p.High
	}
	if at != of.High {
		t.Errorf("the pieces end at %v", at)
	}
}

// TestAUCIntervalHolds draws distributions over the bins and intervals that hold their parts, often with the truth at an end, and
// compares with the area by its definition.
func TestAUCIntervalHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bins := rapid.IntRange(2, 8).Draw(t, "bins")
		together := rapid.Bool().Draw(t, "no where")
		cells := [2][]float64{}
		for g := range cells {
			cells[g] = rapid.SliceOfN(rapid.SampledFrom([]float64{0, 0, 0.1, 1, 3}), bins, bins).Draw(t, "cells")
		}
		totals := [2]float64{sumOf(cells[0]), sumOf(cells[1])}
		all := totals[0] + totals[1]
		if !together {
			all *= 1.5
		}
		if totals[0] == 0 || totals[1] == 0 {
			return
		}
		truth := 0.0
		for i, x := range cells[1] {
			truth += x / totals[1] * (sumOf(cells[0][:i]) + cells[0][i]/2) / totals[0]
		}
		edgeWidth, shareWidth := rapid.SampledFrom([]float64{0, 0.01, 0.2}).Draw(t, "edges"), rapid.SampledFrom([]float64{0, 0.01, 0.2}).Draw(t, "shares")
		around := func(mean, width float64) Part {
			off := rapid.SampledFrom([]float64{-1, -1, 1, 1, 0, 0.5}).Draw(t, "off") * width
			return Part{Value: mean + off, Low: mean + off - width, High: mean + off + width, Bounded: true}
		}
		var parts []Part
		for g := range cells {
			for j := range bins - 1 {
				below := sumOf(cells[g][:j+1])
				v := (2*below - totals[g]) / all
				parts = append(parts, around(0.5+v/2/(1+gridRoom), edgeWidth))
			}
		}
		parts = append(parts, around(totals[1]/all, shareWidth))
		if !together {
			parts = append(parts, around(totals[0]/all, shareWidth))
		}
		got := areaOf(parts, bins-1)
		if *got.Low > truth+1e-9 || *got.High < truth-1e-9 || got.Value != nil && (*got.Value < *got.Low || *got.Value > *got.High) {
			t.Fatalf("%v in [%v, %v], truly %v", got.Value, *got.Low, *got.High, truth)
		}
		if edgeWidth == 0 && shareWidth == 0 && *got.High-*got.Low > 1e-9 {
			t.Fatalf("from exact means [%v, %v]", *got.Low, *got.High)
		}
	})
}

func sumOf(list []float64) (sum float64) {
	for _, x := range list {
		sum += x
	}
	return sum
}

// TestAUCUsesOrder: of an edge about which nothing was released it is still known that shares rise. With four equally full bins of both labels,
// and the middle edge unknown, the area is between those with all of the middle half at either end of it: 1/2 ± 1/8.
func TestAUCUsesOrder(t *testing.T) {
	at := func(x float64) Part { return Part{Value: x, Low: x, High: x, Bounded: true} }
	edge := func(share float64) Part { return at(0.5 + (2*share-1)/4/(1+gridRoom)) }
	unknown := Part{Value: 0.5, Low: 0, High: 1, Bounded: true}
	got := areaOf([]Part{edge(0.25), unknown, edge(0.75), edge(0.25), unknown, edge(0.75), at(0.5)}, 3)
	if math.Abs(*got.Low-0.375) > 1e-9 || math.Abs(*got.High-0.625) > 1e-9 {
		t.Errorf("[%v, %v]", *got.Low, *got.High)
	}
}

// TestMiddle: the prediction of a bin is placed from -1 at its lower edge to 1 at its upper.
func TestMiddle(t *testing.T) {
	for _, e := range [][2]float64{{0, 0.2}, {0.2, 0.7}, {-1, 5}} {
		middle, half := middleOf(e[0], e[1])
		if math.Abs(middle-half-e[0]) > 1e-12 || math.Abs(middle+half-e[1]) > 1e-12 {
			t.Errorf("[%v, %v]: %v±%v", e[0], e[1], middle, half)
		}
	}
}
