package prints

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dataset/ingest"
)

var testKey = Key{1, 2, 3}

// real decodes a file of the repository.
func real(t testing.TB, path string) *dataset.Table {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "table")
	if _, err := ingest.Decode(context.Background(), filepath.Join("../..", path), dir, ingest.Limits{}); err != nil {
		t.Fatal(err)
	}
	table, err := dataset.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { table.Close() })
	return table
}

// pick is some rows of a table, in this order.
func pick(t testing.TB, from *dataset.Table, rows []int) *dataset.Table {
	t.Helper()
	columns := make([]dataset.Column, from.Columns())
	for i := range columns {
		c := from.Column(i)
		columns[i] = dataset.Column{Field: c.Field, Dictionary: c.Dictionary}
		for _, row := range rows {
			switch c.Kind {
			case dataset.Text:
				columns[i].Codes = append(columns[i].Codes, c.Codes[row])
			case dataset.Bool:
				columns[i].Bools = append(columns[i].Bools, c.Bools[row])
			default:
				columns[i].Numbers = append(columns[i].Numbers, c.Numbers[row])
			}
		}
	}
	return tableOf(t, columns...)
}

func tableOf(t testing.TB, columns ...dataset.Column) *dataset.Table {
	t.Helper()
	table, err := dataset.FromColumns(columns...)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// change makes a table of a table's columns, one by one; nil drops one.
func change(t testing.TB, from *dataset.Table, f func(i int, c dataset.Column) *dataset.Column) *dataset.Table {
	t.Helper()
	var columns []dataset.Column
	for i := range from.Columns() {
		c := *from.Column(i)
		c.Numbers, c.Bools, c.Codes = slices.Clone(c.Numbers), slices.Clone(c.Bools), slices.Clone(c.Codes)
		if c := f(i, c); c != nil {
			columns = append(columns, *c)
		}
	}
	return tableOf(t, columns...)
}

// onNumbers changes the numbers of every column of them.
func onNumbers(f func(random *rand.Rand, x float64) float64) func(testing.TB, *dataset.Table) *dataset.Table {
	return func(t testing.TB, from *dataset.Table) *dataset.Table {
		random := rand.New(rand.NewPCG(1, 2))
		return change(t, from, func(i int, c dataset.Column) *dataset.Column {
			for row, x := range c.Numbers {
				if c.Kind == dataset.Number {
					c.Numbers[row] = f(random, x)
				}
			}
			return &c
		})
	}
}

// values are a column's as texts, "" where null.
func values(c *dataset.Column) []string {
	all := make([]string, c.Len())
	for row := range all {
		if c.Null(row) {
			continue
		}
		switch c.Kind {
		case dataset.Text:
			all[row] = c.Dictionary.Text(int(c.Codes[row]) - 1)
		case dataset.Bool:
			all[row] = strconv.FormatBool(c.Bools[row] == 1)
		case dataset.Time:
			all[row] = time.UnixMicro(int64(c.Numbers[row])).In(time.FixedZone("", 2*3600)).Format(time.RFC3339Nano)
		default:
			all[row] = strconv.FormatFloat(c.Numbers[row], 'g', -1, 64)
		}
	}
	return all
}

func asText(c *dataset.Column, spell func(string) string) *dataset.Column {
	texts := values(c)
	for i := range texts {
		texts[i] = spell(texts[i])
	}
	text := dataset.NewText(c.Name, texts, func(row int) bool { return texts[row] == "" })
	return &text
}

// tricks are ways to upload rows again. Those that are named with hard are tried, and what becomes of them is on the page.
var tricks = []struct {
	name string
	do   func(testing.TB, *dataset.Table) *dataset.Table
	hard bool
}{
	{name: "the same rows", do: func(t testing.TB, x *dataset.Table) *dataset.Table { return x }},
	{name: "one cell changed by 1e-12", do: cell(func(x float64) float64 { return x + 1e-12*math.Max(1, math.Abs(x)) })},
	{name: "one cell null", do: cell(func(float64) float64 { return math.NaN() })},
	{name: "all numbers changed by 1e-12", do: onNumbers(func(_ *rand.Rand, x float64) float64 { return x * (1 + 1e-12) })},
	{name: "columns renamed", do: func(t testing.TB, x *dataset.Table) *dataset.Table {
		return change(t, x, func(i int, c dataset.Column) *dataset.Column { c.Name = fmt.Sprint("x", i); return &c })
	}},
	{name: "columns and rows in another order", do: func(t testing.TB, x *dataset.Table) *dataset.Table {
		x = pick(t, x, rand.New(rand.NewPCG(3, 4)).Perm(x.Rows()))
		var columns []dataset.Column
		for i := range x.Columns() {
			columns = append(columns, *x.Column(x.Columns() - 1 - i))
		}
		return tableOf(t, columns...)
	}},
	{name: "everything as text, times of another zone", do: func(t testing.TB, x *dataset.Table) *dataset.Table {
		return change(t, x, func(_ int, c dataset.Column) *dataset.Column {
			return asText(&c, func(s string) string { return s })
		})
	}},
	{name: "all texts in capitals", do: func(t testing.TB, x *dataset.Table) *dataset.Table {
		return change(t, x, func(_ int, c dataset.Column) *dataset.Column {
			if c.Kind == dataset.Text {
				return asText(&c, strings.ToUpper)
			}
			return &c
		})
	}},
	{name: "numbers in single precision", do: onNumbers(func(_ *rand.Rand, x float64) float64 { return float64(float32(x)) })},
	{name: "times as seconds, conditions as 0 and 1", do: func(t testing.TB, x *dataset.Table) *dataset.Table {
		return change(t, x, func(_ int, c dataset.Column) *dataset.Column {
			switch c.Kind {
			case dataset.Time:
				c.Kind = dataset.Number
				for i := range c.Numbers {
					c.Numbers[i] /= 1e6
				}
			case dataset.Bool:
				c.Kind = dataset.Number
				for _, b := range c.Bools {
					v := float64(b)
					if b == dataset.NullBool {
						v = math.NaN()
					}
					c.Numbers = append(c.Numbers, v)
				}
				c.Bools = nil
			}
			return &c
		})
	}},
	{name: "a column dropped", do: func(t testing.TB, x *dataset.Table) *dataset.Table {
		return change(t, x, func(i int, c dataset.Column) *dataset.Column {
			if i == x.Columns()/2 {
				return nil
			}
			return &c
		})
	}},
	{name: "a column of numbers added", do: func(t testing.TB, x *dataset.Table) *dataset.Table {
		random := rand.New(rand.NewPCG(5, 6))
		noise := dataset.Column{Field: dataset.Field{Name: "added", Kind: dataset.Number, Source: "DOUBLE"}}
		for range x.Rows() {
			noise.Numbers = append(noise.Numbers, random.NormFloat64())
		}
		var columns []dataset.Column
		for i := range x.Columns() {
			columns = append(columns, *x.Column(i))
		}
		return tableOf(t, append(columns, noise)...)
	}},
	{name: "a tenth of the rows, or a hundred", do: func(t testing.TB, x *dataset.Table) *dataset.Table {
		return pick(t, x, rand.New(rand.NewPCG(7, 8)).Perm(x.Rows())[:max(x.Rows()/10, min(x.Rows(), 100))])
	}},
	{name: "one cell of every row changed", do: func(t testing.TB, x *dataset.Table) *dataset.Table {
		return change(t, x, func(i int, c dataset.Column) *dataset.Column {
			for row := range c.Numbers {
				if row%x.Columns() == i {
					c.Numbers[row] += 1000
				}
			}
			return &c
		})
	}},
	{name: "numbers times 1000", do: onNumbers(func(_ *rand.Rand, x float64) float64 { return x * 1000 })},
	{name: "a third of the columns dropped", hard: true, do: func(t testing.TB, x *dataset.Table) *dataset.Table {
		return change(t, x, func(i int, c dataset.Column) *dataset.Column {
			if i%3 == 0 {
				return nil
			}
			return &c
		})
	}},
	{name: "numbers times 1.609344", hard: true, do: onNumbers(func(_ *rand.Rand, x float64) float64 { return x * 1.609344 })},
	{name: "numbers with noise of a thousandth", hard: true, do: onNumbers(func(random *rand.Rand, x float64) float64 { return x * (1 + random.NormFloat64()/1000) })},
	{name: "columns renamed and moved, categories coded", hard: true, do: func(t testing.TB, x *dataset.Table) *dataset.Table {
		columns := []dataset.Column{}
		for i := range x.Columns() {
			c := *x.Column(x.Columns() - 1 - i)
			if c.Kind == dataset.Text {
				numbers := make([]float64, len(c.Codes))
				for row, code := range c.Codes {
					numbers[row] = float64(code) + 0.5
				}
				c = dataset.Column{Field: dataset.Field{Name: c.Name, Kind: dataset.Number, Source: "DOUBLE"}, Numbers: numbers}
			}
			c.Name = fmt.Sprint("x", i)
			columns = append(columns, c)
		}
		return tableOf(t, columns...)
	}},
}

// cell changes one cell, of the first column of numbers that has one.
func cell(f func(float64) float64) func(testing.TB, *dataset.Table) *dataset.Table {
	return func(t testing.TB, x *dataset.Table) *dataset.Table {
		done := false
		return change(t, x, func(_ int, c dataset.Column) *dataset.Column {
			if c.Kind == dataset.Number && !done {
				c.Numbers[0], done = f(c.Numbers[0]), true
			}
			return &c
		})
	}
}

// parts splits a table: 30% held out.
func parts(t testing.TB, x *dataset.Table, seed uint64) []*Rows {
	order := rand.New(rand.NewPCG(seed, 9)).Perm(x.Rows())
	held := x.Rows() * 3 / 10
	return []*Rows{Read(testKey, pick(t, x, order[:held]), x.Rows()), nil, Read(testKey, pick(t, x, order[held:]), x.Rows())}
}

func recogniseOne(t testing.TB, p *Prints, upload []*Rows) []Way {
	t.Helper()
	again, err := Parse(p.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	found, err := Recognise(1, func(int) (*Prints, error) { return again, nil }, upload, Make(testKey, [32]byte{99}, upload))
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		return nil
	}
	return found[0].Ways
}

// TestTricks: rows that are uploaded again are recognised, whatever was done to them, and rows of the same source that are not the same are not.
func TestTricks(t *testing.T) {
	for _, data := range []string{"internal/api/testdata/flights-5k.parquet", "experiments/data/breast-cancer.parquet", "experiments/data/digits.parquet"} {
		x := real(t, data)
		order := rand.New(rand.NewPCG(10, 11)).Perm(x.Rows())
		earlier, fresh := pick(t, x, order[:x.Rows()/2]), pick(t, x, order[x.Rows()/2:])
		p := Make(testKey, [32]byte{7}, parts(t, earlier, 1))
		name := filepath.Base(data)
		if ways := recogniseOne(t, p, parts(t, fresh, 2)); ways != nil {
			t.Errorf("%s: fresh rows are recognised: %v", name, ways)
		}
		for _, trick := range tricks {
			ways := recogniseOne(t, p, parts(t, trick.do(t, earlier), 3))
			t.Logf("%s: %s: %v", name, trick.name, ways)
			if ways == nil && !trick.hard {
				t.Errorf("%s: %s: not recognised", name, trick.name)
			}
		}
	}
}

// TestFreshRows: other rows of the same source are no earlier ones, however alike rows are, how many come and how they are split. The 360 uploads raise an alarm with
// probability 360 Alarm = 4e-4 at most, and seeds are fixed. A criterion without the agreement at home would raise one for each table of few values.
func TestFreshRows(t *testing.T) {
	sources := map[string]func(random *rand.Rand, n int) *dataset.Table{
		"few values": func(random *rand.Rand, n int) *dataset.Table {
			return generated(t, n, 4, func(int) float64 { return float64(random.IntN(3)) })
		},
		"small numbers": func(random *rand.Rand, n int) *dataset.Table {
			return generated(t, n, 5, func(int) float64 { return math.Round(random.NormFloat64() * 30) })
		},
		"columns of one another": func(random *rand.Rand, n int) *dataset.Table {
			x := 0.0
			return generated(t, n, 6, func(i int) float64 {
				if i == 0 {
					x = math.Round(random.ExpFloat64() * 200)
				}
				return x * float64(i+1)
			})
		},
		"units of ten rows": func(random *rand.Rand, n int) *dataset.Table {
			unit, left := [4]float64{}, 0
			return generated(t, n, 6, func(i int) float64 {
				if i == 0 {
					if left--; left < 0 {
						left = 9
						for k := range unit {
							unit[k] = random.NormFloat64()
						}
					}
				}
				if i < 4 {
					return unit[i]
				}
				return random.NormFloat64()
			})
		},
		"continuous": func(random *rand.Rand, n int) *dataset.Table {
			return generated(t, n, 5, func(int) float64 { return random.NormFloat64() })
		},
		"numbered rows": func(random *rand.Rand, n int) *dataset.Table {
			row := 0.0
			return generated(t, n, 3, func(i int) float64 {
				if i == 0 {
					row++
					return row
				}
				return math.Round(random.NormFloat64() * 100)
			})
		},
	}
	for name, make := range sources {
		for seed := range uint64(20) {
			random := rand.New(rand.NewPCG(seed, 20))
			p := Make(testKey, [32]byte{byte(seed)}, parts(t, make(random, 600), seed))
			for _, rows := range []int{200, 600, 2400} {
				if ways := recogniseOne(t, p, parts(t, make(random, rows), seed+1)); ways != nil {
					t.Errorf("%s: %d fresh rows are recognised: %v", name, rows, ways)
				}
			}
		}
	}
}

// TestNumberedRowsOfOthers: two tables that have nothing to do with each other, of which the one numbers its rows in steps of a tenth or of a thousand and the other has small whole
// numbers, share no rows, although tokens leave the point out. It would notice when only steps of 1 are known to be numbers of rows.
func TestNumberedRowsOfOthers(t *testing.T) {
	for _, step := range []float64{0.001, 0.1, 1, 1000} {
		for seed := range uint64(5) {
			random, at, row := rand.New(rand.NewPCG(seed, 40)), 0.0, 0.0
			scores := generated(t, 2000, 3, func(i int) float64 {
				if i == 0 {
					at++
					return at * step
				}
				return float64(random.IntN(3))
			})
			visits := generated(t, 2000, 3, func(i int) float64 {
				if i == 0 {
					row++
					return math.Floor(row / 4)
				}
				return float64(random.IntN(3))
			})
			p := Make(testKey, [32]byte{byte(seed)}, parts(t, scores, seed))
			if ways := recogniseOne(t, p, parts(t, visits, seed+1)); ways != nil {
				t.Errorf("steps of %g: rows of another table are recognised: %v", step, ways)
			}
		}
	}
}

// generated is a table of so many rows and columns of numbers, made row by row.
func generated(t testing.TB, rows, columns int, f func(column int) float64) *dataset.Table {
	all := make([]dataset.Column, columns)
	for i := range all {
		all[i] = dataset.Column{Field: dataset.Field{Name: fmt.Sprint("c", i), Kind: dataset.Number, Source: "DOUBLE"}, Numbers: make([]float64, rows)}
	}
	for row := range rows {
		for i := range all {
			all[i].Numbers[row] = f(i)
		}
	}
	return tableOf(t, all...)
}

// TestFewRowsAreNotTold: an upload of a few rows does not tell whether they are held out, also together with many that everybody has. Of the 24 about a half is in the sample: too many for chance, and fewer than MinRows.
func TestFewRowsAreNotTold(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 30))
	x := generated(t, 600, 5, func(int) float64 { return random.NormFloat64() })
	order := random.Perm(600)
	held, shown := order[:200], order[200:]
	p := Make(testKey, [32]byte{}, []*Rows{Read(testKey, pick(t, x, held), 600), nil, Read(testKey, pick(t, x, shown), 600)})
	for _, few := range []int{1, 24, 100} {
		upload := pick(t, x, append(slices.Clone(shown), held[:few]...))
		told := slices.ContainsFunc(recogniseOne(t, p, []*Rows{Read(testKey, upload, upload.Rows()), nil, nil}), func(w Way) bool { return w.From == 0 })
		if told != (few == 100) {
			t.Errorf("%d held-out rows: told %v", few, told)
		}
	}
	if ways := recogniseOne(t, p, []*Rows{Read(testKey, pick(t, x, held[:MinRows]), MinRows)}); ways != nil {
		t.Errorf("%d rows alone: %v", MinRows, ways)
	}
}

