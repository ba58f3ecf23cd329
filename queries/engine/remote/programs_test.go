package remote

import (
	"context"
	"math"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/dataset"
	_ "github.com/holdoutd/holdoutd/internal/stattest" // the seed of properties
	"github.com/holdoutd/holdoutd/queries/engine"
	"github.com/holdoutd/holdoutd/queries/internal/randomtree"
	"github.com/holdoutd/holdoutd/queries/internal/reference"
	"github.com/holdoutd/holdoutd/queries/kernel"
	"github.com/holdoutd/holdoutd/rowfn"
)

// What engines are held against: edge rows, random programs, and what the engine in memory makes of them.

const (
	edgeRows      = 150
	randomBatches = 64 // of each kind
	together      = 25 // programs of a batch: 1,600 on rows, and as many on units
	largest       = 7  // the declared largest unit; some are larger
)

// edges is a table of edge values: every cell is null, an edge of its type or random.
var edges = sync.OnceValue(func() *dataset.Table {
	return randomtree.Table(rapid.Custom(func(t *rapid.T) []reference.Row { return randomtree.Rows(t, edgeRows) }).Example(1))
})

// edgeUnits cut the rows into units of 1 to 9.
func edgeUnits() []uint32 {
	offsets := []uint32{0}
	for at, size := 0, 1; at < edgeRows; size = size%9 + 1 {
		at = min(at+size, edgeRows)
		offsets = append(offsets, uint32(at))
	}
	return offsets
}

// program draws a row function that every engine computes.
func program(t *rapid.T) rowfn.Function {
	f := rowfn.Function{Lo: 0, Hi: 1, PerUnit: rowfn.PerUnit(rapid.IntRange(0, 2).Draw(t, "per unit"))}
	depth := rapid.SampledFrom([]int{1, 2, 2, 2, 3, 3, 3, 4}).Draw(t, "depth")
	switch rapid.IntRange(0, 9).Draw(t, "value") {
	case 0:
	case 1, 2:
		f.Value = randomtree.Condition(t, depth)
	case 3:
		texts := map[string]float64{"a": 3, "ab": -0.5, `\'`: 0.1, "": 1e300, "a ": 7}
		of := rapid.SampledFrom([]string{"s", "t"}).Draw(t, "of")
		null := rapid.SampledFrom([]float64{math.NaN(), -2}).Draw(t, "of null")
		lookup := &rowfn.Node{Op: rowfn.OpLookup, Type: rowfn.Number, Args: []*rowfn.Node{rowfn.Column(of, rowfn.Text)}, Texts: texts, Number: null}
		f.Value = rowfn.Add(lookup, randomtree.Number(t, depth-1))
	default:
		f.Value = randomtree.Number(t, depth)
	}
	if f.Value != nil && f.Value.Type == rowfn.Number {
		bounds := rapid.SampledFrom([][2]float64{{0, 1}, {-1, 1}, {-60, 180}, {0, 1e150}, {-1e150, 1e150}, {0.1, 0.3}, {1e-290, 2e-290}, {-1e16, 1e16}}).Draw(t, "range")
		f.Lo, f.Hi = bounds[0], bounds[1]
		f.Null = rapid.SampledFrom([]float64{f.Lo, f.Hi, f.Lo + (f.Hi-f.Lo)/3}).Draw(t, "null")
	}
	if rapid.Bool().Draw(t, "has where") {
		f.Where = randomtree.Condition(t, depth-1)
	}
	done := map[*rowfn.Node]*rowfn.Node{}
	f.Value, f.Where = randomtree.WithoutLogs(f.Value, done), randomtree.WithoutLogs(f.Where, done)
	return f
}

// expected is a batch and what the engine in memory says of it.
type expected struct {
	batch rowfn.Batch
	units [][]int64 // by unit, by function
	sums  rowfn.Sums
}

// drawn are the batches of a kind: on rows, or on units.
func drawn(t *testing.T, units bool) []expected {
	t.Helper()
	which := 0
	if units {
		which = 1
	}
	return programs[which]()
}

