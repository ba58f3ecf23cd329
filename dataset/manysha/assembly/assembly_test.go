// Package assembly makes the loops of package manysha.
package assembly

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"math/big"
	"os"
	"testing"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"
	"github.com/mmcloughlin/avo/reg"
)

var update = flag.Bool("update", false, "write the assembly anew")

// TestAssembly: lanes_amd64.s and the declarations of its functions are what this file makes.
func TestAssembly(t *testing.T) {
	e := &emitter{Context: build.NewContext()}
	e.turn()
	e.rounds()
	file, err := e.Result()
	if err != nil {
		t.Fatal(err)
	}
	if err := pass.Compile.Execute(file); err != nil {
		t.Fatal(err)
	}
	config := printer.Config{Name: "go test ./dataset/manysha/assembly -update", Pkg: "manysha"}
	for name, make := range map[string]func(printer.Config) printer.Printer{"lanes_amd64.s": printer.NewGoAsm, "lanes_amd64.go": printer.NewStubs} {
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
			t.Errorf("%s is not what assembly_test.go makes: go test ./dataset/manysha/assembly -update (%v)", name, err)
		}
	}
}

// emitter writes loops for AVX-512, of which a vector has one word of each of 16 messages. It names registers itself: all 32 are used.
type emitter struct{ *build.Context }

func (e *emitter) function(name, signature, doc string) {
	e.Function(name)
	e.Attributes(attr.NOSPLIT)
	e.Pragma("noescape")
	e.SignatureExpr("func" + signature)
	e.Doc(name + " " + doc)
}

// table begins one of constants.
func (e *emitter) table(name string) operand.Mem {
	begun := e.StaticGlobal(name)
	e.DataAttributes(attr.RODATA | attr.NOPTR)
	return begun
}

func (e *emitter) done() {
	e.VZEROUPPER()
	e.RET()
}

const (
	lanes  = 16
	vector = 64 // bytes
)

func z(i int) reg.VecPhysical {
	return [...]reg.VecPhysical{reg.Z0, reg.Z1, reg.Z2, reg.Z3, reg.Z4, reg.Z5, reg.Z6, reg.Z7, reg.Z8, reg.Z9, reg.Z10, reg.Z11, reg.Z12, reg.Z13, reg.Z14, reg.Z15,
		reg.Z16, reg.Z17, reg.Z18, reg.Z19, reg.Z20, reg.Z21, reg.Z22, reg.Z23, reg.Z24, reg.Z25, reg.Z26, reg.Z27, reg.Z28, reg.Z29, reg.Z30, reg.Z31}[i]
}

func at(base reg.Register, i int) operand.Mem { return operand.Mem{Base: base, Disp: vector * i} }

// turn transposes a matrix of 16 by 16 words in three steps: pairs of words, pairs of pairs, and quarters of vectors.
func (e *emitter) turn() {
	swap := e.table("swapped")
	for i := range vector / 8 {
		var order [8]byte
		for b := range order {
			order[b] = byte(8*(i%2) + b/4*4 + 3 - b%4) // of each 16 bytes
		}
		e.AddDatum(8*i, operand.U64(binary.LittleEndian.Uint64(order[:])))
	}
	e.function("turn", "(words *[16][16]uint32, blocks *[16]*byte)", "puts the big-endian words of 16 blocks of 64 bytes beside each other: words[i] has word i of each.")
	words, blocks := e.Load(e.Param("words"), e.GP64()), e.Load(e.Param("blocks"), e.GP64())
	block := e.GP64()
	for i := range lanes {
		e.MOVQ(operand.Mem{Base: blocks, Disp: 8 * i}, block)
		e.VMOVDQU32(operand.Mem{Base: block}, z(i))
		e.VPSHUFB(swap, z(i), z(i))
	}
	for i := 0; i < lanes; i += 2 {
		e.VPUNPCKLDQ(z(i+1), z(i), z(16+i))
		e.VPUNPCKHDQ(z(i+1), z(i), z(16+i+1))
	}
	for i := 0; i < lanes; i += 4 {
		e.VPUNPCKLQDQ(z(16+i+2), z(16+i), z(i))
		e.VPUNPCKHQDQ(z(16+i+2), z(16+i), z(i+1))
		e.VPUNPCKLQDQ(z(16+i+3), z(16+i+1), z(i+2))
		e.VPUNPCKHQDQ(z(16+i+3), z(16+i+1), z(i+3))
	}
	const even, odd = operand.U8(0x88), operand.U8(0xdd) // quarters of two vectors
	a, b, c, d, out := z(16), z(17), z(18), z(19), z(20)
	for k := range 4 { // quarter q of vector 4g+k has word 4q+k of blocks 4g to 4g+3
		e.VSHUFI32X4(even, z(4+k), z(k), a)
		e.VSHUFI32X4(even, z(12+k), z(8+k), b)
		e.VSHUFI32X4(odd, z(4+k), z(k), c)
		e.VSHUFI32X4(odd, z(12+k), z(8+k), d)
		for q, from := range [...]struct {
			x, y reg.Register
			of   operand.U8
		}{{a, b, even}, {c, d, even}, {a, b, odd}, {c, d, odd}} {
			e.VSHUFI32X4(from.of, from.y, from.x, out)
			e.VMOVDQU32(out, at(words, 4*q+k))
		}
	}
	e.done()
}

