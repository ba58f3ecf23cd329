package rowfn

import (
	"math"
	"strings"
	"testing"
)

// twoOf is a model of two features and two outputs.
type twoOf struct{ Scorer }

func (twoOf) Features() int { return 2 }
func (twoOf) Outputs() int  { return 2 }

// every is a batch that has a node of each operation, and shares nodes between functions.
func every() Batch {
	x, y, s, p, d := Column("x", Number), Column("y", Number), Column("s", Text), Column("p", Condition), Column("d", Time)
	e := &Node{Op: OpNumber, Type: Time, Number: 981072000e6}
	text := TextConst("日本 'a\\b\"")
	sum := Add(x, Mul(y, Const(0.1)))
	lookup := &Node{Op: OpLookup, Type: Number, Args: []*Node{s}, Texts: map[string]float64{"a": 1, "": -0.5}, Number: math.NaN()}
	all := []*Node{
		sum, Neg(sum), Abs(x), Log(x), Exp(x), Sqrt(x), {Op: OpFloor, Type: Number, Args: []*Node{x}}, {Op: OpCeil, Type: Number, Args: []*Node{x}}, Sub(d, e), Div(x, y), Max(x, y),
		{Op: OpMin, Type: Number, Args: []*Node{x, y}}, Clamp(x, math.Copysign(0, -1), math.MaxFloat64), If(p, Null(), Const(math.SmallestNonzeroFloat64)), lookup,
		{Op: OpScore, Type: Number, Model: twoOf{}, Output: 1, Args: []*Node{lookup, x}}, {Op: OpRow, Type: Number, Values: []float64{1, math.NaN(), -2.5}},
	}
	for op := OpFullYear; op <= OpMilliseconds; op++ {
		all = append(all, &Node{Op: op, Type: Number, Args: []*Node{d}})
	}
	var holds []*Node
	for op := OpLess; op <= OpNe; op++ {
		holds = append(holds, Compare(op, x, y))
	}
	holds = append(holds, Compare(OpEq, s, text), Compare(OpLess, d, e), In(x, Const(1), y), In(s, text, TextConst("")), In(d, e), Compare(OpHasPrefix, s, text), Compare(OpHasSuffix, s, text),
		Compare(OpContains, s, text), IsNull(s), IsNull(p), IsNull(sum), Not(p), True(), &Node{Op: OpFalse, Type: Condition}, If(p, Not(p), p), Or(p, IsNull(d)))
	where := And(holds...)
	b := Batch{Functions: []Function{{Lo: 0, Hi: 1}, {Value: p, Lo: 0, Hi: 1, PerUnit: UnitShare}, {Lo: 0, Hi: 1, Where: where, PerUnit: UnitAny}}}
	for _, n := range all {
		b.Functions = append(b.Functions, Function{Value: n, Lo: -60, Hi: 180, Null: 0.1, Where: where})
	}
	b.Products = []Product{{A: 0, B: 0}, {A: 3, B: 1}}
	return b
}

