package kernel

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/queries/kernel/vector"
	"github.com/holdoutd/holdoutd/rowfn"
)

// edges are numbers at the ends of what the loops tell apart; registers have no infinities, but a loop that makes some is followed by finite.
var edges = []float64{0, math.Copysign(0, -1), 1, -1, 0.5, 15, 5e-324, -5e-324, 0x1p-1022, -0x1p-1022, math.MaxFloat64, -math.MaxFloat64, math.Inf(1), math.Inf(-1), math.NaN(),
	math.Float64frombits(0xFFF8000000000000), 0x1p52 + 0.5, 0x1p53, -0x1p53, 1 << 30, 0.1, 0.3, 1 - 0x1p-53, 2147483647.5, 1e15 + 0.5}

func drawNumber(t *rapid.T, name string) float64 {
	if rapid.Bool().Draw(t, name+" is any") {
		return rapid.Float64().Draw(t, name)
	}
	return rapid.SampledFrom(edges).Draw(t, name)
}

// vectorInput is what loops read: slices of one length that begin anywhere in memory.
type vectorInput struct {
	n         int
	a, b      []float64
	x, y      []uint8  // conditions
	bools     []uint8  // 0, 1, 2
	ranks     []uint8  // to 127
	codes     []uint32 // to 5
	k, lo, hi float64
	code      uint32
	rank      uint32
	grid      grid

	thresholds []float64 // rising, to maxRank of them
	falling    bool
}

// finite is a, as ranks read it: null instead of infinities.
func (in vectorInput) finite() []float64 {
	values := slices.Clone(in.a)
	finite(values)
	return values
}

func unaligned[T any](t *rapid.T, values []T) []T {
	at := rapid.IntRange(0, 9).Draw(t, "start")
	return append(make([]T, at, at+len(values)), values...)[at:]
}

func drawInput(t *rapid.T) vectorInput {
	in := vectorInput{n: rapid.IntRange(0, 130).Draw(t, "rows")}
	numbers := func(name string) []float64 {
		values := make([]float64, in.n)
		seed := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) float64 { return drawNumber(t, name) }), 1, 20).Draw(t, name)
		shift := rapid.IntRange(0, 19).Draw(t, "shift")
		for i := range values {
			values[i] = seed[(i*i+i/7+shift)%len(seed)]
		}
		return unaligned(t, values)
	}
	bytes := func(most int) []uint8 {
		values := make([]uint8, in.n)
		x := rapid.Uint32().Draw(t, "bytes")
		for i := range values {
			x = x*1664525 + 1013904223
			values[i] = uint8(x >> 16 % uint32(most+1))
		}
		for i, v := range values {
			values[i] = v % uint8(most+1)
		}
		return unaligned(t, values)
	}
	in.a, in.b = numbers("a"), numbers("b")
	in.x, in.y, in.bools, in.ranks = bytes(1), bytes(1), bytes(2), bytes(maxRank)
	in.codes = unaligned(t, make([]uint32, in.n))
	for i, b := range in.ranks {
		in.codes[i] = uint32(b) % 6
	}
	in.code = rapid.SampledFrom([]uint32{0, 1, 2, 5, absent}).Draw(t, "code")
	in.rank = rapid.Uint32Range(0, maxRank-1).Draw(t, "rank")
	in.k = drawNumber(t, "k")
	in.thresholds = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) float64 {
		if in.n > 0 && rapid.Bool().Draw(t, "of a row") {
			return in.a[rapid.IntRange(0, in.n-1).Draw(t, "row")] + 0
		}
		return drawNumber(t, "threshold") + 0
	}), 1, maxRank).Draw(t, "thresholds")
	in.thresholds = slices.DeleteFunc(in.thresholds, func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) })
	slices.Sort(in.thresholds)
	in.thresholds = slices.Compact(in.thresholds)
	in.falling = rapid.Bool().Draw(t, "falling")
	for in.lo, in.hi = 1, 0; !(in.lo <= in.hi); {
		in.lo, in.hi = drawNumber(t, "low"), drawNumber(t, "high")
	}
	bounds := rapid.SampledFrom([][2]float64{{0, 1}, {-60, 180}, {0, 1e150}, {-1e150, 1e150}, {0.1, 0.3}, {1, 1 + 0x1p-52}, {-8e307, 8e307}, {1e-290, 2e-290}}).Draw(t, "range")
	var err error
	if in.grid, err = newGrid(bounds[0], bounds[1], rapid.SampledFrom([]float64{bounds[0], bounds[1], bounds[0] + (bounds[1]-bounds[0])/3}).Draw(t, "null")); err != nil {
		t.Fatal(err)
	}
	return in
}

