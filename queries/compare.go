package queries

import (
	"fmt"

	"github.com/holdoutd/holdoutd/queries/expr"
	"github.com/holdoutd/holdoutd/queries/shape"
	"github.com/holdoutd/holdoutd/rowfn"
)

var compareKind = kind{
	name: "compare",
	doc: "Whether b is better than a, by the difference b - a of each row. For example two models' accuracies or losses, or two measurements. The " +
		"value is the mean difference. The verdict is yes if the whole interval is above by, no if none of it is, else undecided. It costs one " +
		"question; asking for both means costs two. On the same holdout its interval is as wide as those of the two means together; under guess_and_check it follows how much the differences vary, and is narrow where a and b seldom differ. " +
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

func (q *comparison) members() []member {
	return []member{
		required("a", operand{&q.A}, "what b is compared with: "+operandDoc),
		required("b", operand{&q.B}, "what may be better: "+operandDoc),
		optional("by", defaultZero{number{into: &q.By}}, "how much better b must be for the verdict yes; default: 0"),
		optional("least", truth{&q.Least}, "true if less is better, as for a loss: the verdict is then yes if the whole interval of b - a is below -by"),
		optional("where", expression{&q.Where}, whereMeanDoc),
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
	r := Range{Low: fb.Lo - fa.Hi, High: fb.Hi - fa.Lo}
	if problem := r.Problem(); problem != "" {
		c.add(c.pointer+"/b", "the range of the difference "+problem)
		return nil
	}
	f := RowFunction{Value: rowfn.Sub(shape.InUnits(fb), shape.InUnits(fa)), Lo: r.Low, Hi: r.High, Null: r.Low}
	p := shape.Average(f, where, c.rowVotes(q.Weight))
	p.FromZero = true
	text := fmt.Sprintf("b - a, with a the %s and b the %s", a.Words.Functions[0], b.Words.Functions[0])
	c.sayAverage(p, "mean of "+text, text, q.Where, q.Weight)
	by := orZero(q.By)
	p.Decision = &shape.Decision{Bar: by, Least: q.Least}
	better := fmt.Sprintf("above %v", by)
	if q.Least {
		better = fmt.Sprintf("below %v", 0-by)
	}
	p.Words.Combine += "; b is better where the whole interval is " + better + ". Both means by themselves would cost one question more"
	p.Words.Null = "a: " + a.Words.Null + "; b: " + b.Words.Null
	return p
}
