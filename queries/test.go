package queries

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/holdoutd/holdoutd/queries/expr"
	"github.com/holdoutd/holdoutd/queries/interval"
	"github.com/holdoutd/holdoutd/rowfn"
)

var testKind = kind{
	name: "test",
	doc: `A hypothesis test. The answer has the effect with its interval, a p-value, and a verdict: yes if the null hypothesis is rejected, else undecided.
P-value and verdict hold for all questions of the guarantee together, however you chose this one from earlier answers: **no further correction belongs on top**. The verdict is yes if the interval excludes the null
hypothesis, which is the case if the p-value is at most 1 - confidence. The p-value is the least level at which the answer's intervals exclude it. These intervals hold together and assume only that
units are independent, so p-values are larger than a textbook's. None is below 1e-9. The p-value is null under naive and under published bounds, which have no intervals at other levels.

For mean and proportion (both without where) and for goodness-of-fit the answer also has a plain_p_value, if no answer about these units was given before: in the first request of a gaussian holdout, and under
split. It is valid for this one test, if you chose its hypothesis beforehand. It is not valid for one of many tests. It holds for any number of units and for rare events: for a proportion it is exact (the binomial law); for a mean it uses the
largest tail that numbers in the range can have, at most e times the binomial one (Bentkus); for cells it is the least of the cells' p-values times their number.

| test | members | null hypothesis | effect |
|---|---|---|---|
| mean | of, range, equals, where, null | the mean of the clamped number is equals (default: 0) | the mean |
| proportion | of, equals, where | the fraction of the condition is equals (default: 0.5) | the fraction |
| two-sample | of, range, between, equals, where, null | the difference of two groups' means is equals (default: 0) | the difference, as in difference |
| two-proportions | of, between, equals, where | the difference of two groups' fractions is equals (default: 0) | the difference |
| correlation | x, y, range_x, range_y, where | the clamped numbers are not correlated | their covariance |
| slope | x, y, range_x, range_y, equals, where | the slope of y on x, by least squares, is equals (default: 0) | the slope |
| goodness-of-fit | cells, expected | the cells have the expected shares; rows for which no condition holds are in a last cell | the largest deviation of a share; items: each share minus what is expected |
| independence | rows, columns | row and column are independent; rows for which no condition holds are in a last row or column | the largest deviation of a cell; items: each cell's share minus the product of its margins |
| value | query, equals | the answer of any query that is one number is equals | that answer |`,
	examples: []string{
		`{"type":"test","test":"mean","of":"delay","range":[-60,180],"equals":5}`,
		`{"type":"test","test":"two-proportions","of":"delay > 15","between":["origin == 'SFO'","origin == 'OAK'"]}`,
		`{"type":"test","test":"two-sample","of":"delay","range":[-60,180],"between":["distance < 500"],"alternative":"less"}`,
		`{"type":"test","test":"correlation","x":"delay","y":"distance","range_x":[-60,180],"range_y":[0,3000]}`,
		`{"type":"test","test":"goodness-of-fit","cells":["origin == 'SFO'","origin == 'OAK'"],"expected":[0.1,0.05]}`,
		`{"type":"test","test":"independence","rows":["delay > 15"],"columns":["distance < 500","distance < 1000"]}`,
		`{"type":"test","test":"value","query":{"type":"mean","of":"delay","range":[-60,180],"where":"distance < 500"},"equals":5}`,
	},
	make: func() body { return &test{Alternative: twoSided} },
}

// test is {"type":"test"}.
type test struct {
	Test           string
	Of             *expr.Syntax
	Range          Range
	X, Y           *expr.Syntax
	RangeX, RangeY Range
	Between        []*expr.Syntax
	Cells          []*expr.Syntax
	Expected       []float64
	Rows, Columns  []*expr.Syntax
	Query          *Query
	Equals         *float64
	Where          *expr.Syntax
	Null           *float64
	Alternative    string
}

// The alternatives.
const (
	twoSided = "two-sided"
	greater  = "greater"
	less     = "less"
)

// aTest is one of the tests: its members, of which those without "?" are required, the default of the null value, and its plan.
type aTest struct {
	name    string
	members string
	equals  float64
	compile func(q *test, c *compiler) *Plan
}