var programs = [2]func() []expected{sync.OnceValue(func() []expected { return draw(nil, 0) }), sync.OnceValue(func() []expected { return draw(edgeUnits(), randomBatches) })}

func draw(offsets []uint32, seed int) []expected {
	s, err := engine.NewTable(edges(), offsets, largest)
	if err != nil {
		panic(err)
	}
	var all []expected
	for i := range randomBatches {
		all = append(all, expect(s, offsets, rapid.Custom(drawBatch).Example(seed+i)))
	}
	for _, b := range directed() {
		all = append(all, expect(s, offsets, b))
	}
	return all
}

func drawBatch(t *rapid.T) rowfn.Batch {
	var b rowfn.Batch
	for range together {
		b.Functions = append(b.Functions, program(t))
	}
	for range 10 {
		place := rapid.IntRange(0, together-1)
		b.Products = append(b.Products, rowfn.Product{A: place.Draw(t, "a"), B: place.Draw(t, "b")})
	}
	return b
}

func expect(s *engine.Table, offsets []uint32, b rowfn.Batch) expected {
	e := expected{batch: b}
	program, err := kernel.CompileBatch(rowfn.Batch{Functions: b.Functions}, edges())
	if err == nil {
		err = program.Fill()
	}
	if err != nil {
		panic(err)
	}
	state, before := kernel.NewState(program, kernel.Units{Offsets: offsets, Cap: largest}, kernel.MaxBlock), make([]int64, len(b.Functions))
	defer state.Release()
	for u := range s.Units() { // the sum of the units so far, less that of those before
		state.Add(u, u+1)
		now, values := slices.Clone(state.Sums()), make([]int64, len(before))
		for i := range now {
			values[i] = now[i] - before[i]
		}
		before, e.units = now, append(e.units, values)
	}
	sums, err := s.Moments(context.Background(), b, 0, s.Units())
	if err != nil {
		panic(err)
	}
	e.sums = sums
	return e
}

