package queries

import (
	"fmt"

	"github.com/holdoutd/holdoutd/queries/expr"
	"github.com/holdoutd/holdoutd/rowfn"
)

// average is the plan of a mean of f's value, over all rows or over those in which where holds.
//
// Over everything with one vote a unit it is one row function. Else it is a ratio of sums over the rows that are asked about: of u, the
// place of the value in its range from 0 to 1, by that of 1 (with one vote a unit, of each unit's own mean of u, by 1 for the
// units that have such a row; with one vote a row, both as shares of the largest unit, than which no unit counts for more). The two row functions are u and 1-u, which add up
// to what u is divided by. From intervals of ±w, u/(u + (1-u)) is known within w by the share of such rows; u by that share, asked
// for itself, would be up to twice as uncertain, for an error of the divisor moves it too.
func average(c *compiler, f RowFunction, where *rowfn.Node, weight Weight) *Plan {
	r := Range{f.Lo, f.Hi}
	rows := weight == WeightRow && c.grouped
	if where == nil && !rows {
		return &Plan{Functions: []RowFunction{f}, Range: r, combine: affine(r, false)}
	}
	f.Where = where
	if rows {
		f.PerUnit = UnitShare
	}
	return &Plan{Functions: []RowFunction{f, complement(f)}, Range: r, combine: func(o Outcome) Result { return shareOf(o.Parts[0], o.Parts[1], r) }}
}

// complement is 1 minus a row function, in the rows in which its condition holds.
func complement(f RowFunction) RowFunction {
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
		d.Functions = []string{"the sum over the unit's rows" + in + ", " + c.share() + ", of u, " + p.place(value), "the same of 1 - u"}
		d.Combine = p.quotient()
		d.Target = c.target("the %s%s%s", what, in, c.rowVotes())
	case c.grouped:
		d.Functions = []string{"the mean over the unit's rows in which " + where.Canonical() + " of u, " + p.place(value) + "; 0 if there are none", "the same of 1 - u"}
		d.Combine = p.quotient()
		d.Target = c.target("the mean over units of each unit's own %s%s, over the units that have one", what, in)
	default:
		d.Functions = []string{"u where " + where.Canonical() + ", else nothing; u is " + p.place(value), "1 - u where " + where.Canonical() + ", else nothing"}
		d.Combine = p.quotient()
		d.Target = c.target("the %s%s", what, in)
	}
}

// place says what u is.
func (p *Plan) place(value string) string {
	if p.Range == (Range{0, 1}) {
		return value
	}
	return fmt.Sprintf("the place of %s in %v, from 0 to 1", value, p.Range)
}

// quotient says what shareOf makes.
func (p *Plan) quotient() string {
	text := "the first mean divided by the sum of both"
	if p.Range != (Range{0, 1}) {
		text += fmt.Sprintf(", moved to %v", p.Range)
	}
	return text + "; undefined where that sum is not positive"
}
