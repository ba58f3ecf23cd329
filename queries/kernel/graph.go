package kernel

import (
	"math"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/rowfn"
)

// op is the operation of a value of the graph.
type op uint8

const (
	opConst  op = iota + 1 // a Number that is the same in every row; NaN is null
	opColumn               // a Number or Time column

	opNeg
	opAbs
	opLog
	opExp
	opSqrt
	opFloor
	opCeil
	opPart // a part of a time; aux is the rowfn.Op

	opLookup // a Text column: table.list[code]
	opScores // all scores of a model, kept in registers of their own
	opScore  // one score; a is the opScores, aux which

	opAdd
	opSub
	opMul
	opDiv
	opMin
	opMax
	opClamp  // min(max(a, b), c) with constants b <= c
	opSelect // a ? b : c

	opTrue
	opFalse
	opBool     // a Bool column: whether the byte is 1
	opBoolNull // a Bool column: whether the byte is 2
	opNot
	opAnd
	opOr
	opLess // opLess to opNe are in the order of their mirrored kernels
	opLessEq
	opGreater   // of a constant only
	opGreaterEq // of a constant only
	opEq
	opNe
	opIsNull
	opInList // a in list, which is sorted

	opCodeEq    // a Text column: code == aux
	opCodeNe    // a Text column: code != aux and not null
	opCodeTable // a Text column: bit code of table
	opCodesEq   // two Text columns, by the marks of their texts
	opCodesNe

	opRank  // how many of the thresholds in list the number a passes, as a byte
	opAbove // rank a > aux

	operations
)

// id names a value of a graph.
type id int32

const none id = -1

// value is one operation on other values.
type value struct {
	op      op
	a, b, c id
	k       float64            // opConst
	aux     uint32             // a code, an rowfn.Op, an index
	column  int                // of columns
	other   int                // the second column of opCodesEq, opCodesNe
	bound   float64            // of Numbers: no row's absolute value is above it; finite
	check   bool               // the result may be infinite and must then become null
	table   *table             // opCodeTable, opLookup
	marks   *[2][]dataset.Mark // opCodesEq, opCodesNe
	list    []float64
	scores  *scores // opScores
	falling bool    // opRank: a threshold is passed by x <= t, else by x >= t
}

// key is what makes two values equal.
type key struct {
	op            op
	a, b, c       id
	k             uint64
	aux           uint32
	column, other int
	text          string
}

// graph holds the values of a batch, each once.
type graph struct {
	values []value
	seen   map[key]id
}

// add returns the value, the earlier one if there is an equal one. text distinguishes what the other fields do not.
func (g *graph) add(v value, text string) id {
	k := key{v.op, v.a, v.b, v.c, math.Float64bits(v.k), v.aux, v.column, v.other, text}
	if at, ok := g.seen[k]; ok {
		return at
	}
	at := id(len(g.values))
	g.values = append(g.values, v)
	g.seen[k] = at
	return at
}

func (g *graph) at(i id) *value { return &g.values[i] }

// constant is a Number that is the same in every row; what is not finite is null, and -0 is 0.
func (g *graph) constant(x float64) id {
	if x -= x - x; x != x {
		x = math.NaN()
	}
	return g.add(value{op: opConst, a: none, b: none, c: none, k: x + 0, bound: math.Abs(x)}, "")
}

func (g *graph) truth(yes bool) id {
	v := value{op: opFalse, a: none, b: none, c: none}
	if yes {
		v.op = opTrue
	}
	return g.add(v, "")
}

func (g *graph) isConst(i id) bool { return g.values[i].op == opConst }
func (g *graph) isNull(i id) bool  { return g.isConst(i) && math.IsNaN(g.values[i].k) }

// unary is an operation on one Number.
func (g *graph) unary(o op, a id) id {
	x := g.at(a)
	if x.op == opConst {
		return g.constant(unaryOf(o, x.k))
	}
	bound := x.bound
	switch o {
	case opLog:
		bound = math.Inf(1) // log(0)
	case opExp, opSqrt:
		bound = unaryOf(o, bound)
	case opFloor, opCeil:
		bound = math.Ceil(bound)
	}
	return g.add(bounded(value{op: o, a: a, b: none, c: none}, bound), "")
}

// bounded sets the bound, which where it is infinite is that of what is left after the check. Rounding is monotonic, so
// a bound that is computed like the values themselves holds for them.
func bounded(v value, bound float64) value {
	if v.bound = bound; math.IsInf(bound, 0) || math.IsNaN(bound) {
		v.bound, v.check = math.MaxFloat64, true
	}
	return v
}

