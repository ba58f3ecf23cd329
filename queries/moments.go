package queries

import (
	"strconv"

	"github.com/holdoutd/holdoutd/queries/expr"
	"github.com/holdoutd/holdoutd/queries/interval"
	"github.com/holdoutd/holdoutd/rowfn"
)

// moments are means that one answer is computed from: over all rows, or over those in which where holds. The second costs one row
// function more, by which the others are divided, as in average.
type moments struct {
	functions   []RowFunction
	conditional bool // the last function is the number to divide by
	rows        bool // every row has one vote, where units hold several
}

func momentsOf(c *compiler, where *rowfn.Node, weight Weight, functions ...RowFunction) moments {
	rows := weight == WeightRow && c.grouped
	if where == nil && !rows {
		return moments{functions: functions}
	}
	m := moments{conditional: true, rows: rows}
	per, last := UnitMean, UnitAny
	if rows {
		per, last = UnitShare, UnitShare
	}
	for _, f := range functions {
		f.Where, f.PerUnit = where, per
		m.functions = append(m.functions, f)
	}
	m.functions = append(m.functions, RowFunction{Lo: 0, Hi: 1, Where: where, PerUnit: last})
	return m
}

// moment is one mean in its own units.
type moment struct {
	value  float64
	bounds interval.Interval
}

// read takes the moments from what was released. They are not defined where, as far as can be told, where holds nowhere; then
// their bounds, which are valid nevertheless, are all they have.
func (m moments) read(o Outcome) (means []moment, bounded, defined bool) {
	count := len(m.functions)
	bounded, defined = true, true
	for _, p := range o.Parts {
		bounded = bounded && p.Bounded
	}
	if m.conditional {
		count--
	}
	for i, f := range m.functions[:count] {
		value, share := min(max(o.Parts[i].Value, 0), 1), o.Parts[i].interval()
		if m.conditional {
			var ok bool
			value, share, ok = divide(o.Parts[i], o.Parts[count])
			defined = defined && ok
		}
		width := interval.Point(f.Hi).Sub(interval.Point(f.Lo))
		bounds := interval.Point(f.Lo).Add(width.Mul(share)).Clip(f.Lo, f.Hi)
		means = append(means, moment{f.Lo + (f.Hi-f.Lo)*value, bounds})
	}
	return means, bounded, defined
}

// inTraining are the exact moments of the training part; nil where there are none, which is a violation at the named member
// where there is no training part at all.
func (m moments) inTraining(c *compiler, name, instead string) []float64 {
	means := c.trainingMeans(name, instead, m.functions...)
	if means == nil {
		return nil
	}
	o := Outcome{}
	for _, mean := range means {
		o.Parts = append(o.Parts, Part{Value: mean})
	}
	read, _, defined := m.read(o)
	if !defined {
		return nil
	}
	values := make([]float64, len(read))
	for i := range read {
		values[i] = read[i].value
	}
	return values
}

// answer is a number with its interval, both brought into the range of what is possible.
func answer(value float64, bounds interval.Interval, bounded, defined bool, r Range) Result {
	var result Result
	if defined {
		v := min(max(value, r.Low), r.High)
		if bounded { // rounding must not carry the value out of its own interval
			v = min(max(v, bounds.Low), bounds.High)
		}
		result.Value = &v
	}
	if bounded {
		b := bounds.Clip(r.Low, r.High)
		result.Low, result.High = &b.Low, &b.High
	}
	return result
}

// centered is z = (x - center)/scale of a number x that is clamped to a range, never null, with the scale that puts z within ±1.
// Spreads and products of deviations are the same about any center. The nearer it is to the mean, the less does the uncertainty of
// the mean widen their intervals.
type centered struct {
	center, scale float64
	value         *rowfn.Node
	in            Range // of z
}

func centeredAt(x *rowfn.Node, r Range, center float64) centered {
	scale := max(center-r.Low, r.High-center)
	return centered{center, scale,
		rowfn.Div(rowfn.Sub(r.clamp(x), rowfn.Const(center)), rowfn.Const(scale)),
		Range{max((r.Low-center)/scale, -1), min((r.High-center)/scale, 1)}}
}