// TestMerged: a table that is a small part of a much larger one is recognised in it.
func TestMerged(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 30))
	normal := func(int) float64 { return random.NormFloat64() }
	x := generated(t, 500, 8, normal)
	p := Make(testKey, [32]byte{}, parts(t, x, 1))
	large := generated(t, 50_000, 8, normal)
	merged := change(t, large, func(i int, c dataset.Column) *dataset.Column {
		copy(c.Numbers[10_000:], x.Column(i).Numbers)
		return &c
	})
	if ways := recogniseOne(t, p, []*Rows{Read(testKey, merged, merged.Rows())}); len(ways) != 2 || ways[0].Share < 0.95 {
		t.Errorf("merged with a hundred times as many: %v", ways)
	}
	if ways := recogniseOne(t, p, []*Rows{Read(testKey, large, large.Rows())}); ways != nil {
		t.Errorf("a hundred times as many fresh rows: %v", ways)
	}
}

// TestStored: prints are read as they were written, nothing else is read, and without the key they say nothing.
func TestStored(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 30))
	x := generated(t, 300, 4, func(int) float64 { return random.NormFloat64() })
	p := Make(testKey, [32]byte{}, parts(t, x, 1))
	b := p.Bytes()
	if again := Make(testKey, [32]byte{}, parts(t, x, 1)); !slices.Equal(again.Bytes(), b) {
		t.Error("the same rows have other prints")
	}
	for n := range len(b) {
		if _, err := Parse(b[:n]); err == nil {
			t.Fatalf("the first %d bytes are taken for prints", n)
		}
	}
	for i, say := range map[int]string{0: "no prints", len(header): ErrVersion.Error()} {
		other := slices.Clone(b)
		other[i]++
		if _, err := Parse(other); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("byte %d changed: %v", i, err)
		}
	}
	key := testKey
	key[31]++
	found, err := Recognise(1, func(int) (*Prints, error) { return p, nil }, []*Rows{Read(key, x, x.Rows())}, p)
	if err != nil || found != nil {
		t.Errorf("under another key: %v %v", found, err)
	}
}

