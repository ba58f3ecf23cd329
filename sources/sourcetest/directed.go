package sourcetest

import (
	"math"

	"github.com/holdoutd/holdoutd/rowfn"
)

// directed are row functions that random ones find too rarely: what engines are known to do in ways of their own.
func directed() []rowfn.Function {
	number := func(name string) *rowfn.Node { return rowfn.Column(name, rowfn.Number) }
	x, y, i, f := number("x"), number("y"), number("i"), number("f")
	p := rowfn.Column("p", rowfn.Condition)
	s, text := rowfn.Column("s", rowfn.Text), rowfn.Column("t", rowfn.Text)
	d, e := rowfn.Column("d", rowfn.Time), rowfn.Column("e", rowfn.Time)
	op := func(o rowfn.Op, t rowfn.Type, args ...*rowfn.Node) *rowfn.Node {
		return &rowfn.Node{Op: o, Type: t, Args: args}
	}
	compare := rowfn.Compare
	var all []rowfn.Function
	add := func(f rowfn.Function) {
		for _, rule := range []rowfn.PerUnit{rowfn.UnitMean, rowfn.UnitAny, rowfn.UnitShare} {
			if f.PerUnit = rule; rule == rowfn.UnitMean || len(all)%3 == 0 {
				all = append(all, f)
			}
		}
	}
	holds := func(c *rowfn.Node) { add(rowfn.Function{Value: c, Lo: 0, Hi: 1}) }
	in := func(n *rowfn.Node, lo, hi, null float64) { add(rowfn.Function{Value: n, Lo: lo, Hi: hi, Null: null}) }

	add(rowfn.Function{Lo: 0, Hi: 1})           // counts
	add(rowfn.Function{Lo: 0, Hi: 1, Where: p}) // counts some
	add(rowfn.Function{Value: x, Lo: -60, Hi: 180, Null: 15, Where: p})
	in(rowfn.Clamp(i, 0, 100), 0, 100, 0)

	// Literals: 0.1 that is a decimal, 1/2 that is 0, quotients of integers, 2^53+1 that is 2^53 or not, numbers that a parser rounds wrongly.
	holds(compare(rowfn.OpEq, rowfn.Add(rowfn.Const(0.1), rowfn.Const(0.2)), rowfn.Const(0.3)))
	holds(compare(rowfn.OpEq, rowfn.Add(rowfn.Mul(rowfn.Const(0.1), rowfn.OrElse(rowfn.Sub(x, x), 1)), rowfn.Const(0.2)), rowfn.Const(0.3)))
	in(rowfn.Div(rowfn.Const(1), rowfn.Const(2)), 0, 1, 0)
	in(rowfn.Div(rowfn.If(p, rowfn.Const(1), rowfn.Const(3)), rowfn.Const(2)), 0, 2, 0)
	in(rowfn.Div(i, rowfn.Const(7)), -10, 10, 0)
	in(rowfn.Div(rowfn.Const(7), i), -10, 10, 0)
	holds(compare(rowfn.OpEq, i, rowfn.Const(0x1p53)))
	holds(compare(rowfn.OpEq, rowfn.Add(i, rowfn.Const(1)), i))
	holds(compare(rowfn.OpEq, f, rowfn.Const(0.1)))
	holds(compare(rowfn.OpEq, f, rowfn.Const(float64(float32(0.1)))))
	for _, k := range []float64{5e-324, 0x1p-1022, 2.2250738585072011e-308, math.MaxFloat64, 1e23, 9007199254740993, 0.1, 1.0 / 3, 123456.7891, 1e308} {
		holds(compare(rowfn.OpEq, x, rowfn.Const(k)))
		holds(compare(rowfn.OpGreaterEq, rowfn.Mul(x, rowfn.Const(k)), rowfn.Const(k)))
	}

	// Nulls: comparisons and their opposites, lists, conditions, smallest and largest.
	for _, o := range []rowfn.Op{rowfn.OpLess, rowfn.OpLessEq, rowfn.OpGreater, rowfn.OpGreaterEq, rowfn.OpEq, rowfn.OpNe} {
		holds(compare(o, x, y))
		holds(rowfn.Not(compare(o, x, y)))
		holds(rowfn.Not(compare(o, d, e)))
		holds(rowfn.Or(compare(o, x, rowfn.Null()), rowfn.Not(compare(o, rowfn.Null(), rowfn.Null()))))
	}
	holds(rowfn.Not(p))
	holds(rowfn.IsNull(p))
	holds(rowfn.And(p, rowfn.Not(rowfn.IsNull(p)), compare(rowfn.OpGreater, x, rowfn.Const(0))))
	holds(rowfn.In(x, rowfn.Const(1), rowfn.Null(), y))
	holds(rowfn.Not(rowfn.In(x, rowfn.Const(1), rowfn.Null(), y)))
	holds(rowfn.Not(rowfn.In(s, rowfn.TextConst("a"), rowfn.TextConst(""))))
	holds(rowfn.IsNull(rowfn.Add(x, y)))
	for _, o := range []rowfn.Op{rowfn.OpMin, rowfn.OpMax} {
		in(op(o, rowfn.Number, x, y), -1e6, 1e6, 7)
		in(op(o, rowfn.Number, x, rowfn.Const(0.25)), -1e6, 1e6, 7)
		in(op(o, rowfn.Number, rowfn.Null(), x), -1e6, 1e6, 7)
	}
	in(op(rowfn.OpClamp, rowfn.Number, x, y, f), -1e6, 1e6, 3)
	in(op(rowfn.OpClamp, rowfn.Number, x, rowfn.Const(5), rowfn.Const(-5)), -10, 10, 3) // the upper bound is applied last
	in(rowfn.If(compare(rowfn.OpLess, x, y), x, y), -1e6, 1e6, 11)
	in(rowfn.If(p, rowfn.Null(), x), -1e6, 1e6, 11)

	// What is not finite is null: overflow, zero divisors, roots and logarithms of what has none; and what is not null stays finite.
	in(rowfn.Mul(x, y), -1, 1, 0.5)
	in(rowfn.Div(x, y), -1, 1, 0.5)
	in(rowfn.Div(rowfn.Const(1), rowfn.Mul(x, rowfn.Const(0x1p-1074))), -1, 1, 0.5)
	in(rowfn.Sub(rowfn.Mul(x, rowfn.Const(1e300)), rowfn.Mul(x, rowfn.Const(1e300))), -1, 1, 0.5)
	in(rowfn.Div(rowfn.Const(1), rowfn.Mul(x, rowfn.Const(-0.0))), -1, 1, 0.5)
	in(rowfn.Sqrt(x), 0, 100, 50)
	in(rowfn.Log(x), -800, 800, 0)
	in(rowfn.Exp(x), 0, 2, 1)
	in(rowfn.Abs(rowfn.Neg(x)), 0, 100, 0)
	holds(compare(rowfn.OpEq, rowfn.Add(rowfn.Mul(x, y), rowfn.Neg(rowfn.Mul(y, x))), rowfn.Const(0))) // no fused products
	holds(compare(rowfn.OpEq, rowfn.Sub(rowfn.Mul(f, f), rowfn.Const(float64(float32(0.1))*float64(float32(0.1)))), rowfn.Const(0)))

	// Rounding to the grid: floor(v+0.5) and neither half to even nor away from zero, at and beside its points, in wide, narrow and negative ranges.
	in(rowfn.Mul(op(rowfn.OpFloor, rowfn.Number, x), rowfn.Const(0x1p-31)), 0, 1, 0)
	in(rowfn.Mul(i, rowfn.Const(0x1p-31)), -1, 1, 0)
	in(rowfn.Mul(i, rowfn.Const(0x1p-31)), 0, 1, 0)
	in(rowfn.Add(rowfn.Mul(i, rowfn.Const(0x1p-31)), rowfn.Const(math.Nextafter(0x1p-31, 0))), 0, 1, 0)
	in(rowfn.Mul(i, rowfn.Const(0x1p-31)), -1, 0, -1)
	in(op(rowfn.OpFloor, rowfn.Number, x), -3, 3, 0)
	in(op(rowfn.OpCeil, rowfn.Number, x), -3, 3, 0)
	in(x, 1, 1+0x1p-52, 1)
	in(x, 0, 0x1p-960, 0)
	in(x, 0.1, 0.3, 0.2)
	in(x, -8e307, 8e307, 0)
	in(x, 1e-290, 2e-290, 1.5e-290)
	in(x, 0x1p53, 0x1p53+2, 0x1p53)
	in(f, 0, 1.0/3, 0.1)

	// Texts, byte by byte: no folding, no trimming, no patterns, no escapes, no normal forms.
	for _, k := range []string{"", " ", "a", "A", "a ", "é", "e\u0301", "'", `\`, `\'`, "%", "_", "a%b", "\n", "NULL", "null", "ß", "SS", "日本", "😀", "\u00a0", "\x00"} {
		holds(compare(rowfn.OpEq, text, rowfn.TextConst(k)))
		holds(compare(rowfn.OpNe, text, rowfn.TextConst(k)))
		holds(op(rowfn.OpHasPrefix, rowfn.Condition, text, rowfn.TextConst(k)))
		holds(op(rowfn.OpHasSuffix, rowfn.Condition, text, rowfn.TextConst(k)))
		holds(op(rowfn.OpContains, rowfn.Condition, text, rowfn.TextConst(k)))
	}
	holds(compare(rowfn.OpEq, s, text))
	holds(compare(rowfn.OpNe, s, text))
	holds(compare(rowfn.OpEq, s, s))
	holds(rowfn.In(text, rowfn.TextConst("'"), rowfn.TextConst(`\`), rowfn.TextConst("a ")))
	for _, null := range []float64{0, -3, math.NaN()} {
		in(&rowfn.Node{Op: rowfn.OpLookup, Type: rowfn.Number, Args: []*rowfn.Node{text}, Texts: map[string]float64{"a": 0.1, "'": 1, `\`: 2, "": 3, "e\u0301": 4}, Number: null}, -3, 5, 1)
	}

	// Times: parts of the calendar before 1970 and far away, leap days, fractions of seconds, differences.
	for part := rowfn.OpFullYear; part <= rowfn.OpMilliseconds; part++ {
		in(op(part, rowfn.Number, d), -10, 3000, 0)
		in(op(part, rowfn.Number, e), 0, 400, 1)
		in(op(part, rowfn.Number, &rowfn.Node{Op: rowfn.OpNumber, Type: rowfn.Time, Number: -62135596800e6 + 1}), 0, 400, 1)
	}
	in(op(rowfn.OpSub, rowfn.Number, d, e), -1e15, 1e15, 0)
	in(op(rowfn.OpDayOfYear, rowfn.Number, rowfn.If(p, d, e)), 0, 366, 0)
	for _, k := range edgeInstants {
		holds(compare(rowfn.OpLess, d, &rowfn.Node{Op: rowfn.OpNumber, Type: rowfn.Time, Number: float64(k)}))
	}

	// Models, in the server's own kernels where an engine has none.
	for output := range 2 {
		in(&rowfn.Node{Op: rowfn.OpScore, Type: rowfn.Number, Model: model{}, Output: output, Args: []*rowfn.Node{x, f}}, -10, 10, 1)
	}
	return all
}
