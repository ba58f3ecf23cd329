package queries

import (
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/queries/expr"
	"github.com/holdoutd/holdoutd/queries/interval"
	"github.com/holdoutd/holdoutd/queries/shape"
	"github.com/holdoutd/holdoutd/rowfn"
)

const associationDoc = " The form clipped is the mean of the product of the z-scores of x and y, clamped to ±clip. Their centers and scales are the training part's, or declared. " +
	"Its interval is about the clamped mean, which is nearer to 0: .449 where Pearson's is .5. "

var correlationKind = kind{
	name:  "correlation",
	doc:   "The correlation of two numbers, clamped to ranges." + associationDoc + "The form exact is Pearson's correlation; its interval is the narrower, the stronger the correlation is.",
	price: price{"clipped 1, with where 2; exact 5, with where 6", "1"},
	examples: []string{
		`{"type":"correlation","x":"delay","y":"distance","range_x":[-60,180],"range_y":[0,3000]}`,
		`{"type":"correlation","x":"delay","y":"distance","range_x":[-60,180],"range_y":[0,3000],"form":"exact"}`,
		`{"type":"correlation","x":"delay","y":"distance","range_x":[-60,180],"range_y":[0,3000],"center_x":7,"scale_x":30,"center_y":700,"scale_y":550}`,
	},
	make: func() body { return newAssociation(true) },
}

var covarianceKind = kind{
	name:  "covariance",
	doc:   "The covariance of two numbers, clamped to ranges." + associationDoc + "A clipped answer is the mean times the scales. The form exact is E[xy] - E[x]E[y], about public centers.",
	price: price{"clipped 1, with where 2; exact 3, with where 4", "1"},
	examples: []string{
		`{"type":"covariance","x":"delay","y":"distance","range_x":[-60,180],"range_y":[0,3000]}`,
		`{"type":"covariance","x":"delay","y":"distance","range_x":[-60,180],"range_y":[0,3000],"form":"exact","where":"origin == 'SFO'"}`,
	},
	make: func() body { return newAssociation(false) },
}

// The forms of an association.
const (
	formClipped = "clipped"
	formExact   = "exact"
)

// association is {"type":"correlation"} and {"type":"covariance"}.
type association struct {
	X, Y           *expr.Syntax
	RangeX, RangeY Range
	Where          *expr.Syntax
	Weight         Weight
	Form           string // "": exact where that is one question, else clipped
	Clip           float64
	clips          bool // clip was named
	CenterX        *float64
	ScaleX         *float64
	CenterY        *float64
	ScaleY         *float64
	bearing
	Guess    guess
	standard bool // correlation
	skip     bool
}

func newAssociation(standard bool) *association {
	return &association{Clip: DefaultClip, standard: standard}
}

func (q *association) members() []member {
	m := []member{
		required("x", expression{&q.X}, "one number: a row expression"),
		required("y", expression{&q.Y}, "the other number: a row expression"),
		required("range_x", rangeForm{&q.RangeX}, "[low, high]: values of x are clamped to it"),
		required("range_y", rangeForm{&q.RangeY}, "[low, high]: values of y are clamped to it"),
		optional("where", expression{&q.Where}, whereDoc),
		optional("null", skipForm{&q.skip}, skipPair),
		optional("weight", weightForm{&q.Weight}, weightDoc),
		optional("form", associationForm{q}, "clipped: the mean of clipped products; exact: from all moments; default: clipped where clip, a center or a scale is named; else exact where that is one question, and clipped elsewhere"),
		optional("clip", namedClip{clipForm{&q.Clip}, &q.clips}, "the product of the z-scores is clamped to ±clip, in [1e-6, 1e6]; the interval is proportional to clip"),
		optional("center_x", number{into: &q.CenterX}, "what is subtracted from x; default: the training part's mean"),
		optional("scale_x", number{into: &q.ScaleX, above: &zero}, "what x is divided by; default: the training part's standard deviation"),
		optional("center_y", number{into: &q.CenterY}, "what is subtracted from y; default: the training part's mean"),
		optional("scale_y", number{into: &q.ScaleY, above: &zero}, "what y is divided by; default: the training part's standard deviation"),
	}
	return append(append(m, q.bearing.member()), q.Guess.members()...)
}

