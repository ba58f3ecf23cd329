package queries

import (
	"fmt"
	"math"
	"strconv"

	"github.com/holdoutd/holdoutd/queries/shape"
)

var argmaxKind = kind{
	name: "argmax",
	doc: "The best of many candidates: the one with the largest mean, or with the least. Under gaussian the answer names the winner without its value (exponential mechanism), and questions pays more for less regret. " +
		"Elsewhere it has all values. The regret is a bound: the best candidate is at most so much better than the selected one, in the query's units. It grows with the logarithm of the number of candidates.",
	price: price{"1", "1 a candidate"},
	examples: []string{
		`{"type":"argmax","of":[{"type":"accuracy","label":"delay > 15","prediction":"distance > 500"},{"type":"accuracy","label":"delay > 15","prediction":"distance > 900"}],"names":["500","900"]}`,
		`{"type":"argmax","of":[{"type":"mean","of":"abs(delay - 5)","range":[0,180]},{"type":"mean","of":"abs(delay - 9)","range":[0,180]}],"least":true}`,
		`{"type":"argmax","of":[{"type":"fraction","of":"delay > 15"},{"type":"fraction","of":"distance > 900"}],"questions":4}`,
	},
	make: func() body { return new(argmax) },
}

// MaxCandidates bounds the candidates of one argmax: each is a row function that a scan evaluates.
const MaxCandidates = 1000

// MaxSelectionQuestions bounds what one argmax costs: the mechanism's part of the regret is then a thirty-second of what it is for one question, far below what sampling adds.
const MaxSelectionQuestions = 1000

// argmax is {"type":"argmax"}.
type argmax struct {
	Of        []*Query
	Names     []string
	Least     bool
	Questions *float64
	itemGuesses
}

func (q *argmax) members() []member {
	return []member{
		required("of", operands{&q.Of, 2, MaxCandidates}, "the candidates, all with the same range: each "+operandDoc),
		optional("names", textsForm{&q.Names}, "the names of the candidates, in their order; default: their places, from 0"),
		optional("least", truth{&q.Least}, "true if less is better, as for losses"),
		optional("questions", orElseForm{number{into: &q.Questions}, 1}, fmt.Sprintf("under gaussian: how many questions to pay, 1 to %d; four times as many halve the part of the regret that is the mechanism's; default: 1", MaxSelectionQuestions)),
		q.itemGuesses.member(),
	}
}

func (q *argmax) nests() {}

func (q *argmax) rules(v *violations, pointer string) {
	if q.Names != nil && len(q.Names) != len(q.Of) && len(v.list) == 0 {
		v.add(pointer+"/names", fmt.Sprintf("has %d names for %d candidates", len(q.Names), len(q.Of)))
	}
	if r := *orDefault(q.Questions, 1); r != math.Trunc(r) || r < 1 || r > MaxSelectionQuestions {
		v.add(pointer+"/questions", fmt.Sprintf("must be a whole number from 1 to %d", MaxSelectionQuestions))
	}
}

func (q *argmax) compile(c *compiler) *Plan {
	var functions []RowFunction
	var plans []*Plan
	var r Range
	var said []string
	null := ""
	for i, of := range q.Of {
		f, one := c.single(fmt.Sprintf("of/%d", i), of)
		if one == nil {
			continue
		}
		if in := (Range{Low: f.Lo, High: f.Hi}); len(functions) == 0 {
			r = in
		} else if in != r {
			c.add(fmt.Sprintf("%s/of/%d", c.pointer, i), fmt.Sprintf("has the range %v, the first candidate %v; candidates need the same range", in, r))
		}
		if q.Least {
			said = append(said, "minus "+one.Words.Functions[0])
			f = shape.Opposite(f)
		} else {
			said = append(said, one.Words.Functions[0])
		}
		null = one.Words.Null
		functions, plans = append(functions, f), append(plans, one)
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
	names := make([]string, len(q.Of))
	for i := range names {
		names[i] = q.name(i)
	}
	p := shape.Selection{Names: names, Range: r, Least: q.Least, Questions: int64(orZero(q.Questions))}.Plan(functions)
	p.Values = shape.ValuesAmong(nil, plans...)
	p.Words = Description{
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
