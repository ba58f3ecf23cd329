package blocks

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries/engine"
	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/sources"
)

// rows are columns that can be cut anywhere: x numbers with nulls, p truths, s texts.
type rows struct {
	x []float64
	p []uint8
	s []string // "": null
}

func drawRows(r *rand.Rand, n int) rows {
	d := rows{make([]float64, n), make([]uint8, n), make([]string, n)}
	for i := range n {
		d.x[i], d.p[i] = math.Floor(40*r.Float64())-20+r.Float64(), uint8(r.UintN(3))
		if r.UintN(10) == 0 {
			d.x[i] = math.NaN()
		}
		d.s[i] = []string{"", "a", "b", "ab", "ba", "c"}[r.UintN(6)]
	}
	return d
}

func (d rows) table(from, to int) *dataset.Table {
	s := d.s[from:to]
	t, err := dataset.FromColumns(
		dataset.Column{Field: dataset.Field{Name: "x", Kind: dataset.Number}, Numbers: d.x[from:to]},
		dataset.Column{Field: dataset.Field{Name: "p", Kind: dataset.Bool}, Bools: d.p[from:to]},
		dataset.NewText("s", s, func(i int) bool { return s[i] == "" }))
	if err != nil {
		panic(err)
	}
	return t
}

// cut is a Reader that cuts rows into blocks of the given numbers of units.
type cut struct {
	rows
	offsets []uint32 // nil: rows are units
	sizes   []int64
	columns []string // that were asked for
}

func (c *cut) Read(_ context.Context, columns []string, from, to int64, yield func(sources.Block) error) error {
	c.columns = columns
	for i := 0; from < to; i++ {
		end := min(to, from+c.sizes[i%len(c.sizes)])
		b := sources.Block{First: from}
		if c.offsets == nil {
			b.Rows = c.table(int(from), int(end))
		} else {
			b.Rows = c.table(int(c.offsets[from]), int(c.offsets[end]))
			for _, at := range c.offsets[from : end+1] {
				b.Offsets = append(b.Offsets, at-c.offsets[from])
			}
		}
		if err := yield(b); err != nil {
			return err
		}
		from = end
	}
	return nil
}

// numbered is a cut whose rows have numbers.
type numbered struct{ *cut }

func (n numbered) Rows() int64 { return int64(len(n.x)) }

func (n numbered) FirstRow(_ context.Context, unit int64) (int64, error) {
	if n.offsets == nil {
		return unit, nil
	}
	return int64(n.offsets[unit]), nil
}

// withRows is a batch to which values come with the question, one for each row.
func withRows(b rowfn.Batch, values []float64) rowfn.Batch {
	row := &rowfn.Node{Op: rowfn.OpRow, Type: rowfn.Number, Values: values}
	b.Functions = append(b.Functions, rowfn.Function{Value: rowfn.Add(row, rowfn.Column("x", rowfn.Number)), Lo: -20, Hi: 20}, rowfn.Function{Value: row, Lo: -1, Hi: 1, Where: rowfn.Column("p", rowfn.Condition), PerUnit: rowfn.UnitMean})
	b.Products = append(b.Products, rowfn.Product{A: 0, B: len(b.Functions) - 1})
	return b
}

// TestAnyCutOfRows: values that come with a question, one for each row, are those of the rows in whatever block they are. It would notice the values of other rows, and values of which there are too many or too few.
func TestAnyCutOfRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 90).Draw(t, "rows")
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
		c := &cut{rows: drawRows(random, n), sizes: rapid.SliceOfN(rapid.Int64Range(1, 40), 1, 5).Draw(t, "sizes")}
		units, values := int64(n), make([]float64, n)
		for i := range values {
			values[i] = random.Float64()
		}
		if rapid.Bool().Draw(t, "grouped") {
			c.offsets = []uint32{0}
			for at := 0; at < n; {
				at = min(n, at+rapid.IntRange(1, 9).Draw(t, "unit"))
				c.offsets = append(c.offsets, uint32(at))
			}
			units = int64(len(c.offsets) - 1)
		}
		from := rapid.Int64Range(0, units-1).Draw(t, "from")
		to := rapid.Int64Range(from+1, units).Draw(t, "to")
		whole, err := engine.NewTable(c.table(0, n), c.offsets, 3)
		if err != nil {
			t.Fatal(err)
		}
		asked, schema := withRows(batch(), values), c.table(0, 0).Schema()
		want, err := whole.Moments(context.Background(), asked, from, to)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Sum(context.Background(), numbered{c}, schema, asked, 3, from, to)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%v %v, want %v", got, err, want)
		}
		for _, other := range [][]float64{values[:n-1], append(slices.Clone(values), 1), nil} {
			if _, err := Sum(context.Background(), numbered{c}, schema, withRows(batch(), other), 3, from, to); err == nil {
				t.Fatalf("%d values of %d rows", len(other), n)
			}
		}
		if _, err := Sum(context.Background(), c, schema, asked, 3, from, to); !errors.As(err, new(*sources.Error)) {
			t.Fatalf("rows without numbers: %v", err)
		}
	})
}

