package queries

import (
	"fmt"
	"strconv"

	"github.com/holdoutd/holdoutd/queries/interval"
)

var argmaxKind = kind{
	name: "argmax",
	doc: "The best of many candidates: the one with the largest mean, or with the least. Under gaussian it costs one question for any number of " +
		"candidates (exponential mechanism), and the answer names the winner without its value. Under other mechanisms each candidate costs a " +
		"question, and the answer has all values. The regret is a bound: the best candidate is at most so much better than the selected one, in the " +
		"query's units. It grows with the logarithm of the number of candidates.",
	examples: []string{
		`{"type":"argmax","of":[{"type":"accuracy","label":"delay > 15","prediction":"distance > 500"},{"type":"accuracy","label":"delay > 15","prediction":"distance > 900"}],"names":["500","900"]}`,
		`{"type":"argmax","of":[{"type":"mean","of":"abs(delay - 5)","range":[0,180]},{"type":"mean","of":"abs(delay - 9)","range":[0,180]}],"least":true}`,
	},
	make: func() body { return new(argmax) },
}

// MaxCandidates bounds the candidates of one argmax: each is a row function that a scan evaluates.
const MaxCandidates = 1000

// argmax is {"type":"argmax"}.
type argmax struct {
	Of    []*Query
	Names []string
	Least bool
}

func (q *argmax) members() []member {
	return []member{
		required("of", operands{&q.Of, 2, MaxCandidates}, "the candidates, all with the same range: each "+operandDoc),
		optional("names", textsForm{&q.Names}, "the names of the candidates, in their order; default: their places, from 0"),
		optional("least", truth{&q.Least}, "true if less is better, as for losses"),
	}
}

func (q *argmax) nests() {}

func (q *argmax) rules(v *violations, pointer string) {
	if q.Names != nil && len(q.Names) != len(q.Of) && len(v.list) == 0 {
		v.add(pointer+"/names", fmt.Sprintf("has %d names for %d candidates", len(q.Names), len(q.Of)))
	}
}

func (q *argmax) compile(c *compiler) *Plan {
	p := &Plan{}
	var said []string
	null := ""
	for i, of := range q.Of {
		f, one := c.single(fmt.Sprintf("of/%d", i), of)
		if one == nil {
			continue
		}
		if r := (Range{f.Lo, f.Hi}); len(p.Functions) == 0 {
			p.Range = r
		} else if r != p.Range {
			c.add(fmt.Sprintf("%s/of/%d", c.pointer, i), fmt.Sprintf("has the range %v, the first candidate %v; candidates need the same range", r, p.Range))
		}
		if q.Least {
			said = append(said, "minus "+one.describe.Functions[0])
			f = opposite(f)
		} else {
			said = append(said, one.describe.Functions[0])
		}
		null = one.describe.Null
		p.Functions = append(p.Functions, f)
	}
	if len(c.list) > 0 || c.failed != nil {
		return nil
	}
	if len(said) > maxNamed {
		said = append(said[:maxNamed], fmt.Sprintf("… and %d more", len(q.Of)-maxNamed))
	}
	best := "largest"
	if q.Least {
		best = "least"
	}
	p.releases = []Release{{Kind: Selection, Count: len(p.Functions)}}
	p.combine = q.combine(p.Range)
	for i := range q.Of {
		p.Candidates = append(p.Candidates, q.name(i))
	}
	p.describe = Description{
		Functions: said,
		Combine: fmt.Sprintf("the candidate with the %s mean of %d. Where the mechanism selects among all of them at once it is one question and the regret is its bound; "+
			"else each mean is a question, and the regret is how far the best of the others may be ahead by the intervals", best, len(q.Of)),
		Null:   null,
		Target: c.target("the candidate with the %s mean", best),
	}
	return p
}

// name is that of a candidate.
func (q *argmax) name(i int) string {
	if q.Names != nil {
		return q.Names[i]
	}
	return strconv.Itoa(i)
}

// combine selects. A mean m of a row function is the answer r.Low + m·width; of least, r.High - m·width.
func (q *argmax) combine(r Range) func(Outcome) Result {
	width := interval.Point(r.High).Sub(interval.Point(r.Low))
	return func(o Outcome) Result {
		if len(o.Choices) > 0 {
			choice := o.Choices[0]
			result := Result{Selected: q.name(choice.Index)}
			if choice.Bounded {
				regret := width.Mul(interval.Point(choice.Regret)).Clip(0, r.High-r.Low).High
				result.Regret = &regret
			}
			return result
		}
		best, bounded := 0, true
		for i, p := range o.Parts {
			if p.Value > o.Parts[best].Value {
				best = i
			}
			bounded = bounded && p.Bounded
		}
		result := Result{Selected: q.name(best)}
		most := 0.0 // that another may be ahead
		for i, p := range o.Parts {
			part, in := p, r
			if q.Least { // back to the candidate's own units
				part = Part{Value: 1 - p.Value, Low: 1 - p.High, High: 1 - p.Low, Bounded: p.Bounded}
			}
			one := finish(part.Value, part.interval(), part.Bounded, in, 1)
			result.Items = append(result.Items, Item{Of: q.name(i), Value: one.Value, Low: one.Low, High: one.High})
			if i != best {
				ahead := interval.Point(p.interval().High).Sub(interval.Point(o.Parts[best].interval().Low))
				most = max(most, ahead.High)
			}
		}
		if bounded {
			if most > 0 { // else 0 exactly, without rounding outward
				most = width.Mul(interval.Point(most)).Clip(0, r.High-r.Low).High
			}
			result.Regret = &most
		}
		return result
	}
}
