package sourcetest

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/holdoutd/holdoutd/queries/randomtree"
)

// What engines treat in ways of their own.
var (
	edgeNumbers = []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), 0, 5e-324, -5e-324, 0x1p-1022, math.Nextafter(0x1p-1022, 0), 1e308, -1e308,
		math.MaxFloat64, -math.MaxFloat64, 0x1p53, 0x1p53 + 2, -0x1p53, 0x1p63, -0x1p63, 0x1p64, 1e-300, -1e-300, 0.1, 0.2, 0.3, 0.1 + 0.2, 1, -1, 2, 3, 0.5, 1.5, 2.5, -0.5, -1.5,
		math.Nextafter(0.5, 0), 15, -60, 180, 709, 710, math.Pi, 1e15 + 0.5, 1.0 / 3, math.Nextafter(1, 2), 0x1p-31, 0x1p-30, 3 * 0x1p-31, 1 - 0x1p-31}
	edgeFloats32 = []float64{float64(float32(0.1)), float64(float32(1e-45)), float64(float32(3.4e38)), math.NaN(), math.Inf(-1), math.Copysign(0, -1), 16777216, 0.5, -2.25}
	edgeInts     = []int64{0, 1, -1, 1 << 31, -1 << 31, 1<<53 - 1, 1 << 53, -1 << 53, 42, 1000000007}
	wideInts     = []int64{math.MaxInt64, math.MinInt64, 1<<53 + 1, -1<<53 - 1, 0, 7}
	edgeTexts    = []string{"", " ", "a", "A", "ab", "abc", "b", "a ", " a", "é", "e\u0301", "日本", "😀", "'", "''", `"`, `\`, `\'`, `\\`, "a'b", "%", "_", "a%b", "--", "/*", "\n", "\t", "\r\n", "NULL", "null", "0", "1", "true", "\\N", "ß", "SS", "İ", "a\u00a0", "x\x00y", "\x00", "\x7f", "\ufeff", "\ufffd"}
	edgeInstants = []int64{0, 1, -1, 999999, -999999, 981072000e6, 981072000e6 - 1, 951782400e6, 951868799999999, -2203891200e6, 4102444800e6, -9e15, 9e15, 1e15 + 1, 68169600e6, -86400e6, -86400e6 - 1,
		1582934399999999, -62135596800e6, 253402300799999999, 1709164800e6, 1709251199e6}
)

// has are the columns of an edge table that row functions can name as numbers, conditions, texts and times. The table has "id" too, a number of the row from 0 on; "unit", which
// rows share; "group", which is the same in all rows of a unit; "when", which is never null; and "wide", whose integers no float64 holds.
var has = randomtree.Trees{Numbers: []string{"x", "y", "f", "i"}, Bools: []string{"p", "q"}, Texts: []string{"s", "t"}, Times: []string{"d", "e"}}

// edgeRows are n rows in which each edge value comes in many neighbourhoods, in units of one to longest rows. Names of columns are such as engines quote, but for has's.
func (o *Options) edgeRows(seed uint64, n, longest int) Rows {
	r := rand.New(rand.NewPCG(seed, 1))
	floats := func(name string, as Type, pool []float64) Column {
		c := Column{Name: name, Type: as, Null: make([]bool, n), Floats: make([]float64, n)}
		for i := range n {
			c.Floats[i], c.Null[i] = pool[r.IntN(len(pool))], r.IntN(8) == 0
			if r.IntN(3) == 0 {
				if x := math.Float64frombits(r.Uint64()); as == Float64 {
					c.Floats[i] = x
				} else {
					c.Floats[i] = float64(float32(r.NormFloat64()))
				}
			} else if r.IntN(3) == 0 {
				c.Floats[i] = float64(r.IntN(2000)-1000) / 8
			}
		}
		return c
	}
	ints := func(name string, as Type, pool []int64) Column {
		c := Column{Name: name, Type: as, Null: make([]bool, n), Ints: make([]int64, n)}
		for i := range n {
			c.Ints[i], c.Null[i] = pool[r.IntN(len(pool))], r.IntN(8) == 0
			if as == Instant {
				if r.IntN(3) == 0 {
					c.Ints[i] = r.Int64N(4e15) - 1e15
				}
				if o.Instant != nil {
					c.Ints[i] = o.Instant(c.Ints[i])
				}
			}
		}
		return c
	}
	texts := func(name string, pool []string) Column {
		c := Column{Name: name, Type: Text, Null: make([]bool, n), Texts: make([]string, n)}
		for i := range n {
			c.Texts[i], c.Null[i] = pool[r.IntN(len(pool))], r.IntN(8) == 0
		}
		return c
	}
	bools := func(name string) Column {
		c := Column{Name: name, Type: Bool, Null: make([]bool, n), Bools: make([]bool, n)}
		for i := range n {
			c.Bools[i], c.Null[i] = r.IntN(2) == 0, r.IntN(5) == 0
		}
		return c
	}
	id, unit, group := Column{Name: "id", Type: Int64, Ints: make([]int64, n)}, Column{Name: "unit", Type: Text, Texts: make([]string, n)}, Column{Name: "group", Type: Text, Null: make([]bool, n), Texts: make([]string, n)}
	for i, u := range cutUnits(r, n, longest) {
		id.Ints[i], unit.Texts[i], group.Texts[i], group.Null[i] = int64(i), fmt.Sprintf("%du'\\%d", u%3, u), o.texts()[u%7], u%11 == 3
	}
	rows := Rows{id, unit, group, floats("x", Float64, edgeNumbers), floats("y", Float64, edgeNumbers), floats("f", Float32, edgeFloats32), ints("i", Int64, edgeInts), bools("p"), bools("q"),
		texts("s", o.texts()[:8]), texts("t", o.texts()), ints("d", Instant, edgeInstants), ints("e", Instant, edgeInstants), ints("when", Instant, edgeInstants), ints("wide", Int64, wideInts)}
	rows.Column("when").Null, rows.Column("wide").Wide = nil, true
	order := r.Perm(n) // the rows of a unit are not together
	return rows.Take(order)
}

// narrowRows are n rows without nulls whose numbers are those of narrower types, with the ends of each: bytes in x, of two bytes with a sign in y, of four without in i, of half the bits in f; whole seconds in d, and
// whole days in e.
func (o *Options) narrowRows(seed uint64, n int) Rows {
	rows := o.edgeRows(seed, n, 1)
	r := rand.New(rand.NewPCG(seed, 2))
	floats := func(name string, ends []float64, draw func() float64) {
		c := rows.Column(name)
		c.Null = nil
		for i := range c.Floats {
			if c.Floats[i] = draw(); i < len(ends) {
				c.Floats[i] = ends[i]
			}
		}
	}
	ints := func(name string, ends []int64, draw func() int64) {
		c := rows.Column(name)
		c.Null = nil
		for i := range c.Ints {
			if c.Ints[i] = draw(); i < len(ends) {
				c.Ints[i] = ends[i]
			}
			if c.Type == Instant && o.Instant != nil {
				c.Ints[i] = o.Instant(c.Ints[i])
			}
		}
	}
	floats("x", []float64{0, 255, math.Copysign(0, -1)}, func() float64 { return float64(r.IntN(256)) })
	floats("y", []float64{-1 << 15, 1<<15 - 1, math.Copysign(0, -1)}, func() float64 { return float64(r.IntN(1<<16) - 1<<15) })
	floats("f", []float64{float64(float32(1e-45)), float64(float32(-3.4e38)), math.Copysign(0, -1), float64(float32(0.1))}, func() float64 { return float64(float32(r.NormFloat64())) })
	ints("i", []int64{0, 1<<32 - 1}, func() int64 { return r.Int64N(1 << 32) })
	ints("d", []int64{0, (1<<32 - 1) * 1e6}, func() int64 { return r.Int64N(1<<32) * 1e6 })
	ints("e", []int64{0, 65535 / 2 * 86400e6}, func() int64 { return r.Int64N(1<<15) * 86400e6 })
	return rows
}

// cutUnits is the unit of each row: of one to longest rows each.
func cutUnits(r *rand.Rand, n, longest int) []int {
	of, unit := make([]int, 0, n), 0
	for len(of) < n {
		for range min(1+r.IntN(longest), n-len(of)) {
			of = append(of, unit)
		}
		unit++
	}
	return of
}

// texts are the edge texts that tables of the source can hold.
func (o *Options) texts() []string {
	var texts []string
	for _, text := range edgeTexts {
		if o.Text == nil || o.Text(text) {
			texts = append(texts, text)
		}
	}
	return texts
}
