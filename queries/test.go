package queries

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdoutd/holdoutd/queries/expr"
	"github.com/holdoutd/holdoutd/queries/interval"
	"github.com/holdoutd/holdoutd/queries/shape"
	"github.com/holdoutd/holdoutd/rowfn"
)

var testKind = kind{
	name: "test",
	doc: `A hypothesis test. The answer has the effect with its interval, a p-value, and a verdict: yes if the null hypothesis is rejected, else undecided.

P-value and verdict hold for all questions of the holdout together, however you chose this one from earlier answers: **no further correction belongs on top**. The p-value is the least level at which the answer's
intervals exclude the null hypothesis; the verdict is yes if it is at most 1 - confidence. Only the independence of units is assumed, so p-values are larger than a textbook's. None is below 1e-9. It is null under naive
and under published bounds, which have no intervals at other levels.

Under guess_and_check a test of one number first tries a narrower interval, if the training part shows an effect. If that passes, the answer is close, with a p-value of at most 1 - confidence. If only the planned
half-width passes, it is rough: it has the usual interval and costs no token, and later intervals are wider, the first such by up to a quarter. A half_width of your own is taken in its place.

A plain_p_value is that of this one test, valid if you chose its hypothesis beforehand; it is not valid for one of many tests. It holds for any number of units, and for rare events (docs/proofs/p-values.md). It is there
where nothing was answered about these units before:

| test | under |
|---|---|
| mean and proportion without where, goodness-of-fit | gaussian, in the first request; split |
| mean and proportion with where, two-sample, two-proportions | gaussian with rounds=1, or of one question; split |
| the first question of all, if it is of one statistic | guess_and_check |

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
	price: price{"that of its effect", "that of its effect"},
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
	skip           bool
	Alternative    string
	Guess          guess
}

func (q *test) guess() *guess { return &q.Guess }

// The alternatives.
const (
	twoSided = string(shape.TwoSided)
	greater  = string(shape.Greater)
	less     = string(shape.Less)
)

// aTest is one of the tests.
type aTest struct {
	name    string
	needs   []string // members that it must have
	may     []string // members that it can have
	equals  float64  // the null value where none is declared
	compile func(q *test, c *compiler) *Plan
}

// tests is a function, for a test can hold any query.
func tests() []aTest {
	return []aTest{
		{"mean", []string{"of", "range"}, []string{"equals", "where", "null", "alternative", "guess", "half_width"}, 0, (*test).ofMean},
		{"proportion", []string{"of"}, []string{"equals", "where", "alternative", "guess", "half_width"}, 0.5, (*test).ofProportion},
		{"two-sample", []string{"of", "range", "between"}, []string{"equals", "where", "null", "alternative", "guess", "half_width"}, 0, (*test).ofDifference},
		{"two-proportions", []string{"of", "between"}, []string{"equals", "where", "alternative", "guess", "half_width"}, 0, (*test).ofDifference},
		{"correlation", []string{"x", "y", "range_x", "range_y"}, []string{"where", "alternative", "guess", "half_width"}, 0, (*test).ofCovariance},
		{"slope", []string{"x", "y", "range_x", "range_y"}, []string{"equals", "where", "alternative", "guess", "half_width"}, 0, (*test).ofSlope},
		{"goodness-of-fit", []string{"cells", "expected"}, nil, 0, (*test).ofCells},
		{"independence", []string{"rows", "columns"}, nil, 0, (*test).ofTable},
		{"value", []string{"query", "equals"}, []string{"alternative", "guess", "half_width"}, 0, (*test).ofValue},
	}
}

// members are all that it has, in the order of their documentation.
func (t aTest) members() []string { return slices.Concat(t.needs, t.may) }

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
	return append([]member{
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
		optional("null", nullForm{skipping{number{into: &q.Null}, &q.skip}, &q.Range}, nullDoc),
		optional("alternative", choice{&q.Alternative, []string{twoSided, greater, less}}, "greater and less reject in that direction only. The p-value does not become smaller, because intervals are two-sided"),
	}, q.Guess.members()...)
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
	q.leaveOut(v, t, pointer)
	for _, m := range q.members() {
		given := m.form.canonical() != nil
		switch {
		case m.name == "test":
		case slices.Contains(t.needs, m.name) && !given:
			v.add(pointer, `"`+m.name+`" is missing: `+m.doc)
		case !slices.Contains(t.members(), m.name) && given:
			v.add(pointer+"/"+m.name, "does not go with this test, which has "+strings.Join(t.members(), ", "))
		}
	}
	nullRule(v, pointer, q.Null, q.Range)
	switch r := q.Range; {
	case q.Between != nil:
		q.Guess.rules(v, pointer, differences(r))
	case q.Test == "proportion":
		q.Guess.rules(v, pointer, Range{Low: 0, High: 1})
	default: // of an effect whose range follows from others it is known when the test is compiled
		q.Guess.rules(v, pointer, r)
	}
	if q.Expected != nil {
		q.checkExpected(v, pointer+"/expected")
	}
	if q.Rows != nil && q.Columns != nil && (len(q.Rows)+1)*(len(q.Columns)+1) > maxTable {
		v.add(pointer+"/columns", fmt.Sprintf("makes more than %d cells", maxTable))
	}
}

// leaveOut leaves rows with nulls out of the tests that are of expressions and take a condition.
func (q *test) leaveOut(v *violations, t aTest, pointer string) {
	if q.skip && !slices.Contains(t.may, "where") {
		v.add(pointer+"/null", "does not go with this test, which has "+strings.Join(t.members(), ", "))
		return
	}
	leaveOut(v, pointer, &q.skip, &q.Where, q.Of, q.X, q.Y)
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
	p.Test = &shape.Test{Equals: q.equals(), Alternative: shape.Alternative(q.Alternative), Plain: q.plain(c.grouped), BySample: q.bySample(), Mixed: p.Checks != nil && !p.Checks.Clustered}
	if q.Cells == nil && q.Rows == nil {
		p.Words.Combine += fmt.Sprintf("; the null hypothesis, that it is %v, is rejected where the interval excludes it", q.equals())
		if q.Alternative != twoSided {
			p.Words.Combine += ", on the side of " + q.Alternative
		}
	}
	p.Words.Combine += ". The p-value is the least level at which it would be; it holds for all questions of the guarantee together, so no further correction belongs on top"
	return p
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
	zx, zy, training := c.pair(where, WeightUnit, x, y, q.RangeX, q.RangeY)
	if c.failed != nil {
		return nil
	}
	m := shape.MomentsOf(where, false, zx.Mean(), zy.Mean(), zx.Product(zy), zx.Square())
	// A slope has no largest value; a covariance and a variance have, and the grid's rounding makes this one.
	p := m.Plan(Range{Low: -MaxMagnitude, High: MaxMagnitude}, slopeOf(zy.Scale/zx.Scale))
	u, v := fmt.Sprintf("u = (%s clamped to %v - %v)/%v", q.X.Canonical(), q.RangeX, zx.Center, zx.Scale), fmt.Sprintf("v = (%s clamped to %v - %v)/%v", q.Y.Canonical(), q.RangeY, zy.Center, zy.Scale)
	p.Words = Description{
		Functions: c.functionsOf(m, q.Where, u, v, "u·v", "u²"),
		Combine:   fmt.Sprintf("(mean of u·v - mean of u · mean of v)/(mean of u² - (mean of u)²) · %v; undefined where the divisor is not positive", zy.Scale/zx.Scale),
		Null:      "a null counts as the low end of its range",
		Target: c.target("the slope by least squares of %s clamped to %v on %s clamped to %v%s", q.Y.Canonical(), q.RangeY, q.X.Canonical(), q.RangeX,
			c.rowsOf(q.Where, WeightUnit)),
	}
	b := training.slope()
	rest := zy.Minus(b, zx)
	p.Checks = m.CheckedBy(shape.Joint{Shares: slopeShares, Range: p.Range, Of: slopeBeyond(b, zy.Scale/zx.Scale)}, zx.Product(rest), zx.Square(), zx.Mean(), rest.Mean())
	c.sayJoint(p, m, q.Where, fmt.Sprintf("(%v + (the first mean - the product of the third and the fourth)/(the second - (the third)²)) · %v; undefined where the divisor is not positive", b, zy.Scale/zx.Scale),
		fmt.Sprintf("u·w, with w = v - %v·u, %s and %s,", b, u, v), "u²", "u", "w")
	return p
}

// slopeOf is the covariance of u and v by the variance of u, times a scale, from the means of u, v, u·v and u². The slope's sign is the
// covariance's; its size is largest for the least variance.
func slopeOf(scale float64) shape.Formula {
	return func(m []shape.Moment, _ int64) (float64, interval.Interval, bool) {
		u, v := m[0], m[1]
		variance := m[3].Value - u.Value*u.Value
		covariance := m[2].Bounds.Sub(u.Bounds.Mul(v.Bounds))
		spread := m[3].Bounds.Sub(u.Bounds.Square()).Clip(0, 1)
		bounds := interval.Interval{Low: -MaxMagnitude, High: MaxMagnitude}
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
		return (m[2].Value - u.Value*v.Value) / variance * scale, bounds, variance > 0
	}
}

// bySample reports whether the test is of means or fractions in groups of rows, which are read by their own sample in a batch and in slices.
func (q *test) bySample() bool {
	return q.Between != nil || q.Where != nil && (q.Test == "mean" || q.Test == "proportion")
}

// plain is the test's own p-value, where it has one that is right.
func (q *test) plain(grouped bool) *shape.Plain {
	share := shape.OfShare
	if grouped { // a unit's share need not be 0 or 1
		share = shape.OfMean
	}
	switch {
	case q.Test == "mean" && q.Where == nil:
		return &shape.Plain{Law: shape.OfMean, Null: []float64{(q.equals() - q.Range.Low) / (q.Range.High - q.Range.Low)}}
	case q.Test == "proportion" && q.Where == nil:
		return &shape.Plain{Law: share, Null: []float64{q.equals()}}
	case q.Test == "goodness-of-fit":
		return &shape.Plain{Law: share, Null: q.expectedShares()}
	}
	return nil
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
