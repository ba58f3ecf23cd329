package files

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries/engine"
	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/sources"
)

// columns are the columns of a table that tests make: numbers with nulls and infinities, truths, few texts, many texts, times, and the place of the row.
type columns struct {
	x, at []float64
	p     []uint8
	s, t  []string // "": null
	when  []float64
}

func draw(r *rand.Rand, n int) *columns {
	c := &columns{make([]float64, n), make([]float64, n), make([]uint8, n), make([]string, n), make([]string, n), make([]float64, n)}
	for i := range n {
		c.x[i], c.at[i], c.p[i] = math.Floor(100*r.Float64())/4-10, float64(i), uint8(r.UintN(3))
		switch r.UintN(12) {
		case 0:
			c.x[i] = math.NaN()
		case 1:
			c.x[i] = math.Inf(1)
		}
		c.s[i], c.t[i] = []string{"", "a", "b", "ab", "é"}[r.UintN(5)], fmt.Sprintf("text %d", r.UintN(uint(n+1)))
		c.when[i] = float64(r.Int64N(4e15))
		if r.UintN(7) == 0 {
			c.t[i], c.when[i] = "", math.NaN()
		}
	}
	return c
}

func (c *columns) table(rows []int) *dataset.Table {
	pick := func(v []float64) []float64 {
		out := make([]float64, len(rows))
		for i, row := range rows {
			out[i] = v[row]
		}
		return out
	}
	text := func(name string, v []string) dataset.Column {
		values := make([]string, len(rows))
		for i, row := range rows {
			values[i] = v[row]
		}
		column := dataset.NewText(name, values, func(i int) bool { return values[i] == "" })
		column.Source = "STRING"
		return column
	}
	bools := make([]uint8, len(rows))
	for i, row := range rows {
		bools[i] = c.p[row]
	}
	t, err := dataset.FromColumns(
		dataset.Column{Field: dataset.Field{Name: "x", Kind: dataset.Number, Source: "DOUBLE"}, Numbers: pick(c.x)},
		dataset.Column{Field: dataset.Field{Name: "p", Kind: dataset.Bool, Source: "BOOLEAN"}, Bools: bools},
		text("s", c.s), text("t", c.t),
		dataset.Column{Field: dataset.Field{Name: "when", Kind: dataset.Time, Source: "TIMESTAMP(us)"}, Numbers: pick(c.when)},
		dataset.Column{Field: dataset.Field{Name: "at", Kind: dataset.Number, Source: "INT64"}, Numbers: pick(c.at)})
	if err != nil {
		panic(err)
	}
	return t
}

func span(from, to int) []int {
	rows := make([]int, to-from)
	for i := range rows {
		rows[i] = from + i
	}
	return rows
}

// assigned is where the units of a table went.
type assigned struct {
	rows  [][]int // of each unit
	place []sources.Place
	specs []sources.PartSpec
}

// assign makes units of rows, some of one row each, and gives them places.
func assign(r *rand.Rand, n, parts, longest int) assigned {
	a := assigned{specs: make([]sources.PartSpec, parts)}
	rows := r.Perm(n)
	if longest == 1 {
		rows = span(0, n)
	}
	for len(rows) > 0 {
		k := min(len(rows), 1+r.IntN(longest))
		a.rows, rows = append(a.rows, rows[:k]), rows[k:]
	}
	for i := range a.specs {
		a.specs[i].Name = fmt.Sprintf("part_%d", i)
	}
	a.place = make([]sources.Place, len(a.rows))
	for i, unit := range r.Perm(len(a.rows)) {
		part := r.IntN(parts)
		if i < parts {
			part = i // none is empty
		}
		a.place[unit] = sources.Place{Part: part, Number: a.specs[part].Units}
		a.specs[part].Units++
	}
	return a
}

// of returns the rows of a part in the order of their units' numbers, and where the units begin.
func (a assigned) of(part int) (rows []int, offsets []uint32) {
	units := make([][]int, a.specs[part].Units)
	for i, at := range a.place {
		if at.Part == part {
			units[at.Number] = a.rows[i]
		}
	}
	for _, unit := range units {
		offsets = append(offsets, uint32(len(rows)))
		rows = append(rows, unit...)
	}
	return rows, append(offsets, uint32(len(rows)))
}

