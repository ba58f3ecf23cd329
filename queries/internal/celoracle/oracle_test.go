package celoracle_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/queries/expr"
	"github.com/holdoutd/holdoutd/queries/internal/celoracle"
	"github.com/holdoutd/holdoutd/queries/internal/reference"
	"github.com/holdoutd/holdoutd/rowfn"
)

// TestTreeIsCEL: the total tree that expr makes of a source means what CEL's own interpreter makes of the source, and
// of its canonical form.
func TestTreeIsCEL(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := draw(t)
		tree, oracle, canonical := compile(t, src)
		for range 8 {
			r := row(t)
			want, err := oracle.Eval(forOracle(r))
			if err != nil {
				t.Fatal(err)
			}
			if again, err := canonical.Eval(forOracle(r)); err != nil || !same(again, want) && !(again == nil && want == nil) {
				t.Fatalf("%s\n%s\nrow %v: %v, but its canonical form is %v, %v", src, canonical.Total(), r, want, again, err)
			}
			if got := reference.Evaluate(tree, r); !same(got, want) {
				t.Fatalf("%s\n%s\nrow %v: got %v, CEL has %v", src, oracle.Total(), r, got, want)
			}
		}
	})
}

func compile(t *rapid.T, src string) (tree *rowfn.Node, oracle, canonical *celoracle.Program) {
	s, err := expr.Parse(src)
	if err != nil {
		t.Fatalf("%s: %v", src, err)
	}
	if tree, err = s.Check(schema); err != nil {
		t.Fatalf("%s: %v", src, err)
	}
	if oracle, err = celoracle.New(schema, src); err != nil {
		t.Fatalf("%s: %v", src, err)
	}
	if canonical, err = celoracle.New(schema, s.Canonical()); err != nil {
		t.Fatalf("%s: %v", s.Canonical(), err)
	}
	return tree, oracle, canonical
}

// same compares a result of ours with CEL's, bit for bit. The sign of zero is the one thing that is left out: no
// operation of the language tells -0 from 0, and neither does the grid that values are rounded to.
func same(got, want any) bool {
	switch w := want.(type) {
	case nil:
		x, ok := got.(float64)
		return ok && math.IsNaN(x)
	case bool:
		return got == w
	case float64:
		x, ok := got.(float64)
		return ok && math.Float64bits(x+0) == math.Float64bits(w+0)
	}
	return false
}
