package kernel

import "math"

// The loops over Numbers. All slices of a call have the length of dst. Only finite makes infinities null; the others
// leave them to it, where the graph could not rule them out.

// finite turns infinities into NaN.
func finite(dst []float64) {
	for i, v := range dst {
		dst[i] = v + (v - v)
	}
}

func addConst(dst, a []float64, k float64) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = a[i] + k
	}
}

func mulConst(dst, a []float64, k float64) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = a[i] * k
	}
}

func divConst(dst, a []float64, k float64) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = a[i] / k
	}
}

func add(dst, a, b []float64) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] + b[i]
	}
}

func sub(dst, a, b []float64) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] - b[i]
	}
}

func mul(dst, a, b []float64) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] * b[i]
	}
}

func div(dst, a, b []float64) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] / b[i]
	}
}

// minimum and maximum are NaN if either side is.
func minimum(dst, a, b []float64) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = min(a[i], b[i])
	}
}

func maximum(dst, a, b []float64) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = max(a[i], b[i])
	}
}

func neg(dst, a []float64) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = -a[i]
	}
}

func abs(dst, a []float64) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = math.Abs(a[i])
	}
}

func log(dst, a []float64) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = math.Log(a[i])
	}
}

func exp(dst, a []float64) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = math.Exp(a[i])
	}
}

func sqrt(dst, a []float64) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = math.Sqrt(a[i])
	}
}

func floor(dst, a []float64) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = math.Floor(a[i])
	}
}

func ceil(dst, a []float64) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = math.Ceil(a[i])
	}
}

// choose takes a where test is 1 and b where it is 0.
func choose(dst []float64, test []uint8, a, b []float64) {
	test, a, b = test[:len(dst)], a[:len(dst)], b[:len(dst)]
	for i := range dst {
		all := -uint64(test[i])
		dst[i] = math.Float64frombits(math.Float64bits(a[i])&all | math.Float64bits(b[i])&^all)
	}
}
