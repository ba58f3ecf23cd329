package sql

import (
	"fmt"
	"math"
	"strings"

	"github.com/holdoutd/holdoutd/rowfn"
)

// op is an operation of the total graph: one that has the same result on every engine, in each row, for all arguments that it can have.
type op uint8

const (
	opNumber  op = iota + 1 // a float64 that is finite, or NaN
	opInteger               // an int64
	opColumn                // of the table below: its name is in text

	// Number -> Number.
	opNeg
	opAbs
	opSqrt
	opFloor
	opCeil
	opFinite // NaN where the argument is infinite

	// Number, Number -> Number.
	opAdd
	opSub
	opMul
	opDiv
	opMin // of finite numbers; NaN if either is
	opMax
	opAtMost  // opMin with a constant, which is second
	opAtLeast // opMax with one
	opClamp   // min(max(a, b), c) of constants b <= c

	opSelect // bit, then two Numbers: the first where it is 1
	opLookup // a text column: numbers by text; texts and numbers are in pairs

	// bits.
	opTrue
	opFalse
	opIsTrue     // a Bool column
	opIsNullBool // a Bool column
	opNot
	opAnd
	opOr
	opLess // of finite Numbers
	opLessEq
	opEq
	opNe
	opIsNaN
	opIsNotFinite
	opTextIs     // a Text column and a literal
	opTextIsNot  // and not null
	opTextIn     // a Text column and literals
	opTextPrefix // and a literal that is not empty, as the next two
	opTextSuffix
	opTextContains
	opTextIsNull
	opTextsEqual // two Text columns, neither null
	opTextsDiffer

	// Integers.
	opWhole   // an integer of a whole Number, which is not NaN and within ±2^62
	opDecimal // a Number of an integer
	opFloored // a Number from 0 to 2^62, without its fraction
	opBit     // a bit as an integer
	opPlus
	opMinus
	opTimes
	opQuotient // by a positive integer, cut off towards 0
	opRemainder
	opHigh // the bits of an integer that is not negative from the 32nd on, and those before
	opLow
	opIntegerLess // -> bit
	opChoose      // bit, then two integers

	lastOp
)

// class is what a value is for an engine.
type class uint8

const (
	numbers class = iota + 1
	bits
	integers
	texts
)

// id names a value of a graph.
type id int32

const none id = -1

// value is one operation on other values.
type value struct {
	op    op
	class class
	args  [3]id
	k     uint64   // opNumber, opInteger: the bits
	text  string   // opColumn: the name; of tests of texts: the literal
	list  []string // opTextIn, opLookup
	pairs []float64

	bound float64 // of Numbers: no row's absolute value is above it, where it is finite
	loose bool    // of Numbers: a row may be infinite, which stands for null until opFinite
}

// grid is the rounding of rowfn.Function.
type grid struct{ lo, hi, null, scale float64 }

// fixed is the value of one row.
func (g grid) fixed(v float64) int64 {
	if v != v {
		v = g.null
	}
	return int64(float64((max(min(v, g.hi), g.lo)-g.lo)*g.scale) + 0.5)
}

// key is what makes two values equal.
type key struct {
	op   op
	args [3]id
	k    uint64
	text string
}

// graph holds values, each once.
type graph struct {
	values []value
	seen   map[key]id
}

func newGraph() *graph { return &graph{seen: map[key]id{}} }

func (g *graph) at(i id) *value { return &g.values[i] }

// add returns the value, the earlier one if there is an equal one.
func (g *graph) add(v value) id {
	k := key{v.op, v.args, v.k, v.text}
	if v.list != nil {
		k.text = v.text + "\x00" + strings.Join(v.list, "\xff") + fmt.Sprintf("\xff%x", floatBits(v.pairs))
	}
	if at, ok := g.seen[k]; ok {
		return at
	}
	at := id(len(g.values))
	g.values = append(g.values, v)
	g.seen[k] = at
	return at
}

func floatBits(list []float64) []uint64 {
	out := make([]uint64, len(list))
	for i, x := range list {
		out[i] = math.Float64bits(x)
	}
	return out
}

func args(list ...id) (out [3]id) {
	out = [3]id{none, none, none}
	copy(out[:], list)
	return out
}

// number is a constant; what is not finite is null, and -0 is 0.
func (g *graph) number(x float64) id {
	if x -= x - x; x != x {
		x = math.NaN()
	}
	return g.add(value{op: opNumber, class: numbers, args: args(), k: math.Float64bits(x + 0), bound: math.Abs(x)})
}

func (g *graph) integer(k int64) id {
	return g.add(value{op: opInteger, class: integers, args: args(), k: uint64(k)})
}

