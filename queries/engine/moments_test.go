package engine

import (
	"context"
	"math/big"
	"runtime"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/queries/internal/reference"
	"github.com/holdoutd/holdoutd/queries/kernel"
	"github.com/holdoutd/holdoutd/queries/randomtree"
	"github.com/holdoutd/holdoutd/rowfn"
)

// TestMomentsAreNaive: sums of products over any range of units are those of integers of any size, made of the units' values by
// rational arithmetic, for every size of block and number of workers; and the functions have the sums that they have alone. It would
// notice products of rows in the place of units, values of the block before, and a product of other functions.
func TestMomentsAreNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := randomtree.Rows(t, rapid.IntRange(0, 60).Draw(t, "rows"))
		var offsets []uint32
		if rapid.Bool().Draw(t, "units") {
			offsets = drawOffsets(t, len(rows))
		}
		limit := rapid.Int64Range(1, 40).Draw(t, "cap")
		s, err := NewTable(randomtree.Table(rows), offsets, limit)
		if err != nil {
			t.Fatal(err)
		}
		s.block, s.workers = rapid.SampledFrom([]int{1, 7, 8, 9, kernel.MaxBlock}).Draw(t, "block"), rapid.IntRange(1, 3).Draw(t, "workers")
		b := rowfn.Batch{Functions: make([]rowfn.Function, rapid.IntRange(1, 5).Draw(t, "functions"))}
		for i := range b.Functions {
			if b.Functions[i] = drawFunction(t); i > 0 && rapid.IntRange(0, 4).Draw(t, "again") == 0 {
				b.Functions[i] = b.Functions[i-1]
			}
		}
		for range rapid.IntRange(0, 6).Draw(t, "products") {
			place := rapid.IntRange(0, len(b.Functions)-1)
			b.Products = append(b.Products, rowfn.Product{A: place.Draw(t, "a"), B: place.Draw(t, "b")})
		}
		from := rapid.Int64Range(0, s.Units()).Draw(t, "from")
		to := rapid.Int64Range(from, s.Units()).Draw(t, "to")
		got, err := s.Moments(context.Background(), b, from, to)
		if err != nil {
			t.Fatal(err)
		}
		value := func(function int, unit int64) *big.Int {
			of := rows[unit:][:1]
			if offsets != nil {
				of = rows[offsets[unit]:offsets[unit+1]]
			}
			return big.NewInt(naiveUnit(&b.Functions[function], of, offsets == nil, limit))
		}
		for i, p := range b.Products {
			want := new(big.Int)
			for u := from; u < to; u++ {
				want.Add(want, new(big.Int).Mul(value(p.A, u), value(p.B, u)))
			}
			if got.Products[i].Big().Cmp(want) != 0 {
				t.Fatalf("product %v over units %d to %d: %v, want %v", p, from, to, got.Products[i].Big(), want)
			}
		}
		alone, err := s.Sums(context.Background(), b.Functions, from, to)
		if err != nil {
			t.Fatal(err)
		}
		for i, sum := range got.Values {
			if sum != alone[i] {
				t.Fatalf("function %d sums to %d beside products, to %d alone", i, sum, alone[i])
			}
		}
	})
}

// TestMomentsOfOnes: where every value is the largest, the sums are the numbers of units times 2^30 and 2^60, in tables of a row, of a
// block and a row, and of many; a carry that is lost would show from 16 rows on.
func TestMomentsOfOnes(t *testing.T) {
	one := rowfn.Function{Lo: 0, Hi: 1, Value: rowfn.If(rowfn.IsNull(rowfn.Column("x", rowfn.Number)), rowfn.Const(0), rowfn.Column("x", rowfn.Number))}
	b := rowfn.Batch{Functions: []rowfn.Function{one, {Lo: 0, Hi: 1}}, Products: []rowfn.Product{{A: 0, B: 0}, {A: 0, B: 1}, {A: 1, B: 1}}}
	for _, n := range []int{1, 15, 16, 17, kernel.MaxBlock + 1, 100_000} {
		rows := make([]reference.Row, n)
		for i := range rows {
			rows[i] = reference.Row{"x": 1.0}
		}
		s, err := NewTable(randomtree.Table(rows), nil, 1)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.Moments(context.Background(), b, 0, s.Units())
		if err != nil {
			t.Fatal(err)
		}
		want := new(big.Int).Lsh(big.NewInt(int64(n)), 2*rowfn.GridBits)
		for i, sum := range got.Products {
			if sum.Big().Cmp(want) != 0 {
				t.Errorf("%d rows: product %d is %v, want %v", n, i, sum.Big(), want)
			}
		}
	}
}