// TestCheck: a batch of every operation keeps the contract, and what does not is refused in words that say what is wrong.
func TestCheck(t *testing.T) {
	b := every()
	if err := b.Check(); err != nil {
		t.Fatal(err)
	}
	seen := map[Op]bool{}
	var note func(n *Node)
	note = func(n *Node) {
		if n == nil {
			return
		}
		seen[n.Op] = true
		for _, a := range n.Args {
			note(a)
		}
	}
	for _, f := range b.Functions {
		note(f.Value)
		note(f.Where)
	}
	for op := OpColumn; op <= OpRow; op++ {
		if !seen[op] {
			t.Errorf("operation %d is in no function", op)
		}
	}
	x, s, p := Column("x", Number), Column("s", Text), Column("p", Condition)
	for _, c := range []struct {
		value *Node
		says  string
	}{
		{Const(math.NaN()), "wants a finite number"},
		{Const(math.Inf(1)), "wants a finite number"},
		{Column("", Number), "the name of a column"},
		{Column("\xff", Number), "the name of a column"},
		{Compare(OpEq, s, &Node{Op: OpNull, Type: Text}), "cannot be text"},
		{Compare(OpEq, s, TextConst("\xff")), "wants UTF-8"},
		{Neg(nil), "argument 0 is missing"},
		{&Node{Op: 200, Type: Number}, "is not known"},
		{&Node{Op: OpTrue, Type: Condition, Args: []*Node{x}}, "has no arguments"},
		{&Node{Op: OpAdd, Type: Number, Args: []*Node{True(), True()}}, "argument 0 is a condition, want a number"},
		{&Node{Op: OpAdd, Type: Number, Args: []*Node{x}}, "has 1 arguments, want 2"},
		{&Node{Op: OpAdd, Type: Condition, Args: []*Node{x, x}}, "is a number, not a condition"},
		{&Node{Op: OpEq, Type: Condition, Args: []*Node{x, s}}, "argument 1 is text, want a number"},
		{&Node{Op: OpHasPrefix, Type: Condition, Args: []*Node{s, s}}, "wants a text column and literal texts"},
		{&Node{Op: OpIn, Type: Condition, Args: []*Node{TextConst("a"), TextConst("a")}}, "wants a text column and literal texts"},
		{If(x, x, x), "wants a condition and two numbers"},
		{Compare(OpEq, &Node{Op: OpIf, Type: Text, Args: []*Node{p, s, s}}, s), "wants a condition and two numbers"},
		{IsNull(TextConst("a")), "or a column"},
		{IsNull(Not(p)), "or a column"},
		{&Node{Op: OpLookup, Type: Number, Args: []*Node{s}}, "wants a text column and numbers by text"},
		{&Node{Op: OpLookup, Type: Number, Args: []*Node{x}, Texts: map[string]float64{"a": 1}}, "wants a text column and numbers by text"},
		{&Node{Op: OpLookup, Type: Number, Args: []*Node{s}, Texts: map[string]float64{"a": math.NaN()}}, "finite numbers by texts"},
		{&Node{Op: OpLookup, Type: Number, Args: []*Node{s}, Texts: map[string]float64{"a": 1}, Number: math.Inf(-1)}, "the number of null is infinite"},
		{&Node{Op: OpScore, Type: Number}, "wants a model"},
		{&Node{Op: OpScore, Type: Number, Model: twoOf{}, Args: []*Node{x}}, "wants a model"},
		{&Node{Op: OpScore, Type: Number, Model: twoOf{}, Output: 2, Args: []*Node{x, x}}, "wants a model"},
		{&Node{Op: OpScore, Type: Number, Model: twoOf{}, Args: []*Node{x, p}}, "argument 1 is a condition"},
		{&Node{Op: OpRow, Type: Number}, "a number for each row"},
		{&Node{Op: OpRow, Type: Number, Values: []float64{math.Inf(1)}}, "number 0 is infinite"},
		{s, "neither a number nor a condition"},
	} {
		for name, f := range map[string]Function{"value": {Value: c.value, Lo: 0, Hi: 1}, "where": {Where: And(Not(IsNull(x)), &Node{Op: OpNot, Type: Condition, Args: []*Node{c.value}}), Lo: 0, Hi: 1}} {
			if name == "where" && c.value == s {
				continue // of another type than the one that it complains of
			}
			b := Batch{Functions: []Function{{Lo: 0, Hi: 1}, f}}
			if err := b.Check(); err == nil || !strings.Contains(err.Error(), "function 1: ") || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v, want %s", name, err, c.says)
			}
		}
	}
	for _, c := range []struct {
		of   Function
		says string
	}{
		{Function{Lo: 1, Hi: 1, Null: 1}, "the range is none"},
		{Function{Lo: -math.MaxFloat64, Hi: math.MaxFloat64}, "the range is none, or too wide"},
		{Function{Lo: 0, Hi: math.SmallestNonzeroFloat64}, "too narrow"},
		{Function{Lo: math.NaN(), Hi: 1}, "the range is none"},
		{Function{Lo: 0, Hi: 1, Null: 2}, "null does not count"},
		{Function{Lo: 0, Hi: 1, Null: math.NaN()}, "null does not count"},
		{Function{Lo: 0, Hi: 1, Where: x}, "where is no condition"},
		{Function{Lo: 0, Hi: 1, PerUnit: UnitShare + 1}, "is not known"},
	} {
		b := Batch{Functions: []Function{c.of}}
		if err := b.Check(); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v, want %s", c.of, err, c.says)
		}
	}
	for _, p := range []Product{{A: 0, B: 1}, {A: -1, B: 0}} {
		b := Batch{Functions: []Function{{Lo: 0, Hi: 1}}, Products: []Product{p}}
		if err := b.Check(); err == nil || !strings.Contains(err.Error(), "product 0") {
			t.Errorf("%v: %v", p, err)
		}
	}
}

// TestCheckLimits: what is as long as it may be is good, also where the levels are of a tree that another one shares, and what is longer is not.
func TestCheckLimits(t *testing.T) {
	deep := func(n *Node, levels int) *Node {
		for range levels {
			n = Neg(n)
		}
		return n
	}
	half := deep(Column("x", Number), maxDepth/2-1)
	for levels, good := range map[int]bool{maxDepth / 2: true, maxDepth/2 + 1: false} {
		b := Batch{Functions: []Function{{Value: half, Lo: 0, Hi: 1}, {Value: deep(half, levels), Lo: 0, Hi: 1}}}
		alone := Batch{Functions: b.Functions[1:]}
		for _, b := range []Batch{b, alone} {
			if err := b.Check(); (err == nil) != good || err != nil && !strings.Contains(err.Error(), "levels") {
				t.Errorf("%d levels more: %v", levels, err)
			}
		}
	}
	many := Batch{Functions: make([]Function, maxFunctions)}
	for i := range many.Functions {
		many.Functions[i] = Function{Lo: 0, Hi: 1}
	}
	if err := many.Check(); err != nil {
		t.Error(err)
	}
	many.Products = make([]Product, maxProducts+1)
	if err := many.Check(); err == nil {
		t.Error("too many products")
	}
	many.Products, many.Functions = nil, append(many.Functions, Function{Lo: 0, Hi: 1})
	if err := many.Check(); err == nil {
		t.Error("too many functions")
	}
}
