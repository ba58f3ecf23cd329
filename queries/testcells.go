package queries

import (
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/queries/expr"
	"github.com/holdoutd/holdoutd/queries/interval"
	"github.com/holdoutd/holdoutd/rowfn"
)

// maxTable bounds the cells of a test of independence: each is a row function and a line of the answer.
const maxTable = 1000

// checkExpected: shares, as many as cells, with something left for the last cell or nothing.
func (q *test) checkExpected(v *violations, pointer string) {
	if len(q.Expected) != len(q.Cells) {
		v.add(pointer, fmt.Sprintf("has %d shares for %d cells; the last cell, all other rows, has what is left", len(q.Expected), len(q.Cells)))
		return
	}
	if totalOf(q.Expected) > 1+1e-9 {
		v.add(pointer, "adds up to more than 1")
	}
}

func totalOf(all []float64) (total float64) {
	for _, x := range all {
		total += x
	}
	return total
}

// exclusive makes categories of conditions: a row is in the first that holds, or in the last one, other.
func (c *compiler) exclusive(name string, all []*expr.Syntax) []category {
	cells := make([]category, 0, len(all)+1)
	var before []*rowfn.Node
	for i, s := range all {
		n := c.condition(fmt.Sprintf("%s/%d", name, i), s)
		if n == nil {
			continue
		}
		cells = append(cells, category{s.Canonical(), firstHolds(before, n)})
		before = append(before, rowfn.Not(n))
	}
	return append(cells, category{"other", firstHolds(before, nil)})
}

// firstHolds is n and none of what is before.
func firstHolds(before []*rowfn.Node, n *rowfn.Node) *rowfn.Node {
	all := append([]*rowfn.Node{}, before...)
	if n != nil {
		all = append(all, n)
	}
	switch len(all) {
	case 0:
		return rowfn.True()
	case 1:
		return all[0]
	}
	return rowfn.And(all...)
}

// ofCells asks for the shares of the cells as one vector, and holds each against what is expected.
func (q *test) ofCells(c *compiler) *Plan {
	cells := c.exclusive("cells", q.Cells)
	if len(c.list) > 0 {
		return nil
	}
	expected := q.expectedShares()
	p := shares(c, cells, nil)
	p.releases[0].Optional = false // a test of some of the cells would be another test
	p.describeShares(c, cells, nil, "the share of rows in each cell, minus its expected share")
	p.describe.Null = conditionNull
	p.describe.Combine = "each mean minus its expected share; the null hypothesis is rejected where the interval of any of them excludes 0; the value is the largest deviation"
	p.Range = Range{-1, 1}
	p.combine = func(o Outcome) Result {
		deviations := make([]deviation, len(cells))
		for i, part := range o.Parts {
			deviations[i] = deviation{cells[i].name, min(max(part.Value, 0), 1) - expected[i],
				part.interval().Sub(interval.Point(expected[i])).Clip(-expected[i], 1-expected[i])}
		}
		return largest(deviations, o)
	}
	p.reject(Result.deviates)
	return p
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

// deviates reports whether the interval of any item excludes 0.
func (r Result) deviates() bool {
	for _, i := range r.Items {
		if i.Low != nil && i.High != nil && (*i.Low > 0 || *i.High < 0) {
			return true
		}
	}
	return false
}

// ofTable asks for the shares of all cells of a table as one vector. Under the null each is the product of its margins.
func (q *test) ofTable(c *compiler) *Plan {
	rows, columns := c.exclusive("rows", q.Rows), c.exclusive("columns", q.Columns)
	if len(c.list) > 0 {
		return nil
	}
	var cells []category
	for _, r := range rows {
		for _, k := range columns {
			cells = append(cells, category{r.name + " and " + k.name, rowfn.And(r.holds, k.holds)})
		}
	}
	p := shares(c, cells, nil)
	p.releases[0].Optional = false // a test of some of the cells would be another test
	p.describeShares(c, cells, nil, "the share of rows in each cell, minus the product of the shares of its row and of its column")
	p.describe.Null = conditionNull
	p.describe.Combine = "of each cell, its share times that of the cells in neither its row nor its column, minus the product of the shares of the others in its row and in its column: " +
		"what its share is beyond the product of its margins. The null hypothesis is rejected where the interval of any of them excludes 0; the value is the largest deviation"
	p.Range = Range{-0.25, 0.25}
	p.combine = func(o Outcome) Result {
		deviations := make([]deviation, len(cells))
		for i := range cells {
			deviations[i] = beyondMargins(o.Parts, len(columns), i)
			deviations[i].of = cells[i].name
		}
		return largest(deviations, o)
	}
	p.reject(Result.deviates)
	return p
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

// sharesForm is a list of numbers that are not negative.
type sharesForm struct {
	into *[]float64
	most int
}

func (f sharesForm) read(v *violations, pointer string, in *value) {
	if in.kind != listValue || len(in.items) == 0 || len(in.items) > f.most {
		v.add(pointer, fmt.Sprintf("must be a list of 1 to %d numbers", f.most))
		return
	}
	for i, item := range in.items {
		x, ok := item.float()
		if !ok || x < 0 || x > 1 {
			v.add(fmt.Sprintf("%s/%d", pointer, i), "must be a number from 0 to 1")
			return
		}
		*f.into = append(*f.into, x)
	}
}

func (f sharesForm) canonical() any {
	if *f.into == nil {
		return nil
	}
	return *f.into
}

func (f sharesForm) schema() map[string]any {
	return map[string]any{"type": "array", "items": map[string]any{"type": "number", "minimum": 0, "maximum": 1}, "minItems": 1, "maxItems": f.most}
}