// TestSignificant: digits of numbers do not depend on units of ten, nor on the last bits.
func TestSignificant(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 30))
	h := testKey.hasher()
	for range 20_000 {
		x := random.NormFloat64() * math.Pow(10, float64(random.IntN(12)-6))
		x, _ = strconv.ParseFloat(strconv.FormatFloat(x, 'g', 1+random.IntN(8), 64), 64)
		if math.Abs(x) >= 1e5 { // where whole numbers have more digits
			continue
		}
		for _, y := range []float64{x * (1 + 1e-12), x * (1 - 1e-12), x * 10, x / 1000} {
			if h.number(x) != h.number(y) && math.Abs(y) < 1e6 {
				t.Fatalf("%v and %v differ: %d %d", x, y, significant(x, digits), significant(y, digits))
			}
		}
		if y := x * 1.0001; x != 0 && h.number(x) == h.number(y) {
			t.Fatalf("%v and %v are the same", x, y)
		}
	}
	if h.text("1.50") != h.number(1.5) || h.text(" Gold") != h.text("gold") || h.text("") != none || h.text("2024-05-06T07:08:09+02:00") != h.time(1714972089e6) || h.text("true") != h.number(1) {
		t.Error("texts do not have the tokens of what they spell")
	}
}

// BenchmarkUpload is what one upload costs more: to make prints, and to be compared with an earlier one.
func BenchmarkUpload(b *testing.B) {
	x := real(b, "experiments/data/flights-100k.parquet")
	up := parts(b, x, 1)
	for b.Loop() {
		p := Make(testKey, [32]byte{7}, up)
		if found, err := Recognise(1, func(int) (*Prints, error) { return p, nil }, up, p); err != nil || len(found) != 1 {
			b.Fatal(found, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*x.Rows()), "ns/row")
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(header))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := Parse(b)
		if err == nil && !slices.Equal(p.Bytes(), b) {
			t.Error("read and written differ")
		}
	})
}

