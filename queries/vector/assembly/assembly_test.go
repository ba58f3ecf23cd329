// Package assembly makes the loops of package vector.
package assembly

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"
	"github.com/mmcloughlin/avo/reg"
)

var update = flag.Bool("update", false, "write the assembly anew")

// TestAssembly: loops_amd64.s and the declarations of its functions are what this file makes.
func TestAssembly(t *testing.T) {
	c := build.NewContext()
	for _, wide := range []bool{false, true} {
		e := &emitter{Context: c, wide: wide}
		e.numbers()
		e.comparisons()
		e.sums()
		e.values()
		e.times()
	}
	(&emitter{Context: c}).conditions()
	(&emitter{Context: c}).sets()
	(&emitter{Context: c, wide: true}).ends()
	(&emitter{Context: c}).ofCodes()
	(&emitter{Context: c, wide: true}).ofCodes()
	file, err := c.Result()
	if err != nil {
		t.Fatal(err)
	}
	if err := pass.Compile.Execute(file); err != nil {
		t.Fatal(err)
	}
	config := printer.Config{Name: "go test ./queries/vector/assembly -update", Pkg: "vector"}
	for name, make := range map[string]func(printer.Config) printer.Printer{"loops_amd64.s": printer.NewGoAsm, "loops_amd64.go": printer.NewStubs} {
		made, err := make(config).Print(file)
		if err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile("../"+name, made, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if is, err := os.ReadFile("../" + name); err != nil || !bytes.Equal(is, made) {
			t.Errorf("%s is not what assembly_test.go makes: go test ./queries/vector/assembly -update (%v)", name, err)
		}
	}
}

// emitter writes the loops of one instruction set: AVX2, whose vectors are of four float64s, or AVX-512, of eight.
type emitter struct {
	*build.Context
	wide bool
}

func (e *emitter) vector() reg.VecVirtual {
	if e.wide {
		return e.ZMM()
	}
	return e.YMM()
}

// lanes is the number of float64s of a vector.
func (e *emitter) lanes() int {
	if e.wide {
		return 8
	}
	return 4
}

// function begins one. Its name has the instruction set's behind.
func (e *emitter) function(name, signature, doc string) {
	set := "AVX2"
	if e.wide {
		set = "AVX512"
	}
	e.Function(name + set)
	e.Attributes(attr.NOSPLIT)
	e.Pragma("noescape")
	e.SignatureExpr("func" + signature)
	e.Doc(name + set + " " + doc)
}

func (e *emitter) pointer(name string) reg.Register { return e.Load(e.Param(name), e.GP64()) }

// broadcast fills a vector with a float64 argument.
func (e *emitter) broadcast(name string) reg.VecVirtual {
	x, v := e.XMM(), e.vector()
	e.Load(e.Param(name), x)
	e.VBROADCASTSD(x, v)
	return v
}

// broadcastWord fills a vector with a uint32 argument.
func (e *emitter) broadcastWord(name string) reg.VecVirtual {
	r, x, v := e.GP32(), e.XMM(), e.vector()
	e.Load(e.Param(name), r)
	e.VMOVD(r, x)
	e.VPBROADCASTD(x, v)
	return v
}

// repeated is a byte of a constant in every byte of a vector of the width of v.
func (e *emitter) repeated(b uint8, v reg.VecVirtual) reg.VecVirtual {
	r, x := e.GP32(), e.XMM()
	e.MOVL(operand.U32(uint32(b)*0x01010101), r)
	e.VMOVD(r, x)
	e.VPBROADCASTD(x, v)
	return v
}

func (e *emitter) zero(v reg.VecVirtual) reg.VecVirtual {
	e.VPXOR(low(v), low(v), low(v)) // clears the whole register
	return v
}

func low(v reg.VecVirtual) reg.Register { return v.AsX() }

// ones is all bits set.
func (e *emitter) ones() reg.VecVirtual {
	v := e.vector()
	if e.wide {
		e.VPTERNLOGD(operand.U8(0xff), v, v, v)
	} else {
		e.VPCMPEQD(v, v, v)
	}
	return v
}

// rows is a loop over the argument n, a multiple of Rows, by so many at a time. body is given the register of the first row.
func (e *emitter) rows(step int, body func(i reg.Register)) {
	n := e.Load(e.Param("n"), e.GP64())
	i := e.GP64()
	e.XORQ(i, i)
	e.Label("next")
	body(i)
	e.ADDQ(operand.Imm(uint64(step)), i)
	e.CMPQ(i, n)
	e.JLT(operand.LabelRef("next"))
}

func (e *emitter) done() {
	e.VZEROUPPER()
	e.RET()
}

func at(base, i reg.Register, size, row int) operand.Mem {
	return operand.Mem{Base: base, Index: i, Scale: uint8(size), Disp: size * row}
}

// elementwise is a loop whose row depends on the same row of each argument. args are float64 slices, constants float64s.
func (e *emitter) elementwise(name, doc string, args, constants []string, body func(x, k []reg.VecVirtual) reg.VecVirtual) {
	signature := "(dst, " + strings.Join(args, ", ") + " *float64"
	if len(constants) > 0 {
		signature += ", " + strings.Join(constants, ", ") + " float64"
	}
	e.function(name, signature+", n int)", doc)
	dst := e.pointer("dst")
	from := make([]reg.Register, len(args))
	for j, a := range args {
		from[j] = e.pointer(a)
	}
	k := make([]reg.VecVirtual, len(constants))
	for j, c := range constants {
		k[j] = e.broadcast(c)
	}
	const unrolled = 4
	e.rows(unrolled*e.lanes(), func(i reg.Register) {
		for u := range unrolled {
			x := make([]reg.VecVirtual, len(args))
			for j := range args {
				x[j] = e.vector()
				e.VMOVUPD(at(from[j], i, 8, u*e.lanes()), x[j])
			}
			e.VMOVUPD(body(x, k), at(dst, i, 8, u*e.lanes()))
		}
	})
	e.done()
}

// Predicates of VCMPPD; all are quiet, and only unordered and its kin hold for NaN.
const (
	equal     = 0x00
	unordered = 0x03
	differ    = 0x0c
	less      = 0x11
	lessEq    = 0x12
	greaterEq = 0x1d
	greater   = 0x1e
)

// where takes yes in the lanes in which predicate of x and y holds, else no.
func (e *emitter) where(predicate uint64, x, y, yes, no reg.VecVirtual) reg.VecVirtual {
	out := e.vector()
	if e.wide {
		k := e.K()
		e.VCMPPD(operand.U8(predicate), y, x, k)
		e.VBLENDMPD(yes, no, k, out)
		return out
	}
	m := e.YMM()
	e.VCMPPD(operand.U8(predicate), y, x, m)
	e.VBLENDVPD(m, yes, no, out)
	return out
}

func (e *emitter) numbers() {
	a, ab := []string{"a"}, []string{"a", "b"}
	type vv = []reg.VecVirtual
	two := func(f func(y, x, d operand.Op)) func(x, k vv) reg.VecVirtual {
		return func(x, k vv) reg.VecVirtual {
			d := e.vector()
			f(append(x, k...)[1], x[0], d)
			return d
		}
	}
	add, sub := func(y, x, d operand.Op) { e.VADDPD(y, x, d) }, func(y, x, d operand.Op) { e.VSUBPD(y, x, d) }
	mul, div := func(y, x, d operand.Op) { e.VMULPD(y, x, d) }, func(y, x, d operand.Op) { e.VDIVPD(y, x, d) }
	e.elementwise("addConst", "is a + k.", a, []string{"k"}, two(add))
	e.elementwise("mulConst", "is a · k.", a, []string{"k"}, two(mul))
	e.elementwise("divConst", "is a / k.", a, []string{"k"}, two(div))
	e.elementwise("add", "is a + b.", ab, nil, two(add))
	e.elementwise("sub", "is a - b.", ab, nil, two(sub))
	e.elementwise("mul", "is a · b.", ab, nil, two(mul))
	e.elementwise("div", "is a / b.", ab, nil, two(div))
	least := func(f func(y, x, d operand.Op)) func(x, k vv) reg.VecVirtual {
		return func(x, _ vv) reg.VecVirtual {
			d, sum := e.vector(), e.vector()
			f(x[1], x[0], d)
			e.VADDPD(x[1], x[0], sum) // NaN where one of them is
			return e.where(unordered, x[0], x[1], sum, d)
		}
	}
	e.elementwise("minimum", "is the lesser, NaN where one is.", ab, nil, least(func(y, x, d operand.Op) { e.VMINPD(y, x, d) }))
	e.elementwise("maximum", "is the greater, NaN where one is.", ab, nil, least(func(y, x, d operand.Op) { e.VMAXPD(y, x, d) }))
	e.elementwise("clampConst", "is a within low and high, NaN where a is.", a, []string{"low", "high"}, func(x, k vv) reg.VecVirtual {
		return e.clamped(x[0], k[0], k[1])
	})
	e.elementwise("finite", "is a, NaN where a is infinite.", a, nil, func(x, _ vv) reg.VecVirtual {
		zero, d := e.vector(), e.vector()
		e.VSUBPD(x[0], x[0], zero)
		e.VADDPD(zero, x[0], d)
		return d
	})
	sign := func(name, doc string, f func(x, sign, d reg.VecVirtual)) {
		e.elementwise(name, doc, a, nil, func(x, _ vv) reg.VecVirtual {
			s, d := e.ones(), e.vector()
			e.VPSLLQ(operand.U8(63), s, s)
			f(x[0], s, d)
			return d
		})
	}
	sign("neg", "is -a.", func(x, s, d reg.VecVirtual) {
		if e.wide {
			e.VPXORQ(s, x, d)
		} else {
			e.VPXOR(s, x, d)
		}
	})
	sign("abs", "is |a|.", func(x, s, d reg.VecVirtual) {
		if e.wide {
			e.VPANDNQ(x, s, d)
		} else {
			e.VPANDN(x, s, d)
		}
	})
	e.elementwise("sqrt", "is the square root of a.", a, nil, func(x, _ vv) reg.VecVirtual {
		d := e.vector()
		e.VSQRTPD(x[0], d)
		return d
	})
	round := func(how uint64) func(x, k vv) reg.VecVirtual {
		return func(x, _ vv) reg.VecVirtual {
			d := e.vector()
			if e.wide {
				e.VRNDSCALEPD(operand.U8(how), x[0], d)
			} else {
				e.VROUNDPD(operand.U8(how), x[0], d)
			}
			return d
		}
	}
	e.elementwise("floor", "is a rounded down.", a, nil, round(9))
	e.elementwise("ceil", "is a rounded up.", a, nil, round(10))
	e.choose()
}

// clamped keeps NaN: of a NaN and a number, VMAXPD and VMINPD return their second operand, which Go's assembler writes first.
func (e *emitter) clamped(x, low, high reg.VecVirtual) reg.VecVirtual {
	d := e.vector()
	e.VMAXPD(x, low, d)
	e.VMINPD(d, high, d)
	return d
}

// choose widens the bytes of the test to lanes.
func (e *emitter) choose() {
	e.function("choose", "(dst *float64, test *uint8, a, b *float64, n int)", "is a where test is 1 and b where it is 0.")
	dst, test, a, b := e.pointer("dst"), e.pointer("test"), e.pointer("a"), e.pointer("b")
	zero := e.zero(e.vector())
	const unrolled = 4
	e.rows(unrolled*e.lanes(), func(i reg.Register) {
		for u := range unrolled {
			row := u * e.lanes()
			t, no := e.vector(), e.vector()
			e.VPMOVZXBQ(at(test, i, 1, row), t)
			e.VMOVUPD(at(b, i, 8, row), no)
			if e.wide {
				k := e.K()
				e.VPTESTMQ(t, t, k)
				e.VMOVUPD(at(a, i, 8, row), k, no)
				e.VMOVUPD(no, at(dst, i, 8, row))
				continue
			}
			yes := e.vector()
			e.VPSUBQ(t, zero, t)
			e.VMOVUPD(at(a, i, 8, row), yes)
			e.VBLENDVPD(t, yes, no, no)
			e.VMOVUPD(no, at(dst, i, 8, row))
		}
	})
	e.done()
}

// comparisons write a byte a row.
func (e *emitter) comparisons() {
	predicates := []struct {
		name, sign string
		is         uint64
	}{{"less", "<", less}, {"lessEq", "<=", lessEq}, {"greater", ">", greater}, {"greaterEq", ">=", greaterEq}, {"equal", "=", equal}, {"differ", "≠, and no NaN", differ}}
	for _, p := range predicates {
		e.function(p.name+"Const", "(dst *uint8, a *float64, k float64, n int)", "is 1 where a "+p.sign+" k.")
		dst, a := e.pointer("dst"), e.pointer("a")
		k := e.broadcast("k")
		e.compared(dst, func(i reg.Register, row int) (x, y reg.VecVirtual) {
			v := e.vector()
			e.VMOVUPD(at(a, i, 8, row), v)
			return v, k
		}, p.is)
	}
	for _, p := range predicates {
		if p.is == greater || p.is == greaterEq {
			continue // the graph turns them round
		}
		e.function(p.name, "(dst *uint8, a, b *float64, n int)", "is 1 where a "+p.sign+" b.")
		dst, a, b := e.pointer("dst"), e.pointer("a"), e.pointer("b")
		e.compared(dst, func(i reg.Register, row int) (x, y reg.VecVirtual) {
			v, w := e.vector(), e.vector()
			e.VMOVUPD(at(a, i, 8, row), v)
			e.VMOVUPD(at(b, i, 8, row), w)
			return v, w
		}, p.is)
	}
	e.function("isNull", "(dst *uint8, a *float64, n int)", "is 1 where a is NaN.")
	dst, a := e.pointer("dst"), e.pointer("a")
	e.compared(dst, func(i reg.Register, row int) (x, y reg.VecVirtual) {
		v := e.vector()
		e.VMOVUPD(at(a, i, 8, row), v)
		return v, v
	}, unordered)
}

func (e *emitter) compared(dst reg.Register, load func(i reg.Register, row int) (x, y reg.VecVirtual), predicate uint64) {
	if e.wide {
		ones := e.repeated(1, e.ZMM())
		e.rows(64, func(i reg.Register) {
			bits := e.gathered(64, 8, func(row int) reg.OpmaskVirtual {
				x, y := load(i, row)
				k := e.K()
				e.VCMPPD(operand.U8(predicate), y, x, k)
				return k
			})
			out := e.ZMM()
			e.VMOVDQU8_Z(ones, bits, out)
			e.VMOVDQU64(out, at(dst, i, 1, 0))
		})
		e.done()
		return
	}
	ones := e.repeated(1, e.XMM())
	e.rows(32, func(i reg.Register) {
		// Four rows a vector, eight vectors a to h. Of each quadword the even doubleword is kept, then of two doublewords a word, of two words a byte.
		leaf := func(row int) reg.VecVirtual {
			x, y := load(i, row)
			m := e.YMM()
			e.VCMPPD(operand.U8(predicate), y, x, m)
			return m
		}
		pair := func(row int) reg.VecVirtual {
			a, b := leaf(row), leaf(row+4)
			e.VSHUFPS(operand.U8(0x88), b, a, a) // a0 a1 b0 b1, a2 a3 b2 b3
			return a
		}
		four := func(row int) reg.VecVirtual {
			a, b := pair(row), pair(row+8)
			e.VPACKSSDW(b, a, a)
			return a
		}
		a, b := four(0), four(16)
		e.VPACKSSWB(b, a, a) // a0 a1 b0 b1 … h0 h1, a2 a3 b2 b3 … h2 h3
		high, first, second := e.XMM(), e.XMM(), e.XMM()
		e.VEXTRACTI128(operand.U8(1), a, high)
		e.VPUNPCKLWD(high, a.AsX(), first)
		e.VPUNPCKHWD(high, a.AsX(), second)
		e.VPAND(ones, first, first)
		e.VPAND(ones, second, second)
		e.VMOVDQU(first, at(dst, i, 1, 0))
		e.VMOVDQU(second, at(dst, i, 1, 16))
	})
	e.done()
}

// gathered is one mask of the bits of several, the first in the lowest bits. leaf makes one of some rows from a row on.
func (e *emitter) gathered(rows, leafRows int, leaf func(row int) reg.OpmaskVirtual) reg.OpmaskVirtual {
	var join func(row, rows int) reg.OpmaskVirtual
	join = func(row, rows int) reg.OpmaskVirtual {
		if rows == leafRows {
			return leaf(row)
		}
		a, b := join(row, rows/2), join(row+rows/2, rows/2)
		switch rows {
		case 16:
			e.KUNPCKBW(a, b, a)
		case 32:
			e.KUNPCKWD(a, b, a)
		case 64:
			e.KUNPCKDQ(a, b, a)
		}
		return a
	}
	return join(0, rows)
}

// conditions are loops over bytes of 0 and 1, thirty-two in a vector.
func (e *emitter) conditions() {
	bytewise := func(name, doc string, args []string, extra string, setup func() reg.VecVirtual, body func(x []reg.VecVirtual, k, one reg.VecVirtual)) {
		e.function(name, "(dst, "+strings.Join(args, ", ")+" *uint8"+extra+", n int)", doc)
		dst := e.pointer("dst")
		from := make([]reg.Register, len(args))
		for j, a := range args {
			from[j] = e.pointer(a)
		}
		one := e.repeated(1, e.YMM())
		var k reg.VecVirtual
		if setup != nil {
			k = setup()
		}
		e.rows(64, func(i reg.Register) {
			for u := range 2 {
				x := make([]reg.VecVirtual, len(args))
				for j := range args {
					x[j] = e.YMM()
					e.VMOVDQU(at(from[j], i, 1, 32*u), x[j])
				}
				body(x, k, one)
				e.VMOVDQU(x[0], at(dst, i, 1, 32*u))
			}
		})
		e.done()
	}
	type vv = []reg.VecVirtual
	a, ab := []string{"a"}, []string{"a", "b"}
	bytewise("and", "is 1 where both are.", ab, "", nil, func(x vv, _, _ reg.VecVirtual) { e.VPAND(x[1], x[0], x[0]) })
	bytewise("or", "is 1 where one of them is.", ab, "", nil, func(x vv, _, _ reg.VecVirtual) { e.VPOR(x[1], x[0], x[0]) })
	bytewise("not", "is 1 where a is 0.", a, "", nil, func(x vv, _, one reg.VecVirtual) { e.VPXOR(one, x[0], x[0]) })
	bytewise("isTrue", "is the lowest bit of a.", a, "", nil, func(x vv, _, one reg.VecVirtual) { e.VPAND(one, x[0], x[0]) })
	bytewise("isNullBool", "is the second bit of a.", a, "", nil, func(x vv, _, one reg.VecVirtual) {
		e.VPSRLW(operand.U8(1), x[0], x[0])
		e.VPAND(one, x[0], x[0])
	})
	bytewise("above", "is 1 where a, at most 127, is above k.", a, ", k uint32", func() reg.VecVirtual {
		x, k := e.XMM(), e.YMM()
		r := e.GP32()
		e.Load(e.Param("k"), r)
		e.VMOVD(r, x)
		e.VPBROADCASTB(x, k)
		return k
	}, func(x vv, k, one reg.VecVirtual) {
		e.VPCMPGTB(k, x[0], x[0])
		e.VPAND(one, x[0], x[0])
	})

	e.function("count", "(a *uint8, n int) int64", "is the number of ones.")
	p := e.pointer("a")
	sums := []reg.VecVirtual{e.zero(e.YMM()), e.zero(e.YMM())}
	zero := e.zero(e.YMM())
	e.rows(64, func(i reg.Register) {
		for u := range 2 {
			x := e.YMM()
			e.VMOVDQU(at(p, i, 1, 32*u), x)
			e.VPSADBW(zero, x, x)
			e.VPADDQ(x, sums[u], sums[u])
		}
	})
	e.Store(e.total(sums), e.ReturnIndex(0))
	e.done()
}

// total adds the quadwords of vectors.
func (e *emitter) total(sums []reg.VecVirtual) reg.Register {
	all := sums[0]
	for _, s := range sums[1:] {
		e.VPADDQ(s, all, all)
	}
	y := all.AsY()
	if e.wide {
		half := e.YMM()
		e.VEXTRACTI64X4(operand.U8(1), all, half)
		e.VPADDQ(half, y, y)
	}
	x, half, out := y.(reg.Vec).AsX(), e.XMM(), e.GP64()
	e.VEXTRACTI128(operand.U8(1), y, half)
	e.VPADDQ(half, x, x)
	e.VPSRLDQ(operand.U8(8), x, half)
	e.VPADDQ(half, x, x)
	e.VMOVQ(x, out)
	return out
}

// sums are those of the fixed-point values of a row function.
func (e *emitter) sums() {
	for _, keep := range []bool{false, true} {
		for _, some := range []bool{false, true} {
			e.fixed(keep, some)
		}
	}
}

// fixed is the loop of sumFixed and its kin: keep writes each value, some counts only rows where a condition holds.
func (e *emitter) fixed(keep, some bool) {
	name, signature, doc := "sumFixed", "(", "is the sum of the fixed-point values of a in the range lo to hi"
	if keep {
		name, signature, doc = "fixedValues", "(dst *uint32, ", "leaves the fixed-point values of a in the range lo to hi, and is their sum"
	}
	signature += "a *float64, "
	if some {
		name, signature, doc = name+"Where", signature+"where *uint8, ", doc+", 0 where where is"
	}
	e.function(name, signature+"lo, hi, null, scale float64, n int) int64", doc+".")
	var dst, where reg.Register
	if keep {
		dst = e.pointer("dst")
	}
	a := e.pointer("a")
	if some {
		where = e.pointer("where")
	}
	lo, hi, null, scale := e.broadcast("lo"), e.broadcast("hi"), e.broadcast("null"), e.broadcast("scale")
	half := e.vector()
	r, x := e.GP64(), e.XMM()
	e.MOVQ(operand.U64(0x3fe0000000000000), r)
	e.VMOVQ(r, x)
	e.VBROADCASTSD(x, half)
	sums := []reg.VecVirtual{e.zero(e.vector()), e.zero(e.vector())}
	e.rows(2*e.lanes(), func(i reg.Register) {
		for u := range 2 {
			row := u * e.lanes()
			v := e.vector()
			e.VMOVUPD(at(a, i, 8, row), v)
			v = e.clamped(v, lo, hi)
			v = e.where(unordered, v, v, null, v)
			e.VSUBPD(lo, v, v)
			e.VMULPD(scale, v, v)
			e.VADDPD(half, v, v)
			var words reg.VecVirtual
			if e.wide {
				words = e.YMM()
				e.VCVTTPD2DQ(v, words)
			} else {
				words = e.XMM()
				e.VCVTTPD2DQY(v, words)
			}
			if some {
				m := e.YMM()
				if !e.wide {
					m = e.XMM()
				}
				zero := e.zero(e.YMM())
				e.VPMOVZXBD(at(where, i, 1, row), m)
				if e.wide {
					e.VPSUBD(m, zero, m)
					e.VPAND(m, words, words)
				} else {
					e.VPSUBD(m, zero.AsX(), m)
					e.VPAND(m, words, words)
				}
			}
			if keep {
				e.VMOVDQU(words, at(dst, i, 4, row))
			}
			wide := e.vector()
			e.VPMOVSXDQ(words, wide)
			e.VPADDQ(wide, sums[u], sums[u])
		}
	})
	e.Store(e.total(sums), e.ReturnIndex(0))
	e.done()
}

// values are loops over lists of fixed-point values.
func (e *emitter) values() {
	e.function("dot", "(a, b *uint32, n int) (low, high uint64)", "is the sum of the products, of their lower and of their upper 32 bits, each at most 2^32 rows.")
	a, b := e.pointer("a"), e.pointer("b")
	low, high, mask := e.zero(e.vector()), e.zero(e.vector()), e.ones()
	e.VPSRLQ(operand.U8(32), mask, mask)
	e.rows(e.lanes(), func(i reg.Register) {
		x, y, upper := e.vector(), e.vector(), e.vector()
		e.VPMOVZXDQ(at(a, i, 4, 0), x)
		e.VPMOVZXDQ(at(b, i, 4, 0), y)
		e.VPMULUDQ(y, x, x)
		e.VPSRLQ(operand.U8(32), x, upper)
		if e.wide {
			e.VPANDQ(mask, x, x)
		} else {
			e.VPAND(mask, x, x)
		}
		e.VPADDQ(x, low, low)
		e.VPADDQ(upper, high, high)
	})
	e.Store(e.total([]reg.VecVirtual{low}), e.ReturnIndex(0))
	e.Store(e.total([]reg.VecVirtual{high}), e.ReturnIndex(1))
	e.done()
}

// ofCodes are comparisons of codes with one.
func (e *emitter) ofCodes() {
	for _, equal := range []bool{true, false} {
		name, doc := "codeEqual", "is 1 where a code is the given one."
		if !equal {
			name, doc = "codeDiffers", "is 1 where a code is neither the given one nor 0."
		}
		e.function(name, "(dst *uint8, codes *uint32, code uint32, n int)", doc)
		dst, codes := e.pointer("dst"), e.pointer("codes")
		k := e.broadcastWord("code")
		zero := e.zero(e.vector())
		if e.wide {
			ones := e.repeated(1, e.ZMM())
			e.rows(64, func(i reg.Register) {
				bits := e.gathered(64, 16, func(row int) reg.OpmaskVirtual {
					v, m := e.ZMM(), e.K()
					e.VMOVDQU32(at(codes, i, 4, row), v)
					if equal {
						e.VPCMPEQD(k, v, m)
						return m
					}
					other := e.K()
					e.VPCMPUD(operand.U8(4), k, v, m)
					e.VPCMPUD(operand.U8(4), zero, v, other)
					e.KANDW(other, m, m)
					return m
				})
				out := e.ZMM()
				e.VMOVDQU8_Z(ones, bits, out)
				e.VMOVDQU64(out, at(dst, i, 1, 0))
			})
			e.done()
			continue
		}
		ones, order := e.repeated(1, e.YMM()), e.order()
		e.rows(32, func(i reg.Register) {
			leaf := func(row int) reg.VecVirtual {
				v := e.YMM()
				e.VMOVDQU(at(codes, i, 4, row), v)
				if equal {
					e.VPCMPEQD(k, v, v)
					return v
				}
				other := e.YMM()
				e.VPCMPEQD(zero, v, other)
				e.VPCMPEQD(k, v, v)
				e.VPOR(other, v, v)
				return v
			}
			pair := func(row int) reg.VecVirtual {
				a, b := leaf(row), leaf(row+8)
				e.VPACKSSDW(b, a, a)
				return a
			}
			a, b := pair(0), pair(16)
			e.VPACKSSWB(b, a, a)
			e.VPERMD(a, order, a)
			if equal {
				e.VPAND(ones, a, a)
			} else {
				e.VPANDN(ones, a, a)
			}
			e.VMOVDQU(a, at(dst, i, 1, 0))
		})
		e.done()
	}
}

// order puts the doublewords of packed bytes in the order of their rows.
func (e *emitter) order() reg.VecVirtual {
	r, x, v := e.GP64(), e.XMM(), e.YMM()
	e.MOVQ(operand.U64(0x0703060205010400), r)
	e.VMOVQ(r, x)
	e.VPMOVZXBD(x, v)
	return v
}

// Constants of the loops over times are read where they are used: AVX2 has not registers enough. These are their places in Times.
const (
	perDay = iota // microseconds
	daysPerMicro
	half
	one
	toMarch // days from 1 March of the year 0 to 1970
	era     // days of 400 years
	perEra
	per1460 // what a year's leap days are cut with
	per36524
	per146096
	year
	perYear
	perFour
	perHundred
	five
	two
	per153
	n153
	perFive
	ten
	twelve
	n400
	n59
	n306
	four
	seven
	perSeven
	zero
	hundred
)

// calendar is a loop over times.
func (e *emitter) calendar(name, doc, more string, setup func(), body func(c *clock) reg.VecVirtual) {
	e.function(name, "(dst, a, k *float64"+more+", n int)", doc)
	dst, a := e.pointer("dst"), e.pointer("a")
	c := &clock{emitter: e, k: e.pointer("k")}
	if setup != nil {
		setup()
	}
	e.rows(e.lanes(), func(i reg.Register) {
		x := e.vector()
		e.VMOVUPD(at(a, i, 8, 0), x)
		c.split(x)
		e.VMOVUPD(body(c), at(dst, i, 8, 0))
	})
	e.done()
}

// clock computes with whole numbers in float64s, which are exact below 2^53.
type clock struct {
	*emitter
	k          reg.Register
	days, rest reg.VecVirtual
}

func (c *clock) constant(k int) reg.VecVirtual {
	v := c.vector()
	c.VBROADCASTSD(operand.Mem{Base: c.k, Disp: 8 * k}, v)
	return v
}

func (c *clock) plus(x, y reg.VecVirtual) reg.VecVirtual {
	d := c.vector()
	c.VADDPD(y, x, d)
	return d
}
func (c *clock) minus(x, y reg.VecVirtual) reg.VecVirtual {
	d := c.vector()
	c.VSUBPD(y, x, d)
	return d
}
func (c *clock) times(x, y reg.VecVirtual) reg.VecVirtual {
	d := c.vector()
	c.VMULPD(y, x, d)
	return d
}

func (c *clock) rounded(x reg.VecVirtual, how uint64) reg.VecVirtual {
	d := c.vector()
	if c.wide {
		c.VRNDSCALEPD(operand.U8(how), x, d)
	} else {
		c.VROUNDPD(operand.U8(how), x, d)
	}
	return d
}

// over is a whole number divided by another and rounded down, by the other's inverse: a half is added, so that what is a whole number
// is no less after rounding.
func (c *clock) over(x, inverse reg.VecVirtual) reg.VecVirtual {
	return c.rounded(c.times(c.plus(x, c.constant(half)), inverse), 9)
}

// split cuts a time into days and what is left of its day, 0 to a day less one microsecond. The quotient is at most one off, and the rest
// exact, for it is computed in one rounding.
func (c *clock) split(x reg.VecVirtual) {
	x = c.rounded(x, 11) // as a conversion to an integer does
	day := c.constant(perDay)
	q := c.rounded(c.times(x, c.constant(daysPerMicro)), 9)
	c.VFNMADD231PD(day, q, x)
	no, one := c.constant(zero), c.constant(one)
	less, more := c.where(less, x, no, one, no), c.where(greaterEq, x, day, one, no)
	step := c.minus(more, less)
	c.days = c.plus(q, step)
	c.VFNMADD231PD(day, step, x)
	c.rest = x
}

// date are the numbers of a day, by the rules of civil in package kernel.
func (c *clock) date() (eras, yearOfEra, fromMarch, month reg.VecVirtual) {
	z := c.plus(c.days, c.constant(toMarch))
	eras = c.over(z, c.constant(perEra))
	of := c.minus(z, c.times(eras, c.constant(era)))
	left := c.plus(c.minus(of, c.over(of, c.constant(per1460))), c.over(of, c.constant(per36524)))
	yearOfEra = c.over(c.minus(left, c.over(of, c.constant(per146096))), c.constant(perYear))
	fromMarch = c.minus(of, c.times(yearOfEra, c.constant(year)))
	fromMarch = c.plus(c.minus(fromMarch, c.over(yearOfEra, c.constant(perFour))), c.over(yearOfEra, c.constant(perHundred)))
	month = c.over(c.plus(c.times(fromMarch, c.constant(five)), c.constant(two)), c.constant(per153))
	return eras, yearOfEra, fromMarch, month
}

// times are parts of a time. Null stays null: each part is computed from the time by arithmetic.
func (e *emitter) times() {
	e.calendar("year", "is the year of a.", "", nil, func(c *clock) reg.VecVirtual {
		eras, of, _, month := c.date()
		late := c.where(greaterEq, month, c.constant(ten), c.constant(one), c.constant(zero))
		return c.plus(c.plus(of, c.times(eras, c.constant(n400))), late)
	})
	e.calendar("month", "is the month of a, 0 to 11.", "", nil, func(c *clock) reg.VecVirtual {
		_, _, _, month := c.date()
		late := c.where(greaterEq, month, c.constant(ten), c.constant(twelve), c.constant(zero))
		return c.minus(c.plus(month, c.constant(two)), late)
	})
	e.calendar("date", "is the day of the month of a, from 1.", "", nil, func(c *clock) reg.VecVirtual {
		_, _, day, month := c.date()
		before := c.over(c.plus(c.times(month, c.constant(n153)), c.constant(two)), c.constant(perFive))
		return c.plus(c.minus(day, before), c.constant(one))
	})
	e.calendar("yearDay", "is the day of the year of a, from 0.", "", nil, func(c *clock) reg.VecVirtual {
		_, of, day, month := c.date()
		multiple := func(of reg.VecVirtual, inverse, length int) reg.VecVirtual { // 1 where it is one
			rest := c.minus(of, c.times(c.over(of, c.constant(inverse)), c.constant(length)))
			return c.where(equal, rest, c.constant(zero), c.constant(one), c.constant(zero))
		}
		leap := c.minus(multiple(of, perFour, four), multiple(of, perHundred, hundred))
		leap = c.plus(leap, c.where(equal, of, c.constant(zero), c.constant(one), c.constant(zero)))
		early, late := c.plus(c.plus(day, c.constant(n59)), leap), c.minus(day, c.constant(n306))
		return c.where(greaterEq, month, c.constant(ten), late, early)
	})
	e.calendar("weekday", "is the day of the week of a, 0 for Sunday.", "", nil, func(c *clock) reg.VecVirtual {
		day := c.plus(c.days, c.constant(four))
		return c.minus(day, c.times(c.over(day, c.constant(perSeven)), c.constant(seven)))
	})
	var unit, modulus, inverse reg.VecVirtual
	e.calendar("clock", "is how often a unit of microseconds, whose inverse is given, is in a's time of the day, modulo another number.", ", inverse, modulus, modulusInverse float64", func() {
		unit, modulus, inverse = e.broadcast("inverse"), e.broadcast("modulus"), e.broadcast("modulusInverse")
	}, func(c *clock) reg.VecVirtual {
		count := c.over(c.rest, unit)
		return c.minus(count, c.times(c.over(count, inverse), modulus))
	})
}
