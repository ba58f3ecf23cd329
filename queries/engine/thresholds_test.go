package engine

import (
	"context"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/queries/internal/reference"
	"github.com/holdoutd/holdoutd/queries/randomtree"
	"github.com/holdoutd/holdoutd/rowfn"
)

// TestManyThresholdsAreNaive: up to 300 thresholds of one column in one batch, as a histogram, a quantile's search or an AUC's edges
// ask for them. From a few on they share a search in a list whose size has steps, with code of its own for 64 to 127. Values are
// conditions, two constants, or the column cut to constants; with units, where and every size of block.
func TestManyThresholdsAreNaive(t *testing.T) {
	comparisons := []rowfn.Op{rowfn.OpGreaterEq, rowfn.OpGreater, rowfn.OpLess, rowfn.OpLessEq}
	rapid.Check(t, func(t *rapid.T) {
		rows := make([]reference.Row, rapid.IntRange(1, 80).Draw(t, "rows"))
		for i := range rows {
			rows[i] = reference.Row{}
			if x := rapid.IntRange(-40, 340).Draw(t, "x"); x%7 != 0 { // else null
				rows[i]["x"] = float64(x)
			}
			rows[i]["p"] = rapid.Bool().Draw(t, "p")
		}
		var offsets []uint32
		if rapid.Bool().Draw(t, "units") {
			offsets = drawOffsets(t, len(rows))
		}
		limit := rapid.Int64Range(1, 40).Draw(t, "cap")
		table, err := NewTable(randomtree.Table(rows), offsets, limit)
		if err != nil {
			t.Fatal(err)
		}
		many := rapid.SampledFrom([]int{1, 5, 63, 64, 65, 100, 126, 127, 128, 129, 200, 254, 255, 300}).Draw(t, "thresholds")
		compare := rapid.SampledFrom(comparisons).Draw(t, "comparison")
		per := rowfn.PerUnit(rapid.IntRange(0, 2).Draw(t, "per unit"))
		where := rapid.Bool().Draw(t, "where")
		kind := rapid.IntRange(0, 2).Draw(t, "kind")
		if kind == 2 {
			many = min(many, 20)
		}
		functions := make([]rowfn.Function, many)
		for i := range functions {
			f := rowfn.Function{Lo: 0, Hi: 1, PerUnit: per}
			test := call(compare, rowfn.Condition, number("x"), constant(float64(i)+math.Floor(float64(i%3))/2))
			switch kind {
			case 0:
				f.Value = test
			case 1: // two constants, neither of them 0
				f.Lo, f.Hi, f.Null = -3, 5, -3
				f.Value = call(rowfn.OpIf, rowfn.Number, test, constant(4), constant(-2))
			default:
				f.Lo, f.Hi, f.Null = -60, 400, 7
				f.Value = call(rowfn.OpClamp, rowfn.Number, number("x"), constant(float64(i)), constant(float64(i)+50))
			}
			if where {
				f.Where = &rowfn.Node{Op: rowfn.OpColumn, Type: rowfn.Condition, Text: "p"}
			}
			functions[i] = f
		}
		want := make([]int64, many)
		for u := range table.Units() {
			unit := rows[u:min(u+1, int64(len(rows)))]
			if offsets != nil {
				unit = rows[offsets[u]:offsets[u+1]]
			}
			for i := range functions {
				want[i] += naiveUnit(&functions[i], unit, offsets == nil, limit)
			}
		}
		for _, block := range []int{1, 16, 1024} {
			table.block, table.workers = block, 2
			got, err := table.Sums(context.Background(), functions, 0, table.Units())
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("blocks of %d: got %v, want %v", block, got, want)
			}
		}
	})
}
