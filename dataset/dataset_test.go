package dataset

import (
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// sample has every kind, nulls in each, a text of no bytes, and a dictionary text that no row has.
func sample(t *testing.T) *Table {
	t.Helper()
	table, err := FromColumns(
		Column{Field: Field{Name: "n", Kind: Number, Source: "DOUBLE"}, Numbers: []float64{1.5, math.NaN(), -3, math.MaxFloat64}},
		Column{Field: Field{Name: "b", Kind: Bool, Source: "BOOLEAN"}, Bools: []uint8{0, 1, NullBool, 1}},
		Column{Field: Field{Name: "t", Kind: Text, Source: "STRING"}, Codes: []uint32{3, 0, 1, 3}, Dictionary: NewDictionary("", "unused", "é")},
		Column{Field: Field{Name: "at", Kind: Time, Source: "DATE"}, Numbers: []float64{0, 86400e6, math.NaN(), -1}},
	)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// textsOf are the texts of a column's rows, "null" for null.
func textsOf(c *Column) []string {
	texts := make([]string, len(c.Codes))
	for i, code := range c.Codes {
		if texts[i] = "null"; code != 0 {
			texts[i] = c.Dictionary.Text(int(code) - 1)
		}
	}
	return texts
}

func columnsOf(t *Table) []Column {
	var columns []Column
	for i := range t.Columns() {
		columns = append(columns, *t.Column(i))
	}
	return columns
}

func diff(a, b *Table) string {
	return cmp.Diff(columnsOf(a), columnsOf(b), cmpopts.EquateNaNs(), cmpopts.EquateEmpty())
}

func mustOpen(t *testing.T, dir string) *Table {
	t.Helper()
	table, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { table.Close() })
	return table
}

func TestWriteOpen(t *testing.T) {
	want := sample(t)
	dir := filepath.Join(t.TempDir(), "table")
	if err := Write(dir, want); err != nil {
		t.Fatal(err)
	}
	got := mustOpen(t, dir)
	if d := diff(want, got); d != "" {
		t.Errorf("the table changed on its way (-want +got):\n%s", d)
	}
	if c, ok := got.Lookup("t"); !ok || c.Dictionary.Text(int(c.Codes[0])-1) != "é" || !c.Null(1) {
		t.Errorf("Lookup(t) = %+v, %v", c, ok)
	}
	if _, ok := got.Lookup("T"); ok {
		t.Error("Lookup finds a name of other case")
	}
	if err := Write(dir, want); !errors.Is(err, fs.ErrExist) {
		t.Errorf("writing over a dataset: %v, want ErrExist", err)
	}
}

func TestOpenMissing(t *testing.T) {
	if _, err := Open(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want ErrNotExist", err)
	}
}

// A dictionary's texts must outlive the mapping: they end up in cards and error messages.
func TestTextsOutliveClose(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "table")
	if err := Write(dir, sample(t)); err != nil {
		t.Fatal(err)
	}
	table, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	c, _ := table.Lookup("t")
	texts := c.Dictionary.Sorted()
	for range 2 {
		if err := table.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(texts, ","); got != ",unused,é" {
		t.Errorf("texts after Close: %q", got)
	}
}

func TestFromColumnsCleans(t *testing.T) {
	numbers := []float64{math.Inf(1), math.Inf(-1), math.Copysign(0, -1), math.Float64frombits(0xFFF8000000000000), 2}
	table, err := FromColumns(
		Column{Field: Field{Name: "n", Kind: Number}, Numbers: numbers},
		Column{Field: Field{Name: "t", Kind: Text}, Codes: []uint32{1, 2, 3, 0, 1}, Dictionary: NewDictionary("b", "a", "b")},
	)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []uint64{infiniteBits, infiniteBits, 0, nullBits, math.Float64bits(2)} {
		if got := math.Float64bits(table.Column(0).Numbers[i]); got != want {
			t.Errorf("row %d: bits %x, want %x", i, got, want)
		}
	}
	if !math.IsInf(numbers[0], 1) {
		t.Error("the caller's slice was written to")
	}
	text := table.Column(1)
	if d := cmp.Diff([]string{"a", "b"}, text.Dictionary.Sorted()); d != "" || cmp.Diff(textsOf(text), []string{"b", "a", "b", "null", "b"}) != "" {
		t.Errorf("dictionary %q, rows %q", text.Dictionary.Sorted(), textsOf(text))
	}
}

func TestFromColumnsRefuses(t *testing.T) {
	number := func(name string, n int) Column {
		return Column{Field: Field{Name: name, Kind: Number}, Numbers: make([]float64, n)}
	}
	for _, c := range []struct {
		columns []Column
		want    string
	}{
		{[]Column{number("a", 1), number("a", 1)}, "two columns"},
		{[]Column{number("a", 1), number("b", 2)}, "2 rows"},
		{[]Column{number("", 1)}, "no name"},
		{[]Column{number("\xff", 1)}, "not UTF-8"},
		{[]Column{{Field: Field{Name: "a", Kind: 9}}}, "no kind"},
		{[]Column{{Field: Field{Name: "a", Kind: Bool}, Bools: []uint8{3}}}, "no boolean"},
		{[]Column{{Field: Field{Name: "a", Kind: Bool}, Numbers: []float64{3}}}, "values of another"},
		{[]Column{{Field: Field{Name: "a", Kind: Text}, Codes: []uint32{2}, Dictionary: NewDictionary("x")}}, "code 2"},
		{[]Column{{Field: Field{Name: "a", Kind: Text}, Codes: []uint32{1}, Dictionary: NewDictionary("\xff")}}, "not UTF-8"},
	} {
		if _, err := FromColumns(c.columns...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want an error with %q", err, c.want)
		}
	}
}

func TestNewText(t *testing.T) {
	c := NewText("t", []string{"b", "ignored", "a", "b"}, func(i int) bool { return i == 1 })
	if !slices.Equal(textsOf(&c), []string{"b", "null", "a", "b"}) || !slices.Equal(c.Dictionary.Sorted(), []string{"a", "b"}) {
		t.Errorf("rows %q, dictionary %q", textsOf(&c), c.Dictionary.Sorted())
	}
	c = NewText("t", []string{"", "x"}, nil)
	if !slices.Equal(textsOf(&c), []string{"", "x"}) {
		t.Errorf("an empty text is no null: codes %v", c.Codes)
	}
}

func TestKindText(t *testing.T) {
	for k, want := range map[Kind]string{Number: `"number"`, Bool: `"bool"`, Text: `"text"`, Time: `"time"`} {
		b, err := json.Marshal(k)
		if err != nil || string(b) != want {
			t.Errorf("%d is written as %s, %v", k, b, err)
		}
		var back Kind
		if err := json.Unmarshal(b, &back); err != nil || back != k {
			t.Errorf("%s is read as %v, %v", b, back, err)
		}
	}
	if _, err := json.Marshal(Kind(0)); err == nil {
		t.Error("Kind 0 is written")
	}
	var k Kind
	if err := json.Unmarshal([]byte(`"Number"`), &k); err == nil {
		t.Error(`"Number" is read`)
	}
}

// Writing in pieces of odd sizes must give the same columns as one piece; more than a buffer is written, so that
// flushing and renumbering in several pieces are covered.
func TestWriterPieces(t *testing.T) {
	const rows = writeBuffer/4 + 12345
	r := rand.New(rand.NewPCG(1, 1))
	numbers, codes := make([]float64, rows), make([]uint32, rows)
	dictionary := []string{"z", "", "m", "z", "a"} // unsorted, one twice
	for i := range rows {
		numbers[i] = r.NormFloat64()
		codes[i] = r.Uint32N(6)
	}
	dir := filepath.Join(t.TempDir(), "table")
	w, err := NewWriter(dir)
	if err != nil {
		t.Fatal(err)
	}
	pieces := func(write func(from, to int) error) {
		for from := 0; from < rows; {
			to := min(from+1+r.IntN(60000), rows)
			if err := write(from, to); err != nil {
				t.Fatal(err)
			}
			from = to
		}
	}
	steps := []func() error{
		func() error { return w.Begin(Field{Name: "dropped", Kind: Text}) },
		func() error { pieces(func(a, b int) error { return w.AppendCodes(codes[a:b]) }); return w.Drop() },
		func() error { return w.Begin(Field{Name: "t", Kind: Text}) },
		func() error {
			pieces(func(a, b int) error { return w.AppendCodes(codes[a:b]) })
			return w.End(dictionary)
		},
		func() error { return w.Begin(Field{Name: "n", Kind: Number}) },
		func() error {
			pieces(func(a, b int) error { return w.AppendNumbers(slices.Clone(numbers[a:b])) })
			return w.End(nil)
		},
		w.Close,
	}
	for i, step := range steps {
		if err := step(); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
	}
	want, err := FromColumns(
		Column{Field: Field{Name: "t", Kind: Text}, Codes: codes, Dictionary: NewDictionary(dictionary...)},
		Column{Field: Field{Name: "n", Kind: Number}, Numbers: numbers})
	if err != nil {
		t.Fatal(err)
	}
	got := mustOpen(t, dir)
	if got.Columns() != 2 || !slices.Equal(got.Column(0).Codes, want.Column(0).Codes) ||
		!got.Column(0).Dictionary.Equal(want.Column(0).Dictionary) || !slices.Equal(got.Column(1).Numbers, numbers) {
		t.Error("the table that was written in pieces is another one")
	}
}

func TestWriterRefuses(t *testing.T) {
	type step = func(w *Writer) error
	begin := func(name string, k Kind) step {
		return func(w *Writer) error { return w.Begin(Field{Name: name, Kind: k}) }
	}
	end := func(w *Writer) error { return w.End(nil) }
	for name, steps := range map[string][]step{
		"no column":       {func(w *Writer) error { return w.AppendBools([]uint8{1}) }},
		"end without":     {end},
		"two names":       {begin("a", Bool), end, begin("a", Bool)},
		"begin twice":     {begin("a", Bool), begin("b", Bool)},
		"kind":            {begin("a", Bool), func(w *Writer) error { return w.AppendNumbers([]float64{1}) }},
		"boolean":         {begin("a", Bool), func(w *Writer) error { return w.AppendBools([]uint8{3}) }},
		"code":            {begin("a", Text), func(w *Writer) error { return w.AppendCodes([]uint32{2}) }, func(w *Writer) error { return w.End([]string{"x"}) }},
		"text":            {begin("a", Text), func(w *Writer) error { return w.End([]string{"\xff"}) }},
		"bool dictionary": {begin("a", Bool), func(w *Writer) error { return w.End([]string{"x"}) }},
		"name":            {begin("", Bool)},
		"rows": {begin("a", Bool), func(w *Writer) error { return w.AppendBools([]uint8{1}) }, end,
			begin("b", Bool), end},
		"close in column": {begin("a", Bool), (*Writer).Close},
	} {
		dir := filepath.Join(t.TempDir(), "table")
		w, err := NewWriter(dir)
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range steps {
			if err = s(w); (err != nil) != (i == len(steps)-1) {
				t.Errorf("%s: step %d: %v", name, i, err)
			}
		}
		if w.Close() == nil {
			t.Errorf("%s: Close forgets the error", name)
		}
		if _, err := Open(dir); err == nil {
			t.Errorf("%s: the directory opens", name)
		}
		if err := w.Abort(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: Abort leaves %v", name, err)
		}
	}
}

func TestPublish(t *testing.T) {
	root := t.TempDir()
	from, to := filepath.Join(root, "a"), filepath.Join(root, "b")
	if err := Write(from, sample(t)); err != nil {
		t.Fatal(err)
	}
	if err := Publish(from, to); err != nil {
		t.Fatal(err)
	}
	mustOpen(t, to)
	if err := Write(from, sample(t)); err != nil {
		t.Fatal(err)
	}
	if err := Publish(from, to); err == nil {
		t.Error("Publish replaces a dataset")
	}
}