// mean is the row function z.
func (z centered) mean() RowFunction {
	return RowFunction{Value: z.value, Lo: z.in.Low, Hi: z.in.High, Null: z.in.Low}
}

// product is the row function z·y.
func (z centered) product(y centered) RowFunction {
	a, b, c, d := z.in.Low*y.in.Low, z.in.Low*y.in.High, z.in.High*y.in.Low, z.in.High*y.in.High
	low, high := min(a, b, c, d), max(a, b, c, d)
	return RowFunction{Value: rowfn.Mul(z.value, y.value), Lo: low, Hi: high, Null: low}
}

// square is the row function z².
func (z centered) square() RowFunction {
	return RowFunction{Value: rowfn.Mul(z.value, z.value), Lo: 0, Hi: 1}
}

// centers are the training part's means of numbers, clamped to their ranges; without a training part, or where it has no row in
// which where holds, the middles of the ranges.
func centers(c *compiler, name string, where *rowfn.Node, weight Weight, ranges []Range, numbers ...*rowfn.Node) []float64 {
	at := make([]float64, len(numbers))
	functions := make([]RowFunction, len(numbers))
	for i, r := range ranges {
		at[i] = r.Low/2 + r.High/2
		functions[i] = RowFunction{Value: numbers[i], Lo: r.Low, Hi: r.High, Null: r.Low}
	}
	if c.training == nil {
		return at
	}
	if means := momentsOf(c, where, weight, functions...).inTraining(c, name, ""); means != nil {
		return means
	}
	return at
}

// rowsOf says over which rows an answer is, in words that follow what it is, and how they vote.
func rowsOf(c *compiler, where *expr.Syntax, weight Weight) string {
	in := ""
	if where != nil {
		in = " over the rows in which " + where.Canonical()
	}
	switch {
	case !c.grouped:
		return in
	case weight == WeightRow:
		return in + c.rowVotes()
	case where != nil:
		return in + ", every unit that has one having one vote, which these rows share"
	}
	return in + ", every unit having one vote, which its rows share"
}

// rowVotes says how rows vote, in words that follow what an answer is. Shares of a largest unit are bounded, as the proofs of intervals need, for the price that
// larger units have no more votes than that. With a cap c the mean of y is E[mean of y in the unit · min(m, c)]/E[min(m, c)], m being the unit's number of rows.
func (c *compiler) rowVotes() string { return ", every row having one vote, " + c.unitCap() }

// unitCap says what rowVotes says of units.
func (c *compiler) unitCap() string {
	switch {
	case c.largest == 0:
		return "units of more rows than largest_unit counting as that many"
	case c.declared:
		return "no unit having more than " + rowsIn(c.largest) + ", as declared"
	}
	return "units of more than " + rowsIn(c.largest) + " counting as " + rowsIn(c.largest)
}

// share says what a unit's sum is divided by.
func (c *compiler) share() string {
	switch {
	case c.largest == 0:
		return "as a share of largest_unit, or of the unit's own number of rows if that is more"
	case c.declared:
		return "as a share of " + rowsIn(c.largest)
	}
	return "as a share of " + rowsIn(c.largest) + ", or of the unit's own number if that is more"
}

func rowsIn(n int64) string {
	if n == 1 {
		return "1 row"
	}
	return strconv.FormatInt(n, 10) + " rows"
}

// functionsOf says what a plan of moments asks: of each function, its name, and what they are divided by.
func (m moments) functionsOf(c *compiler, where *expr.Syntax, names ...string) []string {
	before, after := "", ""
	last := "1"
	if where != nil {
		after, last = " where "+where.Canonical()+", else nothing", "1 where "+where.Canonical()+", else 0"
	}
	in := ""
	if where != nil {
		in = " in which " + where.Canonical()
	}
	switch {
	case !c.grouped:
	case m.rows:
		before, after, last = "the sum over the unit's rows"+in+", "+c.share()+", of ", "", "the number of the unit's rows"+in+", "+c.share()
	default:
		before, after, last = "the mean over the unit's rows"+in+" of ", "", "1 if the unit has a row"+in+", else 0"
	}
	var said []string
	for _, name := range names {
		said = append(said, before+name+after)
	}
	if m.conditional {
		said = append(said, last+"; the means of the others are divided by its mean")
	}
	return said
}