// inPieces is a table that is read so many rows at a time; it fails after a number of pieces, if that is not 0.
type inPieces struct {
	*dataset.Table
	rows, fails int
}

func (p inPieces) Rows() int { return p.Table.Rows() }
func (p inPieces) Each(yield func(t *dataset.Table) error) error {
	for from, n := 0, 1; from < p.Rows(); from, n = from+p.rows, n+1 {
		if n == p.fails {
			return errors.New("not to be read")
		}
		if err := yield(p.Slice(from, min(from+p.rows, p.Rows()))); err != nil {
			return err
		}
	}
	return nil
}

// TestPieces: a table that is read piece by piece has the same prints as when it is read whole, byte for byte, the same share of copies, and what is found in it is the same. What keeps a piece from being read is said.
// It would notice rows that are counted from the beginning of their piece, a column that numbers the rows of one piece alone, and pieces that are left out.
func TestPieces(t *testing.T) {
	whole := real(t, "experiments/data/flights-100k.parquet")
	some := make([]int, 30000)
	for i := range some {
		some[i] = i % 27000 // some twice
	}
	table := pick(t, whole, some)
	numbers := dataset.Column{Field: dataset.Field{Name: "n", Kind: dataset.Number, Source: "DOUBLE"}}
	for i := range table.Rows() {
		numbers.Numbers = append(numbers.Numbers, float64(i))
	}
	columns := []dataset.Column{numbers}
	for i := range table.Columns() {
		columns = append(columns, *table.Column(i))
	}
	table = tableOf(t, columns...)
	read := Read(testKey, table, table.Rows())
	want := Make(testKey, [32]byte{1}, []*Rows{read})
	share, telling := Copies(read)
	for _, rows := range []int{999, 4097, 7000, 30000} {
		r := ReadPieces(testKey, inPieces{table, rows, 0}, table.Rows())
		made := Make(testKey, [32]byte{1}, []*Rows{r})
		if !bytes.Equal(made.Bytes(), want.Bytes()) || r.Err() != nil {
			t.Errorf("%d rows a piece: other prints (%v)", rows, r.Err())
		}
		if got, ok := Copies(r); got != share || ok != telling {
			t.Errorf("%d rows a piece: copies %v %v, want %v %v", rows, got, ok, share, telling)
		}
		if got, _ := copies(r, 4000); math.Abs(got-share) > 0.1 {
			t.Errorf("%d rows a piece: of some of them copies %v, want about %v", rows, got, share)
		}
		found, err := Recognise(1, func(int) (*Prints, error) { return want, nil }, []*Rows{r}, made)
		if err != nil || len(found) != 1 || len(found[0].Ways) != 1 || found[0].Ways[0].Share < 0.99 {
			t.Errorf("%d rows a piece: %+v %v", rows, found, err)
		}
	}
	r := ReadPieces(testKey, inPieces{table, 7000, 3}, table.Rows())
	if Make(testKey, [32]byte{1}, []*Rows{r}); r.Err() == nil {
		t.Error("a piece that cannot be read is no error")
	}
}
