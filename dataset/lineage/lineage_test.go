package lineage

//holdoutd:race

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/dataset"
)

var testKey = Key{1, 2, 3}

// people are rows of a law: numbers, whole numbers, texts, categories, truth values, times and nulls. Two seeds are two independent samples.
func people(seed uint64, rows int) []dataset.Column {
	r := rand.New(rand.NewPCG(seed, 1))
	number := func(name string, draw func() float64) dataset.Column {
		c := dataset.Column{Field: dataset.Field{Name: name, Kind: dataset.Number, Source: "double"}, Numbers: make([]float64, rows)}
		for i := range c.Numbers {
			c.Numbers[i] = draw()
		}
		return c
	}
	text := func(name string, draw func() string) dataset.Column {
		values := make([]string, rows)
		for i := range values {
			values[i] = draw()
		}
		return dataset.NewText(name, values, nil)
	}
	when := number("seen", func() float64 { return 1e6 * float64(1.6e9+r.IntN(1e8)) })
	when.Kind = dataset.Time
	flag := dataset.Column{Field: dataset.Field{Name: "smokes", Kind: dataset.Bool, Source: "bool"}, Bools: make([]uint8, rows)}
	for i := range flag.Bools {
		flag.Bools[i] = uint8(r.IntN(3))
	}
	return []dataset.Column{
		text("person", func() string { return fmt.Sprintf("p%07d", r.IntN(1e7)) }),
		number("weight", func() float64 { return 70 + 10*r.NormFloat64() }),
		number("height", func() float64 { return math.Round(170 + 10*r.NormFloat64()) }),
		number("pressure", func() float64 { return math.Round(1300+100*r.NormFloat64()) / 10 }),
		number("income", func() float64 { return math.Round(math.Exp(10 + r.NormFloat64())) }),
		number("score", func() float64 {
			if r.IntN(5) == 0 {
				return math.NaN()
			}
			return r.ExpFloat64()
		}),
		text("region", func() string { return []string{"north", "south", "east", "west"}[r.IntN(4)] }),
		text("job", func() string { return "job " + strconv.Itoa(r.IntN(40)) }),
		flag, when,
	}
}