// clipsOnly says that something is named that the clipped form alone has.
func (q *association) clipsOnly() bool {
	return q.Clip != DefaultClip || q.CenterX != nil || q.ScaleX != nil || q.CenterY != nil || q.ScaleY != nil
}

// associationForm is the form of an association. Absence was the clipped form once, and is what a holdout answers best now: the canonical form of what was asked then is what it was, so that
// recorded answers are replayed. A query that names the clipped form is another question, unless it names something that this form alone has.
type associationForm struct{ of *association }

func (f associationForm) words() []string { return []string{formClipped, formExact} }

func (f associationForm) read(v *violations, pointer string, in *value) {
	choice{&f.of.Form, f.words()}.read(v, pointer, in)
}

func (f associationForm) canonical() any {
	if f.of.Form == "" || f.of.Form == formClipped && f.of.clipsOnly() {
		return nil
	}
	return f.of.Form
}

func (f associationForm) schema() map[string]any {
	return map[string]any{"type": "string", "enum": f.words()}
}

// namedClip is a clip that remembers whether it was named.
type namedClip struct {
	clipForm
	named *bool
}

func (f namedClip) read(v *violations, pointer string, in *value) {
	*f.named = true
	f.clipForm.read(v, pointer, in)
}

func (q *association) guess() *guess { return &q.Guess }

func (q *association) rules(v *violations, pointer string) {
	leaveOut(v, pointer, &q.skip, &q.Where, q.X, q.Y)
	if q.standard && q.Form != formExact {
		q.Guess.rules(v, pointer, Range{Low: -q.Clip, High: q.Clip})
	}
	for _, m := range []struct {
		name  string
		value *float64
		scale bool
		in    Range
	}{{"center_x", q.CenterX, false, q.RangeX}, {"scale_x", q.ScaleX, true, q.RangeX}, {"center_y", q.CenterY, false, q.RangeY}, {"scale_y", q.ScaleY, true, q.RangeY}} {
		switch {
		case m.value == nil || !m.in.Valid():
		case q.Form == formExact:
			v.add(pointer+"/"+m.name, `goes with "form":"clipped"; the exact form is the same about any center`)
		case !m.scale && !m.in.Contains(*m.value):
			v.add(pointer+"/"+m.name, "must lie in the range")
		case m.scale && !(*m.value >= leastSpread*(m.in.High-m.in.Low)) || m.scale && *m.value > m.in.High-m.in.Low:
			v.add(pointer+"/"+m.name, fmt.Sprintf("must be between %v of the width of the range and that width", leastSpread))
		}
	}
	if q.clips && q.Form == "" {
		q.Form = formClipped
	}
	if q.Form == formExact && q.Clip != DefaultClip {
		v.add(pointer+"/clip", `goes with "form":"clipped"; the exact form clips nothing but to the ranges`)
	}
}

func (q *association) compile(c *compiler) *Plan {
	x, y, where := c.number("x", q.X), c.number("y", q.Y), c.condition("where", q.Where)
	if x == nil || y == nil || len(c.list) > 0 {
		return nil
	}
	p, counts := (*Plan)(nil), "count as the low end of the range"
	if q.Form == formExact || q.Form == "" && !q.clipsOnly() && c.asOne && !c.rowVotes(q.Weight) {
		p = q.exact(c, rowfn.OrElse(x, q.RangeX.Low), rowfn.OrElse(y, q.RangeY.Low), where)
	} else {
		p, counts = q.clipped(c, x, y, where), "count as a product of 0"
		if p != nil {
			p.Clipped = q.Form == "" && !q.clipsOnly()
		}
	}
	c.watch(p, q.X, x, q.RangeX, where, counts)
	c.watch(p, q.Y, y, q.RangeY, where, counts)
	return p
}

// score is a number with the center and the scale of its z-score.
type score struct {
	of            *rowfn.Node
	in            Range
	center, scale *float64 // declared
	member, text  string
	at, spread    float64 // center and scale that are used
}