// vectorLoops are all loops that have vector instructions. Each returns what it computes, as text-comparable values: numbers as bits, one NaN for all, one zero for both.
var vectorLoops = map[string]func(in vectorInput) any{
	"lessConst":      func(in vectorInput) any { return in.condition(func(dst []uint8) { lessConst(dst, in.a, in.k) }) },
	"lessEqConst":    func(in vectorInput) any { return in.condition(func(dst []uint8) { lessEqConst(dst, in.a, in.k) }) },
	"greaterConst":   func(in vectorInput) any { return in.condition(func(dst []uint8) { greaterConst(dst, in.a, in.k) }) },
	"greaterEqConst": func(in vectorInput) any { return in.condition(func(dst []uint8) { greaterEqConst(dst, in.a, in.k) }) },
	"equalConst":     func(in vectorInput) any { return in.condition(func(dst []uint8) { equalConst(dst, in.a, in.k) }) },
	"differConst":    func(in vectorInput) any { return in.condition(func(dst []uint8) { differConst(dst, in.a, in.k) }) },
	"less":           func(in vectorInput) any { return in.condition(func(dst []uint8) { less(dst, in.a, in.b) }) },
	"lessEq":         func(in vectorInput) any { return in.condition(func(dst []uint8) { lessEq(dst, in.a, in.b) }) },
	"equal":          func(in vectorInput) any { return in.condition(func(dst []uint8) { equal(dst, in.a, in.b) }) },
	"differ":         func(in vectorInput) any { return in.condition(func(dst []uint8) { differ(dst, in.a, in.b) }) },
	"isNull":         func(in vectorInput) any { return in.condition(func(dst []uint8) { isNull(dst, in.a) }) },
	"isTrue":         func(in vectorInput) any { return in.condition(func(dst []uint8) { isTrue(dst, in.bools) }) },
	"isNullBool":     func(in vectorInput) any { return in.condition(func(dst []uint8) { isNullBool(dst, in.bools) }) },
	"not":            func(in vectorInput) any { return in.condition(func(dst []uint8) { not(dst, in.x) }) },
	"and":            func(in vectorInput) any { return in.condition(func(dst []uint8) { and(dst, in.x, in.y) }) },
	"or":             func(in vectorInput) any { return in.condition(func(dst []uint8) { or(dst, in.x, in.y) }) },
	"above":          func(in vectorInput) any { return in.condition(func(dst []uint8) { above(dst, in.ranks, in.rank) }) },
	"codeEqual":      func(in vectorInput) any { return in.condition(func(dst []uint8) { codeEqual(dst, in.codes, in.code) }) },
	"codeDiffers": func(in vectorInput) any {
		return in.condition(func(dst []uint8) { codeDiffers(dst, in.codes, in.code) })
	},
	"count": func(in vectorInput) any { return count(in.x) },
	"ranks": func(in vectorInput) any {
		return in.condition(func(dst []uint8) {
			ranks(dst, in.finite(), padded(in.thresholds), vector.Table(in.thresholds), in.falling)
		})
	},
	"finite":   func(in vectorInput) any { return in.number(func(dst []float64) { copy(dst, in.a); finite(dst) }) },
	"addConst": func(in vectorInput) any { return in.number(func(dst []float64) { addConst(dst, in.a, in.k) }) },
	"mulConst": func(in vectorInput) any { return in.number(func(dst []float64) { mulConst(dst, in.a, in.k) }) },
	"divConst": func(in vectorInput) any { return in.number(func(dst []float64) { divConst(dst, in.a, in.k) }) },
	"add":      func(in vectorInput) any { return in.number(func(dst []float64) { add(dst, in.a, in.b) }) },
	"sub":      func(in vectorInput) any { return in.number(func(dst []float64) { sub(dst, in.a, in.b) }) },
	"mul":      func(in vectorInput) any { return in.number(func(dst []float64) { mul(dst, in.a, in.b) }) },
	"div":      func(in vectorInput) any { return in.number(func(dst []float64) { div(dst, in.a, in.b) }) },
	"minimum":  func(in vectorInput) any { return in.number(func(dst []float64) { minimum(dst, in.a, in.b) }) },
	"maximum":  func(in vectorInput) any { return in.number(func(dst []float64) { maximum(dst, in.a, in.b) }) },
	"clampConst": func(in vectorInput) any {
		return in.number(func(dst []float64) { clampConst(dst, in.a, in.lo, in.hi) })
	},
	"neg":    func(in vectorInput) any { return in.number(func(dst []float64) { neg(dst, in.a) }) },
	"abs":    func(in vectorInput) any { return in.number(func(dst []float64) { abs(dst, in.a) }) },
	"sqrt":   func(in vectorInput) any { return in.number(func(dst []float64) { sqrt(dst, in.a) }) },
	"floor":  func(in vectorInput) any { return in.number(func(dst []float64) { floor(dst, in.a) }) },
	"ceil":   func(in vectorInput) any { return in.number(func(dst []float64) { ceil(dst, in.a) }) },
	"choose": func(in vectorInput) any { return in.number(func(dst []float64) { choose(dst, in.x, in.a, in.b) }) },
	"choose in place": func(in vectorInput) any {
		return in.number(func(dst []float64) { copy(dst, in.a); choose(dst, in.x, in.b, dst) })
	},
	"sumFixed":               func(in vectorInput) any { return sumFixed(in.a, in.grid) },
	"sumFixedWhere":          func(in vectorInput) any { return sumFixedWhere(in.a, in.x, in.grid) },
	"sum of a chain":         func(in vectorInput) any { return in.chainSum(&chain{y: none}) },
	"sum of a chain times b": func(in vectorInput) any { return in.chainSum(&chain{y: 1}) },
	"sum of a chain squared": func(in vectorInput) any { return in.chainSum(&chain{y: none, square: true}) },
	"fixedValues": func(in vectorInput) any {
		dst := make([]uint32, in.n)
		return []any{fixedValues(dst, in.a, in.grid), dst}
	},
	"fixedValuesWhere": func(in vectorInput) any {
		dst := make([]uint32, in.n)
		return []any{fixedValuesWhere(dst, in.a, in.x, in.grid), dst}
	},
}

