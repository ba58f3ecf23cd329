package queries

import "github.com/holdoutd/holdoutd/queries/shape"

// totalDoc is what is said of a number of rows or a sum over rows, by the name of what it is made of.
func totalDoc(of string) string {
	return "the " + of + " times the number of the holdout's rows, which is public. Where units have several rows, every row has one vote, but no unit has more than the card's largest_unit."
}

// total is the plan of the sum of a row function over all rows of the holdout, 0 adding nothing: its mean over all rows, times their number. what and value are as in
// [compiler.sayAverage].
//
// Where units have several rows the mean is that in which every row has one vote. The sum over a unit is as large as the unit, which nobody has bounded but by a largest unit, and the
// number of rows is known exactly: so the mean is asked for as a ratio, in which a unit's size counts above and below, and only values are left to chance.
func (c *compiler) total(f RowFunction, what, value string) *Plan {
	if !c.grouped {
		p := shape.Mean(f, true)
		c.sayAverage(p, what, value, nil, WeightUnit)
		sayTimesRows(&p.Words)
		return p
	}
	p := shape.Average(f, nil, true)
	c.sayAverage(p, what, value, nil, WeightRow)
	sayTimesRows(&p.Words)
	if c.ofHoldout == 0 {
		c.add(c.pointer+"/type", "is of a number of rows, which is not known here")
		return p
	}
	p.ScaleBy(float64(c.ofHoldout))
	return p
}

func sayTimesRows(d *Description) {
	d.Combine += ", times the number of rows in the holdout"
	d.Target = "the number of rows in the holdout times " + d.Target
}