func questions() rowfn.Batch {
	x, p, s, t, when := rowfn.Column("x", rowfn.Number), rowfn.Column("p", rowfn.Condition), rowfn.Column("s", rowfn.Text), rowfn.Column("t", rowfn.Text), rowfn.Column("when", rowfn.Time)
	b := rowfn.Batch{Functions: []rowfn.Function{
		{Lo: 0, Hi: 1},
		{Value: x, Lo: -10, Hi: 10, Null: 3},
		{Value: rowfn.Exp(x), Lo: 0, Hi: 7, Where: p, PerUnit: rowfn.UnitShare},
		{Lo: 0, Hi: 1, Value: rowfn.Compare(rowfn.OpEq, s, rowfn.TextConst("ab")), PerUnit: rowfn.UnitMean},
		{Lo: 0, Hi: 1, Where: rowfn.And(p, rowfn.CompareTo(rowfn.OpGreater, x, 2)), PerUnit: rowfn.UnitAny},
		{Lo: 0, Hi: 1, Value: &rowfn.Node{Op: rowfn.OpContains, Type: rowfn.Condition, Args: []*rowfn.Node{t, rowfn.TextConst("1")}}},
		{Lo: 0, Hi: 23, Value: &rowfn.Node{Op: rowfn.OpHours, Type: rowfn.Number, Args: []*rowfn.Node{when}}},
		{Lo: 0, Hi: 100, Value: rowfn.Column("at", rowfn.Number)},
	}}
	for i := range b.Functions {
		b.Products = append(b.Products, rowfn.Product{A: i, B: (i + 2) % len(b.Functions)}, rowfn.Product{A: i, B: i})
	}
	return b
}

// withRows are questions, and one about values that come for each of these rows.
func withRows(rows []int, of []float64) rowfn.Batch {
	b, values := questions(), make([]float64, len(rows))
	for i, row := range rows {
		values[i] = of[row]
	}
	if len(rows) == 0 { // then there is nothing that could come
		return b
	}
	b.Functions = append(b.Functions, rowfn.Function{Value: &rowfn.Node{Op: rowfn.OpRow, Type: rowfn.Number, Values: values}, Lo: 0, Hi: 1, Where: rowfn.Column("p", rowfn.Condition)})
	return b
}