// TestMomentsOfPasses: a batch whose products do not fit into one pass has the sums of each product by itself; functions of products
// that are in several passes are counted once.
func TestMomentsOfPasses(t *testing.T) {
	s, err := NewTable(people(1000), nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	b := rowfn.Batch{Functions: append(inLists(600, 150), rowfn.Function{Value: number("income"), Lo: 0, Hi: 1e5})}
	label := len(b.Functions) - 1
	for i := range label {
		b.Functions[i].Lo = -float64(i) // so that no two are the same
		b.Functions[i].Null = b.Functions[i].Lo
		b.Products = append(b.Products, rowfn.Product{A: label, B: i})
	}
	if n := len(plan(b, itemsOf(b), s.Shape()).parts); n < 2 {
		t.Fatalf("%d passes", n)
	}
	got, err := s.Moments(context.Background(), b, 0, s.Units())
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{0, 1, 299, 599} {
		alone, err := s.Moments(context.Background(), rowfn.Batch{Functions: []rowfn.Function{b.Functions[i], b.Functions[label]}, Products: []rowfn.Product{{A: 0, B: 1}}}, 0, s.Units())
		if err != nil {
			t.Fatal(err)
		}
		if got.Products[i] != alone.Products[0] || got.Values[i] != alone.Values[0] || got.Values[label] != alone.Values[1] || got.Products[i] == (rowfn.Wide{}) {
			t.Errorf("function %d: %v and %v, alone %v", i, got.Products[i], got.Values[i], alone)
		}
	}
}

// TestMomentsRefused: a product of a function that is not in the batch is an error, not a crash.
func TestMomentsRefused(t *testing.T) {
	s, err := NewTable(people(10), nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []rowfn.Product{{A: -1, B: 0}, {A: 0, B: 1}, {A: 7, B: 0}} {
		if _, err := s.Moments(context.Background(), rowfn.Batch{Functions: batch(1), Products: []rowfn.Product{p}}, 0, 10); err == nil {
			t.Errorf("%v of one function is taken", p)
		}
		if _, err := kernel.CompileBatch(rowfn.Batch{Functions: batch(1), Products: []rowfn.Product{p}}, people(10)); err == nil {
			t.Errorf("kernel: %v of one function is taken", p)
		}
	}
}

// equation are the two functions of a conditional mean: a number where a condition holds, and the condition; with all its products.
func equation() rowfn.Batch {
	where := rowfn.CompareTo(rowfn.OpGreater, number("age"), 40)
	return rowfn.Batch{
		Functions: []rowfn.Function{{Value: number("income"), Lo: 0, Hi: 1e5, Where: where, PerUnit: rowfn.UnitShare}, {Lo: 0, Hi: 1, Where: where, PerUnit: rowfn.UnitShare}},
		Products:  []rowfn.Product{{A: 0, B: 0}, {A: 0, B: 1}, {A: 1, B: 1}},
	}
}

func benchmarkMoments(b *testing.B, of rowfn.Batch, grouped bool) {
	const n = 1 << 20
	var offsets []uint32
	if grouped {
		for at := uint32(0); at < n; at += 3 {
			offsets = append(offsets, at)
		}
		offsets = append(offsets, n)
	}
	table := people(n)
	b.Cleanup(func() { runtime.KeepAlive(table) })
	for _, c := range []struct {
		name  string
		batch rowfn.Batch
	}{{"sums", rowfn.Batch{Functions: of.Functions}}, {"products", of}} {
		b.Run(c.name, func(b *testing.B) {
			s, err := NewTable(table, offsets, 3)
			if err != nil {
				b.Fatal(err)
			}
			s.workers = 1
			for b.Loop() {
				if _, err := s.Moments(context.Background(), c.batch, 0, s.Units()); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/row")
		})
	}
}

// One row function with its square, and the two of a conditional mean with all three products: each against its sums alone.
func BenchmarkSquare1M(b *testing.B) {
	benchmarkMoments(b, rowfn.Batch{Functions: []rowfn.Function{{Value: number("income"), Lo: 0, Hi: 1e5}}, Products: []rowfn.Product{{}}}, false)
}
func BenchmarkEquation1M(b *testing.B)      { benchmarkMoments(b, equation(), false) }
func BenchmarkEquationUnits1M(b *testing.B) { benchmarkMoments(b, equation(), true) }
