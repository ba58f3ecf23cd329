package queries

import (
	"fmt"

	"github.com/holdoutd/holdoutd/queries/shape"
)

var passesKind = kind{
	name:  "passes",
	doc:   "Whether a number is above, or below, a bar: any query whose answer is one number. The verdict is yes if the whole interval is beyond the bar, no if none of it is, else undecided. The answer has the value, too.",
	price: price{"that of the number", "that of the number"},
	examples: []string{
		`{"type":"passes","of":{"type":"fraction","of":"delay > 15"},"below":0.25}`,
		`{"type":"passes","of":{"type":"mean","of":"delay","range":[-60,180],"where":"origin == 'SFO'"},"above":5}`,
	},
	needsOne: []string{"above", "below"},
	make:     func() body { return new(passes) },
}

// passes is {"type":"passes"}.
type passes struct {
	Of    *Query
	Above *float64
	Below *float64
	guessing
}

func (q *passes) members() []member {
	return append([]member{
		required("of", operand{&q.Of}, "a query whose answer is one number"),
		optional("above", number{into: &q.Above}, "the bar, in the query's units; yes above it"),
		optional("below", number{into: &q.Below}, "the bar, in the query's units; yes below it"),
	}, q.Guess.members()...)
}

func (q *passes) nests() {}

func (q *passes) rules(v *violations, pointer string) {
	if (q.Above == nil) == (q.Below == nil) && len(v.list) == 0 {
		v.add(pointer, `has to have either "above" or "below": the bar`)
	}
}

func (q *passes) compile(c *compiler) *Plan {
	p := c.scalar("of", q.Of)
	if p == nil {
		return nil
	}
	bar, at := "above", q.Above
	if p.Decision = new(shape.Decision); q.Below != nil {
		bar, at = "below", q.Below
		p.Decision.Bar, p.Decision.Least = 0-*at, true
	} else {
		p.Decision.Bar = *at
	}
	p.Words.Combine += fmt.Sprintf("; it passes where the whole interval is %s %v", bar, *at)
	return p
}
