package kernel

import (
	"encoding/binary"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries/kernel/vector"
)

// The loops over conditions: bytes of 0 and 1. Those on conditions alone take eight rows in a word.

const ones = 0x0101010101010101

// bit is 1 for true; the compiler makes it one instruction.
func bit(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

func lessConst(dst []uint8, a []float64, k float64) {
	done := vector.LessConst(dst, a, k)
	dst, a = dst[done:], a[done:]
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = bit(a[i] < k)
	}
}

func lessEqConst(dst []uint8, a []float64, k float64) {
	done := vector.LessEqConst(dst, a, k)
	dst, a = dst[done:], a[done:]
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = bit(a[i] <= k)
	}
}

func greaterConst(dst []uint8, a []float64, k float64) {
	done := vector.GreaterConst(dst, a, k)
	dst, a = dst[done:], a[done:]
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = bit(a[i] > k)
	}
}

func greaterEqConst(dst []uint8, a []float64, k float64) {
	done := vector.GreaterEqConst(dst, a, k)
	dst, a = dst[done:], a[done:]
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = bit(a[i] >= k)
	}
}

func equalConst(dst []uint8, a []float64, k float64) {
	done := vector.EqualConst(dst, a, k)
	dst, a = dst[done:], a[done:]
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = bit(a[i] <= k) & bit(a[i] >= k)
	}
}

func differConst(dst []uint8, a []float64, k float64) {
	done := vector.DifferConst(dst, a, k)
	dst, a = dst[done:], a[done:]
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = bit(a[i] < k) | bit(a[i] > k)
	}
}

func less(dst []uint8, a, b []float64) {
	done := vector.Less(dst, a, b)
	dst, a, b = dst[done:], a[done:], b[done:]
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = bit(a[i] < b[i])
	}
}

func lessEq(dst []uint8, a, b []float64) {
	done := vector.LessEq(dst, a, b)
	dst, a, b = dst[done:], a[done:], b[done:]
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = bit(a[i] <= b[i])
	}
}

func equal(dst []uint8, a, b []float64) {
	done := vector.Equal(dst, a, b)
	dst, a, b = dst[done:], a[done:], b[done:]
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = bit(a[i] <= b[i]) & bit(a[i] >= b[i])
	}
}

func differ(dst []uint8, a, b []float64) {
	done := vector.Differ(dst, a, b)
	dst, a, b = dst[done:], a[done:], b[done:]
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = bit(a[i] < b[i]) | bit(a[i] > b[i])
	}
}

func isNull(dst []uint8, a []float64) {
	done := vector.IsNull(dst, a)
	dst, a = dst[done:], a[done:]
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = bit(a[i] != a[i])
	}
}

// search is how many numbers of a padded list are at most x: 0 for NaN.
func search(list []float64, x float64) int {
	at := 0
	for step := len(list) / 2; step > 0; step /= 2 {
		next := at + step
		if x >= list[next-1] {
			at = next
		}
	}
	return at
}

func inList(dst []uint8, a, list []float64) {
	a = a[:len(dst)]
	for i := range dst {
		x := a[i]
		at := max(search(list, x), 1)
		dst[i] = bit(list[at-1] == x)
	}
}

// isTrue reads a Bool column: 1 where its byte is 1.
func isTrue(dst, a []uint8) {
	done := vector.IsTrue(dst, a)
	dst, a = dst[done:], a[done:]
	a = a[:len(dst)]
	for len(dst) >= 8 && len(a) >= 8 {
		binary.LittleEndian.PutUint64(dst, binary.LittleEndian.Uint64(a)&ones)
		dst, a = dst[8:], a[8:]
	}
	for i := range dst {
		dst[i] = a[i] & 1
	}
}

// isNullBool reads a Bool column: 1 where its byte is 2.
func isNullBool(dst, a []uint8) {
	done := vector.IsNullBool(dst, a)
	dst, a = dst[done:], a[done:]
	a = a[:len(dst)]
	for len(dst) >= 8 && len(a) >= 8 {
		binary.LittleEndian.PutUint64(dst, binary.LittleEndian.Uint64(a)>>1&ones)
		dst, a = dst[8:], a[8:]
	}
	for i := range dst {
		dst[i] = a[i] >> 1
	}
}

