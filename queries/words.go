package queries

import (
	"fmt"
	"strconv"

	"github.com/holdoutd/holdoutd/queries/expr"
	"github.com/holdoutd/holdoutd/queries/shape"
)

// What plans are in words: what is asked of a row and of a unit, and what an answer is about.

// maxNamed is how many categories a description names.
const maxNamed = 20

// target is a sentence about what an interval holds for.
func (c *compiler) target(format string, args ...any) string {
	population := c.population
	switch {
	case population != "":
	case c.grouped:
		population = "the population that the units were drawn from"
	default:
		population = "the population that the rows were drawn from"
	}
	return fmt.Sprintf(format, args...) + ", in " + population
}

// sayAverage says what [shape.Average] asks and how it answers. what is the mean's name, value the row's value in words.
func (c *compiler) sayAverage(p *Plan, what, value string, where *expr.Syntax, weight Weight) {
	condition := ""
	if where != nil {
		condition = where.Canonical()
	}
	c.sayAmong(p, what, value, condition, weight)
}

// sayAmong is sayAverage for a condition in words; "" for all rows.
func (c *compiler) sayAmong(p *Plan, what, value, where string, weight Weight) {
	d := &p.Words
	in := ""
	if where != "" {
		in = " over the rows in which " + where
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
		d.Functions = []string{"the sum over the unit's rows" + in + ", " + c.share() + ", of u, " + place(p.Range, value), "the same of 1 - u"}
		d.Combine = quotient(p.Range)
		d.Target = c.target("the %s%s%s", what, in, c.sayRowVotes())
	case c.grouped:
		d.Functions = []string{"the mean over the unit's rows in which " + where + " of u, " + place(p.Range, value) + "; 0 if there are none", "the same of 1 - u"}
		d.Combine = quotient(p.Range)
		d.Target = c.target("the mean over units of each unit's own %s%s, over the units that have one", what, in)
	default:
		d.Functions = []string{"u where " + where + ", else nothing; u is " + place(p.Range, value), "1 - u where " + where + ", else nothing"}
		d.Combine = quotient(p.Range)
		d.Target = c.target("the %s%s", what, in)
	}
	c.sayRoot(p, where)
}

// sayRoot says what an average is where it is released as the root of its equation: what is said of the plan's two means is replaced, and what follows
// it stays.
func (c *compiler) sayRoot(p *Plan, where string) {
	e := p.Equation()
	if e == nil || e.B == nil {
		return
	}
	last := ""
	switch {
	case !e.Whole:
		last = "the same of 1"
	case c.grouped:
		last = "1 if the unit has a row in which " + where + ", else 0"
	default:
		last = "1 where " + where + ", else 0"
	}
	e.Words = rootWords(p, last)
}

// rootWords is what is said of a plan as the root of its equation, with last for what it is divided by.
func rootWords(p *Plan, last string) shape.CheckWords {
	w := shape.CheckWords{Functions: []string{p.Words.Functions[0], last}, Instead: p.Words.Combine, Combine: asOneRoot}
	if p.Range != (Range{Low: 0, High: 1}) {
		w.Combine += fmt.Sprintf(", moved to %v", p.Range)
	}
	return w
}

const asOneRoot = "the sum of the first divided by that of the second, as one question"

// place says what u is.
func place(r Range, value string) string {
	if r == (Range{Low: 0, High: 1}) {
		return value
	}
	return fmt.Sprintf("the place of %s in %v, from 0 to 1", value, r)
}

// quotient says what [shape.Share] makes.
func quotient(r Range) string {
	text := "the first mean divided by the sum of both"
	if r != (Range{Low: 0, High: 1}) {
		text += fmt.Sprintf(", moved to %v", r)
	}
	return text + "; undefined where that sum is not positive"
}