func (g *graph) column(name string, c class) id {
	return g.add(value{op: opColumn, class: c, args: args(), text: name, bound: math.MaxFloat64})
}

func (g *graph) truth(yes bool) id {
	v := value{op: opFalse, class: bits, args: args()}
	if yes {
		v.op = opTrue
	}
	return g.add(v)
}

func (g *graph) isConst(i id) bool     { return g.at(i).op == opNumber }
func (g *graph) constant(i id) float64 { return math.Float64frombits(g.at(i).k) }
func (g *graph) isNull(i id) bool      { return g.isConst(i) && math.IsNaN(g.constant(i)) }

// strict is a value whose infinities are null already.
func (g *graph) strict(a id) id {
	if !g.at(a).loose {
		return a
	}
	return g.add(value{op: opFinite, class: numbers, args: args(a), bound: math.MaxFloat64})
}

// arm is a side of a choice. What is more than a column or a constant is computed for all rows, in a layer below: an engine that cuts choices short cannot.
func (g *graph) arm(a id) id {
	if v := g.at(a); v.loose || v.op == opNumber || v.op == opColumn || v.op == opFinite {
		return g.strict(a)
	}
	bound := g.at(a).bound
	return g.add(value{op: opFinite, class: numbers, args: args(a), bound: bound})
}

// bounded sets the bound. Rounding is monotonic, so a bound that is computed like the values themselves holds for them.
func bounded(v value, bound float64) value {
	if v.bound = bound; math.IsInf(bound, 0) || math.IsNaN(bound) {
		v.bound, v.loose = math.MaxFloat64, true
	}
	return v
}

func (g *graph) unary(o op, a id) id {
	if g.isConst(a) {
		return g.number(unaryOf(o, g.constant(a)))
	}
	x := g.at(a)
	bound := x.bound
	switch o {
	case opSqrt:
		bound = math.Sqrt(bound)
	case opFloor, opCeil:
		bound = math.Ceil(bound)
	}
	v := bounded(value{op: o, class: numbers, args: args(a)}, bound)
	v.loose = v.loose || x.loose
	return g.add(v)
}

func (g *graph) binary(o op, a, b id) id {
	if g.isConst(a) && g.isConst(b) {
		return g.number(binaryOf(o, g.constant(a), g.constant(b)))
	}
	if g.isNull(a) || g.isNull(b) || o == opDiv && g.isConst(b) && g.constant(b) == 0 {
		return g.number(math.NaN())
	}
	if o == opMin || o == opMax {
		return g.extreme(o, g.strict(a), g.strict(b))
	}
	if o == opDiv {
		b = g.strict(b) // a number divided by what stands for null must not be 0
	}
	if o == opAdd || o == opMul {
		a, b = min(a, b), max(a, b)
	}
	x, y := g.at(a), g.at(b)
	bound := math.Inf(1)
	switch o {
	case opAdd, opSub:
		bound = x.bound + y.bound
	case opMul:
		bound = x.bound * y.bound
	case opDiv:
		if y.op == opNumber {
			bound = x.bound / y.bound
		}
	}
	v := bounded(value{op: o, class: numbers, args: args(a, b)}, bound)
	v.loose = v.loose || x.loose || y.loose
	return g.add(v)
}

// extreme is opMin or opMax of two strict Numbers.
func (g *graph) extreme(o op, a, b id) id {
	if g.isConst(a) {
		a, b = b, a
	}
	bound := max(g.at(a).bound, g.at(b).bound)
	switch {
	case !g.isConst(b):
		a, b = min(a, b), max(a, b)
	case o == opMin:
		o = opAtMost
	default:
		o = opAtLeast
	}
	return g.add(value{op: o, class: numbers, args: args(a, b), bound: bound})
}

// compare is opLess, opLessEq, opEq or opNe.
func (g *graph) compare(o op, a, b id) id {
	if g.isNull(a) || g.isNull(b) {
		return g.truth(false)
	}
	if g.isConst(a) && g.isConst(b) {
		x, y := g.constant(a), g.constant(b)
		return g.truth(o == opLess && x < y || o == opLessEq && x <= y || o == opEq && x == y || o == opNe && x != y)
	}
	a, b = g.strict(a), g.strict(b)
	if (o == opEq || o == opNe) && b < a {
		a, b = b, a
	}
	return g.add(value{op: o, class: bits, args: args(a, b)})
}

func (g *graph) clamp(a, lo, hi id) id {
	if !g.isConst(lo) || !g.isConst(hi) || g.isConst(a) || !(g.constant(lo) <= g.constant(hi)) {
		return g.binary(opMin, g.binary(opMax, a, lo), hi)
	}
	bound := max(g.at(lo).bound, g.at(hi).bound)
	return g.add(value{op: opClamp, class: numbers, args: args(g.strict(a), lo, hi), bound: bound})
}

