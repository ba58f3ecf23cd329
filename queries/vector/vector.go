// Package vector has the loops of packages kernel and model for the vectors of amd64 processors: AVX2, and AVX-512 where the processor has it. They
// write what the scalar loops write, bit for bit but for the sign of zero and the payload of NaN, and take one path for every row.
//
// The loops are assembly that package assembly makes. All of them take a number of rows that is a positive multiple of [Rows];
// pointers are to the first row.
package vector

// Rows is what a number of rows must be a multiple of: as many bytes as a vector of AVX-512 has.
const Rows = 64

// Loops are those of one instruction set.
type Loops struct {
	Name string
	Ends bool // whether AddEnds is to be called

	AddConst, MulConst, DivConst         func(dst, a *float64, k float64, n int)
	Add, Sub, Mul, Div, Minimum, Maximum func(dst, a, b *float64, n int)
	Neg, Abs, Sqrt, Floor, Ceil, Finite  func(dst, a *float64, n int)
	ClampConst                           func(dst, a *float64, low, high float64, n int)
	Choose                               func(dst *float64, test *uint8, a, b *float64, n int)
	LessConst, LessEqConst               func(dst *uint8, a *float64, k float64, n int)
	GreaterConst, GreaterEqConst         func(dst *uint8, a *float64, k float64, n int)
	EqualConst, DifferConst              func(dst *uint8, a *float64, k float64, n int)
	Less, LessEq, Equal, Differ          func(dst *uint8, a, b *float64, n int)
	IsNull                               func(dst *uint8, a *float64, n int)
	And, Or                              func(dst, a, b *uint8, n int)
	Not, IsTrue, IsNullBool              func(dst, a *uint8, n int)
	Above                                func(dst, a *uint8, k uint32, n int)
	Count                                func(a *uint8, n int) int64
	CodeEqual, CodeDiffers               func(dst *uint8, codes *uint32, code uint32, n int)
	SumFixed                             func(a *float64, lo, hi, null, scale float64, n int) int64
	SumFixedWhere                        func(a *float64, where *uint8, lo, hi, null, scale float64, n int) int64
	FixedValues                          func(dst *uint32, a *float64, lo, hi, null, scale float64, n int) int64
	FixedValuesWhere                     func(dst *uint32, a *float64, where *uint8, lo, hi, null, scale float64, n int) int64
	Year, Month, Date, YearDay, Weekday  func(dst, a, k *float64, n int) // k: Times
	Clock                                func(dst, a, k *float64, inverse, modulus, modulusInverse float64, n int)
	Dot                                  func(a, b *uint32, n int) (low, high uint64)
}

// MaxEnds is how many numbers AddEnds can choose from: as many as eight registers hold. It may read that many, however few there are.
const MaxEnds = 64

// Best is the instruction set to use on this processor, nil where there is none. The variable GODEBUG of the environment turns parts of
// a processor off: GODEBUG=cpu.avx512f=off, GODEBUG=cpu.avx2=off.
func Best() *Loops {
	if all := All(); len(all) > 0 {
		return all[len(all)-1]
	}
	return nil
}

// Times are the constants of the loops over times, in the order of their places in package assembly.
var Times = [...]float64{86400e6, 1 / 86400e6, .5, 1, 719468, 146097, 1. / 146097, 1. / 1460, 1. / 36524, 1. / 146096, 365, 1. / 365, 1. / 4, 1. / 100,
	5, 2, 1. / 153, 153, 1. / 5, 10, 12, 400, 59, 306, 4, 7, 1. / 7, 0, 100}