func not(dst, a []uint8) {
	done := vector.Not(dst, a)
	dst, a = dst[done:], a[done:]
	a = a[:len(dst)]
	for len(dst) >= 8 && len(a) >= 8 {
		binary.LittleEndian.PutUint64(dst, binary.LittleEndian.Uint64(a)^ones)
		dst, a = dst[8:], a[8:]
	}
	for i := range dst {
		dst[i] = a[i] ^ 1
	}
}

func and(dst, a, b []uint8) {
	done := vector.And(dst, a, b)
	dst, a, b = dst[done:], a[done:], b[done:]
	a, b = a[:len(dst)], b[:len(dst)]
	for len(dst) >= 8 && len(a) >= 8 && len(b) >= 8 {
		binary.LittleEndian.PutUint64(dst, binary.LittleEndian.Uint64(a)&binary.LittleEndian.Uint64(b))
		dst, a, b = dst[8:], a[8:], b[8:]
	}
	for i := range dst {
		dst[i] = a[i] & b[i]
	}
}

func or(dst, a, b []uint8) {
	done := vector.Or(dst, a, b)
	dst, a, b = dst[done:], a[done:], b[done:]
	a, b = a[:len(dst)], b[:len(dst)]
	for len(dst) >= 8 && len(a) >= 8 && len(b) >= 8 {
		binary.LittleEndian.PutUint64(dst, binary.LittleEndian.Uint64(a)|binary.LittleEndian.Uint64(b))
		dst, a, b = dst[8:], a[8:], b[8:]
	}
	for i := range dst {
		dst[i] = a[i] | b[i]
	}
}

// count is the number of ones in at most MaxBlock bytes: no byte of the word of sums overflows.
func count(a []uint8) int64 {
	n, done := vector.Count(a)
	a = a[done:]
	var sums uint64
	for len(a) >= 8 {
		sums += binary.LittleEndian.Uint64(a)
		a = a[8:]
	}
	const even = 0x00ff00ff00ff00ff
	pairs := sums&even + sums>>8&even
	n += int64(pairs * 0x0001000100010001 >> 48)
	for _, b := range a {
		n += int64(b)
	}
	return n
}

func codeEqual(dst []uint8, codes []uint32, code uint32) {
	done := vector.CodeEqual(dst, codes, vector.Twice(code))
	dst, codes = dst[done:], codes[done:]
	codes = codes[:len(dst)]
	for i := range dst {
		dst[i] = bit(codes[i] == code)
	}
}

// codeDiffers is 0 for null, which is code 0.
func codeDiffers(dst []uint8, codes []uint32, code uint32) {
	done := vector.CodeDiffers(dst, codes, vector.Twice(code))
	dst, codes = dst[done:], codes[done:]
	codes = codes[:len(dst)]
	for i := range dst {
		dst[i] = bit(codes[i] != code) & bit(codes[i] != 0)
	}
}

// codeLookup is bit code of a table.
func codeLookup(dst []uint8, codes []uint32, table []uint64) {
	codes = codes[:len(dst)]
	for i := range dst {
		dst[i] = uint8(table[codes[i]>>6]>>(codes[i]&63)) & 1
	}
}

// codeBytes is byte code of a small table.
func codeBytes(dst []uint8, codes []uint32, table []uint8) {
	codes = codes[:len(dst)]
	for i := range dst {
		dst[i] = table[codes[i]]
	}
}

// codesEqual compares the marks of two texts. Those of two nulls are equal, and do not count.
func codesEqual(dst []uint8, a, b []uint32, marks *[2][]dataset.Mark) {
	a, b = a[:len(dst)], b[:len(dst)]
	left, right := marks[0], marks[1]
	for i := range dst {
		x, y := &left[a[i]], &right[b[i]]
		dst[i] = bit((x.High^y.High)|(x.Low^y.Low) == 0) & bit(a[i] != 0)
	}
}

func codesDiffer(dst []uint8, a, b []uint32, marks *[2][]dataset.Mark) {
	a, b = a[:len(dst)], b[:len(dst)]
	left, right := marks[0], marks[1]
	for i := range dst {
		x, y := &left[a[i]], &right[b[i]]
		dst[i] = bit((x.High^y.High)|(x.Low^y.Low) != 0) & bit(a[i] != 0) & bit(b[i] != 0)
	}
}
