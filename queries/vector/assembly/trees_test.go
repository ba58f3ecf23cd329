package assembly

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Loops of ensembles of trees: sets of 256 rows are vectors of AVX2, in both instruction sets.

// setBytes is the size of a set of 256 rows.
const setBytes = 32

// sets are those loops: sortRows, eighths and turn of package model say what they do.
func (e *emitter) sets() {
	e.function("sortRows", "(parts *[4]uint64, splits *uint32, count int, masks *[4]uint64, stride int)",
		"moves, split after split, the rows of a part that are in a mask to the part of the split's number plus one. A split is its part, in eight bits, and its mask's number; masks are stride bytes from one another.")
	parts, splits, masks, stride := e.pointer("parts"), e.pointer("splits"), e.pointer("masks"), e.pointer("stride")
	count := e.Load(e.Param("count"), e.GP64())
	i, right := e.GP64(), e.GP64()
	e.XORQ(i, i)
	e.MOVQ(parts, right)
	e.Label("next")
	e.CMPQ(i, count)
	e.JGE(operand.LabelRef("end"))
	e.ADDQ(operand.Imm(setBytes), right)
	split, part := e.GP32(), e.GP32()
	e.MOVL(operand.Mem{Base: splits, Index: i, Scale: 4}, split)
	e.MOVBLZX(split.As8(), part)
	e.SHLL(operand.Imm(5), part)
	e.SHRL(operand.Imm(8), split)
	mask := split.As64()
	e.IMULQ(stride, mask)
	left, moved, stay := e.YMM(), e.YMM(), e.YMM()
	of := operand.Mem{Base: parts, Index: part.As64(), Scale: 1}
	e.VMOVDQU(of, left)
	e.VPAND(operand.Mem{Base: masks, Index: mask, Scale: 1}, left, moved)
	e.VPXOR(moved, left, stay)
	e.VMOVDQU(stay, of)
	e.VMOVDQU(moved, operand.Mem{Base: right})
	e.INCQ(i)
	e.JMP(operand.LabelRef("next"))
	e.Label("end")
	e.done()

	e.function("eighths", "(parts *[4]uint64, count int, digits *[4]uint64)",
		"writes which rows have each digit of the numbers of their parts modulo 8, and puts the rows of each eight parts in the place of one. count is the number of eights, from 1.")
	parts = e.pointer("parts")
	count = e.Load(e.Param("count"), e.GP64())
	digits := e.pointer("digits")
	low, middle, high := e.zero(e.YMM()), e.zero(e.YMM()), e.zero(e.YMM())
	to := e.GP64()
	e.MOVQ(parts, to)
	e.Label("next")
	var p [8]reg.VecVirtual
	for k := range p {
		p[k] = e.YMM()
		e.VMOVDQU(operand.Mem{Base: parts, Disp: setBytes * k}, p[k])
	}
	or := func(x, y reg.VecVirtual) { e.VPOR(y, x, x) }
	or(low, p[1])
	or(low, p[3])
	or(low, p[5])
	or(low, p[7])
	or(p[0], p[1])
	or(p[2], p[3])
	or(p[4], p[5])
	or(p[6], p[7])
	or(middle, p[2])
	or(middle, p[6])
	or(p[4], p[6])
	or(high, p[4])
	or(p[0], p[2])
	or(p[0], p[4])
	e.VMOVDQU(p[0], operand.Mem{Base: to})
	e.ADDQ(operand.U32(8*setBytes), parts)
	e.ADDQ(operand.Imm(setBytes), to)
	e.DECQ(count)
	e.JNZ(operand.LabelRef("next"))
	for k, d := range []reg.VecVirtual{low, middle, high} {
		e.VMOVDQU(d, operand.Mem{Base: digits, Disp: setBytes * k})
	}
	e.done()

	e.function("turn", "(dst *uint8, digits *[4]uint64)", "writes the numbers of 256 rows whose eight digits are in a set each.")
	dst := e.pointer("dst")
	digits = e.pointer("digits")
	for k := range p {
		p[k] = e.YMM()
		e.VMOVDQU(operand.Mem{Base: digits, Disp: setBytes * k}, p[k])
	}
	for _, step := range []struct {
		shift uint64
		mask  uint8
		pairs [4][2]int
	}{{4, 0x0f, [4][2]int{{0, 4}, {1, 5}, {2, 6}, {3, 7}}}, {2, 0x33, [4][2]int{{0, 2}, {1, 3}, {4, 6}, {5, 7}}}, {1, 0x55, [4][2]int{{0, 1}, {2, 3}, {4, 5}, {6, 7}}}} {
		mask := e.repeated(step.mask, e.YMM())
		for _, pair := range step.pairs {
			low, high, differ := p[pair[0]], p[pair[1]], e.YMM()
			e.VPSRLQ(operand.U8(step.shift), low, differ)
			e.VPXOR(high, differ, differ)
			e.VPAND(mask, differ, differ)
			e.VPXOR(differ, high, high)
			e.VPSLLQ(operand.U8(step.shift), differ, differ)
			e.VPXOR(differ, low, low)
		}
	}
	for half := range 2 { // quadword w of each is in rows 64w to 64w+63
		a, b, c, d := p[4*half], p[4*half+1], p[4*half+2], p[4*half+3]
		t := [4]reg.VecVirtual{e.YMM(), e.YMM(), e.YMM(), e.YMM()}
		e.VPUNPCKLQDQ(b, a, t[0])
		e.VPUNPCKHQDQ(b, a, t[1])
		e.VPUNPCKLQDQ(d, c, t[2])
		e.VPUNPCKHQDQ(d, c, t[3])
		for w := range 4 {
			out := e.YMM()
			e.VPERM2I128(operand.U8([]uint64{0x20, 0x31}[w/2]), t[2+w%2], t[w%2], out)
			e.VMOVDQU(out, operand.Mem{Base: dst, Disp: 64*w + 32*half})
		}
	}
	e.done()
}