func (g *graph) binary(o op, a, b id) id {
	x, y := g.at(a), g.at(b)
	if x.op == opConst && y.op == opConst {
		return g.constant(binaryOf(o, x.k, y.k))
	}
	if g.isNull(a) || g.isNull(b) {
		return g.constant(math.NaN())
	}
	bound := math.Inf(1)
	switch o {
	case opSub:
		if y.op == opConst {
			return g.binary(opAdd, a, g.constant(-y.k)) // exact
		}
		bound = x.bound + y.bound
	case opAdd:
		bound = x.bound + y.bound
	case opMul:
		bound = x.bound * y.bound
	case opDiv:
		if y.op == opConst {
			if y.k == 0 {
				return g.constant(math.NaN())
			}
			bound = x.bound / math.Abs(y.k)
		}
	case opMin, opMax:
		bound = max(x.bound, y.bound)
	}
	if o == opAdd || o == opMul || o == opMin || o == opMax {
		a, b = g.ordered(a, b)
	}
	return g.add(bounded(value{op: o, a: a, b: b, c: none}, bound), "")
}

// ordered puts the operands of a commutative operation in order, a constant last.
func (g *graph) ordered(a, b id) (id, id) {
	if g.isConst(a) != g.isConst(b) {
		if g.isConst(a) {
			return b, a
		}
		return a, b
	}
	return min(a, b), max(a, b)
}

// mirrored are the comparisons with their sides changed.
var mirrored = map[op]op{opLess: opGreater, opLessEq: opGreaterEq, opGreater: opLess, opGreaterEq: opLessEq, opEq: opEq, opNe: opNe}

func (g *graph) compare(o op, a, b id) id {
	if g.isNull(a) || g.isNull(b) {
		return g.truth(false)
	}
	x, y := g.at(a), g.at(b)
	switch {
	case x.op == opConst && y.op == opConst:
		return g.truth(compareOf(o, x.k, y.k))
	case x.op == opConst, y.op != opConst && (o == opGreater || o == opGreaterEq), y.op != opConst && (o == opEq || o == opNe) && b < a:
		a, b, o = b, a, mirrored[o]
	}
	return g.add(value{op: o, a: a, b: b, c: none}, "")
}

// clamp is min(max(a, lo), hi).
func (g *graph) clamp(a, lo, hi id) id {
	x, y := g.at(lo), g.at(hi)
	if x.op != opConst || y.op != opConst || g.isConst(a) || !(x.k <= y.k) {
		return g.binary(opMin, g.binary(opMax, a, lo), hi)
	}
	return g.add(value{op: opClamp, a: a, b: lo, c: hi, bound: max(math.Abs(x.k), math.Abs(y.k))}, "")
}

func (g *graph) selectNumber(test, yes, no id) id {
	switch {
	case g.at(test).op == opTrue || yes == no:
		return yes
	case g.at(test).op == opFalse:
		return no
	}
	bound := 0.0
	for _, arm := range [2]id{yes, no} {
		if !g.isNull(arm) {
			bound = max(bound, g.at(arm).bound)
		}
	}
	return g.add(bounded(value{op: opSelect, a: test, b: yes, c: no}, bound), "")
}

func (g *graph) not(a id) id {
	switch x := g.at(a); x.op {
	case opTrue, opFalse:
		return g.truth(x.op == opFalse)
	case opNot:
		return x.a
	}
	return g.add(value{op: opNot, a: a, b: none, c: none}, "")
}

// logic is opAnd or opOr.
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
	return g.add(value{op: o, a: min(a, b), b: max(a, b), c: none}, "")
}

func (g *graph) isNullOf(a id) id {
	if g.isConst(a) {
		return g.truth(g.isNull(a))
	}
	return g.add(value{op: opIsNull, a: a, b: none, c: none}, "")
}

// unaryOf, binaryOf and compareOf are the operations on single numbers, for constants. Results may be infinite.
func unaryOf(o op, x float64) float64 {
	switch o {
	case opNeg:
		return -x
	case opAbs:
		return math.Abs(x)
	case opLog:
		return math.Log(x)
	case opExp:
		return math.Exp(x)
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

func compareOf(o op, x, y float64) bool {
	switch o {
	case opLess:
		return x < y
	case opLessEq:
		return x <= y
	case opGreater:
		return x > y
	case opGreaterEq:
		return x >= y
	case opEq:
		return x == y
	}
	return x < y || x > y
}

// partOf is a part of one time, null for null.
func partOf(part rowfn.Op, x float64) float64 {
	var in, out = [1]float64{x}, [1]float64{}
	timePart(part, out[:], in[:])
	return out[0]
}
