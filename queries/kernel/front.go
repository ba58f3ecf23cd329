package kernel

import (
	"math/bits"

	"github.com/holdoutd/holdoutd/queries/vector"
	"github.com/holdoutd/holdoutd/rowfn"
)

// A step is run by vectors as far as they go, in whole multiples of [vector.Rows], and by the loops of this package for the rest. Where
// an operation has no vectors, or the processor none, that is all rows.

// vectors are the loops of one instruction set by operation.
type vectors struct {
	*vector.Loops
	unary        [operations]func(dst, a *float64, n int)
	binary       [operations]func(dst, a, b *float64, n int)
	withConst    [operations]func(dst, a *float64, k float64, n int)
	compare      [operations]func(dst *uint8, a, b *float64, n int)
	compareConst [operations]func(dst *uint8, a *float64, k float64, n int)
}

// fast is what programs are run by; nil for no vectors.
var fast = newVectors(vector.Best())

func newVectors(l *vector.Loops) *vectors {
	if l == nil {
		return nil
	}
	v := &vectors{Loops: l}
	v.unary[opNeg], v.unary[opAbs], v.unary[opSqrt], v.unary[opFloor], v.unary[opCeil] = l.Neg, l.Abs, l.Sqrt, l.Floor, l.Ceil
	v.binary[opAdd], v.binary[opSub], v.binary[opMul], v.binary[opDiv], v.binary[opMin], v.binary[opMax] = l.Add, l.Sub, l.Mul, l.Div, l.Minimum, l.Maximum
	v.withConst[opAdd], v.withConst[opMul], v.withConst[opDiv] = l.AddConst, l.MulConst, l.DivConst
	v.compare[opLess], v.compare[opLessEq], v.compare[opEq], v.compare[opNe] = l.Less, l.LessEq, l.Equal, l.Differ
	v.compareConst[opLess], v.compareConst[opLessEq], v.compareConst[opGreater], v.compareConst[opGreaterEq] = l.LessConst, l.LessEqConst, l.GreaterConst, l.GreaterEqConst
	v.compareConst[opEq], v.compareConst[opNe] = l.EqualConst, l.DifferConst
	return v
}

// front is how many of n rows vectors take.
func (v *vectors) front(n int) int {
	if v == nil {
		return 0
	}
	return n &^ (vector.Rows - 1)
}

// number runs a step that computes a Number, and returns for how many rows.
func (v *vectors) number(s *State, t *step, n int) int {
	if n = v.front(n); n == 0 {
		return 0
	}
	dst := &s.numbers[t.dst][:n][0]
	switch {
	case t.op == opSelect:
		v.Choose(dst, &s.bytes[t.a][:n][0], &s.numbers[t.b][:n][0], &s.numbers[t.c][:n][0], n)
	case t.op == opPart:
		v.part(rowfn.Op(t.aux), dst, &s.numbers[t.a][:n][0], n)
	case t.op == opClamp:
		v.ClampConst(dst, &s.numbers[t.a][:n][0], t.k, t.high, n)
	case t.constant && v.withConst[t.op] != nil:
		v.withConst[t.op](dst, &s.numbers[t.a][:n][0], t.k, n)
	case !t.constant && v.binary[t.op] != nil:
		v.binary[t.op](dst, &s.numbers[t.a][:n][0], &s.numbers[t.b][:n][0], n)
	case v.unary[t.op] != nil:
		v.unary[t.op](dst, &s.numbers[t.a][:n][0], n)
	default:
		return 0
	}
	if t.check {
		v.Finite(dst, dst, n)
	}
	return n
}

// part is timePart.
func (v *vectors) part(part rowfn.Op, dst, a *float64, n int) {
	k := &vector.Times[0]
	switch part {
	case rowfn.OpFullYear:
		v.Year(dst, a, k, n)
	case rowfn.OpMonth:
		v.Month(dst, a, k, n)
	case rowfn.OpDate:
		v.Date(dst, a, k, n)
	case rowfn.OpDayOfMonth:
		v.Date(dst, a, k, n)
		v.AddConst(dst, dst, -1, n)
	case rowfn.OpDayOfYear:
		v.YearDay(dst, a, k, n)
	case rowfn.OpDayOfWeek:
		v.Weekday(dst, a, k, n)
	default:
		unit, modulus := clockPart(part)
		v.Clock(dst, a, k, 1/float64(unit), float64(modulus), 1/float64(modulus), n)
	}
}

