package shape

import (
	"testing"

	"github.com/holdoutd/holdoutd/rowfn"
)

// TestBinaryByForm: what is known to be 0 or 1 by its form is a condition, a constant, and a choice between the ends of the range; the exact tail holds for nothing else.
func TestBinaryByForm(t *testing.T) {
	late := rowfn.CompareTo(rowfn.OpGreater, rowfn.Column("delay", rowfn.Number), 15)
	choice := func(a, b float64) *rowfn.Node { return rowfn.If(late, rowfn.Const(a), rowfn.Const(b)) }
	for _, c := range []struct {
		value  *rowfn.Node
		binary bool
	}{
		{nil, true}, {late, true}, {choice(0, 1), true}, {choice(1, 0), true}, {choice(1, 1), true},
		{choice(0.5, 1), false}, {choice(0, 0.5), false}, {rowfn.Column("delay", rowfn.Number), false},
		{rowfn.If(late, rowfn.Const(1), rowfn.Column("delay", rowfn.Number)), false},
	} {
		e := Equation{A: rowfn.Function{Value: c.value, Lo: 0, Hi: 1}, Whole: true}
		if e.OfRows(); e.Binary != c.binary || (e.Square == nil) != c.binary {
			t.Errorf("%+v: %+v", c.value, e)
		}
	}
}
