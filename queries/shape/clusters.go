package shape

import (
	"sync"

	"github.com/holdoutd/holdoutd/rowfn"
)

// Clusters is a [Statistic] of an area under the ROC curve, or of the difference of two, where units have several rows: of which shares of each unit's rows are with the
// label, and without it, above each edge. A pass sums these shares and their products, in each half of the holdout by itself.
type Clusters struct {
	First, Second int // bins of the first score and of the second; 0 without one

	functions func() []rowfn.Function // made once, where the plan is released by them
}

// Batch implements [Statistic].
func (c *Clusters) Batch() rowfn.Batch {
	b := rowfn.Batch{Functions: c.functions()}
	for i := range b.Functions {
		for j := range i + 1 {
			b.Products = append(b.Products, rowfn.Product{A: i, B: j})
		}
	}
	return b
}

// Sampled implements [Statistic]: sums of products plan their own margins.
func (c *Clusters) Sampled() rowfn.Batch { return c.Batch() }

// Halves implements [Halved].
func (c *Clusters) Halves() bool { return true }

// clustersOf is the form of a curve, or of two of one label, of units of several rows.
func clustersOf(first, second []*rowfn.Node, label, where *rowfn.Node, s Shape) *Checks {
	c := &Clusters{First: len(first) + 1}
	scores := [][]*rowfn.Node{first}
	if second != nil {
		c.Second, scores = len(second)+1, append(scores, second)
	}
	with, without := byLabel(label, where)
	c.functions = sync.OnceValue(func() (functions []rowfn.Function) {
		for _, above := range scores {
			functions = append(append(functions, cells(with, above, nil)...), cells(without, above, nil)...)
		}
		return functions
	})
	return &Checks{Statistics: []Statistic{c}, Shape: s, Alike: true, Clustered: true}
}

// byLabel are the conditions that a row of those that count has a label, and that it has not.
func byLabel(label, where *rowfn.Node) (with, without *rowfn.Node) {
	with, without = label, rowfn.Not(label)
	if where != nil {
		with, without = rowfn.And(label, where), rowfn.And(without, where)
	}
	return with, without
}