// checkPart compares a part with one table of the same rows in the same order.
func checkPart(t interface {
	Fatal(...any)
	Fatalf(string, ...any)
}, s *Source, info sources.PartInfo, c *columns, rows []int, offsets []uint32, r *rand.Rand) {
	ctx, limit := context.Background(), 1+r.Int64N(5)
	part, err := s.Open(ctx, info, limit)
	if err != nil {
		t.Fatal(err)
	}
	if !info.Grouped {
		offsets = nil
	}
	whole, err := engine.NewTable(c.table(rows), offsets, limit)
	if err != nil {
		t.Fatal(err)
	}
	if part.Units() != whole.Units() || part.Shape().Rows != int64(len(rows)) || part.Shape().Units != whole.Shape().Units {
		t.Fatalf("%d units and %v, want %d and %v", part.Units(), part.Shape(), whole.Units(), whole.Shape())
	}
	of := make([]float64, len(c.x)) // a value that comes for each row with the question
	for i := range of {
		of[i] = r.Float64()
	}
	var stored []int // the rows of a unit have an order of their own
	if err := part.Read(ctx, []string{"at"}, 0, part.Units(), func(b sources.Block) error {
		for _, row := range b.Rows.Column(0).Numbers {
			stored = append(stored, int(row))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		from := r.Int64N(part.Units() + 1)
		to := from + r.Int64N(part.Units()+1-from)
		if r.IntN(3) == 0 {
			from, to = 0, part.Units()
		}
		want, err := whole.Moments(ctx, withRows(rows, of), from, to)
		if err != nil {
			t.Fatal(err)
		}
		got, err := part.Moments(ctx, withRows(stored, of), from, to)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("units %d to %d: %v %v, want %v", from, to, got, err, want)
		}
	}
	checkRead(t, part, info, c, rows, offsets)
	if err := part.Check(ctx); err != nil {
		t.Fatal(err)
	}
}

// checkRead holds the rows that a part reads against the table's: each unit has its own, in any order.
func checkRead(t interface{ Fatalf(string, ...any) }, part sources.Part, info sources.PartInfo, c *columns, rows []int, offsets []uint32) {
	if offsets == nil {
		for i := range len(rows) + 1 {
			offsets = append(offsets, uint32(i))
		}
	}
	next := int64(0)
	err := part.Read(context.Background(), nil, 0, part.Units(), func(b sources.Block) error {
		if b.First != next || !reflect.DeepEqual(b.Rows.Schema(), info.Schema) {
			return fmt.Errorf("a block from unit %d of %v", b.First, b.Rows.Schema())
		}
		at, _ := b.Rows.Lookup("at")
		text, _ := b.Rows.Lookup("t")
		x, _ := b.Rows.Lookup("x")
		units := b.Rows.Rows()
		if b.Offsets != nil {
			units = len(b.Offsets) - 1
		}
		for u := range units {
			from, to := u, u+1
			if b.Offsets != nil {
				from, to = int(b.Offsets[u]), int(b.Offsets[u+1])
			}
			var got []int
			for row := from; row < to; row++ {
				place := int(at.Numbers[row])
				got = append(got, place)
				if text.Null(row) != (c.t[place] == "") || !text.Null(row) && text.Dictionary.Text(int(text.Codes[row])-1) != c.t[place] ||
					dataset.Infinite(x.Numbers[row]) != math.IsInf(c.x[place], 0) {
					return fmt.Errorf("row %d has other values", place)
				}
			}
			want := slices.Sorted(slices.Values(rows[offsets[next]:offsets[next+1]]))
			if slices.Sort(got); !slices.Equal(got, want) {
				return fmt.Errorf("unit %d has the rows %v, want %v", next, got, want)
			}
			next++
		}
		return nil
	})
	if err != nil || next != part.Units() {
		t.Fatalf("%d of %d units: %v", next, part.Units(), err)
	}
}

// TestAnySegments: whatever the sizes of pieces and segments, and whether columns of text have few texts or many, a part has the rows that it was given, in the order of the
// numbers, and its sums are those of one table. It would notice rows that are lost or exchanged on the way, a dictionary of another chunk, a unit that is cut in two.
func TestAnySegments(t *testing.T) {
	dir := t.TempDir()
	tries := 0
	rapid.Check(t, func(t *rapid.T) {
		tries++
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		n := rapid.IntRange(3, 120).Draw(t, "rows")
		c := draw(r, n)
		a := assign(r, n, rapid.IntRange(1, 3).Draw(t, "parts"), rapid.SampledFrom([]int{1, 4, 40}).Draw(t, "longest"))
		grouped := slices.ContainsFunc(a.rows, func(rows []int) bool { return len(rows) > 1 })
		s, err := New(Options{Dir: dir, Parts: filepath.Join(dir, fmt.Sprint(tries))})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		defer os.RemoveAll(s.o.Parts)
		d := newDivision(&table{source: s, snapshot: sources.Snapshot{Schema: c.table(nil).Schema(), Rows: int64(n)}})
		for _, w := range d.words {
			if w != nil {
				w.most = rapid.SampledFrom([]int{0, 3, 20, 1000}).Draw(t, "common")
			}
		}
		each := rapid.Int64Range(25, 90).Draw(t, "units of a segment")
		for _, spec := range a.specs {
			if err := d.add(spec.Name, filepath.Join(s.o.Parts, spec.Name), spec.Units, each); err != nil {
				t.Fatal(err)
			}
		}
		unit := make([]int, n)
		for u, rows := range a.rows {
			for _, row := range rows {
				unit[row] = u
			}
		}
		for from := 0; from < n; {
			to := min(n, from+rapid.IntRange(1, 60).Draw(t, "piece"))
			d.begin(to - from)
			for row := from; row < to; row++ {
				at := a.place[unit[row]]
				if err := d.goes(row-from, at.Part, at.Number); err != nil {
					t.Fatal(err)
				}
			}
			if err := d.write(c.table(span(from, to))); err != nil {
				t.Fatal(err)
			}
			from = to
		}
		for i, m := range d.parts {
			info, err := d.finish(context.Background(), m, grouped)
			if err != nil {
				t.Fatal(err)
			}
			rows, offsets := a.of(i)
			checkPart(t, s, info, c, rows, offsets, r)
		}
	})
}

// TestNumbersAreGivenOnce: a number that two rows have, or none, is no part. Without the check a place that is wrong would exchange units.
func TestNumbersAreGivenOnce(t *testing.T) {
	c := draw(rand.New(rand.NewPCG(1, 2)), 6)
	for _, numbers := range [][]int64{{0, 1, 2, 3, 4, 4}, {0, 1, 2, 3, 4, 6}, {0, 1, 2, 3, 4, -1}, {0, 1, 2, 3, 5, 5}} {
		s, err := New(Options{Dir: t.TempDir(), Parts: filepath.Join(t.TempDir(), "parts")})
		if err != nil {
			t.Fatal(err)
		}
		d := newDivision(&table{source: s, snapshot: sources.Snapshot{Schema: c.table(nil).Schema(), Rows: 6}})
		if err := d.add("part", filepath.Join(s.o.Parts, "part"), 6, 4); err != nil {
			t.Fatal(err)
		}
		d.begin(6)
		var failed error
		for row, number := range numbers {
			if err := d.goes(row, 0, number); err != nil {
				failed = err
			}
		}
		if failed == nil {
			if failed = d.write(c.table(span(0, 6))); failed == nil {
				_, failed = d.finish(context.Background(), d.parts[0], false)
			}
		}
		if failed == nil {
			t.Errorf("the numbers %v made a part", numbers)
		}
	}
}

// TestShapes: the public shape of a column of texts is exact while they are few, and not far too large or too small when they are many.
func TestShapes(t *testing.T) {
	for _, n := range []int{0, 1, 5, 4096, 4097, 20000, 70000} {
		w := newWords(1)
		w.limit = 1 << 12
		var bytes int64
		for from := 0; from < n; from += 1000 { // pieces that overlap
			var values []string
			for i := max(0, from-500); i < min(n, from+1000); i++ {
				values = append(values, fmt.Sprintf("text %d", i))
			}
			c := dataset.NewText("t", values, nil)
			w.add(&c.Dictionary)
		}
		for i := range n {
			bytes += int64(len(fmt.Sprintf("text %d", i)))
		}
		want, got := dataset.ShapeOf(int64(n), bytes), w.shape()
		if n <= maxCommon && got != want {
			t.Errorf("%d texts: %v, want %v", n, got, want)
		}
		if got.Texts < want.Texts || got.Texts > 2*want.Texts || got.Bytes < want.Bytes || got.Bytes > 2*want.Bytes {
			t.Errorf("%d texts: %v, want %v or twice that", n, got, want)
		}
	}
}

// divided divides rows in memory into one part, in pieces of so many rows, with numbers that turn their order around. A unit has so many rows, neighbours.
func divided(t *testing.T, c *columns, unit, piece int, each int64, common int) (*Source, sources.PartInfo) {
	t.Helper()
	n := len(c.x)
	s, err := New(Options{Dir: t.TempDir(), Parts: filepath.Join(t.TempDir(), "parts")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	d := newDivision(&table{source: s, snapshot: sources.Snapshot{Schema: c.table(nil).Schema(), Rows: int64(n)}})
	for _, w := range d.words {
		if w != nil {
			w.most = common
		}
	}
	if err := d.add("part", filepath.Join(s.o.Parts, "part"), int64(n/unit), each); err != nil {
		t.Fatal(err)
	}
	for from := 0; from < n; from += piece {
		to := min(n, from+piece)
		d.begin(to - from)
		for row := range to - from {
			if err := d.goes(row, 0, int64((n-1-from-row)/unit)); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.write(c.table(span(from, to))); err != nil {
			t.Fatal(err)
		}
	}
	info, err := d.finish(context.Background(), d.parts[0], unit > 1)
	if err != nil {
		t.Fatal(err)
	}
	return s, info
}

// TestManyTexts: two columns of many texts, whose chunks have dictionaries of their own, keep their texts.
func TestManyTexts(t *testing.T) {
	c := draw(rand.New(rand.NewPCG(1, 2)), 90)
	for i := range c.s {
		c.s[i] = fmt.Sprint("other ", i%41)
	}
	s, info := divided(t, c, 1, 20, 35, 2)
	rows := span(0, 90)
	slices.Reverse(rows)
	checkPart(t, s, info, c, rows, nil, rand.New(rand.NewPCG(3, 4)))
	part, err := s.Open(t.Context(), info, 1)
	if err != nil {
		t.Fatal(err)
	}
	at := 89
	if err := part.Read(t.Context(), []string{"s"}, 0, 90, func(b sources.Block) error {
		column := b.Rows.Column(0)
		for _, code := range column.Codes {
			if text := column.Dictionary.Text(int(code) - 1); text != c.s[at] {
				return fmt.Errorf("row %d has the text %q, want %q", at, text, c.s[at])
			}
			at--
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// TestCommonTexts: while a column has few texts, each segment has the dictionary of the whole table, whichever texts its rows have: else the time of a question would tell of them.
func TestCommonTexts(t *testing.T) {
	c := draw(rand.New(rand.NewPCG(1, 2)), 60)
	for i := range c.s {
		c.s[i] = fmt.Sprint("text ", i/20) // each segment has one
	}
	s, info := divided(t, c, 1, 60, 20, 100)
	for i := range 3 {
		table, err := dataset.Open(segmentDir(filepath.Join(s.o.Parts, "part"), i))
		if err != nil {
			t.Fatal(err)
		}
		column, _ := table.Lookup("s")
		if column.Dictionary.Len() != 3 {
			t.Errorf("segment %d has %d texts", i, column.Dictionary.Len())
		}
		if err := table.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if want := dataset.ShapeOf(3, 18); info.Texts["s"] != want {
		t.Errorf("the shape is %v, want %v", info.Texts["s"], want)
	}
}

// turns counts the processors that are asked for.
type turns struct{ entered, left atomic.Int64 }

func (p *turns) Enter(ctx context.Context) (engine.Processor, error) {
	p.entered.Add(1)
	return &turn{of: p}, ctx.Err()
}

type turn struct {
	of   *turns
	once sync.Once
}

func (*turn) Yield(ctx context.Context, _ time.Duration) error { return ctx.Err() }
func (t *turn) Leave()                                         { t.once.Do(func() { t.of.left.Add(1) }) }

// TestTurns: mapping columns takes a turn for each segment, as summing does: else a large table would keep others waiting; and each is given back.
func TestTurns(t *testing.T) {
	s, info := divided(t, draw(rand.New(rand.NewPCG(1, 2)), 60), 1, 30, 20, 100)
	part, err := s.Open(t.Context(), info, 1)
	if err != nil {
		t.Fatal(err)
	}
	p := &turns{}
	if err := part.Check(engine.WithProcessors(t.Context(), p)); err != nil {
		t.Fatal(err)
	}
	if p.entered.Load() != 3 || p.left.Load() != 3 {
		t.Errorf("%d turns taken, %d given back, want one for each of 3 segments", p.entered.Load(), p.left.Load())
	}
}

// TestNoUnits: a part of no units is a part.
func TestNoUnits(t *testing.T) {
	c := draw(rand.New(rand.NewPCG(1, 2)), 5)
	s, err := New(Options{Dir: t.TempDir(), Parts: filepath.Join(t.TempDir(), "parts")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	d := newDivision(&table{source: s, snapshot: sources.Snapshot{Schema: c.table(nil).Schema(), Rows: 5}})
	if err := d.add("none", filepath.Join(s.o.Parts, "none"), 0, 4); err != nil {
		t.Fatal(err)
	}
	info, err := d.finish(t.Context(), d.parts[0], false)
	if err != nil {
		t.Fatal(err)
	}
	part, err := s.Open(t.Context(), info, 1)
	if err != nil {
		t.Fatal(err)
	}
	if sums, err := part.Moments(t.Context(), questions(), 0, 0); err != nil || sums.Values[0] != 0 || part.Check(t.Context()) != nil {
		t.Errorf("%v %v", sums, err)
	}
	if facts, err := part.Facts(t.Context()); err != nil || len(facts) != 6 {
		t.Errorf("%v %v", facts, err)
	}
}
