package kernel

import (
	"math"

	"github.com/holdoutd/holdoutd/queries/kernel/vector"
)

// The loops over Numbers. All slices of a call have the length of dst. Only finite makes infinities null; the others
// leave them to it, where the graph could not rule them out.

// finite turns infinities into NaN.
func finite(dst []float64) {
	done := vector.Finite(dst, dst)
	dst = dst[done:]
	for i, v := range dst {
		dst[i] = v + (v - v)
	}
}

func addConst(dst, a []float64, k float64) {
	done := vector.AddConst(dst, a, k)
	dst, a = dst[done:], a[done:]
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = a[i] + k
	}
}

func mulConst(dst, a []float64, k float64) {
	done := vector.MulConst(dst, a, k)
	dst, a = dst[done:], a[done:]
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = a[i] * k
	}
}

func divConst(dst, a []float64, k float64) {
	done := vector.DivConst(dst, a, k)
	dst, a = dst[done:], a[done:]
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = a[i] / k
	}
}

func add(dst, a, b []float64) {
	done := vector.Add(dst, a, b)
	dst, a, b = dst[done:], a[done:], b[done:]
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] + b[i]
	}
}

func sub(dst, a, b []float64) {
	done := vector.Sub(dst, a, b)
	dst, a, b = dst[done:], a[done:], b[done:]
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] - b[i]
	}
}

func mul(dst, a, b []float64) {
	done := vector.Mul(dst, a, b)
	dst, a, b = dst[done:], a[done:], b[done:]
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] * b[i]
	}
}

func div(dst, a, b []float64) {
	done := vector.Div(dst, a, b)
	dst, a, b = dst[done:], a[done:], b[done:]
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] / b[i]
	}
}

// minimum and maximum are NaN if either side is.
func minimum(dst, a, b []float64) {
	done := vector.Min(dst, a, b)
	dst, a, b = dst[done:], a[done:], b[done:]
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = min(a[i], b[i])
	}
}

func maximum(dst, a, b []float64) {
	done := vector.Max(dst, a, b)
	dst, a, b = dst[done:], a[done:], b[done:]
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = max(a[i], b[i])
	}
}

// clampConst leaves NaN as it is. Its two comparisons become conditional moves.
func clampConst(dst, a []float64, low, high float64) {
	done := vector.ClampConst(dst, a, low, high)
	dst, a = dst[done:], a[done:]
	a = a[:len(dst)]
	lo, hi := math.Float64bits(low), math.Float64bits(high)
	for i := range dst {
		v := a[i]
		b := math.Float64bits(v)
		if v < low {
			b = lo
		}
		if v > high {
			b = hi
		}
		dst[i] = math.Float64frombits(b)
	}
}

func neg(dst, a []float64) {
	done := vector.Neg(dst, a)
	dst, a = dst[done:], a[done:]
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = -a[i]
	}
}

func abs(dst, a []float64) {
	done := vector.Abs(dst, a)
	dst, a = dst[done:], a[done:]
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = math.Abs(a[i])
	}
}

// log and exp take one path for every row. math.Log and math.Exp leave early for nulls and for what is out of their domains, so
// that the time of a scan would tell how many such rows there are; they are given 1 in place of those, and the result is
// put in afterwards, without a branch. Subnormal numbers may still take a processor longer (docs/GUARANTEES.md).

func log(dst, a []float64) {
	a = a[:len(dst)]
	for i := range dst {
		v := math.Float64bits(a[i])
		inside := v-1 < infinity-1 // 0 < a[i] < +Inf
		x := oneBits
		if inside {
			x = v
		}
		y := math.Float64bits(math.Log(math.Float64frombits(x)))
		if !inside {
			y = nullBits
		}
		dst[i] = math.Float64frombits(y)
	}
}

func exp(dst, a []float64) {
	a = a[:len(dst)]
	for i := range dst {
		v := a[i]
		x := oneBits
		if v >= expUnderflow && v <= expOverflow {
			x = math.Float64bits(v)
		}
		y := math.Float64bits(math.Exp(math.Float64frombits(x)))
		if v < expUnderflow {
			y = 0
		}
		if !(v <= expOverflow) { // null, or a result that is not finite
			y = nullBits
		}
		dst[i] = math.Float64frombits(y)
	}
}

const (
	oneBits  = uint64(0x3FF0000000000000)
	infinity = uint64(0x7FF0000000000000)
	nullBits = uint64(0x7FF8000000000001)

	// Where math.Exp leaves the finite numbers, and where it becomes 0.
	expOverflow  = 7.09782712893383973096e+02
	expUnderflow = -7.45133219101941108420e+02
)

func sqrt(dst, a []float64) {
	done := vector.Sqrt(dst, a)
	dst, a = dst[done:], a[done:]
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = math.Sqrt(a[i])
	}
}

func floor(dst, a []float64) {
	done := vector.Floor(dst, a)
	dst, a = dst[done:], a[done:]
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = math.Floor(a[i])
	}
}

func ceil(dst, a []float64) {
	done := vector.Ceil(dst, a)
	dst, a = dst[done:], a[done:]
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = math.Ceil(a[i])
	}
}

// choose takes a where test is 1 and b where it is 0.
func choose(dst []float64, test []uint8, a, b []float64) {
	done := vector.Choose(dst, test, a, b)
	dst, test, a, b = dst[done:], test[done:], a[done:], b[done:]
	test, a, b = test[:len(dst)], a[:len(dst)], b[:len(dst)]
	for i := range dst {
		all := -uint64(test[i])
		dst[i] = math.Float64frombits(math.Float64bits(a[i])&all | math.Float64bits(b[i])&^all)
	}
}
