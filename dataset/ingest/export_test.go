package ingest

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdoutd/holdoutd/dataset"
)

func exportTo(t testing.TB, path string, table *dataset.Table) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := Export(f, table); err != nil {
		t.Fatal(err)
	}
}

// exported exports and decodes again.
func exported(t testing.TB, table *dataset.Table) *dataset.Table {
	t.Helper()
	path := filepath.Join(t.TempDir(), "export.parquet")
	exportTo(t, path, table)
	back, res := decode(t, path)
	if len(res.Skipped) > 0 {
		t.Errorf("skipped: %v", res.Skipped)
	}
	return back
}

func digest(t testing.TB, table *dataset.Table) [32]byte {
	t.Helper()
	d := dataset.NewDigest()
	if err := d.Add(table); err != nil {
		t.Fatal(err)
	}
	return d.Sum(nil)
}

// lines shows a table without what its types were called.
func lines(table *dataset.Table) map[string][]string {
	m := map[string][]string{}
	for i := range table.Columns() {
		c := table.Column(i)
		values := rendered(c)
		for i := range values {
			if values[i] == "infinite" { // is exported as the null that it is
				values[i] = "null"
			}
		}
		m[c.Name+" "+c.Kind.String()] = values
	}
	return m
}

// What every fixture became must come back the same from its export, by content (which the digest compares) and
// for people.
func TestExportFixtures(t *testing.T) {
	for _, name := range []string{"types-pyarrow-zstd-v2.parquet", "int96.parquet", "polars.parquet", "duckdb.parquet",
		"encodings.parquet", "flights-20k.parquet"} {
		table, _ := decode(t, fixture(name))
		back := exported(t, table)
		if d := cmp.Diff(lines(table), lines(back)); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
		if digest(t, table) != digest(t, back) {
			t.Errorf("%s: digests differ", name)
		}
	}
}

// Names that the library would turn into one identifier, or take apart, and names that are hard to quote.
func TestExportNames(t *testing.T) {
	names := []string{"a", "A", "a b", "A32b", "9x", "é", "É", "x.y", "x", "PARGO_PREFIX_a", "C0", "C1", "schema", " ",
		"\n", "\"", "'", "名前", "a/b", "list.element", "-", "_", "a\tb"}
	var columns []dataset.Column
	for i, name := range names {
		columns = append(columns, dataset.Column{
			Field:   dataset.Field{Name: name, Kind: dataset.Number, Source: "INT32"},
			Numbers: []float64{float64(i), math.NaN(), float64(-i)},
		})
	}
	table, err := dataset.FromColumns(columns...)
	if err != nil {
		t.Fatal(err)
	}
	back := exported(t, table)
	if d := cmp.Diff(lines(table), lines(back)); d != "" {
		t.Error(d)
	}
	for i, f := range back.Schema().Fields {
		if f.Name != names[i] || f.Source != "INT64" {
			t.Errorf("column %d is %q of %s, want %q of INT64", i, f.Name, f.Source, names[i])
		}
	}
}

// Types follow the source where the values allow, and only then.
func TestExportTypes(t *testing.T) {
	number := func(name, source string, v ...float64) dataset.Column {
		return dataset.Column{Field: dataset.Field{Name: name, Kind: dataset.Number, Source: source}, Numbers: v}
	}
	moment := func(name, source string, v ...float64) dataset.Column {
		return dataset.Column{Field: dataset.Field{Name: name, Kind: dataset.Time, Source: source}, Numbers: v}
	}
	table, err := dataset.FromColumns(
		number("whole", "INT8", 1, math.NaN()), number("half", "INT8", 1, 0.5), number("double", "DOUBLE", 1, 2),
		number("huge", "UINT64", 1<<53, 1<<54), number("nulls", "UINT16", math.NaN(), math.NaN()),
		moment("date", "DATE", 86400e6, -86400e6), moment("noon", "DATE", 86400e6/2, 0),
		moment("local", "TIMESTAMP(ms)", 1, math.NaN()), moment("utc", "TIMESTAMP(ns, UTC)", 1, -1),
		moment("old", "INT96", 1, -1), moment("fraction", "", 1.5, -0.5),
	)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"INT64", "DOUBLE", "DOUBLE", "DOUBLE", "INT64", "DATE", "TIMESTAMP(us)", "TIMESTAMP(us)",
		"TIMESTAMP(us, UTC)", "TIMESTAMP(us)", "TIMESTAMP(us)"}
	back := exported(t, table)
	for i, f := range back.Schema().Fields {
		if f.Source != want[i] {
			t.Errorf("%s is exported as %s, want %s", f.Name, f.Source, want[i])
		}
	}
	if c, _ := back.Lookup("fraction"); c.Numbers[0] != 1 || c.Numbers[1] != -1 {
		t.Errorf("fractions of microseconds become %v, want the floor", c.Numbers)
	}
	far, err := dataset.FromColumns(moment("far", "", 1e300))
	if err != nil {
		t.Fatal(err)
	}
	if err := Export(&bytes.Buffer{}, far); err == nil {
		t.Error("a time that no int64 holds is exported")
	}
}

// Several row groups and pages, with runs of nulls longer than a page.
func TestExportGroups(t *testing.T) {
	const rows = exportMaxGroupRows + 70001
	r := rand.New(rand.NewPCG(3, 3))
	numbers, codes, bools := make([]float64, rows), make([]uint32, rows), make([]uint8, rows)
	for i := range rows {
		numbers[i], codes[i], bools[i] = r.NormFloat64(), r.Uint32N(4), uint8(r.IntN(3))
		if i/200000 == 1 {
			numbers[i], codes[i], bools[i] = math.NaN(), 0, dataset.NullBool
		}
	}
	table, err := dataset.FromColumns(
		dataset.Column{Field: dataset.Field{Name: "n", Kind: dataset.Number}, Numbers: numbers},
		dataset.Column{Field: dataset.Field{Name: "t", Kind: dataset.Text}, Codes: codes, Dictionary: dataset.NewDictionary("", "b", "c")},
		dataset.Column{Field: dataset.Field{Name: "b", Kind: dataset.Bool}, Bools: bools})
	if err != nil {
		t.Fatal(err)
	}
	back := exported(t, table)
	for i := range rows {
		a, b := back.Column(0).Numbers[i], numbers[i]
		if a != b && !(math.IsNaN(a) && math.IsNaN(b)) {
			t.Fatalf("row %d: %v, want %v: rows changed places", i, a, b)
		}
	}
	if digest(t, table) != digest(t, back) {
		t.Error("digests differ")
	}
}

func TestExportNoRows(t *testing.T) {
	table, err := dataset.FromColumns(dataset.Column{Field: dataset.Field{Name: "a", Kind: dataset.Bool}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "export.parquet")
	exportTo(t, path, table)
	refused(t, path, Limits{}, NoRows)
}

// failing takes n bytes and then no more, as a client that went away.
type failing struct{ n int }

var errGone = errors.New("the client went away")

func (f *failing) Write(p []byte) (int, error) {
	if f.n -= len(p); f.n < 0 {
		return 0, errGone
	}
	return len(p), nil
}

func TestExportWriterFails(t *testing.T) {
	table, _ := decode(t, fixture("flights-20k.parquet"))
	for _, n := range []int{0, 4, 1000, 100000} {
		if err := Export(&failing{n}, table); !errors.Is(err, errGone) {
			t.Errorf("after %d bytes: got %v, want the writer's error", n, err)
		}
	}
}
