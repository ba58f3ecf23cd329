package queries

import (
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/queries/expr"
	"github.com/holdoutd/holdoutd/queries/shape"
	"github.com/holdoutd/holdoutd/rowfn"
)

// Bins of Kendall's tau, for each of the two numbers. Pairs within a bin are ties: of B equally full bins one pair in B.
const (
	DefaultTauBins = 32
	MaxTauBins     = 64
)

var kendallKind = kind{
	name: "kendall",
	doc: "Kendall's tau of two numbers that are counted in bins: how much more probable it is that of two rows the one with the higher x has the higher y than that it has the lower one. " +
		"Ties count as neither (tau_a), so it is nearer to 0 than tau_b. Edges of bins are declared, or are quantiles in the training part.",
	price: price{"1 with rounds=1, where a unit is one row, else refused", "1 where a unit is one row, else refused"},
	examples: []string{
		`{"type":"kendall","x":"delay","y":"distance","edges_x":[0,5,10,20,40],"edges_y":[200,400,800,1600]}`,
		`{"type":"kendall","x":"delay","y":"distance","edges_x":[0,15],"edges_y":[500],"where":"origin == 'SFO'"}`,
	},
	make: func() body { return new(kendall) },
}

// kendall is {"type":"kendall"}.
type kendall struct {
	X, Y           *expr.Syntax
	EdgesX, EdgesY []float64
	Bins           *float64
	Where          *expr.Syntax
	skip           bool
	guessing
}

func (q *kendall) members() []member {
	return append([]member{
		required("x", expression{&q.X}, "one number: a row expression"),
		required("y", expression{&q.Y}, "the other number: a row expression"),
		optional("edges_x", binEdges{&q.EdgesX}, fmt.Sprintf("the edges of the bins of x: 1 to %d rising numbers; a bin is (e, e'] for neighbours", MaxTauBins-1)),
		optional("edges_y", binEdges{&q.EdgesY}, "the same of y"),
		optional("bins", orElseForm{number{into: &q.Bins}, DefaultTauBins}, fmt.Sprintf("how many bins to make of the training part's values, where edges are not declared, 2 to %d; default: %d", MaxTauBins, DefaultTauBins)),
		optional("where", expression{&q.Where}, "a condition: only rows for which it holds count; costs nothing more"),
		optional("null", skipForm{&q.skip}, skipPair),
	}, q.Guess.members()...)
}

func (q *kendall) rules(v *violations, pointer string) {
	leaveOut(v, pointer, &q.skip, &q.Where, q.X, q.Y)
	if q.Bins != nil && (*q.Bins != math.Floor(*q.Bins) || *q.Bins < 2 || *q.Bins > MaxTauBins) {
		v.add(pointer+"/bins", fmt.Sprintf("must be a whole number from 2 to %d", MaxTauBins))
	}
	if q.Bins != nil && q.EdgesX != nil && q.EdgesY != nil {
		v.add(pointer+"/bins", "goes without edges of both")
	}
	for _, e := range []struct {
		name  string
		edges []float64
	}{{"edges_x", q.EdgesX}, {"edges_y", q.EdgesY}} {
		if len(e.edges) >= MaxTauBins {
			v.add(pointer+"/"+e.name, fmt.Sprintf("must be a list of 1 to %d rising numbers", MaxTauBins-1))
		}
	}
}

func (q *kendall) compile(c *compiler) *Plan {
	if c.grouped {
		c.add(c.pointer+"/type", "a kendall is of pairs of rows, and the units of this holdout have several: no interval is known for it; ask for a correlation")
	}
	x, y, where := c.number("x", q.X), c.number("y", q.Y), c.condition("where", q.Where)
	if len(c.list) > 0 {
		return nil
	}
	first, saidX := q.above(c, "edges_x", x, q.EdgesX, where)
	second, saidY := q.above(c, "edges_y", y, q.EdgesY, where)
	if len(c.list) > 0 || c.failed != nil {
		return nil
	}
	p := shape.ConcordanceOf(first, second, where)
	in := ""
	if q.Where != nil {
		in = " where " + q.Where.Canonical()
	}
	p.Words = Description{
		Functions: []string{fmt.Sprintf("1%s, and for each edge %s of %s and each edge %s of %s: 1 in rows above them, else 0; of each half of the holdout's rows by itself", in, saidX, q.X.Canonical(), saidY, q.Y.Canonical())},
		Combine: "of all pairs of a row of the first half and one of the second, the share in which x and y have the same order minus the share in which they have opposite ones, from the numbers of rows in each " +
			"pair of bins, as one question; rows are taken to be alike",
		Null: "a null is in the lowest bin; a null in a condition makes it false",
		Target: c.target("Kendall's tau_a of %s in bins that end at %s and %s in bins that end at %s%s", q.X.Canonical(), saidX, q.Y.Canonical(), saidY,
			c.rowsOf(q.Where, WeightUnit)),
	}
	c.watch(p, q.X, nil, Range{}, where, "are in the lowest bin")
	c.watch(p, q.Y, nil, Range{}, where, "are in the lowest bin")
	return p
}

// above are the conditions that a number is above each edge, declared or of the training part, with the edges in words.
func (q *kendall) above(c *compiler, name string, x *rowfn.Node, edges []float64, where *rowfn.Node) (above []*rowfn.Node, said string) {
	if edges == nil {
		edges = c.trainingQuantiles(name, x, where, int(*orDefault(q.Bins, DefaultTauBins)))
	}
	for i, e := range edges {
		above = append(above, rowfn.CompareTo(rowfn.OpGreater, x, e))
		said = listed(said, i, e)
	}
	return above, said
}
