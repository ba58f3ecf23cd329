package remote

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries/engine"
	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/rowfn/sql"
)

// A probe is a small table of edge rows beside a holdout's table. Its sums are known, so that an engine which computes otherwise since an upgrade, or under
// other settings, is found before it answers a question. The tests with the tag engines compare far more; the probe asks the engine that is there now.

// ProbeLayout is how the probe is written under a name.
func ProbeLayout(name string) sql.Table { return Layout(name, probe().Schema(), 0) }

// LoadProbe writes the probe.
func LoadProbe(ctx context.Context, to Loader, name string) error {
	layout := ProbeLayout(name)
	return Load(ctx, to, &layout, Blocks(probe(), &layout, nil))
}

// CheckProbe compares an engine's sums over the probe with those of the engine in memory. The error is of kind [Changed] where they differ.
func CheckProbe(ctx context.Context, e Engine, name string) error {
	table, batch := probe(), probeBatch()
	here, err := engine.NewTable(table, nil, 1)
	if err != nil {
		return err
	}
	want, err := here.Moments(ctx, batch, 0, here.Units())
	if err != nil {
		return err
	}
	there, err := New(e, Registered{Table: ProbeLayout(name), Units: here.Units(), Rows: here.Units()})
	if err != nil {
		return err
	}
	got, err := there.Moments(ctx, batch, 0, here.Units())
	if err == nil && (!slices.Equal(got.Values, want.Values) || !slices.Equal(got.Products, want.Products)) {
		err = &Error{Kind: Changed, Engine: e.Dialect().Name, Detail: "it does not sum the probe as it is summed here"}
	}
	return err
}

// probe is the table: all pairs of some numbers, with texts, truth values and times beside them.
func probe() *dataset.Table {
	numbers := []float64{math.NaN(), 0, 1, -1, 0.1, -0.5, 0.5, 1.5, 2.5, -2.5, 1.0 / 3, 0x1p-30, 0x1p-31, -0x1p-31, 3 * 0x1p-31, 5e-324, 0x1p53, -0x1p53 + 1, math.MaxFloat64, -math.MaxFloat64}
	texts := []string{"", "a", "A", "ab", "a'b", `a\b`, "é", "e\u0301", "100%", "a_b"}
	times := []float64{math.NaN(), 0, -1, 951782400e6, 1078012800e6, -62135596800e6, 253402300799e6, 1582934399999999}
	n := len(numbers) * len(numbers)
	x, y, at := make([]float64, n), make([]float64, n), make([]float64, n)
	flag, text := make([]uint8, n), make([]string, n)
	for i := range n {
		x[i], y[i], at[i] = numbers[i/len(numbers)], numbers[i%len(numbers)], times[i%len(times)]
		flag[i], text[i] = uint8(i%3), texts[i%len(texts)]
	}
	number := func(name string, kind dataset.Kind, values []float64) dataset.Column {
		return dataset.Column{Field: dataset.Field{Name: name, Kind: kind, Source: "probe"}, Numbers: values}
	}
	t, err := dataset.FromColumns(number("x", dataset.Number, x), number("y", dataset.Number, y), number("at", dataset.Time, at),
		dataset.Column{Field: dataset.Field{Name: "flag", Kind: dataset.Bool, Source: "probe"}, Bools: flag},
		dataset.NewText("text", text, func(row int) bool { return row%7 == 0 }))
	if err != nil {
		panic(fmt.Sprintf("remote: the probe is no table: %v", err)) // it is the same each time
	}
	return t
}

// probeBatch has each operation that an engine computes, or a product of it.
func probeBatch() rowfn.Batch {
	x, y, at := rowfn.Column("x", rowfn.Number), rowfn.Column("y", rowfn.Number), rowfn.Column("at", rowfn.Time)
	flag, text := rowfn.Column("flag", rowfn.Condition), rowfn.Column("text", rowfn.Text)
	of := func(op rowfn.Op, args ...*rowfn.Node) *rowfn.Node {
		return &rowfn.Node{Op: op, Type: rowfn.Number, Args: args}
	}
	holds := func(op rowfn.Op, args ...*rowfn.Node) *rowfn.Node {
		return rowfn.If(&rowfn.Node{Op: op, Type: rowfn.Condition, Args: args}, rowfn.Const(1), rowfn.Const(0))
	}
	var b rowfn.Batch
	add := func(value *rowfn.Node, lo, hi float64) {
		b.Functions = append(b.Functions, rowfn.Function{Value: value, Lo: lo, Hi: hi, Null: lo + (hi-lo)/4})
	}
	for _, op := range []rowfn.Op{rowfn.OpNeg, rowfn.OpAbs, rowfn.OpSqrt, rowfn.OpFloor, rowfn.OpCeil} {
		add(of(op, x), -3, 3)
	}
	for _, op := range []rowfn.Op{rowfn.OpAdd, rowfn.OpSub, rowfn.OpMul, rowfn.OpDiv, rowfn.OpMin, rowfn.OpMax} {
		add(of(op, x, y), -3, 4)
	}
	for _, op := range []rowfn.Op{rowfn.OpLess, rowfn.OpLessEq, rowfn.OpGreater, rowfn.OpGreaterEq, rowfn.OpEq, rowfn.OpNe} {
		add(holds(op, x, y), 0, 1)
		add(holds(op, of(rowfn.OpAdd, x, x), of(rowfn.OpMul, y, y)), 0, 1)
	}
	for _, op := range []rowfn.Op{rowfn.OpHasPrefix, rowfn.OpHasSuffix, rowfn.OpContains, rowfn.OpEq, rowfn.OpNe} {
		for _, with := range []string{"", "a", "é", "'", `\`, "%", "_"} {
			add(holds(op, text, rowfn.TextConst(with)), 0, 1)
		}
	}
	for _, op := range []rowfn.Op{rowfn.OpFullYear, rowfn.OpMonth, rowfn.OpDayOfMonth, rowfn.OpDate, rowfn.OpDayOfWeek, rowfn.OpDayOfYear, rowfn.OpHours, rowfn.OpMinutes,
		rowfn.OpSeconds, rowfn.OpMilliseconds} {
		add(of(op, at), 0, 10000)
	}
	add(rowfn.Clamp(of(rowfn.OpDiv, x, y), -0.25, 0.75), -1, 1)
	add(holds(rowfn.OpIn, x, rowfn.Const(0.1), rowfn.Const(1.0/3), rowfn.Const(5e-324)), 0, 1)
	add(holds(rowfn.OpIn, text, rowfn.TextConst("A"), rowfn.TextConst("a'b")), 0, 1)
	for _, c := range []*rowfn.Node{x, flag, text, at} {
		add(holds(rowfn.OpIsNull, c), 0, 1)
	}
	add(rowfn.If(rowfn.And(flag, rowfn.Not(rowfn.CompareTo(rowfn.OpLess, x, 0.5))), x, y), -1, 1)
	add(rowfn.If(rowfn.Or(flag, rowfn.IsNull(y)), of(rowfn.OpDiv, rowfn.Const(1), x), rowfn.Null()), -1, 1)
	n := len(b.Functions)
	b.Products = []rowfn.Product{{A: 0, B: 0}, {A: 0, B: 5}, {A: 7, B: n - 1}, {A: n - 2, B: n - 2}}
	return b
}
