package queries

import (
	"fmt"

	"github.com/holdoutd/holdoutd/queries/shape"
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

// ofCells asks for the shares of the cells as one vector, and holds each against what is expected.
func (q *test) ofCells(c *compiler) *Plan {
	cells := c.exclusive("cells", q.Cells)
	if len(c.list) > 0 {
		return nil
	}
	p := shape.SharesOf(cells, nil, c.grouped)
	p.Program[0].Optional = false // a test of some of the cells would be another test
	p.Equations = nil             // the answer is how far shares are from others, and the largest of that
	c.sayShares(p, cells, nil, "the share of rows in each cell, minus its expected share")
	p.Words.Null = conditionNull
	p.Words.Combine = "each mean minus its expected share; the null hypothesis is rejected where the interval of any of them excludes 0; the value is the largest deviation"
	p.Range, p.Shape = Range{Low: -1, High: 1}, shape.Fit{Names: shape.Names(cells), Expected: q.expectedShares()}
	return p
}

// expectedShares are those of all cells, the last one's being what is left.
func (q *test) expectedShares() []float64 {
	return append(append([]float64{}, q.Expected...), max(0, 1-totalOf(q.Expected)))
}

// ofTable asks for the shares of all cells of a table as one vector. Under the null each is the product of its margins.
func (q *test) ofTable(c *compiler) *Plan {
	rows, columns := c.exclusive("rows", q.Rows), c.exclusive("columns", q.Columns)
	if len(c.list) > 0 {
		return nil
	}
	var cells []shape.Category
	for _, r := range rows {
		for _, k := range columns {
			cells = append(cells, shape.Category{Name: r.Name + " and " + k.Name, Holds: rowfn.And(r.Holds, k.Holds)})
		}
	}
	p := shape.SharesOf(cells, nil, c.grouped)
	p.Program[0].Optional = false // a test of some of the cells would be another test
	p.Equations = nil             // the answer is how far shares are from others, and the largest of that
	c.sayShares(p, cells, nil, "the share of rows in each cell, minus the product of the shares of its row and of its column")
	p.Words.Null = conditionNull
	p.Words.Combine = "of each cell, its share times that of the cells in neither its row nor its column, minus the product of the shares of the others in its row and in its column: " +
		"what its share is beyond the product of its margins. The null hypothesis is rejected where the interval of any of them excludes 0; the value is the largest deviation"
	p.Range, p.Shape = Range{Low: -0.25, High: 0.25}, shape.Independence{Names: shape.Names(cells), Columns: len(columns)}
	return p
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
