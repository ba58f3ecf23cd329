package engine

import (
	"context"
	"errors"
	"math"
	"math/big"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries/internal/randomtree"
	"github.com/holdoutd/holdoutd/queries/internal/reference"
	"github.com/holdoutd/holdoutd/queries/kernel"
	"github.com/holdoutd/holdoutd/rowfn"
)

// naiveRow is a row's value as the documentation of rowfn.Function says it, and whether Where holds.
func naiveRow(f *rowfn.Function, row reference.Row) (value int64, where bool) {
	where = f.Where == nil || reference.Evaluate(f.Where, row) == true
	v := 1.0
	if f.Value != nil {
		switch x := reference.Evaluate(f.Value, row).(type) {
		case float64:
			v = x
		case bool:
			if v = 0; x {
				v = 1
			}
		}
	}
	if math.IsNaN(v) {
		v = f.Null
	}
	v = math.Min(math.Max(v, f.Lo), f.Hi)
	return int64(math.Floor((v-f.Lo)*(float64(rowfn.One)/(f.Hi-f.Lo)) + 0.5)), where
}

// naiveUnit is a unit's value by rational arithmetic.
func naiveUnit(f *rowfn.Function, rows []reference.Row, single bool, limit int64) int64 {
	sum, count := int64(0), int64(0)
	for _, row := range rows {
		if v, where := naiveRow(f, row); where {
			sum += v
			count++
		}
	}
	m := int64(len(rows))
	if f.PerUnit == rowfn.UnitAny {
		return min(count, 1) * rowfn.One
	}
	value := new(big.Rat)
	switch {
	case single:
		return sum
	case f.PerUnit == rowfn.UnitMean && count > 0:
		value.SetFrac64(sum, count)
	case f.PerUnit == rowfn.UnitShare:
		value.SetFrac64(sum, m)
		value.Mul(value, big.NewRat(min(m, limit), limit))
	}
	value.Add(value, big.NewRat(1, 2))
	return new(big.Int).Div(value.Num(), value.Denom()).Int64()
}

func drawFunction(t *rapid.T) rowfn.Function {
	f := rowfn.Function{Lo: 0, Hi: 1, PerUnit: rowfn.PerUnit(rapid.IntRange(0, 2).Draw(t, "per unit"))}
	depth := rapid.IntRange(0, 3).Draw(t, "depth")
	switch rapid.IntRange(0, 3).Draw(t, "value") {
	case 0:
	case 1:
		f.Value = randomtree.Condition(t, depth)
	case 2:
		f.Value = &rowfn.Node{Op: rowfn.OpIf, Type: rowfn.Number, Args: []*rowfn.Node{randomtree.Condition(t, depth), randomtree.Number(t, 0), randomtree.Number(t, 0)}}
	default:
		f.Value = randomtree.Number(t, depth)
	}
	if f.Value != nil && f.Value.Type == rowfn.Number {
		bounds := rapid.SampledFrom([][2]float64{{0, 1}, {-1, 1}, {-60, 180}, {0, 1e150}, {-1e150, 1e150}, {0.1, 0.3}, {1e-290, 2e-290}}).Draw(t, "range")
		f.Lo, f.Hi = bounds[0], bounds[1]
		f.Null = rapid.SampledFrom([]float64{f.Lo, f.Hi, f.Lo + (f.Hi-f.Lo)/3}).Draw(t, "null")
	}
	if rapid.Bool().Draw(t, "has where") {
		f.Where = randomtree.Condition(t, depth)
	}
	return f
}

// drawOffsets cuts rows into units of one to a few rows.
func drawOffsets(t *rapid.T, rows int) []uint32 {
	offsets := []uint32{0}
	longest := rapid.SampledFrom([]int{1, 3, 30}).Draw(t, "longest")
	for at := 0; at < rows; {
		at = min(rows, at+rapid.IntRange(1, longest).Draw(t, "unit"))
		offsets = append(offsets, uint32(at))
	}
	return offsets
}

// TestSumsAreNaive: sums over any range of units are those of rational arithmetic on the reference's values, for every
// size of block and number of workers.
func TestSumsAreNaive(t *testing.T) {
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
		functions := make([]rowfn.Function, rapid.IntRange(1, 6).Draw(t, "functions"))
		for i := range functions {
			functions[i] = drawFunction(t)
		}
		from := rapid.Int64Range(0, s.Units()).Draw(t, "from")
		to := rapid.Int64Range(from, s.Units()).Draw(t, "to")
		want := make([]int64, len(functions))
		for i := range functions {
			for u := from; u < to; u++ {
				unit := rows[u:min(u+1, int64(len(rows)))]
				if offsets != nil {
					unit = rows[offsets[u]:offsets[u+1]]
				}
				want[i] += naiveUnit(&functions[i], unit, offsets == nil, limit)
			}
		}
		for _, block := range []int{1, 7, 16, 1024} {
			s.block, s.workers = block, 1+block%3
			got, err := s.Sums(context.Background(), functions, from, to)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("blocks of %d: got %v, want %v", block, got, want)
			}
		}
	})
}