func table(t testing.TB, columns []dataset.Column) *dataset.Table {
	t.Helper()
	made, err := dataset.FromColumns(columns...)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func overlap(t testing.TB, old, now []dataset.Column) Overlap {
	t.Helper()
	return against(t, stored(t, old), now)
}

// stored is a sketch of a table as it is read again.
func stored(t testing.TB, old []dataset.Column) *Sketch {
	t.Helper()
	before, err := New(testKey, table(t, old), nil)
	if err != nil {
		t.Fatal(err)
	}
	bytes, err := before.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	var read Sketch
	if err := read.UnmarshalBinary(bytes); err != nil {
		t.Fatal(err)
	}
	return &read
}

func against(t testing.TB, old *Sketch, now []dataset.Column) Overlap {
	t.Helper()
	var watch Watch
	watch.Add(old)
	after, err := New(testKey, table(t, now), &watch)
	if err != nil {
		t.Fatal(err)
	}
	return Compare(old, after)
}

// rowsOf are some rows of columns.
func rowsOf(columns []dataset.Column, rows []int) []dataset.Column {
	all := make([]dataset.Column, len(columns))
	for i, c := range columns {
		of := dataset.Column{Field: c.Field, Dictionary: c.Dictionary}
		for _, r := range rows {
			switch c.Kind {
			case dataset.Bool:
				of.Bools = append(of.Bools, c.Bools[r])
			case dataset.Text:
				of.Codes = append(of.Codes, c.Codes[r])
			default:
				of.Numbers = append(of.Numbers, c.Numbers[r])
			}
		}
		all[i] = of
	}
	return all
}

// textOf spells a column.
func textOf(c dataset.Column, spell func(float64) string) dataset.Column {
	values := make([]string, len(c.Numbers))
	for i, v := range c.Numbers {
		values[i] = spell(v)
	}
	return dataset.NewText(c.Name, values, func(i int) bool { return math.IsNaN(c.Numbers[i]) })
}

// joined are the rows of two tables of the same columns.
func joined(a, b []dataset.Column) []dataset.Column {
	all := make([]dataset.Column, len(a))
	for i, c := range a {
		of := dataset.Column{Field: c.Field}
		switch c.Kind {
		case dataset.Text:
			var texts []string
			for _, part := range []dataset.Column{c, b[i]} {
				for _, code := range part.Codes {
					texts = append(texts, part.Dictionary.Text(int(code)-1))
				}
			}
			of = dataset.NewText(c.Name, texts, nil)
		case dataset.Bool:
			of.Bools = append(slices.Clone(c.Bools), b[i].Bools...)
		default:
			of.Numbers = append(slices.Clone(c.Numbers), b[i].Numbers...)
		}
		all[i] = of
	}
	return all
}

func numbered(name string, draw func() float64, rows int) dataset.Column {
	c := dataset.Column{Field: dataset.Field{Name: name, Kind: dataset.Number, Source: "double"}, Numbers: make([]float64, rows)}
	for i := range c.Numbers {
		c.Numbers[i] = draw()
	}
	return c
}

func every(columns []dataset.Column, change func(*dataset.Column)) []dataset.Column {
	all := slices.Clone(columns)
	for i := range all {
		all[i].Numbers = slices.Clone(all[i].Numbers)
		change(&all[i])
	}
	return all
}

// TestTransformed: rows are recognised after what people do to tables. It notices a hash that knows of names, places, types or last digits, tokens that hang on one cell, and a
// sample that hangs on the rows beside it.
func TestTransformed(t *testing.T) {
	const rows = 8_000
	old := people(1, rows)
	r := rand.New(rand.NewPCG(7, 7))
	shuffled := r.Perm(rows)
	spell := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	changed := every(old, func(c *dataset.Column) {
		if c.Name == "income" {
			for i := range c.Numbers {
				c.Numbers[i] = float64(r.IntN(1e6))
			}
		}
	})
	for name, c := range map[string]struct {
		now        []dataset.Column
		ofOld, ofN float64 // shares that are true
		least      float64 // of them that must be found
	}{
		"the same": {old, 1, 1, 0.99},
		"renamed and reordered": {rowsOf(func() []dataset.Column {
			all := slices.Clone(old)
			slices.Reverse(all)
			for i := range all {
				all[i].Name = fmt.Sprint("c", i)
			}
			return all
		}(), shuffled), 1, 1, 0.99},
		"float32": {every(old, func(c *dataset.Column) {
			for i, v := range c.Numbers {
				if c.Kind == dataset.Number {
					c.Numbers[i] = float64(float32(v))
				}
			}
		}), 1, 1, 0.95},
		"as texts": {every(old, func(c *dataset.Column) {
			switch c.Kind {
			case dataset.Number:
				*c = textOf(*c, spell)
			case dataset.Time:
				*c = textOf(*c, func(v float64) string { return time.UnixMicro(int64(v)).UTC().Format("2006-01-02 15:04:05") })
			}
		}), 1, 1, 0.99},
		"truth values as numbers": {every(old, func(c *dataset.Column) {
			if c.Kind == dataset.Bool {
				numbers := make([]float64, rows)
				for i, b := range c.Bools {
					if numbers[i] = float64(b); b == dataset.NullBool {
						numbers[i] = math.NaN()
					}
				}
				*c = dataset.Column{Field: dataset.Field{Name: c.Name, Kind: dataset.Number}, Numbers: numbers}
			}
		}), 1, 1, 0.99},
		"one cell of the table by 1e-12": {every(old, func(c *dataset.Column) {
			if c.Name == "weight" {
				c.Numbers[17] += 1e-12
			}
		}), 1, 1, 0.99},
		"all numbers by 1e-12 of them": {every(old, func(c *dataset.Column) {
			for i, v := range c.Numbers {
				if c.Kind == dataset.Number {
					c.Numbers[i] = v * (1 + 1e-12)
				}
			}
		}), 1, 1, 0.99},
		"a cell of every row":           {changed, 1, 1, 0.55},
		"a column dropped":              {old[1:], 1, 1, 0.7},
		"three columns dropped":         {slices.Concat(old[:1], old[2:5], old[7:]), 1, 1, 0.4},
		"three columns added":           {append(slices.Clone(old), renamed(people(5, rows)[1], "x"), renamed(people(6, rows)[4], "y"), renamed(people(7, rows)[5], "z")), 1, 1, 0.5},
		"30 percent of the rows":        {rowsOf(old, shuffled[:rows*3/10]), 0.3, 1, 0.9},
		"3 percent of the rows":         {rowsOf(old, shuffled[:rows*3/100]), 0.03, 1, 0.6},
		"among as many fresh":           {joined(old, people(2, rows)), 1, 0.5, 0.9},
		"among ten times as many fresh": {joined(old, people(2, 10*rows)), 1, 1. / 11, 0.6},
		"every row twice":               {joined(old, old), 1, 1, 0.99},
	} {
		t.Run(name, func(t *testing.T) {
			got := overlap(t, old, c.now)
			t.Logf("of the old %.3f, of the new %.3f", got.OfOld, got.OfNew)
			if got.OfOld < c.least*c.ofOld || got.OfNew < c.least*c.ofN {
				t.Errorf("of the old %.3f are recognised, of the new %.3f; want %.0f%% of %.3f and %.3f", got.OfOld, got.OfNew, 100*c.least, c.ofOld, c.ofN)
			}
			if got.OfOld > c.ofOld+0.08 || got.OfNew > c.ofN+0.08 {
				t.Errorf("of the old %.3f, of the new %.3f, more than %.3f and %.3f", got.OfOld, got.OfNew, c.ofOld, c.ofN)
			}
		})
	}
}

// TestFlags: rows are recognised beside many columns of two values, though a cell of each was changed. It notices tokens of cells that all rows share.
func TestFlags(t *testing.T) {
	const rows = 4_000
	old := people(1, rows)
	r := rand.New(rand.NewPCG(8, 8))
	for i := range 20 {
		old = append(old, numbered(fmt.Sprint("flag", i), func() float64 { return float64(2*i + r.IntN(2)) }, rows)) // other values in each: a value counts once in a row
	}
	changed := every(old, func(c *dataset.Column) {
		if c.Name == "income" {
			for i := range c.Numbers {
				c.Numbers[i] = float64(r.IntN(1e6))
			}
		}
	})
	if got := overlap(t, old, changed); got.OfOld < 0.5 || got.OfNew < 0.5 {
		t.Errorf("of the old %.3f, of the new %.3f, want half of them at least", got.OfOld, got.OfNew)
	}
}

// TestChance: tables that share no row have nothing in common, whatever they are made of, in as many seeds with a false-alarm probability of 1e-6 each.
func TestChance(t *testing.T) {
	const rows = 4_000
	few := func(seed uint64, rows, columns, values int) []dataset.Column {
		r := rand.New(rand.NewPCG(seed, 2))
		all := make([]dataset.Column, columns)
		for i := range all {
			all[i] = numbered(fmt.Sprint("c", i), func() float64 { return float64(r.IntN(values)) }, rows)
		}
		return all
	}
	dimension := func(seed uint64, keep int, name string) []dataset.Column { // the same people, keep of their columns; other measurements
		r := rand.New(rand.NewPCG(seed, 3))
		all := slices.Clone(people(1, rows)[:keep])
		for i := range 6 {
			all = append(all, numbered(fmt.Sprint(name, i), r.NormFloat64, rows))
		}
		return all
	}
	visits := func(seed uint64) []dataset.Column { // 500 people come again and again
		r := rand.New(rand.NewPCG(seed, 4))
		chosen := make([]int, rows)
		for i := range chosen {
			chosen[i] = r.IntN(500)
		}
		return append(rowsOf(people(1, 500), chosen), numbered("m", r.NormFloat64, rows))
	}
	for name, make := range map[string]func(seed uint64) []dataset.Column{
		"one law":                       func(s uint64) []dataset.Column { return people(s, rows) },
		"ten columns of two values":     func(s uint64) []dataset.Column { return few(s, rows, 10, 2) },
		"ten columns of five values":    func(s uint64) []dataset.Column { return few(s, rows, 10, 5) },
		"three columns of 300 values":   func(s uint64) []dataset.Column { return few(s, rows, 3, 300) },
		"one column of 10,000 values":   func(s uint64) []dataset.Column { return few(s, rows, 1, 10_000) },
		"fifty columns of three values": func(s uint64) []dataset.Column { return few(s, rows, 50, 3) },
		"a dimension column":            func(s uint64) []dataset.Column { return dimension(s, 1, "m") },
		"three dimension columns":       func(s uint64) []dataset.Column { return dimension(s, 3, "m") },
		"of other names":                func(s uint64) []dataset.Column { return dimension(s, 3, fmt.Sprint("m", s, " ")) },
		"the same people, other visits": visits,
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(3) {
				if got := overlap(t, make(100+2*seed), make(101+2*seed)); got != (Overlap{}) {
					t.Errorf("seed %d: two samples without a common row have in common: %+v", seed, got)
				}
			}
		})
	}
	if got := overlap(t, people(1, 400), people(2, 20*rows)); got != (Overlap{}) {
		t.Errorf("a small and a large sample: %+v", got)
	}
}