func (g *graph) choose(test, yes, no id) id {
	switch {
	case g.at(test).op == opTrue || yes == no:
		return yes
	case g.at(test).op == opFalse:
		return no
	}
	bound := 0.0
	for _, side := range [2]id{yes, no} {
		if !g.isNull(side) {
			bound = max(bound, g.at(side).bound)
		}
	}
	return g.add(value{op: opSelect, class: numbers, args: args(test, g.arm(yes), g.arm(no)), bound: bound})
}

func (g *graph) not(a id) id {
	switch x := g.at(a); x.op {
	case opTrue, opFalse:
		return g.truth(x.op == opFalse)
	case opNot:
		return x.args[0]
	}
	return g.add(value{op: opNot, class: bits, args: args(a)})
}

// logic is opAnd or opOr. What it simplifies is what the kernels do, for a test of null sees whether a column of true and false is left.
func (g *graph) logic(o op, a, b id) id {
	neutral, absorbing := opTrue, opFalse
	if o == opOr {
		neutral, absorbing = opFalse, opTrue
	}
	switch x, y := g.at(a).op, g.at(b).op; {
	case x == absorbing || y == neutral || a == b:
		return a
	case y == absorbing || x == neutral:
		return b
	}
	return g.add(value{op: o, class: bits, args: args(min(a, b), max(a, b))})
}

func (g *graph) isNullOf(a id) id {
	if g.isConst(a) {
		return g.truth(g.isNull(a))
	}
	o := opIsNaN
	if g.at(a).loose {
		o = opIsNotFinite
	}
	return g.add(value{op: o, class: bits, args: args(a)})
}

// fixed is the fixed point of a Number: an integer, floor((clamp(a, lo, hi) - lo) · scale + 0.5), in which null counts as a number of its own.
func (g *graph) fixed(a id, of grid) id {
	a = g.strict(a)
	lo, hi, null := g.number(of.lo), g.number(of.hi), g.number(of.null)
	plain := func(o op, c class, list ...id) id {
		return g.add(value{op: o, class: c, args: args(list...), bound: math.MaxFloat64})
	}
	choose := func(x, y, yes, no id) id { return plain(opSelect, numbers, plain(opLess, bits, x, y), yes, no) }
	var v id
	switch null {
	case lo: // no comparison holds for null
		v = choose(lo, a, choose(a, hi, a, hi), lo)
	case hi:
		v = choose(a, hi, choose(lo, a, a, lo), hi)
	default:
		v = plain(opSelect, numbers, plain(opIsNaN, bits, a), null, choose(a, lo, lo, choose(hi, a, hi, a)))
	}
	if of.lo != 0 {
		v = plain(opSub, numbers, v, lo)
	}
	v = plain(opMul, numbers, v, g.number(of.scale))
	return plain(opFloored, integers, plain(opAdd, numbers, v, g.number(0.5)))
}

// whole is an operation on integers.
func (g *graph) whole(o op, a, b id) id {
	return g.add(value{op: o, class: integers, args: args(a, b)})
}

// bit is a bit as an integer.
func (g *graph) bit(a id) id {
	switch g.at(a).op {
	case opTrue:
		return g.integer(1)
	case opFalse:
		return g.integer(0)
	}
	return g.add(value{op: opBit, class: integers, args: args(a)})
}

func unaryOf(o op, x float64) float64 {
	switch o {
	case opNeg:
		return -x
	case opAbs:
		return math.Abs(x)
	case opSqrt:
		return math.Sqrt(x)
	case opFloor:
		return math.Floor(x)
	}
	return math.Ceil(x)
}

func binaryOf(o op, x, y float64) float64 {
	switch o {
	case opAdd:
		return x + y
	case opSub:
		return x - y
	case opMul:
		return x * y
	case opDiv:
		return x / y
	case opMin:
		return min(x, y)
	}
	return max(x, y)
}

// gridOf is an error where the contract of a row function is broken, as in the kernels.
func gridOf(f *rowfn.Function) (grid, error) {
	g := grid{f.Lo, f.Hi, f.Null, float64(rowfn.One) / (f.Hi - f.Lo)}
	if !(f.Lo < f.Hi) || math.IsInf(f.Hi-f.Lo, 0) || math.IsInf(g.scale, 0) || !(f.Lo <= f.Null && f.Null <= f.Hi) {
		return grid{}, fmt.Errorf("sql: null counts as %v in the range %v to %v", f.Null, f.Lo, f.Hi)
	}
	return g, nil
}
