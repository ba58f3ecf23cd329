package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries/internal/randomtree"
	"github.com/holdoutd/holdoutd/queries/internal/reference"
	"github.com/holdoutd/holdoutd/queries/vector"
	"github.com/holdoutd/holdoutd/rowfn"
)

// withVectors runs f with each instruction set of this processor in turn.
func withVectors(t *testing.T, f func(t *testing.T)) {
	before := fast
	t.Cleanup(func() { fast = before })
	for _, l := range vector.All() {
		fast = newVectors(l)
		t.Run(l.Name, f)
	}
}

// corners are numbers at which loops could differ. Infinities are there before they are made null.
var corners = []float64{0, math.Copysign(0, -1), 1, -1, .5, -.5, 1 << 30, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, -math.MaxFloat64,
	math.SmallestNonzeroFloat64, -math.SmallestNonzeroFloat64, 0x1p-1022, math.Nextafter(1, 2), math.Nextafter(1, 0), 2.5, -2.5, 1 << 52, 1<<53 + 2}

// lane draws a register of numbers from corners and between them.
func lane(r *rand.Rand, n int, spread float64) []float64 {
	x := make([]float64, n)
	for i := range x {
		switch r.IntN(3) {
		case 0:
			x[i] = corners[r.IntN(len(corners))]
		case 1:
			x[i] = math.Floor(spread * r.NormFloat64())
		default:
			x[i] = spread * r.NormFloat64()
		}
	}
	return x
}

// moments draws times: around 1970 and midnights, at fractions of a microsecond, null, and as far as an int64 of microseconds goes.
func moments(r *rand.Rand, n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		switch r.IntN(4) {
		case 0:
			x[i] = float64(r.IntN(400000)-200000)*86400e6 + float64(r.IntN(3)-1)
		case 1:
			x[i] = 1e15 * r.NormFloat64()
		case 2:
			x[i] = []float64{math.NaN(), 0, -1, -.5, .5, 1 << 62, -1 << 62, 1<<63 - 1024, -1 << 63}[r.IntN(9)]
		default:
			x[i] = float64(int64(r.Uint64()) >> r.IntN(30) &^ 1023)
		}
	}
	return x
}

func bytes(r *rand.Rand, n, below int) []uint8 {
	x := make([]uint8, n)
	for i := range x {
		x[i] = uint8(r.IntN(below))
	}
	return x
}

// sameNumbers compares bits, but not the sign of zero nor the payload of NaN.
func sameNumbers(t *testing.T, what any, got, want []float64) {
	t.Helper()
	for i, x := range got {
		if math.Float64bits(x+0) != math.Float64bits(want[i]+0) && !(math.IsNaN(x) && math.IsNaN(want[i])) {
			t.Fatalf("%v: row %d of %d is %v, want %v", what, i, len(got), x, want[i])
		}
	}
}

// TestVectors: every operation that has vectors gives in every row what its scalar loop gives, for numbers of rows that are and are
// not whole vectors, and writes no row behind the last.
func TestVectors(t *testing.T) {
	withVectors(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 2))
		for turn := range 200 {
			n := []int{64, 128, 1024, 1 + r.IntN(MaxBlock)}[turn%4]
			spread := []float64{1, 3, 1000}[turn%3]
			a, b := lane(r, n, spread), lane(r, n, spread)
			p, q, three := bytes(r, n, 2), bytes(r, n, 2), bytes(r, n, 3)
			codes := make([]uint32, n)
			for i := range codes {
				codes[i] = []uint32{0, 1, 2, math.MaxUint32, r.Uint32()}[r.IntN(5)]
			}
			k := append(slices.Clone(corners[:7]), lane(r, 1, spread)...)[r.IntN(8)]
			if math.IsNaN(k) || math.IsInf(k, 0) {
				k = 1
			}
			for o := opConst; o < operations; o++ {
				for _, constant := range []bool{false, true} {
					for _, check := range []bool{false, true} {
						step := step{value: value{op: o, a: 0, b: 1, c: 2, k: k, aux: []uint32{0, 1, 2, 126}[r.IntN(4)], check: check}, dst: 3, constant: constant, high: k + spread}
						if o == opPart {
							step.aux = uint32(rowfn.OpFullYear) + uint32(turn%10)
						}
						withConst := o == opAdd || o == opMul || o == opDiv || o >= opLess && o <= opNe
						if step.class() == byteClass && check || constant && !withConst {
							continue // no step is so
						}
						state := func() *State {
							s := &State{numbers: [][]float64{a, b, b, make([]float64, n+64)}, bytes: [][]uint8{p, q, q, make([]uint8, n+64)}, codes: [][]uint32{codes, codes}}
							switch o {
							case opSelect:
								s.bytes[0] = p
							case opPart:
								s.numbers[0] = moments(rand.New(rand.NewPCG(uint64(turn), 7)), n)
							case opBool, opBoolNull:
								s.bytes[0] = three
							case opAbove:
								s.bytes[0] = bytes(rand.New(rand.NewPCG(uint64(turn), 3)), n, maxRank+1)
							}
							return s
						}
						vectors, scalar := state(), state()
						if step.class() == numberClass {
							if done := fast.number(vectors, &step, n); done == 0 {
								continue
							} else if done != n&^(vector.Rows-1) {
								t.Fatalf("operation %d: %d of %d rows", o, done, n)
							}
							vectors.fast = fast
							vectors.number(&step, n)
							scalar.number(&step, n)
							sameNumbers(t, []any{o, constant, check, k}, vectors.numbers[3], scalar.numbers[3])
							continue
						}
						if fast.condition(vectors, &step, n) == 0 {
							continue
						}
						vectors.fast = fast
						vectors.condition(&step, n)
						scalar.condition(&step, n)
						if !slices.Equal(vectors.bytes[3], scalar.bytes[3]) {
							t.Fatalf("operation %d, constant %v, %v: %v, want %v of %v", o, constant, k, vectors.bytes[3], scalar.bytes[3], a)
						}
					}
				}
			}
		}
	})
}