// TestStored: what is not a sketch of this version is refused, at any length.
func TestStored(t *testing.T) {
	s, err := New(testKey, table(t, people(1, 300)), nil)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := s.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	other := slices.Clone(stored)
	other[0]++
	r := rand.New(rand.NewPCG(4, 4))
	for range 2000 { // whatever is read of changed bytes, reading ends
		changed := slices.Clone(stored)
		for range 1 + r.IntN(3) {
			changed[r.IntN(len(changed))] = byte(r.IntN(256))
		}
		var s Sketch
		if err := s.UnmarshalBinary(changed[:len(changed)-r.IntN(2)]); err == nil {
			s.named.identity()
		} else if !errors.Is(err, ErrDamaged) {
			t.Errorf("changed: %v", err)
		}
	}
	for name, b := range map[string][]byte{"nothing": nil, "cut": stored[:len(stored)-1], "longer": append(slices.Clone(stored), 0), "another version": other} {
		if err := new(Sketch).UnmarshalBinary(b); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestKeyed: sketches of two keys share nothing, so that one without the key cannot be tested against a guess.
func TestKeyed(t *testing.T) {
	columns := people(1, 2_000)
	mine, err := New(testKey, table(t, columns), nil)
	if err != nil {
		t.Fatal(err)
	}
	var watch Watch
	watch.Add(mine)
	theirs, err := New(Key{4}, table(t, columns), &watch)
	if err != nil {
		t.Fatal(err)
	}
	if len(theirs.seen) > 0 || Compare(mine, theirs) != (Overlap{}) {
		t.Errorf("%d tokens of another key are known", len(theirs.seen))
	}
}

// BenchmarkNew: a million rows of ten columns.
func BenchmarkNew(b *testing.B) {
	made := table(b, people(1, 1_000_000))
	b.ResetTimer()
	for range b.N {
		if _, err := New(testKey, made, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// TestNumberHashes: the hashes of many numbers are those of each.
func TestNumberHashes(t *testing.T) {
	h, r := newHasher(testKey), rand.New(rand.NewPCG(1, 1))
	values := []float64{0, math.Copysign(0, -1), 0.5, 1.5, 2.5, -0.5, -1.5, 1 - 1e-8, 1 + 1e-8, 1 + 2e-7, 1e300, math.Inf(1), math.Inf(-1), math.NaN(), math.SmallestNonzeroFloat64}
	for e := 48; e < 56; e++ {
		for _, d := range []float64{-1, -0.5, -0.25, 0, 0.25, 0.5, 1} {
			values = append(values, math.Ldexp(1, e)+d, -math.Ldexp(1, e)+d)
		}
	}
	for range 20_000 {
		x := math.Ldexp(r.NormFloat64(), r.IntN(120)-60)
		values = append(values, x, math.Round(x), math.Round(x)*(1+1e-7*r.NormFloat64()), math.Float64frombits(r.Uint64()))
	}
	got := make([]uint64, len(values))
	h.numberHashes(got, values)
	for i, x := range values {
		if want := h.numberHash(x); got[i] != want {
			t.Fatalf("%v: %x, want %x", x, got[i], want)
		}
	}
}

func renamed(c dataset.Column, name string) dataset.Column {
	c.Name = name
	return c
}

// TestHashesAreKept: a sketch that was stored is compared with those of later programs, so hashes, orders and bytes must stay (docs/format/lineage.md).
func TestHashesAreKept(t *testing.T) {
	columns := []dataset.Column{
		{Field: dataset.Field{Name: "x", Kind: dataset.Number, Source: "double"}, Numbers: []float64{1.5, 2, math.NaN(), -4.25}},
		{Field: dataset.Field{Name: "t", Kind: dataset.Time, Source: "timestamp"}, Numbers: []float64{0, 1e6, 86400e6, 1.7e15}},
		{Field: dataset.Field{Name: "b", Kind: dataset.Bool, Source: "bool"}, Bools: []uint8{0, 1, 2, 1}},
		dataset.NewText("s", []string{"a", "b", "3.5", "2024-01-01"}, nil),
	}
	s, err := New(testKey, table(t, columns), nil)
	if err != nil {
		t.Fatal(err)
	}
	for v, want := range map[byte]string{
		withoutNames: "d48781a1cadc75dd8302eb31a04352be20353afcb06a5472d596f1300764cb21",
		version:      "6607df502005feb214b41bd73f6a213c991abdbfb830a1c326fbee229b824da6",
	} {
		if got := fmt.Sprintf("%x", sha256.Sum256(s.encode(v))); got != want {
			t.Errorf("the sketch of the same table has in version %d the hash %s, it was %s", v, got, want)
		}
	}
}