// condition runs a step that computes bytes, and returns for how many rows.
func (v *vectors) condition(s *State, t *step, n int) int {
	if n = v.front(n); n == 0 {
		return 0
	}
	dst := &s.bytes[t.dst][:n][0]
	switch {
	case t.op == opBool:
		v.IsTrue(dst, &s.bytes[t.a][:n][0], n)
	case t.op == opBoolNull:
		v.IsNullBool(dst, &s.bytes[t.a][:n][0], n)
	case t.op == opNot:
		v.Not(dst, &s.bytes[t.a][:n][0], n)
	case t.op == opAnd:
		v.And(dst, &s.bytes[t.a][:n][0], &s.bytes[t.b][:n][0], n)
	case t.op == opOr:
		v.Or(dst, &s.bytes[t.a][:n][0], &s.bytes[t.b][:n][0], n)
	case t.op == opIsNull:
		v.IsNull(dst, &s.numbers[t.a][:n][0], n)
	case t.op == opAbove:
		v.Above(dst, &s.bytes[t.a][:n][0], t.aux, n)
	case t.op == opCodeEq:
		v.CodeEqual(dst, &s.codes[t.a][:n][0], t.aux, n)
	case t.op == opCodeNe:
		v.CodeDiffers(dst, &s.codes[t.a][:n][0], t.aux, n)
	case t.constant && v.compareConst[t.op] != nil:
		v.compareConst[t.op](dst, &s.numbers[t.a][:n][0], t.k, n)
	case !t.constant && v.compare[t.op] != nil:
		v.compare[t.op](dst, &s.numbers[t.a][:n][0], &s.numbers[t.b][:n][0], n)
	default:
		return 0
	}
	return n
}

func (v *vectors) count(a []uint8) (sum int64) {
	n := v.front(len(a))
	if n > 0 {
		sum = v.Count(&a[0], n)
	}
	return sum + count(a[n:])
}

func (v *vectors) sumFixed(a []float64, g grid) (sum int64) {
	n := v.front(len(a))
	if n > 0 {
		sum = v.SumFixed(&a[0], g.lo, g.hi, g.null, g.scale, n)
	}
	return sum + sumFixed(a[n:], g)
}

func (v *vectors) sumFixedWhere(a []float64, where []uint8, g grid) (sum int64) {
	where = where[:len(a)]
	n := v.front(len(a))
	if n > 0 {
		sum = v.SumFixedWhere(&a[0], &where[0], g.lo, g.hi, g.null, g.scale, n)
	}
	return sum + sumFixedWhere(a[n:], where[n:], g)
}

func (v *vectors) fixedValues(dst []uint32, a []float64, g grid) (sum int64) {
	a = a[:len(dst)]
	n := v.front(len(a))
	if n > 0 {
		sum = v.FixedValues(&dst[0], &a[0], g.lo, g.hi, g.null, g.scale, n)
	}
	return sum + fixedValues(dst[n:], a[n:], g)
}

func (v *vectors) fixedValuesWhere(dst []uint32, a []float64, where []uint8, g grid) (sum int64) {
	a, where = a[:len(dst)], where[:len(dst)]
	n := v.front(len(a))
	if n > 0 {
		sum = v.FixedValuesWhere(&dst[0], &a[0], &where[0], g.lo, g.hi, g.null, g.scale, n)
	}
	return sum + fixedValuesWhere(dst[n:], a[n:], where[n:], g)
}

// prefixFixed computes the values of a block by vectors, and adds them up one by one.
func (v *vectors) prefixFixed(dst []int64, start int64, a []float64, where []uint8, g grid, values *[MaxBlock]uint32) {
	n := v.front(len(a))
	if n > 0 {
		v.FixedValuesWhere(&values[0], &a[0], &where[:n][0], g.lo, g.hi, g.null, g.scale, n)
		sums := dst[1:][:n]
		dst[0] = start
		for i, x := range values[:n] {
			start += int64(x)
			sums[i] = start
		}
	}
	prefixFixed(dst[n:], start, a[n:], where[n:], g)
}

func (v *vectors) dot(a, b []uint32) (sum rowfn.Wide) {
	b = b[:len(a)]
	n := v.front(len(a))
	if n > 0 {
		low, high := v.Dot(&a[0], &b[0], n)
		var carry uint64
		sum.Lo, carry = bits.Add64(low, high<<32, 0)
		sum.Hi = high>>32 + carry
	}
	return sum.Plus(dot(a[n:], b[n:]))
}