// number, constant and call build trees by hand.
func number(name string) *rowfn.Node {
	return &rowfn.Node{Op: rowfn.OpColumn, Type: rowfn.Number, Text: name}
}

func constant(x float64) *rowfn.Node {
	return &rowfn.Node{Op: rowfn.OpNumber, Type: rowfn.Number, Number: x}
}

func call(o rowfn.Op, t rowfn.Type, args ...*rowfn.Node) *rowfn.Node {
	return &rowfn.Node{Op: o, Type: t, Args: args}
}

// predicate is age > a && income * 0.5 < b ? 1.0 : 0.0.
func predicate(a, b float64) rowfn.Function {
	older := call(rowfn.OpGreater, rowfn.Condition, number("age"), constant(a))
	poorer := call(rowfn.OpLess, rowfn.Condition, call(rowfn.OpMul, rowfn.Number, number("income"), constant(0.5)), constant(b))
	return rowfn.Function{Lo: 0, Hi: 1, Value: call(rowfn.OpIf, rowfn.Number, call(rowfn.OpAnd, rowfn.Condition, older, poorer), constant(1), constant(0))}
}

// batch is k predicates with constants of their own.
func batch(k int) []rowfn.Function {
	functions := make([]rowfn.Function, k)
	for i := range functions {
		functions[i] = predicate(20+float64(i)*0.5, 20000+float64(i)*300)
	}
	return functions
}

// TestWorkersAgree: over many chunks, every number of workers and size of block gives the same sums, with and without
// units, some of them longer than a block and one longer than a chunk.
func TestWorkersAgree(t *testing.T) {
	table := people(200_000)
	functions := batch(12)
	mean := rowfn.Function{Value: number("income"), Lo: 0, Hi: 1e5, Where: call(rowfn.OpLess, rowfn.Condition, number("age"), constant(50))}
	for _, rule := range []rowfn.PerUnit{rowfn.UnitMean, rowfn.UnitAny, rowfn.UnitShare} {
		mean.PerUnit = rule
		functions = append(functions, mean)
	}
	offsets := []uint32{0}
	for at := uint32(0); at < 200_000; {
		at = min(200_000, at+1+at*7919%5000/(1+at%13)+at/150_000*(at%2)*40_000)
		offsets = append(offsets, at)
	}
	for _, units := range [][]uint32{nil, offsets} {
		s, err := NewTable(table, units, 5000)
		if err != nil {
			t.Fatal(err)
		}
		var want []int64
		for _, workers := range []int{1, 2, 3, 8} {
			for _, block := range []int{64, 1000, 1024} {
				s.workers, s.block = workers, block
				got, err := s.Sums(context.Background(), functions, 1, s.Units()-1)
				if err != nil {
					t.Fatal(err)
				}
				if want == nil {
					want = got
				}
				if !slices.Equal(got, want) {
					t.Errorf("%d workers, blocks of %d: %v, want %v", workers, block, got, want)
				}
			}
		}
		if slices.Contains(want, 0) {
			t.Errorf("a sum is 0: %v", want)
		}
	}
}

// TestLargestSums: the sums of unit rules stay exact at the edge of int64, where a unit is as long as the table.
func TestLargestSums(t *testing.T) {
	const rows = 100_000
	s, err := NewTable(people(rows), []uint32{0, rows}, dataset.MaxRows)
	if err != nil {
		t.Fatal(err)
	}
	all := rowfn.Function{Lo: 0, Hi: 1, PerUnit: rowfn.UnitShare}
	mean := rowfn.Function{Lo: 0, Hi: 1}
	sums, err := s.Sums(context.Background(), []rowfn.Function{all, mean}, 0, 1)
	want := new(big.Int).Div(new(big.Int).Add(big.NewInt(2*rows*rowfn.One), big.NewInt(dataset.MaxRows)), big.NewInt(2*dataset.MaxRows)).Int64()
	if err != nil || sums[0] != want || sums[1] != rowfn.One {
		t.Errorf("got %v, %v; want [%d %d]", sums, err, want, rowfn.One)
	}
}