// chainSum is that of the chain, whose constants it sets.
func (in vectorInput) chainSum(c *chain) int64 {
	c.low, c.high, c.added, c.factor = in.lo, in.hi, in.b0(), in.k
	if math.IsNaN(c.factor) || math.IsInf(c.factor, 0) {
		c.factor = 1
	}
	s := State{program: &Program{chained: 2}, numbers: [][]float64{in.a, in.b, make([]float64, in.n)}}
	return s.chainSum(&step{value: value{a: 0, b: 1}, next: 0, sink: &sink{grid: in.grid, chain: c}}, in.n)
}

// b0 is a finite number.
func (in vectorInput) b0() float64 {
	if in.n > 0 && !math.IsNaN(in.b[0]) && !math.IsInf(in.b[0], 0) {
		return in.b[0]
	}
	return 0
}

// condition is what a loop writes, and that it writes nothing else.
func (in vectorInput) condition(loop func(dst []uint8)) any {
	dst := slices.Repeat([]uint8{7}, in.n+130)
	loop(dst[65 : 65+in.n])
	return dst
}

func (in vectorInput) number(loop func(dst []float64)) any {
	dst := slices.Repeat([]float64{7}, in.n+20)
	loop(dst[9 : 9+in.n])
	all := make([]uint64, len(dst))
	for i, v := range dst {
		if v != v {
			v = math.NaN()
		}
		all[i] = math.Float64bits(v + 0)
	}
	return all
}

// levels are the sets of instructions that this processor has.
func levels() (all []vector.Level) {
	for l := vector.None; l <= vector.Detected(); l++ {
		all = append(all, l)
	}
	return all
}

// TestVectorLoops: each loop gives the same bits with every set of instructions, at every length, from every start, on the edges of what a float64 can be.
// It would notice a comparison that holds for NaN, a mask whose rows are in another order, a sum without its last rows, a bound that takes NaN for itself, and a write behind the end.
func TestVectorLoops(t *testing.T) {
	if vector.Detected() == vector.None {
		t.Log("this processor has no vector instructions that the loops know: only the scalar loops are tested here")
	}
	for name, loop := range vectorLoops {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				in := drawInput(t)
				var want string
				for _, l := range levels() {
					before := vector.Use(l)
					got := fmt.Sprint(loop(in))
					vector.Use(before)
					if l == vector.None {
						want = got
					} else if got != want {
						t.Fatalf("instructions %d: %s\nwithout: %s", l, got, want)
					}
				}
			})
		})
	}
}

