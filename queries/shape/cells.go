package shape

import (
	"math"

	"github.com/holdoutd/holdoutd/queries/interval"
)

// Fit is the shape of how far the shares of cells are from expected ones: an item for each cell, and the largest of them.
type Fit struct {
	Names    []string
	Expected []float64
}

func (f Fit) items() []string { return f.Names }

func (f Fit) combine(o Outcome) Result {
	deviations := make([]deviation, len(f.Names))
	for i, part := range o.Parts {
		e := f.Expected[i]
		deviations[i] = deviation{f.Names[i], min(max(part.Value, 0), 1) - e, part.interval().Sub(interval.Point(e)).Clip(-e, 1-e)}
	}
	return largest(deviations, o)
}

// Independence is the shape of how far the shares of a table's cells, row by row, are from the products of their margins: an item for
// each cell, and the largest of them.
type Independence struct {
	Names   []string
	Columns int
}

func (t Independence) items() []string { return t.Names }

func (t Independence) combine(o Outcome) Result {
	deviations := make([]deviation, len(t.Names))
	for i, name := range t.Names {
		deviations[i] = beyondMargins(o.Parts, t.Columns, i)
		deviations[i].of = name
	}
	return largest(deviations, o)
}

// deviation is how far a share is from what the null says of it.
type deviation struct {
	of     string
	value  float64
	bounds interval.Interval
}

// largest answers with the deviations as items, and with the largest distance from 0.
func largest(all []deviation, o Outcome) Result {
	r := Result{Items: make([]Item, len(all))}
	bounded := true
	for _, p := range o.Parts {
		bounded = bounded && p.Bounded
	}
	far, bounds := 0.0, interval.Interval{}
	for i, d := range all {
		value := d.value
		r.Items[i] = Item{Of: d.of, Value: &value}
		if bounded {
			low, high := d.bounds.Low, d.bounds.High
			value = min(max(value, low), high)
			r.Items[i].Low, r.Items[i].High = &low, &high
			away := interval.Interval{Low: max(low, -high, 0), High: max(high, -low)}
			bounds.Low, bounds.High = max(bounds.Low, away.Low), max(bounds.High, away.High)
		}
		far = max(far, math.Abs(value))
	}
	one := answer(far, bounds, bounded, true, Range{0, 1})
	r.Value, r.Low, r.High = one.Value, one.Low, one.High
	return r
}

// beyondMargins is p - (p+b)(p+c) = p·d - b·c, where p is the share of a cell, b of the others in its row, c of those in its column and d of all
// the rest: 1 - p - b - c. In this form each of the four occurs once, so that interval arithmetic loses nothing but that they add up to 1.
func beyondMargins(parts []Part, columns, cell int) deviation {
	var sums [4]interval.Interval
	var values [4]float64
	for i, p := range parts {
		at := 3
		switch sameRow, sameColumn := i/columns == cell/columns, i%columns == cell%columns; {
		case sameRow && sameColumn:
			at = 0
		case sameRow:
			at = 1
		case sameColumn:
			at = 2
		}
		sums[at] = sums[at].Add(p.interval())
		values[at] += min(max(p.Value, 0), 1)
	}
	all := sums
	for i := range sums { // what the others leave
		rest := interval.Point(1)
		for j := range all {
			if j != i {
				rest = rest.Sub(all[j])
			}
		}
		sums[i] = interval.Interval{Low: max(all[i].Low, rest.Low, 0), High: min(all[i].High, rest.High, 1)}
		if sums[i].Low > sums[i].High { // nothing adds up to 1: an interval has missed
			sums[i] = all[i].Clip(0, 1)
		}
	}
	bounds := sums[0].Mul(sums[3]).Sub(sums[1].Mul(sums[2]))
	total := values[0] + values[1] + values[2] + values[3]
	value := 0.0
	if total > 0 {
		value = (values[0]*values[3] - values[1]*values[2]) / (total * total)
	}
	return deviation{value: min(max(value, -0.25), 0.25), bounds: bounds.Clip(-0.25, 0.25)}
}
