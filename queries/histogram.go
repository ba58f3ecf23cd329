package queries

import (
	"fmt"
	"strconv"

	"github.com/holdoutd/holdoutd/queries/expr"
	"github.com/holdoutd/holdoutd/rowfn"
)

// MaxEdges bounds the bins of a histogram. Bins do not cost more by being many, but each is a row function.
const MaxEdges = 1001

const shareCost = "All shares are released as one vector, and its noise does not grow with their number: at most four questions under gaussian, one for each share under " +
	"other mechanisms. With where the vector has one more share, that of the rows for which the condition holds; the others are divided by it. Shares for which no tokens are left are null."

var histogramKind = kind{
	name: "histogram",
	doc: "The shares of rows whose number lies between edges: in [a, b) for neighbours a < b, in [a, b] for the last two; and the shares below, above " +
		"and null. " + shareCost,
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
}

func (q *histogram) members() []member {
	return []member{
		required("of", expression{&q.Of}, "the number: a row expression"),
		required("edges", edgesForm{&q.Edges}, fmt.Sprintf("rising numbers, 2 to %d of them", MaxEdges)),
		optional("where", expression{&q.Where}, "a condition: only rows for which it holds count; costs at most one more question"),
	}
}

func (q *histogram) rules(*violations, string) {}

func (q *histogram) leastItems() int { return len(q.Edges) }

func (q *histogram) compile(c *compiler) *Plan {
	x, where := c.number("of", q.Of), c.condition("where", q.Where)
	if x == nil || len(c.list) > 0 {
		return nil
	}
	last := len(q.Edges) - 1
	bins := []category{{"below " + edge(q.Edges[0]), rowfn.CompareTo(rowfn.OpLess, x, q.Edges[0])}}
	for i := range last {
		inside, close := rowfn.OpLess, ")"
		if i == last-1 {
			inside, close = rowfn.OpLessEq, "]"
		}
		bins = append(bins, category{"[" + edge(q.Edges[i]) + ", " + edge(q.Edges[i+1]) + close,
			rowfn.And(rowfn.CompareTo(rowfn.OpGreaterEq, x, q.Edges[i]), rowfn.CompareTo(inside, x, q.Edges[i+1]))})
	}
	bins = append(bins, category{"above " + edge(q.Edges[last]), rowfn.CompareTo(rowfn.OpGreater, x, q.Edges[last])}, category{"null", rowfn.IsNull(x)})
	p := shares(c, bins, where)
	p.describeShares(c, bins, q.Where, fmt.Sprintf("the share of rows in each bin of %s", q.Of.Canonical()))
	p.describe.Null = "nulls have a bin of their own"
	return p
}

// edge is a number as the shortest decimal.
func edge(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// edgesForm is a list of rising numbers.
type edgesForm struct{ into *[]float64 }

func (f edgesForm) read(v *violations, pointer string, in *value) {
	if in.kind != listValue || len(in.items) < 2 || len(in.items) > MaxEdges {
		v.add(pointer, fmt.Sprintf("must be a list of 2 to %d rising numbers", MaxEdges))
		return
	}
	edges := make([]float64, len(in.items))
	for i, item := range in.items {
		var ok bool
		at := fmt.Sprintf("%s/%d", pointer, i)
		if edges[i], ok = item.float(); !ok {
			v.add(at, "must be a finite number")
			return
		}
		if i > 0 && edges[i] <= edges[i-1] {
			v.add(at, "must be more than the number before it")
			return
		}
	}
	*f.into = edges
}

func (f edgesForm) canonical() any { return *f.into }

func (f edgesForm) schema() map[string]any {
	return map[string]any{"type": "array", "items": map[string]any{"type": "number"}, "minItems": 2, "maxItems": MaxEdges}
}