// Truth tables of VPTERNLOGD.
const (
	choose   = operand.U8(0xca) // the second where the first, else the third
	majority = operand.U8(0xe8)
	parity   = operand.U8(0x96)
)

// rounds is SHA-256's compression of a block (FIPS 180-4, section 6.2.2), of 16 messages in step.
func (e *emitter) rounds() {
	table := e.table("constants")
	for i, k := range constants() {
		e.AddDatum(4*i, operand.U32(k))
	}
	e.function("rounds", "(state *[8][16]uint32, words *[16][16]uint32, lanes uint16)", "adds a block to the states of those of 16 messages that have a bit in lanes.")
	state, words := e.Load(e.Param("state"), e.GP64()), e.Load(e.Param("words"), e.GP64())
	mask := e.GP32()
	e.Load(e.Param("lanes"), mask)
	e.KMOVW(mask, reg.K1)
	s, w := make([]reg.VecPhysical, 8), make([]reg.VecPhysical, 16)
	for i := range s {
		s[i] = z(i)
		e.VMOVDQU32(at(state, i), s[i])
	}
	for i := range w {
		w[i] = z(8 + i)
		e.VMOVDQU32(at(words, i), w[i])
	}
	x, y, u := z(24), z(25), z(26)
	turned := func(of reg.Register, by ...uint64) { // the parity of three rotations, in x
		for i, to := range []reg.Register{x, y, u} {
			e.VPRORD(operand.U8(by[i]), of, to)
		}
		e.VPTERNLOGD(parity, u, y, x)
	}
	shifted := func(of reg.Register, by ...uint64) { // of two rotations and a shift
		e.VPRORD(operand.U8(by[0]), of, x)
		e.VPRORD(operand.U8(by[1]), of, y)
		e.VPSRLD(operand.U8(by[2]), of, u)
		e.VPTERNLOGD(parity, u, y, x)
	}
	for t := range 64 {
		word := w[t%16]
		if t >= 16 {
			shifted(w[(t+1)%16], 7, 18, 3)
			e.VPADDD(x, word, word)
			e.VPADDD(w[(t+9)%16], word, word)
			shifted(w[(t+14)%16], 17, 19, 10)
			e.VPADDD(x, word, word)
		}
		a, b, c, d, f, g, h := s[0], s[1], s[2], s[3], s[5], s[6], s[7]
		five := s[4]
		e.VPADDD_BCST(table.Offset(4*t), h, h)
		e.VPADDD(word, h, h)
		turned(five, 6, 11, 25)
		e.VPADDD(x, h, h)
		e.VMOVDQA32(five, x)
		e.VPTERNLOGD(choose, g, f, x)
		e.VPADDD(x, h, h)
		e.VPADDD(h, d, d)
		turned(a, 2, 13, 22)
		e.VPADDD(x, h, h)
		e.VMOVDQA32(a, x)
		e.VPTERNLOGD(majority, c, b, x)
		e.VPADDD(x, h, h)
		s = append([]reg.VecPhysical{h}, s[:7]...)
	}
	for i := range s {
		e.VPADDD(at(state, i), s[i], s[i])
		e.VMOVDQU32(s[i], reg.K1, at(state, i))
	}
	e.done()
}

// constants are the first 32 bits of the fractional parts of the cube roots of the first 64 primes.
func constants() (all [64]uint32) {
	n := 0
	for p := int64(2); n < len(all); p++ {
		if !big.NewInt(p).ProbablyPrime(20) {
			continue
		}
		root := new(big.Int).Lsh(big.NewInt(p), 96) // (2^32)^3 p, of which the root is found bit by bit
		found := new(big.Int)
		for bit := 40; bit >= 0; bit-- {
			found.SetBit(found, bit, 1)
			if new(big.Int).Exp(found, big.NewInt(3), nil).Cmp(root) > 0 {
				found.SetBit(found, bit, 0)
			}
		}
		all[n] = uint32(found.Uint64() & math.MaxUint32)
		n++
	}
	return all
}

// TestConstants holds the first and the last against those of FIPS 180-4, section 4.2.2.
func TestConstants(t *testing.T) {
	all := constants()
	if got := fmt.Sprintf("%08x %08x", all[0], all[63]); got != "428a2f98 c67178f2" {
		t.Error(got)
	}
}
