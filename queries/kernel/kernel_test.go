package kernel_test

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/queries/internal/reference"
	"github.com/holdoutd/holdoutd/queries/kernel"
	"github.com/holdoutd/holdoutd/queries/randomtree"
)

// TestEvaluateIsReference: random trees over random tables give, in every row, what the row-at-a-time reference gives.
func TestEvaluateIsReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := randomtree.Rows(t, rapid.IntRange(0, 40).Draw(t, "rows"))
		table := randomtree.Table(rows)
		n := randomtree.Node(t, rapid.IntRange(0, 5).Draw(t, "depth"))
		got, err := kernel.Evaluate(table, n)
		if err != nil {
			t.Fatal(err)
		}
		for i, row := range rows {
			compareRow(t, fmt.Sprintf("%s\nrow %v", randomtree.String(n), row), got, i, reference.Evaluate(n, row))
		}
	})
}

// compareRow compares bits, but not the sign of zero nor the payload of null.
func compareRow(t *rapid.T, what string, got kernel.Values, i int, want any) {
	t.Helper()
	switch want := want.(type) {
	case float64:
		x := got.Numbers[i]
		if math.Float64bits(x+0) != math.Float64bits(want+0) && !(math.IsNaN(x) && math.IsNaN(want)) {
			t.Fatalf("%s: got %v, want %v", what, x, want)
		}
	case bool:
		if x := got.Conditions[i]; x > 1 || (x == 1) != want {
			t.Fatalf("%s: got %v, want %v", what, x, want)
		}
	}
}
