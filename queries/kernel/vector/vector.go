// Package vector holds the loops of package kernel in the vector instructions of amd64: AVX-512 and AVX2, chosen when the program starts by what
// the processor and the system have. It decides nothing: each function does what the loop of the same name in package kernel does, bit for bit but for the bits of
// a NaN and the sign of a zero, which nothing in the language can see.
//
// A function takes as many rows from the front as make whole turns of 64, and returns how many it took: 0 on a processor without these instructions.
// The caller's loop does the rest. All slices have at least the length of the first.
//
// The assembly is written by the program in gen, from one description of each loop. See docs/decisions/0008-vector-kernels.md for why it is assembly.
package vector

import "math"

//go:generate go run ./gen

// Level is a set of instructions.
type Level int

const (
	// None: no loop takes a row.
	None Level = iota
	// AVX2 are registers of 32 bytes.
	AVX2
	// AVX512 are registers of 64 bytes: the sets F, BW, DQ and VL.
	AVX512
)

var level = detected()

// Detected is the best set that this processor has.
func Detected() Level { return detected() }

// Use sets the instructions, of those that the processor has, and returns those that were used before. It is for tests and measurements, while no loop runs.
func Use(l Level) (before Level) {
	before, level = level, min(l, detected())
	return before
}

// turn is how many rows a turn of a loop takes.
const turn = 64

// whole is how many of n rows are taken.
func whole(n int) int {
	if level == None {
		return 0
	}
	return n &^ (turn - 1)
}

// Repeated is a byte in all bytes of a word.
func Repeated(b uint8) uint64 { return uint64(b) * 0x0101010101010101 }

// Twice is a code in both halves of a word.
func Twice(code uint32) uint64 { return uint64(code)<<32 | uint64(code) }

// Table is a list of at most 127 rising numbers as [Ranks] reads it, made longer with infinities, which no row holds: number 8c+i is at 16i+c.
func Table(list []float64) []float64 {
	table := make([]float64, 128)
	for at := range table {
		x := math.Inf(1)
		if at < len(list) {
			x = list[at]
		}
		table[at%8*16+at/8] = x
	}
	return table
}