// clipped asks for the mean of clamp(zx·zy, -clip, clip).
func (q *association) clipped(c *compiler, x, y, where *rowfn.Node) *Plan {
	scores := []*score{
		{of: x, in: q.RangeX, center: q.CenterX, scale: q.ScaleX, member: "x", text: q.X.Canonical()},
		{of: y, in: q.RangeY, center: q.CenterY, scale: q.ScaleY, member: "y", text: q.Y.Canonical()},
	}
	var z [2]*rowfn.Node
	for i, s := range scores {
		if !s.settle(c, where, q.Weight) {
			return nil
		}
		z[i] = rowfn.Div(rowfn.Sub(s.in.Clamp(s.of), rowfn.Const(s.at)), rowfn.Const(s.spread))
	}
	r := Range{Low: -q.Clip, High: q.Clip}
	p := shape.Average(RowFunction{Value: rowfn.Mul(z[0], z[1]), Lo: r.Low, Hi: r.High}, where, c.rowVotes(q.Weight))
	p.FromZero = true
	text := fmt.Sprintf("the product of %s and %s, clipped to %v", scores[0], scores[1], r)
	c.sayAverage(p, "mean of "+text, text, q.Where, q.Weight)
	p.Words.Null = "a row in which x or y is null counts as 0"
	if !q.standard {
		factor := scores[0].spread * scores[1].spread
		p.ScaleBy(factor)
		p.Words.Combine += fmt.Sprintf(", times %v", factor)
		p.Words.Target = fmt.Sprintf("%v times ", factor) + p.Words.Target
	}
	return p
}

// settle finds center and scale: declared, or of the training part. It is false after a violation.
func (s *score) settle(c *compiler, where *rowfn.Node, weight Weight) bool {
	if s.center != nil {
		s.at = *s.center
	}
	if s.scale != nil {
		s.spread = *s.scale
	}
	if s.center != nil && s.scale != nil {
		return true
	}
	middle := s.in.Low/2 + s.in.High/2
	z := shape.CenteredAt(rowfn.OrElse(s.of, middle), s.in, middle)
	means := c.inTraining(shape.MomentsOf(where, c.rowVotes(weight), z.Mean(), z.Square()), s.member,
		fmt.Sprintf("declare center_%s and scale_%s", s.member, s.member))
	if means == nil {
		if len(c.list) == 0 && c.failed == nil {
			c.add(c.pointer+"/where", fmt.Sprintf("holds nowhere in the training part; declare center_%s and scale_%s", s.member, s.member))
		}
		return false
	}
	if s.center == nil {
		s.at = min(max(middle+z.Scale*means[0], s.in.Low), s.in.High)
	}
	if s.scale == nil {
		s.spread = z.Scale * math.Sqrt(max(0, means[1]-means[0]*means[0]))
		if s.spread < leastSpread*(s.in.High-s.in.Low) {
			c.add(c.pointer+"/"+s.member, fmt.Sprintf("hardly varies in the training part, within its range; declare scale_%s", s.member))
			return false
		}
	}
	return true
}

// String is the z-score in words.
func (s *score) String() string {
	return fmt.Sprintf("(%s clamped to %v - %v)/%v", s.text, s.in, s.at, s.spread)
}

