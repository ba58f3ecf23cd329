package queries

import (
	"fmt"

	"github.com/holdoutd/holdoutd/queries/expr"
	"github.com/holdoutd/holdoutd/rowfn"
)

var compareKind = kind{
	name: "compare",
	doc: "Whether b is better than a, by the difference b - a of each row. For example two models' accuracies or losses, or two measurements. The " +
		"value is the mean difference. The verdict is yes if the whole interval is above by, no if none of it is, else undecided. It costs one " +
		"question; asking for both means costs two. On the same holdout its interval is as wide as those of the two means together. " +
		"If both means are near an end of their range, two queries can give a narrower result, because the difference is in the middle of its range.",
	examples: []string{
		`{"type":"compare","a":{"type":"mean","of":"delay","range":[-60,180]},"b":{"type":"mean","of":"distance / 10","range":[-60,180]}}`,
		`{"type":"compare","a":{"type":"accuracy","label":"delay > 15","prediction":"distance > 500"},"b":{"type":"accuracy","label":"delay > 15","prediction":"distance > 900"},"by":0.01}`,
	},
	make: func() body { return new(comparison) },
}

// comparison is {"type":"compare"}.
type comparison struct {
	A, B   *Query
	By     *float64
	Least  bool
	Where  *expr.Syntax
	Weight Weight
}

const operandDoc = "a query that is the mean of one row function, such as mean, fraction, accuracy or loss, without where, weight and guess"

func (q *comparison) members() []member {
	return []member{
		required("a", operand{&q.A}, "what b is compared with: "+operandDoc),
		required("b", operand{&q.B}, "what may be better: "+operandDoc),
		optional("by", defaultZero{number{into: &q.By}}, "how much better b must be for the verdict yes; default: 0"),
		optional("least", truth{&q.Least}, "true if less is better, as for a loss: the verdict is then yes if the whole interval of b - a is below -by"),
		optional("where", expression{&q.Where}, whereDoc),
		optional("weight", weightForm{&q.Weight}, weightDoc),
	}
}

func (q *comparison) nests() {}

func (q *comparison) rules(v *violations, pointer string) {
	if q.By != nil && *q.By < 0 {
		v.add(pointer+"/by", "must not be negative")
	}
}

func (q *comparison) compile(c *compiler) *Plan {
	fa, a := c.single("a", q.A)
	fb, b := c.single("b", q.B)
	where := c.condition("where", q.Where)
	if a == nil || b == nil || len(c.list) > 0 {
		return nil
	}
	r := Range{fb.Lo - fa.Hi, fb.Hi - fa.Lo}
	if problem := r.problem(); problem != "" {
		c.add(c.pointer+"/b", "the range of the difference "+problem)
		return nil
	}
	f := RowFunction{Value: rowfn.Sub(inUnits(fb), inUnits(fa)), Lo: r.Low, Hi: r.High, Null: r.Low}
	p := average(c, f, where, q.Weight)
	p.FromZero = true
	text := fmt.Sprintf("b - a, with a the %s and b the %s", a.describe.Functions[0], b.describe.Functions[0])
	p.describeAverage(c, "mean of "+text, text, q.Where, q.Weight)
	by := orZero(q.By)
	p.decide(func(low, high float64) Verdict {
		if q.Least {
			low, high = -high, -low
		}
		return above(low, high, by)
	})
	better := fmt.Sprintf("above %v", by)
	if q.Least {
		better = fmt.Sprintf("below %v", 0-by)
	}
	p.describe.Combine += "; b is better where the whole interval is " + better + ". Both means by themselves would cost one question more"
	p.describe.Null = "a: " + a.describe.Null + "; b: " + b.describe.Null
	return p
}

// decide adds a verdict to an answer that is one number.
func (p *Plan) decide(verdict func(low, high float64) Verdict) {
	inner := p.combine
	p.combine = func(o Outcome) Result {
		r := inner(o)
		r.Verdict = Undecided
		if r.Value != nil && r.Low != nil && r.High != nil {
			r.Verdict = verdict(*r.Low, *r.High)
		}
		return r
	}
}

// above is whether a number with this interval is above c.
func above(low, high, c float64) Verdict {
	switch {
	case low > c:
		return Yes
	case high <= c:
		return No
	}
	return Undecided
}

func orZero(x *float64) float64 {
	if x == nil {
		return 0
	}
	return *x
}

// defaultZero is a number that is absent where it says 0.
type defaultZero struct{ number }

func (f defaultZero) canonical() any {
	if orZero(*f.into) == 0 {
		return nil
	}
	return f.number.canonical()
}

func (f defaultZero) schema() map[string]any {
	s := f.number.schema()
	s["default"] = 0
	return s
}
