package ingest

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdoutd/holdoutd/dataset"
)

// Columns whose kind their values leave open are read as another part has them, and no others: integers and decimals without a fraction as digits, columns without values as
// nulls of any kind.
func TestDecodeAs(t *testing.T) {
	for _, c := range []struct {
		file string
		as   map[string]dataset.Kind
		want []string
	}{
		{"pyarrow-decimals", map[string]dataset.Kind{"small": dataset.Text, "price": dataset.Text},
			[]string{`small text DECIMAL(38,0) ["5" null "-7" "9007199254740992"]`, "price number DECIMAL(38,18)"}},
		{"duckdb-infinity", map[string]dataset.Kind{"d": dataset.Text}, []string{"d time DATE"}},
		{"fastparquet-none", map[string]dataset.Kind{"i": dataset.Text, "x": dataset.Text}, []string{`i text INT64 ["3" "-1" "0" "0"]`, "x number DOUBLE"}},
		{"duckdb-skipped", map[string]dataset.Kind{"i": dataset.Text, "wait": dataset.Number}, []string{`i text INT32 ["1"]`, "wait skipped"}},
		{"pandas-skipped", map[string]dataset.Kind{"none": dataset.Text}, []string{"none text NULL [null null null null]"}},
		{"pandas-skipped", map[string]dataset.Kind{"none": dataset.Bool, "raw": dataset.Time}, nil},
		{"polars-skipped", map[string]dataset.Kind{"n": dataset.Time}, []string{"n time NULL [null null null null]"}},
		{"fastparquet-bytes", map[string]dataset.Kind{"e": dataset.Number}, []string{"e number BYTE_ARRAY [null null]"}},
	} {
		dir := filepath.Join(t.TempDir(), "table")
		res, err := DecodeAs(t.Context(), fixture("writers/"+c.file+".parquet"), dir, Limits{}, c.as)
		if c.want == nil { // the column has values, so that it was not said to be empty
			if e, ok := err.(*Error); !ok || e.Kind != Damaged || e.Column != "raw" {
				t.Errorf("%s as %v: %v", c.file, c.as, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		table, err := dataset.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		lines := shown(table, res)
		for _, want := range c.want {
			if !slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, want) }) {
				t.Errorf("%s as %v: no line %s in\n%s", c.file, c.as, want, strings.Join(lines, "\n"))
			}
		}
		if err := table.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A footer that says other nulls or other ends than the pages hold is a warning, once for each column; no footer of a real writer is.
func TestFooterStatistics(t *testing.T) {
	files, err := filepath.Glob(fixture("*.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob(fixture("writers/*.parquet"))
	if err != nil || len(files) < 20 || len(more) < 10 {
		t.Fatal(files, more, err)
	}
	for _, f := range append(files, more...) {
		if filepath.Base(f) == "lying-statistics.parquet" {
			continue
		}
		dir := filepath.Join(t.TempDir(), "table")
		res, err := Decode(t.Context(), f, dir, Limits{})
		if err != nil {
			continue // those that are refused have tests of their own
		}
		for _, w := range res.Warnings {
			if w.Code != "index-column" || w.Column != "__index_level_0__" {
				t.Errorf("%s: %+v", f, w)
			}
		}
	}
	_, res := decode(t, fixture("writers/pandas-notes.parquet"))
	if len(res.Warnings) != 1 {
		t.Errorf("warnings %v, want that of the index", res.Warnings)
	}
	_, res = decode(t, fixture("lying-statistics.parquet"))
	var doubted []string
	for _, w := range res.Warnings {
		doubted = append(doubted, w.Code+" "+w.Column)
	}
	if d := cmp.Diff([]string{"footer-statistics high", "footer-statistics low", "footer-statistics nulls"}, doubted); d != "" {
		t.Error(d)
	}
}