// TestVectorsOfSums: sums of fixed-point values, the values themselves, counts and products are those of the scalar loops.
func TestVectorsOfSums(t *testing.T) {
	withVectors(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(3, 4))
		for turn := range 500 {
			n := []int{64, 1024, 1 + r.IntN(MaxBlock)}[turn%3]
			lo := []float64{0, -1, -1e-3, -1e300, 5 * r.NormFloat64()}[r.IntN(5)]
			hi := []float64{1, 2, 1e-3, 1e300, lo + 1e-9 + 10*r.Float64()}[r.IntN(5)]
			if !(hi > lo) {
				hi = 1 + math.Abs(lo)
			}
			g, err := newGrid(lo, hi, lo+(hi-lo)*float64(r.IntN(3))/2)
			if err != nil {
				t.Fatal(err)
			}
			a, where := lane(r, n, math.Min(hi-lo, 1e6)), bytes(r, n, 2)
			for i := range a {
				if r.IntN(2) == 0 {
					a[i] = lo + (hi-lo)*r.Float64()
				}
			}
			if got, want := fast.sumFixed(a, g), sumFixed(a, g); got != want {
				t.Fatalf("sum %d, want %d: %v of %v", got, want, g, a)
			}
			if got, want := fast.sumFixedWhere(a, where, g), sumFixedWhere(a, where, g); got != want {
				t.Fatalf("sum %d, want %d: %v of %v where %v", got, want, g, a, where)
			}
			x, y := make([]uint32, n), make([]uint32, n)
			if got, want := fast.fixedValues(x, a, g), fixedValues(y, a, g); got != want || !slices.Equal(x, y) {
				t.Fatalf("values %v, want %v: %v of %v", x, y, g, a)
			}
			z := slices.Clone(x)
			if got, want := fast.fixedValuesWhere(x, a, where, g), fixedValuesWhere(y, a, where, g); got != want || !slices.Equal(x, y) {
				t.Fatalf("values %v, want %v: %v of %v where %v", x, y, g, a, where)
			}
			if turn%2 == 0 {
				for i := range x {
					x[i], z[i] = uint32(rowfn.One), uint32(rowfn.One)
				}
			}
			if turn%5 == 0 && n >= 64 { // the upper halves come to 2^32-1, and the lower ones to more than 2^32: only then there is a carry
				clear(x)
				for i := range 16 {
					x[i], z[i] = 1<<30-1, 1<<30-1
				}
				x[16], z[16] = 1<<30, 60
			}
			if got, want := fast.dot(x, z), dot(x, z); got != want {
				t.Fatalf("products %v, want %v", got, want)
			}
			if got, want := fast.count(where), count(where); got != want {
				t.Fatalf("count %d, want %d", got, want)
			}
		}
	})
}

// TestProgramsByVectors: random programs over tables that are longer than a block have the same sums and products by vectors as without,
// with rows as units and with units of several.
func TestProgramsByVectors(t *testing.T) {
	before := fast
	t.Cleanup(func() { fast = before })
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 5))
		few := randomtree.Rows(t, rapid.IntRange(1, 40).Draw(t, "different rows"))
		many := make([]reference.Row, rapid.IntRange(60, 2500).Draw(t, "rows"))
		for i := range many {
			many[i] = few[r.IntN(len(few))]
		}
		table := randomtree.Table(many)
		batch := rowfn.Batch{Functions: make([]rowfn.Function, rapid.IntRange(1, 8).Draw(t, "functions"))}
		for i := range batch.Functions {
			f := rowfn.Function{Lo: -1, Hi: 2, Null: .5, Value: randomtree.Node(t, rapid.IntRange(0, 4).Draw(t, "depth"))}
			if f.Value.Type == rowfn.Condition {
				f.Null = 0
			}
			if rapid.Bool().Draw(t, "where") {
				f.Where = randomtree.Condition(t, rapid.IntRange(0, 3).Draw(t, "depth of where"))
			}
			batch.Functions[i] = f
			batch.Products = append(batch.Products, rowfn.Product{A: i, B: i / 2})
		}
		units := Units{}
		if rapid.Bool().Draw(t, "units") {
			units = Units{Offsets: []uint32{0}, Cap: 5}
			for at := 0; at < table.Rows(); {
				at = min(table.Rows(), at+1+r.IntN(9))
				units.Offsets = append(units.Offsets, uint32(at))
			}
		}
		sums := func(l *vector.Loops) ([]int64, []rowfn.Wide) {
			fast = newVectors(l)
			return runBatch(t, table, batch, units)
		}
		want, products := sums(nil)
		for _, l := range vector.All() {
			got, also := sums(l)
			if !slices.Equal(got, want) || !slices.Equal(also, products) {
				t.Fatalf("%s: %v and %v, want %v and %v", l.Name, got, also, want, products)
			}
		}
	})
}

func runBatch(t *rapid.T, table *dataset.Table, batch rowfn.Batch, units Units) ([]int64, []rowfn.Wide) {
	p, err := CompileBatch(batch, table)
	if err != nil {
		t.Fatal(err)
	}
	s := NewState(p, units, MaxBlock)
	defer s.Release()
	count := int64(table.Rows())
	if units.Offsets != nil {
		count = int64(len(units.Offsets) - 1)
	}
	s.Add(0, count)
	return slices.Clone(s.Sums()), slices.Clone(s.Products())
}