// TestSplitBatch: a batch with more registers than a worker may hold is summed in parts.
func TestSplitBatch(t *testing.T) {
	var functions []rowfn.Function
	var shared []*rowfn.Node
	for i := range 2500 { // values that are all alive until the second half reads them again
		shared = append(shared, call(rowfn.OpLog, rowfn.Number, call(rowfn.OpAdd, rowfn.Number, number("age"), constant(float64(i)))))
	}
	for _, k := range []float64{10, 5} {
		for _, n := range shared {
			functions = append(functions, rowfn.Function{Value: n, Lo: 0, Hi: k})
		}
	}
	s, err := NewTable(people(10), nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Sums(context.Background(), functions, 0, 10)
	if err != nil || len(got) != len(functions) {
		t.Fatalf("%d sums, %v", len(got), err)
	}
	for _, i := range []int{0, 1, 2499, 2500, 4999} {
		one, err := s.Sums(context.Background(), functions[i:i+1], 0, 10)
		if err != nil || one[0] != got[i] || one[0] == 0 {
			t.Errorf("function %d alone: %v, %v; in the batch %d", i, one, err, got[i])
		}
	}
}

// TestRepeatedFunctions: a function that is listed more than once has the sum of its place everywhere.
func TestRepeatedFunctions(t *testing.T) {
	s, err := NewTable(people(10), nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	age := rowfn.Function{Value: number("age"), Lo: 0, Hi: 100}
	narrow, all := age, rowfn.Function{Lo: 0, Hi: 1}
	narrow.Hi = 50
	want, err := s.Sums(context.Background(), []rowfn.Function{age, narrow, all}, 0, 10)
	if err != nil || want[0] == want[1] {
		t.Fatal(want, err)
	}
	got, err := s.Sums(context.Background(), []rowfn.Function{all, age, age, narrow, all, age}, 0, 10)
	if err != nil || !slices.Equal(got, []int64{want[2], want[0], want[0], want[1], want[2], want[0]}) {
		t.Errorf("got %v, %v; want those of %v", got, err, want)
	}
}

func TestRefused(t *testing.T) {
	table := people(10)
	for _, offsets := range [][]uint32{{}, {0}, {1, 10}, {0, 9}, {0, 5, 5, 10}, {0, 6, 5, 10}} {
		if _, err := NewTable(table, offsets, 5); err == nil {
			t.Errorf("offsets %v are taken", offsets)
		}
	}
	if _, err := NewTable(table, []uint32{0, 10}, 0); err == nil {
		t.Error("units of at most 0 rows are taken")
	}
	s, err := NewTable(table, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range [][2]int64{{-1, 3}, {4, 3}, {0, 11}} {
		if _, err := s.Sums(context.Background(), batch(1), r[0], r[1]); err == nil {
			t.Errorf("range %v is taken", r)
		}
	}
	for name, f := range map[string]rowfn.Function{
		"an unknown column":     {Value: number("agee"), Lo: 0, Hi: 1},
		"a column's wrong type": {Value: &rowfn.Node{Op: rowfn.OpColumn, Type: rowfn.Time, Text: "age"}, Lo: 0, Hi: 1},
		"an empty range":        {Value: number("age"), Lo: 1, Hi: 1},
		"a range too wide":      {Value: number("age"), Lo: -1e308, Hi: 1e308},
		"a null outside":        {Value: number("age"), Lo: 0, Hi: 1, Null: 2},
		"where of numbers":      {Where: number("age"), Lo: 0, Hi: 1},
		"a missing argument":    {Value: call(rowfn.OpAdd, rowfn.Number, number("age")), Lo: 0, Hi: 1},
		"an unknown operation":  {Value: call(200, rowfn.Number, number("age")), Lo: 0, Hi: 1},
	} {
		if _, err := s.Sums(context.Background(), []rowfn.Function{f}, 0, 10); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	if sums, err := s.Sums(context.Background(), nil, 0, 10); err != nil || len(sums) != 0 {
		t.Errorf("no functions: %v, %v", sums, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.Sums(ctx, batch(1), 0, 10); !errors.Is(err, context.Canceled) {
		t.Errorf("after cancelling: %v", err)
	}
}

// TestBlocksDoNotAllocate: once a worker has its registers, its blocks take no memory, with units and without.
func TestBlocksDoNotAllocate(t *testing.T) {
	const rows = 20_000
	table := people(rows)
	offsets := []uint32{0}
	for at := uint32(0); at < rows; {
		at = min(rows, at+1+at%7)
		offsets = append(offsets, at)
	}
	program, err := kernel.Compile(append(batch(20), rowfn.Function{Value: number("income"), Lo: 0, Hi: 1e5}), table)
	if err != nil {
		t.Fatal(err)
	}
	for _, units := range []kernel.Units{{}, {Offsets: offsets, Cap: 10}} {
		n := int64(rows)
		if units.Offsets != nil {
			n = int64(len(offsets) - 1)
		}
		state := kernel.NewState(program, units, kernel.MaxBlock)
		if allocations := testing.AllocsPerRun(5, func() { state.Add(0, n) }); allocations != 0 {
			t.Errorf("%v allocations in %d rows, units: %v", allocations, rows, units.Offsets != nil)
		}
		state.Release()
	}
}

// onlyProcessor is one processor. It counts what was asked of it, and can fail as one that is waited for in vain.
type onlyProcessor struct {
	sem             chan struct{}
	entered, yields atomic.Int64
	end             func() // called by the third Yield, or nil
}

func (p *onlyProcessor) Enter(ctx context.Context) (Processor, error) {
	select {
	case p.sem <- struct{}{}:
		p.entered.Add(1)
		return &onlyPlace{p: p}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

type onlyPlace struct {
	p    *onlyProcessor
	left sync.Once
}

func (o *onlyPlace) Yield(ctx context.Context, _ time.Duration) error {
	if o.p.yields.Add(1) == 3 && o.p.end != nil {
		o.p.end()
	}
	if err := ctx.Err(); err != nil {
		o.Leave()
		return err
	}
	return nil
}

func (o *onlyPlace) Leave() { o.left.Do(func() { <-o.p.sem }) }

// TestPassesTakeTurns: a pass works with a processor only, yields it between chunks, gives it back however it ends, sums the same, and
// does not wait for more processors when nothing is left to do. It would notice a pass that works without its turn, one that keeps
// the processor until it is done, and one that returns the sums of a part of the rows.
func TestPassesTakeTurns(t *testing.T) {
	const rows = 20 * chunkRows
	x := make([]float64, rows)
	for i := range x {
		x[i] = float64(i % 2)
	}
	source, err := NewTable(must(dataset.FromColumns(dataset.Column{Field: dataset.Field{Name: "x", Kind: dataset.Number}, Numbers: x})), nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	source.workers = 3
	functions := []rowfn.Function{{Value: &rowfn.Node{Op: rowfn.OpColumn, Type: rowfn.Number, Text: "x"}, Lo: 0, Hi: 1}}
	p := &onlyProcessor{sem: make(chan struct{}, 1)}
	sums, err := source.Sums(WithProcessors(t.Context(), p), functions, 0, rows)
	if err != nil || sums[0] != rows/2*rowfn.One {
		t.Fatal(sums, err)
	}
	if p.entered.Load() < 2 || p.yields.Load() < 18 || len(p.sem) != 0 {
		t.Errorf("%d times a processor, %d yields, %d not given back", p.entered.Load(), p.yields.Load(), len(p.sem))
	}
	ctx, cancel := context.WithCancel(t.Context())
	p = &onlyProcessor{sem: make(chan struct{}, 1), end: cancel}
	if sums, err := source.Sums(WithProcessors(ctx, p), functions, 0, rows); !errors.Is(err, context.Canceled) || sums != nil || len(p.sem) != 0 {
		t.Errorf("a pass that was cancelled while it waited: %v, %v, %d not given back", sums, err, len(p.sem))
	}
	if _, err := source.Sums(WithProcessors(ctx, p), functions, 0, rows); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// dear is a model of which a row takes a millisecond, by what it says.
type dear struct{}

func (dear) ID() string                                   { return "dear" }
func (dear) Features() int                                { return 1 }
func (dear) Outputs() int                                 { return 1 }
func (dear) Steps() int64                                 { return 1 << 20 }
func (dear) Scratch() (numbers, bits int)                 { return 0, 0 }
func (dear) BlockIn(_ rowfn.Scratch, dst, in [][]float64) { copy(dst[0], in[0]) }

// TestDearRowsTakeTurns: where a block of rows would take a worker a second, it yields the processor within one. It would notice that others wait for a
// whole block, however long that takes.
func TestDearRowsTakeTurns(t *testing.T) {
	const rows = 4 * kernel.MaxBlock
	source, err := NewTable(must(dataset.FromColumns(dataset.Column{Field: dataset.Field{Name: "x", Kind: dataset.Number}, Numbers: make([]float64, rows)})), nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	x := &rowfn.Node{Op: rowfn.OpColumn, Type: rowfn.Number, Text: "x"}
	functions := []rowfn.Function{{Value: &rowfn.Node{Op: rowfn.OpScore, Type: rowfn.Number, Model: dear{}, Args: []*rowfn.Node{x}}, Lo: 0, Hi: 1}}
	p := &onlyProcessor{sem: make(chan struct{}, 1)}
	if _, err := source.Sums(WithProcessors(t.Context(), p), functions, 0, rows); err != nil {
		t.Fatal(err)
	}
	if least := int32(rows/(blockSteps>>20) - 2); int32(p.yields.Load()) < least {
		t.Errorf("%d yields for %d rows, want %d", p.yields.Load(), rows, least)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