// TestVectorParts: the parts of times are those of the scalar loops: at the first and last microseconds of days, years and centuries, before 1970, and where no int64 holds the time.
// It would notice a leap year too many, a fraction that is rounded and not cut off, and a day before 1970 that begins at noon.
func TestVectorParts(t *testing.T) {
	instants := []float64{math.NaN(), 0, -1, 1, -0.5, 0.5, -1e300, 1e300, 0x1p63, -0x1p63, 0x1p62, -0x1p62, math.Nextafter(0x1p63, 0), 0x1p53 + 2, -0x1p53 - 2}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 130).Draw(t, "rows")
		a := make([]float64, n)
		for i := range a {
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				a[i] = rapid.SampledFrom(instants).Draw(t, "edge")
			case 1: // about the beginning of a day in the years that a Time is exact in
				a[i] = float64(rapid.Int64Range(-104249, 104249).Draw(t, "day")*microsecondsPerDay + rapid.Int64Range(-1, 1).Draw(t, "microsecond"))
			case 2:
				a[i] = float64(rapid.Int64Range(-104249, 104249).Draw(t, "day"))*microsecondsPerDay + float64(rapid.Int64Range(0, microsecondsPerDay-1).Draw(t, "microsecond"))
			default:
				a[i] = float64(rapid.Int64().Draw(t, "any"))
			}
		}
		for part := rowfn.OpFullYear; part <= rowfn.OpMilliseconds; part++ {
			var want []float64
			for _, l := range levels() {
				before := vector.Use(l)
				got := make([]float64, n)
				timePart(part, got, a)
				vector.Use(before)
				if l == vector.None {
					want = got
				}
				for i := range got {
					if got[i] != want[i] && (got[i] == got[i] || want[i] == want[i]) {
						t.Fatalf("part %d of %v with instructions %d: %v, without %v", part, a[i], l, got[i], want[i])
					}
				}
			}
		}
	})
}

// TestVectorDays: every day that a Time is exact in has its parts.
func TestVectorDays(t *testing.T) {
	const most = 104249
	a := make([]float64, 0, 2*most+1)
	for day := -most; day <= most; day++ {
		a = append(a, float64(day)*microsecondsPerDay+float64(day&0xffff))
	}
	got, want := make([]float64, len(a)), make([]float64, len(a))
	for part := rowfn.OpFullYear; part <= rowfn.OpDayOfYear; part++ {
		before := vector.Use(vector.None)
		timePart(part, want, a)
		for _, l := range levels() {
			vector.Use(l)
			if timePart(part, got, a); !slices.Equal(got, want) {
				t.Errorf("part %d with instructions %d is not what it is without", part, l)
			}
		}
		vector.Use(before)
	}
}

// TestVectorRanks: ranks among every number of thresholds, of numbers below, at and above each of them, are what they are. It would notice a table in another order.
func TestVectorRanks(t *testing.T) {
	for n := 1; n <= maxRank; n++ {
		list := make([]float64, n)
		a := []float64{math.NaN(), -1, math.MaxFloat64, -math.MaxFloat64}
		want := []uint8{0, 0, uint8(n), 0}
		for i := range list {
			list[i] = float64(2 * i)
			a, want = append(a, 2*float64(i), 2*float64(i)+1), append(want, uint8(i+1), uint8(i+1))
		}
		for len(a)%64 != 0 {
			a, want = append(a, -2), append(want, 0)
		}
		table := vector.Table(list)
		for at, x := range list { // as the loop reads it, also where the processor has no such loop
			if got := table[at%8*16+at/8]; got != x {
				t.Fatalf("%d thresholds: number %d of the table is %v, want %v", n, at, got, x)
			}
		}
		for _, l := range levels() {
			before := vector.Use(l)
			got, fallen := make([]uint8, len(a)), make([]uint8, len(a))
			ranks(got, a, padded(list), table, false)
			neg(a, a)
			ranks(fallen, a, padded(list), table, true)
			neg(a, a)
			vector.Use(before)
			if !slices.Equal(got, want) || !slices.Equal(fallen, want) {
				t.Fatalf("%d thresholds, instructions %d: %v and %v, want %v", n, l, got, fallen, want)
			}
		}
	}
}

// TestVectorSums: sums of whole blocks of the largest values do not overflow, with every set of instructions.
func TestVectorSums(t *testing.T) {
	a, x := slices.Repeat([]float64{2}, MaxBlock), slices.Repeat([]uint8{1}, MaxBlock)
	g, err := newGrid(0, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range levels() {
		before := vector.Use(l)
		dst := make([]uint32, MaxBlock)
		for name, sum := range map[string]int64{"sumFixed": sumFixed(a, g), "sumFixedWhere": sumFixedWhere(a, x, g), "fixedValues": fixedValues(dst, a, g), "count": count(x) * rowfn.One} {
			if sum != MaxBlock*rowfn.One {
				t.Errorf("instructions %d: %s is %d", l, name, sum)
			}
		}
		vector.Use(before)
	}
}
