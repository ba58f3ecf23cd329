package engine

import (
	"context"
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/queries/kernel/vector"
	"github.com/holdoutd/holdoutd/queries/randomtree"
	"github.com/holdoutd/holdoutd/rowfn"
)

// drawChain is what a screen asks of a column, or the training part's mean or variance of it: a clamped number that is moved and scaled, and multiplied by another or itself.
func drawChain(t *rapid.T) rowfn.Function {
	constant := func(name string) *rowfn.Node {
		return rowfn.Const(rapid.SampledFrom([]float64{0, 1, -1, 0.5, -60, 15, 0.1, 1e15 + 0.5, 5e-324, 1e300}).Draw(t, name))
	}
	column := func(name string) *rowfn.Node {
		return rowfn.Column(rapid.SampledFrom([]string{"x", "y"}).Draw(t, name), rowfn.Number)
	}
	bounds := rapid.SampledFrom([][2]float64{{-60, 180}, {0, 1}, {-4, 4}, {0, 0}, {-1e300, 1e300}}).Draw(t, "clamp")
	x := rowfn.Clamp(column("x"), bounds[0], bounds[1])
	if rapid.Bool().Draw(t, "moved") {
		x = rowfn.Sub(x, constant("by"))
	}
	if rapid.Bool().Draw(t, "scaled") {
		x = rowfn.Mul(x, constant("factor"))
	}
	switch rapid.IntRange(0, 3).Draw(t, "then") {
	case 0:
		x = rowfn.Mul(x, x)
	case 1:
		x = rowfn.Mul(rowfn.Clamp(column("with"), -1, 1), x)
	case 2:
		x = rowfn.Mul(x, rowfn.If(rowfn.CompareTo(rowfn.OpGreater, column("label"), 0), rowfn.Const(1), rowfn.Const(-1)))
	}
	in := rapid.SampledFrom([][2]float64{{-60, 180}, {-4, 4}, {0, 16}, {-240, 240}, bounds}).Draw(t, "range")
	if in[0] == in[1] {
		in[1]++
	}
	f := rowfn.Function{Value: x, Lo: in[0], Hi: in[1], Null: rapid.SampledFrom([]float64{in[0], in[0]/2 + in[1]/2, in[1]}).Draw(t, "null"), PerUnit: rowfn.UnitMean}
	if rapid.IntRange(0, 3).Draw(t, "has where") == 0 {
		f.Where = randomtree.Condition(t, 1)
	}
	return f
}

// TestInstructionsAgree: random questions have the same sums and products with every set of vector instructions, over tables that are long enough for whole turns of their loops, of units of one
// row and of several. It would notice a chain that is summed in another order of operations than its steps, and a loop whose rest begins at the wrong row.
func TestInstructionsAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		few := randomtree.Rows(t, rapid.IntRange(1, 12).Draw(t, "different rows"))
		rows := few[:0:0]
		step := rapid.SampledFrom([]int{1, 5, 7, 11}).Draw(t, "step")
		for i := range rapid.IntRange(0, 300).Draw(t, "rows") {
			rows = append(rows, few[i*step%len(few)])
		}
		var offsets []uint32
		if len(rows) > 0 && rapid.IntRange(0, 2).Draw(t, "units") == 0 {
			offsets = drawOffsets(t, len(rows))
		}
		s, err := NewTable(randomtree.Table(rows), offsets, 10)
		if err != nil {
			t.Fatal(err)
		}
		var batch rowfn.Batch
		for range rapid.IntRange(1, 8).Draw(t, "functions") {
			if rapid.Bool().Draw(t, "chain") {
				batch.Functions = append(batch.Functions, drawChain(t))
			} else {
				batch.Functions = append(batch.Functions, drawFunction(t))
			}
		}
		if rapid.Bool().Draw(t, "thresholds") {
			for i := range 12 {
				batch.Functions = append(batch.Functions, rowfn.Function{Lo: 0, Hi: 1, Value: rowfn.CompareTo(rowfn.OpLess, rowfn.Column("x", rowfn.Number), float64(i)*3-2)})
			}
		}
		for range rapid.IntRange(0, 2).Draw(t, "products") {
			last := len(batch.Functions) - 1
			batch.Products = append(batch.Products, rowfn.Product{A: rapid.IntRange(0, last).Draw(t, "first"), B: rapid.IntRange(0, last).Draw(t, "second")})
		}
		from := rapid.Int64Range(0, s.Units()).Draw(t, "from")
		var want rowfn.Sums
		for l := vector.None; l <= vector.Detected(); l++ {
			before := vector.Use(l)
			got, err := s.Moments(context.Background(), batch, from, s.Units())
			vector.Use(before)
			if err != nil {
				t.Fatal(err)
			}
			if l == vector.None {
				want = got
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("instructions %d: %v, without: %v", l, got, want)
			}
		}
	})
}

// TestChainsAreNaive: the sums of chains are those of plain loops over the rows. It would notice what all sets of instructions have in common: an order of operations, a condition that is lost.
func TestChainsAreNaive(t *testing.T) {
	table := people(1500)
	s, err := NewTable(table, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	age, _ := table.Lookup("age")
	clamped := rowfn.Clamp(rowfn.Column("age", rowfn.Number), 30, 60)
	away := rowfn.Mul(rowfn.Sub(clamped, rowfn.Const(45.5)), rowfn.Const(0.1))
	functions := []rowfn.Function{
		{Value: clamped, Lo: 0, Hi: 100, Null: 50},
		{Value: rowfn.Mul(away, away), Lo: 0, Hi: 2, Null: 1},
		{Value: rowfn.Mul(away, rowfn.Column("age", rowfn.Number)), Lo: -50, Hi: 100, Null: 0},
		{Value: clamped, Lo: 0, Hi: 100, Null: 50, Where: rowfn.CompareTo(rowfn.OpGreater, rowfn.Column("age", rowfn.Number), 50)},
	}
	want := make([]int64, 4)
	for _, x := range age.Numbers {
		c := max(30, min(60, x))
		z := (c - 45.5) * 0.1
		for i, v := range []float64{c, z * z, z * x, c} {
			f := functions[i]
			if f.Where != nil && !(x > 50) {
				continue
			}
			if math.IsNaN(v) {
				v = f.Null
			}
			v = max(f.Lo, min(f.Hi, v))
			want[i] += int64(math.Floor(float64((v-f.Lo)*(float64(rowfn.One)/(f.Hi-f.Lo))) + 0.5))
		}
	}
	for l := vector.None; l <= vector.Detected(); l++ {
		before := vector.Use(l)
		got, err := s.Sums(context.Background(), functions, 0, s.Units())
		vector.Use(before)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("instructions %d: %v, %v; want %v", l, got, err, want)
		}
	}
}