// sayWeighted says what [shape.Weighted] asks and how it answers.
func (c *compiler) sayWeighted(p *Plan, text string, w *weights, where *expr.Syntax, weight Weight, null float64) {
	name := fmt.Sprintf("%s clamped to %v", w.Of.Canonical(), w.Range)
	in, unit, rows := "", "", ""
	if where != nil {
		in, rows = " where "+where.Canonical(), " over the rows in which "+where.Canonical()
	}
	switch {
	case c.grouped && weight == WeightRow:
		unit, rows = "the sum over the unit's rows"+in+", "+c.share()+", of ", rows+", every row having its weight as its vote, "+c.unitCap()
		in = ""
	case c.grouped:
		unit, rows = "the mean over the unit's rows"+in+" of ", rows+", the weight of a row being divided by the number of these rows in its unit"
		in = ""
	}
	p.Words = Description{
		Functions: []string{
			fmt.Sprintf("%sw · u%s, with w the weight %s as a part of %v and u the place of %s in its range, from 0 to 1", unit, in, name, w.Range.High, text),
			fmt.Sprintf("%sw · (1 - u)%s", unit, in),
		},
		Combine: fmt.Sprintf("the first mean divided by the sum of both, moved to %v; undefined where that sum is not positive", p.Range),
		Null:    fmt.Sprintf("a null counts as %v, a null weight as %v", null, w.Range.Low),
		Target:  c.target("the mean of %s with weights %s%s", text, name, rows),
	}
	p.Equation().Words = rootWords(p, unit+"w"+in)
}

// sayShares says what [shape.SharesOf] asks and how it answers.
func (c *compiler) sayShares(p *Plan, categories []shape.Category, where *expr.Syntax, what string) {
	in, asked := "", ""
	if where != nil {
		in, asked = " in which "+where.Canonical(), " where "+where.Canonical()+", else nothing"
	}
	function := fmt.Sprintf("1 if the row is in the category, else 0%s, for each of %d categories: ", asked, len(categories))
	if c.grouped {
		function = fmt.Sprintf("the share of the unit's rows%s that are in the category, for each of %d categories: ", in, len(categories))
	}
	for i, k := range categories {
		if i == maxNamed {
			function += ", …"
			break
		}
		if i > 0 {
			function += ", "
		}
		function += k.Name
	}
	p.Words.Functions = []string{function}
	p.Words.Combine = "the mean of each row function"
	if where != nil {
		first := "1 where " + where.Canonical() + ", else 0"
		if c.grouped {
			first = "1 if the unit has a row" + in + ", else 0"
		}
		p.Words.Functions = []string{first, function}
		p.Words.Combine += " but the first, divided by that of the first; undefined where that is not positive"
		p.CheckWords = shape.CheckWords{Functions: p.Words.Functions, Instead: p.Words.Combine,
			Combine: "the sum of each row function but the first, divided by that of the first, each as one question"}
	}
	p.Words.Target = c.target("%s%s", what, c.rowsOf(where, WeightUnit))
}

// rowsOf says over which rows an answer is, in words that follow what it is, and how they vote.
func (c *compiler) rowsOf(where *expr.Syntax, weight Weight) string {
	in := ""
	if where != nil {
		in = " over the rows in which " + where.Canonical()
	}
	switch {
	case !c.grouped:
		return in
	case weight == WeightRow:
		return in + c.sayRowVotes()
	case where != nil:
		return in + ", every unit that has one having one vote, which these rows share"
	}
	return in + ", every unit having one vote, which its rows share"
}

// sayRowVotes says how rows vote, in words that follow what an answer is. Shares of a largest unit are bounded, as the proofs of intervals need, for the price that
// larger units have no more votes than that. With a cap c the mean of y is E[mean of y in the unit · min(m, c)]/E[min(m, c)], m being the unit's number of rows.
func (c *compiler) sayRowVotes() string { return ", every row having one vote, " + c.unitCap() }

// unitCap says what sayRowVotes says of units.
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
func (c *compiler) functionsOf(m shape.Moments, where *expr.Syntax, names ...string) []string {
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
	case m.Rows:
		before, after, last = "the sum over the unit's rows"+in+", "+c.share()+", of ", "", "the number of the unit's rows"+in+", "+c.share()
	default:
		before, after, last = "the mean over the unit's rows"+in+" of ", "", "1 if the unit has a row"+in+", else 0"
	}
	var said []string
	for _, name := range names {
		said = append(said, before+name+after)
	}
	if m.Conditional {
		said = append(said, last+"; the means of the others are divided by its mean")
	}
	return said
}

// sayJoint says what a plan of moments asks where it is checked as one question: functions, whose means make the answer as combine says.
func (c *compiler) sayJoint(p *Plan, m shape.Moments, where *expr.Syntax, combine string, functions ...string) {
	if p.Checks != nil {
		p.Checks.Words = shape.CheckWords{Functions: c.functionsOf(m, where, functions...), Instead: p.Words.Combine, Combine: combine + ", all as one question"}
	}
}

func listed(said string, i int, x float64) string {
	if i > 0 {
		said += ", "
	}
	return said + shape.Edge(x)
}