// directed are cases that random trees meet seldom: each is wrong where an engine reads a literal as a decimal, divides integers, compares texts by a
// collation, or has rules of its own for NaN, infinities and halves.
func directed() []rowfn.Batch {
	x, y, s, text := rowfn.Column("x", rowfn.Number), rowfn.Column("y", rowfn.Number), rowfn.Column("s", rowfn.Text), rowfn.TextConst
	c := rowfn.Const
	of := func(value *rowfn.Node) rowfn.Function { return rowfn.Function{Value: value, Lo: 0, Hi: 1} }
	var fs []rowfn.Function
	for _, v := range []*rowfn.Node{
		rowfn.Compare(rowfn.OpEq, rowfn.Add(c(0.1), c(0.2)), c(0.3)), // false for doubles
		rowfn.Compare(rowfn.OpEq, rowfn.Add(c(0.1), c(0.7)), c(0.8)),
		rowfn.Compare(rowfn.OpEq, rowfn.Mul(c(0.1), c(3)), c(0.3)),
		rowfn.Div(c(1), c(2)), rowfn.Div(c(1), c(3)), rowfn.Div(x, c(0)), rowfn.Div(c(0), x), rowfn.Div(c(1), rowfn.Div(c(1), c(0))),
		rowfn.Compare(rowfn.OpEq, c(0x1p53), c(0x1p53+1)), rowfn.Compare(rowfn.OpEq, rowfn.Add(c(0x1p53), c(1)), c(0x1p53)),
		rowfn.Compare(rowfn.OpNe, rowfn.Null(), c(1)), rowfn.Compare(rowfn.OpNe, x, x), rowfn.Compare(rowfn.OpEq, x, x), rowfn.Not(rowfn.Compare(rowfn.OpLess, x, y)),
		rowfn.IsNull(rowfn.Mul(c(math.MaxFloat64), c(2))), rowfn.IsNull(rowfn.Sqrt(c(-1))), rowfn.Sqrt(c(2)), rowfn.Mul(c(5e-324), c(0.5)), rowfn.Compare(rowfn.OpGreater, c(5e-324), c(0)),
		rowfn.Compare(rowfn.OpLess, rowfn.Mul(x, c(1e308)), c(1)), rowfn.Compare(rowfn.OpGreater, rowfn.Mul(x, c(1e308)), c(1)), rowfn.In(rowfn.Mul(x, c(1e308)), rowfn.Mul(y, c(1e308))),
		rowfn.Max(rowfn.Null(), c(1)), rowfn.Max(c(1), rowfn.Null()), rowfn.Max(x, rowfn.Mul(x, c(1e308))), rowfn.Clamp(rowfn.Mul(x, c(1e308)), 0, 0.5), rowfn.Clamp(x, 0.75, 0.25),
		c(0.5 / float64(rowfn.One)), c(1.5 / float64(rowfn.One)), c(2.5 / float64(rowfn.One)), c(0.49999999999999994 / float64(rowfn.One)), // halves go up
		rowfn.Compare(rowfn.OpEq, s, text("a")), rowfn.Compare(rowfn.OpEq, s, text("a ")), rowfn.Compare(rowfn.OpEq, s, text("A")), rowfn.Compare(rowfn.OpEq, s, text(`a\`)),
		rowfn.Compare(rowfn.OpEq, s, text(`\'`)), rowfn.Compare(rowfn.OpEq, s, text("a\x00b")), rowfn.Compare(rowfn.OpEq, s, text("\u00e9")), rowfn.Compare(rowfn.OpEq, s, text("")), rowfn.Compare(rowfn.OpNe, s, text("")),
		rowfn.In(s, text("it's"), text(`"`), text("e\u0301"), text("%_")), rowfn.In(x, c(0), c(0.1), rowfn.Null(), c(1e308)),
		rowfn.IsNull(s), rowfn.Not(rowfn.IsNull(s)), rowfn.Not(rowfn.Column("p", rowfn.Condition)), rowfn.IsNull(rowfn.Column("p", rowfn.Condition)),
	} {
		fs = append(fs, of(v))
	}
	for _, op := range []rowfn.Op{rowfn.OpHasPrefix, rowfn.OpHasSuffix, rowfn.OpContains} {
		for _, part := range []string{"", "a", `\`, "'", "\x00", "%", "b", "\u0301", "本", "😀"} {
			for _, column := range []string{"s", "t"} {
				fs = append(fs, of(&rowfn.Node{Op: op, Type: rowfn.Condition, Args: []*rowfn.Node{rowfn.Column(column, rowfn.Text), text(part)}}))
			}
		}
	}
	for op := rowfn.OpFullYear; op <= rowfn.OpMilliseconds; op++ {
		for _, column := range []string{"d", "e"} {
			fs = append(fs, rowfn.Function{Value: &rowfn.Node{Op: op, Type: rowfn.Number, Args: []*rowfn.Node{rowfn.Column(column, rowfn.Time)}}, Lo: -10000, Hi: 10000, Null: -10000})
		}
	}
	// Edges of ranges, of which two make sums of 61 and 91 bits.
	fs = append(fs, rowfn.Function{Lo: 0, Hi: 1}, rowfn.Function{Value: x, Lo: -math.MaxFloat64 / 4, Hi: math.MaxFloat64 / 4}, rowfn.Function{Value: x, Lo: 0, Hi: 1e-290}, rowfn.Function{Lo: 0, Hi: 1, PerUnit: rowfn.UnitAny},
		rowfn.Function{Lo: 0, Hi: 1, PerUnit: rowfn.UnitShare}, rowfn.Function{Value: c(1), Lo: 0, Hi: 3, Where: rowfn.Compare(rowfn.OpLess, x, y)})
	// A value that is used so often that it would not fit into a statement without a name.
	deep := x
	for range 12 {
		deep = rowfn.Max(rowfn.Sub(deep, c(0.1)), rowfn.Div(deep, c(3)))
	}
	fs = append(fs, of(deep))
	var all []rowfn.Batch
	for part := range slices.Chunk(fs, 40) {
		b := rowfn.Batch{Functions: part}
		for i := range part {
			b.Products = append(b.Products, rowfn.Product{A: i, B: (i * 7) % len(part)})
		}
		all = append(all, b)
	}
	return all
}