// tests is a function, for a test can hold any query.
func tests() []aTest {
	return []aTest{
		{"mean", "of range equals? where? null? alternative?", 0, (*test).ofMean},
		{"proportion", "of equals? where? alternative?", 0.5, (*test).ofProportion},
		{"two-sample", "of range between equals? where? null? alternative?", 0, (*test).ofDifference},
		{"two-proportions", "of between equals? where? alternative?", 0, (*test).ofDifference},
		{"correlation", "x y range_x range_y where? alternative?", 0, (*test).ofCovariance},
		{"slope", "x y range_x range_y equals? where? alternative?", 0, (*test).ofSlope},
		{"goodness-of-fit", "cells expected", 0, (*test).ofCells},
		{"independence", "rows columns", 0, (*test).ofTable},
		{"value", "query equals alternative?", 0, (*test).ofValue},
	}
}

func testNames() []string {
	var names []string
	for _, t := range tests() {
		names = append(names, t.name)
	}
	return names
}

// MaxCells bounds the cells of one goodness-of-fit, and the rows and the columns of one test of independence.
const MaxCells = 50

func (q *test) members() []member {
	return []member{
		required("test", word{&q.Test, testNames()}, "which test"),
		optional("of", expression{&q.Of}, "the number, or the condition of proportions: a row expression"),
		optional("range", optionalRange{&q.Range}, rangeDoc),
		optional("x", expression{&q.X}, "one number; of slope, the one that explains y"),
		optional("y", expression{&q.Y}, "the other number"),
		optional("range_x", optionalRange{&q.RangeX}, "[low, high]: values of x are clamped to it"),
		optional("range_y", optionalRange{&q.RangeY}, "[low, high]: values of y are clamped to it"),
		optional("between", conditions{&q.Between, 1, 2}, "the first group and the second, as in difference"),
		optional("cells", conditions{&q.Cells, 1, MaxCells}, "conditions; a row is in the cell of the first that holds. Rows for which none holds are in a last cell"),
		optional("expected", sharesForm{&q.Expected, MaxCells}, "the share of each cell under the null hypothesis; the last cell has the rest"),
		optional("rows", conditions{&q.Rows, 1, MaxCells}, "conditions; a row is in the first that holds"),
		optional("columns", conditions{&q.Columns, 1, MaxCells}, "conditions; a row is in the first that holds"),
		optional("query", operand{&q.Query}, "a query whose answer is one number"),
		optional("equals", number{into: &q.Equals}, "the value under the null hypothesis"),
		optional("where", expression{&q.Where}, "a condition: only rows for which it holds count"),
		optional("null", nullForm{number{into: &q.Null}, &q.Range}, nullDoc),
		optional("alternative", choice{&q.Alternative, []string{twoSided, greater, less}}, "greater and less reject in that direction only. The p-value does not become smaller, because intervals are two-sided"),
	}
}

func (q *test) nests() {}

func (q *test) which() (aTest, bool) {
	all := tests()
	if i := slices.IndexFunc(all, func(t aTest) bool { return t.name == q.Test }); i >= 0 {
		return all[i], true
	}
	return aTest{}, false
}

func (q *test) rules(v *violations, pointer string) {
	t, ok := q.which()
	if !ok || len(v.list) > 0 {
		return
	}
	if q.Equals != nil && *q.Equals == t.equals && q.Test != "value" { // the default has one spelling
		q.Equals = nil
	}
	has := map[string]bool{"test": true}
	for _, name := range strings.Fields(t.members) {
		needed := !strings.HasSuffix(name, "?")
		has[strings.TrimSuffix(name, "?")] = true
		for _, m := range q.members() {
			if m.name == name && needed && m.form.canonical() == nil {
				v.add(pointer, `"`+name+`" is missing: `+m.doc)
			}
		}
	}
	for _, m := range q.members() {
		if !has[m.name] && m.form.canonical() != nil {
			v.add(pointer+"/"+m.name, "does not go with this test, which has "+strings.ReplaceAll(strings.ReplaceAll(t.members, "?", ""), " ", ", "))
		}
	}
	nullRule(v, pointer, q.Null, q.Range)
	if q.Expected != nil {
		q.checkExpected(v, pointer+"/expected")
	}
	if q.Rows != nil && q.Columns != nil && (len(q.Rows)+1)*(len(q.Columns)+1) > maxTable {
		v.add(pointer+"/columns", fmt.Sprintf("makes more than %d cells", maxTable))
	}
}

