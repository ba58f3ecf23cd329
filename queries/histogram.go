package queries

import (
	"fmt"

	"github.com/holdoutd/holdoutd/queries/expr"
	"github.com/holdoutd/holdoutd/queries/shape"
	"github.com/holdoutd/holdoutd/rowfn"
)

var histogramKind = kind{
	name:  "histogram",
	doc:   "The shares of rows whose number lies between edges: in [a, b) for neighbours a < b, in [a, b] for the last two; and the shares below, above and null. " + sharesDoc,
	price: price{"at most 4", "1 a share"},
	examples: []string{
		`{"type":"histogram","of":"delay","edges":[-60,0,15,60,180]}`,
		`{"type":"histogram","of":"distance","edges":[0,500,1000,2000],"where":"origin == 'SFO'"}`,
	},
	make: func() body { return new(histogram) },
}

// histogram is {"type":"histogram"}.
type histogram struct {
	Of    *expr.Syntax
	Edges []float64
	Where *expr.Syntax
	itemGuesses
}

func (q *histogram) members() []member {
	return []member{
		required("of", expression{&q.Of}, "the number: a row expression"),
		required("edges", edgesForm{&q.Edges}, fmt.Sprintf("rising numbers, 2 to %d of them", MaxEdges)),
		optional("where", expression{&q.Where}, "a condition: only rows for which it holds count; under gaussian it costs at most one more question"),
		q.itemGuesses.member(),
	}
}

func (q *histogram) rules(*violations, string) {}

func (q *histogram) leastItems() int { return len(q.Edges) }

func (q *histogram) compile(c *compiler) *Plan {
	x, where := c.number("of", q.Of), c.condition("where", q.Where)
	if x == nil || len(c.list) > 0 {
		return nil
	}
	bins := binsOf(x, q.Edges)
	p := shape.SharesOf(bins, where, c.grouped)
	c.sayShares(p, bins, q.Where, fmt.Sprintf("the share of rows in each bin of %s", q.Of.Canonical()))
	p.Words.Null = "nulls have a bin of their own"
	return p
}

// binsOf are a number's bins between edges, below and above them, and null.
func binsOf(x *rowfn.Node, edges []float64) []shape.Category {
	last := len(edges) - 1
	bins := []shape.Category{{Name: "below " + shape.Edge(edges[0]), Holds: rowfn.CompareTo(rowfn.OpLess, x, edges[0])}}
	for i := range last {
		inside, close := rowfn.OpLess, ")"
		if i == last-1 {
			inside, close = rowfn.OpLessEq, "]"
		}
		bins = append(bins, shape.Category{Name: "[" + shape.Edge(edges[i]) + ", " + shape.Edge(edges[i+1]) + close, Holds: rowfn.And(rowfn.CompareTo(rowfn.OpGreaterEq, x, edges[i]), rowfn.CompareTo(inside, x, edges[i+1]))})
	}
	return append(bins, shape.Category{Name: "above " + shape.Edge(edges[last]), Holds: rowfn.CompareTo(rowfn.OpGreater, x, edges[last])}, shape.Category{Name: "null", Holds: rowfn.IsNull(x)})
}