func batch() rowfn.Batch {
	x, p, s := rowfn.Column("x", rowfn.Number), rowfn.Column("p", rowfn.Condition), rowfn.Column("s", rowfn.Text)
	b := rowfn.Batch{Functions: []rowfn.Function{
		{Lo: 0, Hi: 1},
		{Value: x, Lo: -10, Hi: 10, Null: 3},
		{Value: rowfn.Exp(x), Lo: 0, Hi: 7, Where: p, PerUnit: rowfn.UnitShare},
		{Lo: 0, Hi: 1, Value: rowfn.Compare(rowfn.OpEq, s, rowfn.TextConst("ab")), PerUnit: rowfn.UnitMean},
		{Lo: 0, Hi: 1, Where: rowfn.And(p, rowfn.CompareTo(rowfn.OpGreater, x, 2)), PerUnit: rowfn.UnitAny},
		{Lo: 0, Hi: 1, Value: &rowfn.Node{Op: rowfn.OpContains, Type: rowfn.Condition, Args: []*rowfn.Node{s, rowfn.TextConst("b")}}},
		{Lo: 0, Hi: 2, Value: &rowfn.Node{Op: rowfn.OpLookup, Type: rowfn.Number, Args: []*rowfn.Node{s}, Texts: map[string]float64{"a": 1, "c": 2}, Number: 0.5}},
	}}
	for i := range b.Functions {
		b.Products = append(b.Products, rowfn.Product{A: i, B: (i + 2) % len(b.Functions)}, rowfn.Product{A: i, B: i})
	}
	return b
}

// TestAnyCut: sums over blocks of any sizes, of any range of units, are those of one table. It would notice a unit that is counted twice or not at all at the edge of a
// block, a block that is forgotten, and dictionaries that are mixed up.
func TestAnyCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 90).Draw(t, "rows")
		c := &cut{rows: drawRows(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)), n), sizes: rapid.SliceOfN(rapid.Int64Range(1, 40), 1, 5).Draw(t, "sizes")}
		units := int64(n)
		if rapid.Bool().Draw(t, "grouped") {
			c.offsets = []uint32{0}
			for at := 0; at < n; {
				at = min(n, at+rapid.IntRange(1, 9).Draw(t, "unit"))
				c.offsets = append(c.offsets, uint32(at))
			}
			units = int64(len(c.offsets) - 1)
		}
		from := rapid.Int64Range(0, units).Draw(t, "from")
		to := rapid.Int64Range(from, units).Draw(t, "to")
		limit := rapid.Int64Range(1, 12).Draw(t, "cap")
		whole, err := engine.NewTable(c.table(0, n), c.offsets, limit)
		if err != nil {
			t.Fatal(err)
		}
		want, err := whole.Moments(context.Background(), batch(), from, to)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Sum(context.Background(), c, c.table(0, 0).Schema(), batch(), limit, from, to)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%v %v, want %v", got, err, want)
		}
		if from < to && !slices.Equal(c.columns, []string{"x", "p", "s"}) {
			t.Fatalf("it read %q", c.columns)
		}
	})
}

type readerFunc func(yield func(sources.Block) error) error

func (f readerFunc) Read(_ context.Context, _ []string, _, _ int64, yield func(sources.Block) error) error {
	return f(yield)
}

// TestMissingBlocks: a block that is missing, comes twice, or is another's, is [sources.Changed] and no answer.
func TestMissingBlocks(t *testing.T) {
	d := drawRows(rand.New(rand.NewPCG(1, 2)), 30)
	blocks := []sources.Block{{Rows: d.table(0, 10)}, {Rows: d.table(10, 20), First: 10}, {Rows: d.table(20, 30), First: 20}}
	for _, order := range [][]int{{0, 1}, {0, 2}, {1, 2}, {0, 1, 1, 2}, {0, 0, 1, 2}, {0, 1, 2, 2}, {0, 2, 2}, {2, 1, 0}, {}} {
		_, err := Sum(context.Background(), readerFunc(func(yield func(sources.Block) error) error {
			for _, i := range order {
				if err := yield(blocks[i]); err != nil {
					return err
				}
			}
			return nil
		}), d.table(0, 0).Schema(), batch(), 1, 0, 30)
		if e := (*sources.Error)(nil); !errors.As(err, &e) || e.Kind != sources.Changed {
			t.Errorf("blocks %v: %v", order, err)
		}
	}
}