// equals is what the null says.
func (q *test) equals() float64 {
	if q.Equals != nil {
		return *q.Equals
	}
	t, _ := q.which()
	return t.equals
}

func (q *test) compile(c *compiler) *Plan {
	t, _ := q.which()
	p := t.compile(q, c)
	if p == nil || len(c.list) > 0 || c.failed != nil {
		return nil
	}
	if q.Cells == nil && q.Rows == nil {
		p.reject(func(r Result) bool { return r.excludes(q.equals(), q.Alternative) })
		p.describe.Combine += fmt.Sprintf("; the null hypothesis, that it is %v, is rejected where the interval excludes it", q.equals())
		if q.Alternative != twoSided {
			p.describe.Combine += ", on the side of " + q.Alternative
		}
	}
	plain, combine := q.plain(c), p.combine
	p.combine = func(o Outcome) Result {
		r := combine(o)
		r.Alone = plain(o)
		return r
	}
	p.describe.Combine += ". The p-value is the least level at which it would be; it holds for all questions of the guarantee together, so no further correction belongs on top"
	return p
}

// excludes reports whether the interval excludes a number, on the side of the alternative.
func (r Result) excludes(x float64, alternative string) bool {
	if r.Low == nil || r.High == nil {
		return false
	}
	return alternative != less && *r.Low > x || alternative != greater && *r.High < x
}

// reject makes an answer one of a test. rejected sees the answer as its parts' intervals make it, at any level.
func (p *Plan) reject(rejected func(Result) bool) {
	inner := p.combine
	p.combine = func(o Outcome) Result {
		r := inner(o)
		r.Verdict = Undecided
		if rejected(r) {
			r.Verdict = Yes
		}
		r.PValue = pValue(o, func(o Outcome) bool { return rejected(inner(o)) })
		return r
	}
}

const (
	// leastLevel is the least p-value: intervals are not read at smaller levels (thresholdout.MinLevel).
	leastLevel = 1e-9
	// almostOne is a level that says no less than 1 does.
	almostOne = 0.999
	// levelSteps halve the logarithm's range: p-values are up by at most 1 in 1000.
	levelSteps = 15
)