// exact asks for the means of zx, zy and zx·zy about public centers, and for a correlation of their squares.
func (q *association) exact(c *compiler, x, y, where *rowfn.Node) *Plan {
	zx, zy, training := c.pair(where, q.Weight, x, y, q.RangeX, q.RangeY)
	functions := []RowFunction{zx.Mean(), zy.Mean(), zx.Product(zy)}
	first, second := fmt.Sprintf("u = (%s clamped to %v - %v)/%v", q.X.Canonical(), q.RangeX, zx.Center, zx.Scale),
		fmt.Sprintf("v = (%s clamped to %v - %v)/%v", q.Y.Canonical(), q.RangeY, zy.Center, zy.Scale)
	names := []string{first, second, "u·v"}
	if q.standard {
		functions, names = append(functions, zx.Square(), zy.Square()), append(names, "u²", "v²")
	}
	m := shape.MomentsOf(where, c.rowVotes(q.Weight), functions...)
	text := fmt.Sprintf("%s clamped to %v and %s clamped to %v%s", q.X.Canonical(), q.RangeX, q.Y.Canonical(), q.RangeY, c.rowsOf(q.Where, q.Weight))
	words := Description{
		Functions: c.functionsOf(m, q.Where, names...),
		Combine:   fmt.Sprintf("(mean of u·v - mean of u · mean of v) · %v", zx.Scale*zy.Scale),
		Null:      "a null counts as the low end of its range",
		Target:    c.target("the covariance of %s", text),
	}
	if !q.standard {
		most := (q.RangeX.High/2 - q.RangeX.Low/2) * (q.RangeY.High/2 - q.RangeY.Low/2)
		p := m.Plan(Range{Low: -most, High: most}, covarianceOf(zx.Scale*zy.Scale))
		p.Checks = m.CheckedBy(shape.Joint{Shares: covarianceShares, Range: p.Range, Of: covarianceOf(zx.Scale * zy.Scale)}, functions...)
		p.Words = words
		c.sayJoint(p, m, q.Where, words.Combine, names...)
		return p
	}
	p := m.Plan(Range{Low: -1, High: 1}, correlationOf)
	p.Words = words
	p.Words.Combine = "(mean of u·v - mean of u · mean of v) / the square root of (mean of u² - (mean of u)²)(mean of v² - (mean of v)²); undefined where that is not positive"
	p.Words.Target = c.target("Pearson's correlation of %s", text)

	factor, r := training.scales()
	sign := math.Copysign(1, factor)
	sum, difference := zx.Minus(-factor, zy), zx.Minus(factor, zy)
	p.Checks = m.CheckedBy(shape.Joint{Shares: correlationShares, Range: p.Range, Of: correlationBeyond(r, sign)},
		shape.Beyond(difference.Square(), r, sum.Square()), sum.Square(), shape.Beyond(zx.Square(), factor*factor, zy.Square()), sum.Mean(), difference.Mean())
	c.sayJoint(p, m, q.Where, fmt.Sprintf("R = %v + (the first mean - (the fifth)² + %v · (the fourth)²)/(the second - (the fourth)²), which is E[q²]/E[p²] about their means; (1 - R)/(1 + R) "+
		"by the square root of 1 - d², d being the difference of the variances of u and %v·v by their sum, times %v", r, r, factor, sign),
		fmt.Sprintf("q² - %v·p², with p = u + %v·v and q = u - %v·v, %s and %s", r, factor, factor, first, second), "p²", fmt.Sprintf("u² - (%v·v)²", factor), "p", "q")
	return p
}

// covarianceOf is E[uv] - E[u]E[v], from the means of u, v and u·v, times a scale.
func covarianceOf(scale float64) shape.Formula {
	return func(m []shape.Moment, _ int64) (float64, interval.Interval, bool) {
		return (m[2].Value - m[0].Value*m[1].Value) * scale, m[2].Bounds.Sub(m[0].Bounds.Mul(m[1].Bounds)).Mul(interval.Point(scale)), true
	}
}

// correlationOf is Pearson's correlation from the means of u, v, u·v, u² and v². It rises with the covariance, and with the
// variances moves towards 0, so that its extremes are at the ends of the three intervals.
func correlationOf(m []shape.Moment, _ int64) (float64, interval.Interval, bool) {
	u, v := m[0], m[1]
	covariance := m[2].Value - u.Value*v.Value
	product := max(m[3].Value-u.Value*u.Value, 0) * max(m[4].Value-v.Value*v.Value, 0)
	c := m[2].Bounds.Sub(u.Bounds.Mul(v.Bounds))
	root := m[3].Bounds.Sub(u.Bounds.Square()).Clip(0, 1).Mul(m[4].Bounds.Sub(v.Bounds.Square()).Clip(0, 1)).Sqrt()
	bounds := interval.Interval{Low: -1, High: 1}
	if root.Low > 0 {
		bounds = c.Div(root).Clip(-1, 1)
	} else if root.High > 0 { // a covariance that is surely not 0 tells the sign, and the variances are at most so large
		if c.Low > 0 {
			bounds.Low = c.Div(interval.Point(root.High)).Low
		}
		if c.High < 0 {
			bounds.High = c.Div(interval.Point(root.High)).High
		}
	}
	return covariance / math.Sqrt(product), bounds.Clip(-1, 1), product > 0
}