// TestColumns: what a batch reads, and the narrowest column where it reads none.
func TestColumns(t *testing.T) {
	schema := drawRows(rand.New(rand.NewPCG(1, 2)), 1).table(0, 1).Schema()
	x := rowfn.Column("x", rowfn.Number)
	for _, c := range []struct {
		f    rowfn.Function
		want []string
	}{
		{rowfn.Function{Lo: 0, Hi: 1}, []string{"p"}},
		{rowfn.Function{Value: x, Lo: 0, Hi: 1}, []string{"x"}},
		{rowfn.Function{Value: rowfn.Add(x, x), Lo: 0, Hi: 1, Where: rowfn.IsNull(rowfn.Column("s", rowfn.Text))}, []string{"x", "s"}},
	} {
		got, err := Columns(schema, rowfn.Batch{Functions: []rowfn.Function{c.f}})
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%v %v, want %v", got, err, c.want)
		}
	}
	if _, err := Columns(schema, rowfn.Batch{Functions: []rowfn.Function{{Value: rowfn.Column("none", rowfn.Number), Hi: 1}}}); err == nil {
		t.Error("a column that there is not was found")
	}
	row := &rowfn.Node{Op: rowfn.OpRow, Type: rowfn.Number, Values: []float64{1}}
	if _, err := Columns(schema, rowfn.Batch{Functions: []rowfn.Function{{Value: row, Hi: 1}}}); !errors.As(err, new(*sources.Error)) {
		t.Errorf("values by row: %v", err)
	}
}

// TestAhead: blocks come in their order; an error of either side, and the end of the context, end both.
func TestAhead(t *testing.T) {
	stream := func(n int, last error) func(context.Context, func(sources.Block) error) error {
		return func(_ context.Context, yield func(sources.Block) error) error {
			for i := range n {
				if err := yield(sources.Block{First: int64(i)}); err != nil {
					return err
				}
			}
			return last
		}
	}
	mine, theirs := errors.New("mine"), errors.New("theirs")
	for _, most := range []int{1, 2, 5} {
		var got []int64
		collect := func(b sources.Block) error { got = append(got, b.First); return nil }
		if err := Ahead(context.Background(), most, stream(20, nil), collect); err != nil || len(got) != 20 || !slices.IsSorted(got) {
			t.Errorf("%v %v", got, err)
		}
		if err := Ahead(context.Background(), most, stream(20, theirs), collect); err != theirs {
			t.Error(err)
		}
		if err := Ahead(context.Background(), most, stream(20, nil), func(b sources.Block) error {
			if b.First == 3 {
				return mine
			}
			return nil
		}); err != mine {
			t.Error(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		if err := Ahead(ctx, most, stream(20, nil), func(b sources.Block) error { cancel(); return nil }); err != context.Canceled {
			t.Error(err)
		}
	}
}

// TestCancelled: a context that has ended stops before the next block.
func TestCancelled(t *testing.T) {
	d := drawRows(rand.New(rand.NewPCG(1, 2)), 30)
	ctx, cancel := context.WithCancel(context.Background())
	a := NewAdder(batch(), 1, 0)
	if err := a.Add(ctx, sources.Block{Rows: d.table(0, 10)}); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := a.Add(ctx, sources.Block{Rows: d.table(10, 20), First: 10}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// BenchmarkBlocks compares blocks of several sizes with one table of all rows: what is more is compiling.
func BenchmarkBlocks(b *testing.B) {
	const n = 1 << 20
	d := drawRows(rand.New(rand.NewPCG(1, 2)), n)
	for _, functions := range []int{1, 100} {
		var all rowfn.Batch
		for i := range functions {
			x := rowfn.Mul(rowfn.Column("x", rowfn.Number), rowfn.Const(1/(1+float64(i))))
			all.Functions = append(all.Functions, rowfn.Function{Lo: 0, Hi: 1, Value: rowfn.And(rowfn.CompareTo(rowfn.OpGreater, x, 0.1),
				rowfn.Compare(rowfn.OpNe, rowfn.Column("s", rowfn.Text), rowfn.TextConst("ab")))})
		}
		for _, size := range []int{1 << 12, 1 << 14, 1 << 16, 1 << 18, n} {
			var blocks []sources.Block
			for at := 0; at < n; at += size {
				blocks = append(blocks, sources.Block{Rows: d.table(at, at+size), First: int64(at)})
			}
			b.Run(fmt.Sprintf("functions=%d/rows=%d", functions, size), func(b *testing.B) {
				for b.Loop() {
					a := NewAdder(all, 1, 0)
					for _, block := range blocks {
						if err := a.Add(context.Background(), block); err != nil {
							b.Fatal(err)
						}
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n/float64(functions), "ns/row")
			})
		}
	}
}