// pValue is the least level at which the parts' intervals reject, rounded up (docs/proofs/p-values.md); 1 if there is none, nil where
// levels are not known. It is at most the guarantee's level if and only if the answer itself rejects.
func pValue(o Outcome, rejects func(Outcome) bool) *float64 {
	rejectsAt := func(level float64) bool {
		read, ok := o.at(level)
		return ok && rejects(read)
	}
	if _, ok := o.at(leastLevel); !ok {
		return nil
	}
	low, high := leastLevel, 1.0
	if o.Level > 0 {
		if rejects(o) {
			high = o.Level
		} else {
			low = o.Level
		}
	}
	switch {
	case low == leastLevel && rejectsAt(low):
		return &low
	case high == 1 && !rejectsAt(almostOne): // as most tests of true nulls: none of the levels below needs a look
		return &high
	}
	for range levelSteps {
		if middle := math.Sqrt(low * high); rejectsAt(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return &high
}

// at is what was released with its intervals at another level; false where they are not known.
func (o Outcome) at(level float64) (Outcome, bool) {
	parts := slices.Clone(o.Parts)
	for i := range parts {
		p := &parts[i]
		if p.At == nil || p.Missing {
			return o, false
		}
		var ok bool
		if p.Low, p.High, ok = p.At(level); !ok {
			return o, false
		}
		p.Bounded = true
	}
	o.Parts = parts
	return o, len(parts) > 0
}

func (q *test) ofMean(c *compiler) *Plan {
	return (&mean{Of: q.Of, Range: q.Range, Where: q.Where, Null: q.Null}).compile(c)
}

func (q *test) ofProportion(c *compiler) *Plan {
	return (&fraction{Of: q.Of, Where: q.Where}).compile(c)
}

func (q *test) ofDifference(c *compiler) *Plan {
	return (&difference{Of: q.Of, Range: q.Range, Between: q.Between, Where: q.Where, Null: q.Null}).compile(c)
}

func (q *test) ofValue(c *compiler) *Plan { return c.scalar("query", q.Query) }

// ofCovariance: two numbers are correlated where their covariance is not 0, which needs two means less than the correlation.
func (q *test) ofCovariance(c *compiler) *Plan {
	a := newAssociation(false)
	a.X, a.Y, a.RangeX, a.RangeY, a.Where, a.Form = q.X, q.Y, q.RangeX, q.RangeY, q.Where, formExact
	return a.compile(c)
}

// ofSlope asks for the covariance and the variance of x.
func (q *test) ofSlope(c *compiler) *Plan {
	x, y, where := c.number("x", q.X), c.number("y", q.Y), c.condition("where", q.Where)
	if len(c.list) > 0 {
		return nil
	}
	x, y = rowfn.OrElse(x, q.RangeX.Low), rowfn.OrElse(y, q.RangeY.Low)
	at := centers(c, "x", where, WeightUnit, []Range{q.RangeX, q.RangeY}, x, y)
	if at == nil || c.failed != nil {
		return nil
	}
	zx, zy := centeredAt(x, q.RangeX, at[0]), centeredAt(y, q.RangeY, at[1])
	m := momentsOf(c, where, WeightUnit, zx.mean(), zy.mean(), zx.product(zy), zx.square())
	// A slope has no largest value; a covariance and a variance have, and the grid's rounding makes this one.
	p := &Plan{Functions: m.functions, Range: Range{-MaxMagnitude, MaxMagnitude}, FromZero: true, combine: slopeOf(m, zy.scale/zx.scale)}
	p.describe = Description{
		Functions: m.functionsOf(c, q.Where,
			fmt.Sprintf("u = (%s clamped to %v - %v)/%v", q.X.Canonical(), q.RangeX, zx.center, zx.scale),
			fmt.Sprintf("v = (%s clamped to %v - %v)/%v", q.Y.Canonical(), q.RangeY, zy.center, zy.scale), "u·v", "u²"),
		Combine: fmt.Sprintf("(mean of u·v - mean of u · mean of v)/(mean of u² - (mean of u)²) · %v; undefined where the divisor is not positive", zy.scale/zx.scale),
		Null:    "a null counts as the low end of its range",
		Target: c.target("the slope by least squares of %s clamped to %v on %s clamped to %v%s", q.Y.Canonical(), q.RangeY, q.X.Canonical(), q.RangeX,
			rowsOf(c, q.Where, WeightUnit)),
	}
	return p
}

// slopeOf is the covariance of u and v by the variance of u, from the means of u, v, u·v and u². The slope's sign is the covariance's; its size is
// largest for the least variance.
func slopeOf(m moments, scale float64) func(Outcome) Result {
	return func(o Outcome) Result {
		means, bounded, defined := m.read(o)
		u, v := means[0], means[1]
		variance := means[3].value - u.value*u.value
		covariance := means[2].bounds.Sub(u.bounds.Mul(v.bounds))
		spread := means[3].bounds.Sub(u.bounds.Square()).Clip(0, 1)
		most := Range{-MaxMagnitude, MaxMagnitude}
		bounds := interval.Interval{Low: most.Low, High: most.High}
		if spread.Low > 0 {
			bounds = covariance.Div(spread).Mul(interval.Point(scale))
		} else if spread.High > 0 {
			if covariance.Low > 0 {
				bounds.Low = covariance.Div(interval.Point(spread.High)).Mul(interval.Point(scale)).Low
			}
			if covariance.High < 0 {
				bounds.High = covariance.Div(interval.Point(spread.High)).Mul(interval.Point(scale)).High
			}
		}
		return answer((means[2].value-u.value*v.value)/variance*scale, bounds, bounded, defined && variance > 0, most)
	}
}

// word is one of a few words, needed.
type word struct {
	into  *string
	words []string
}

func (f word) read(v *violations, pointer string, in *value) {
	choice{f.into, f.words}.read(v, pointer, in)
}

func (f word) canonical() any {
	if *f.into == "" {
		return nil
	}
	return *f.into
}

func (f word) schema() map[string]any { return map[string]any{"type": "string", "enum": f.words} }
