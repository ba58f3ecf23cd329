package queries

import "github.com/holdoutd/holdoutd/queries/expr"

// average is the plan of a mean of f's value, over all rows or over those in which where holds.
//
// Over everything with one vote a unit it is one row function. Else it is a ratio of two: with one vote a unit, the sum over
// units of the unit's own mean by the number of units in which where holds anywhere; with one vote a row, the sum over rows
// by the number of rows, both as shares of the largest unit.
func average(c *compiler, f RowFunction, where *expr.Node, weight Weight) *Plan {
	r := Range{f.Lo, f.Hi}
	rows := weight == WeightRow && c.grouped
	if where == nil && !rows {
		return &Plan{Functions: []RowFunction{f}, Range: r, combine: affine(r, false)}
	}
	above, below := f, RowFunction{Lo: 0, Hi: 1, Where: where, PerUnit: UnitAny}
	above.Where = where
	if rows {
		above.PerUnit, below.PerUnit = UnitShare, UnitShare
	}
	return &Plan{Functions: []RowFunction{above, below}, Range: r, combine: ratio(r)}
}

// describeAverage says what average did. what is the mean's name, value the row's value in words.
func (p *Plan) describeAverage(c *compiler, what, value string, where *expr.Syntax, weight Weight) {
	d := &p.describe
	in := ""
	if where != nil {
		in = " over the rows in which " + where.Canonical()
	}
	switch {
	case len(p.Functions) == 1 && !c.grouped:
		d.Functions = []string{value}
		d.Combine = "the mean of the row function"
		d.Target = c.target("the %s", what)
	case len(p.Functions) == 1:
		d.Functions = []string{"the mean over the unit's rows of " + value}
		d.Combine = "the mean of the row function"
		d.Target = c.target("the mean over units of each unit's own %s", what)
	case c.grouped && weight == WeightRow:
		d.Functions = []string{"the sum over the unit's rows" + in + " of " + value + ", as a share of the largest unit",
			"the number of the unit's rows" + in + ", as a share of the largest unit"}
		d.Combine = "the first mean divided by the second; undefined where the second is not positive"
		d.Target = c.target("the %s%s, every row having one vote", what, in)
	case c.grouped:
		d.Functions = []string{"the mean" + in + " of the unit, of " + value, "1 if the unit has a row in which " + where.Canonical() + ", else 0"}
		d.Combine = "the first mean divided by the second; undefined where the second is not positive"
		d.Target = c.target("the mean over units of each unit's own %s%s, over the units that have one", what, in)
	default:
		d.Functions = []string{value + " where " + where.Canonical() + ", else nothing", "1 where " + where.Canonical() + ", else 0"}
		d.Combine = "the first mean divided by the second; undefined where the second is not positive"
		d.Target = c.target("the %s%s", what, in)
	}
}