// ends are loops that add one of a few numbers to each row.
func (e *emitter) ends() {
	for _, size := range []int{8, 16, 32, 64} {
		e.function(fmt.Sprintf("addEnds%dOf", size), "(out *float64, parts *uint8, ends *float64, n int)",
			fmt.Sprintf("adds ends[parts] to out. Parts are below %d, and there are as many ends to read.", size))
		out, parts, ends := e.pointer("out"), e.pointer("parts"), e.pointer("ends")
		table := make([]reg.VecVirtual, size/8)
		for k := range table {
			table[k] = e.ZMM()
			e.VMOVUPD(operand.Mem{Base: ends, Disp: 64 * k}, table[k])
		}
		bits := map[int]reg.VecVirtual{}
		for b := 16; b < size; b *= 2 {
			bits[b] = e.ZMM()
			r := e.GP64()
			e.MOVQ(operand.U64(uint64(b)), r)
			e.VPBROADCASTQ(r, bits[b])
		}
		e.rows(16, func(i reg.Register) {
			for u := range 2 {
				at8 := e.ZMM()
				e.VPMOVZXBQ(at(parts, i, 1, 8*u), at8)
				masks := map[int]reg.OpmaskVirtual{}
				for b := 16; b < size; b *= 2 {
					masks[b] = e.K()
					e.VPTESTMQ(bits[b], at8, masks[b])
				}
				var find func(from, count int) reg.VecVirtual
				find = func(from, count int) reg.VecVirtual {
					v := e.ZMM()
					switch count {
					case 8:
						e.VPERMPD(table[from/8], at8, v)
						return v
					case 16:
						e.VMOVDQA64(at8, v)
						e.VPERMI2PD(table[from/8+1], table[from/8], v)
						return v
					}
					low, high := find(from, count/2), find(from+count/2, count/2)
					e.VBLENDMPD(high, low, masks[count/2], v)
					return v
				}
				v := find(0, size)
				e.VADDPD(at(out, i, 8, 8*u), v, v)
				e.VMOVUPD(v, at(out, i, 8, 8*u))
			}
		})
		e.done()
	}
}
