package ingest

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestWriter: what comes in pieces is decoded as the table that it is, with the types that other writers give such values.
func TestWriter(t *testing.T) {
	columns := []ValueColumn{{"whole", Integers}, {"large", Unsigned}, {"x", Doubles}, {"truth", Truths}, {"text", Texts}, {"day", Days}, {"instant", Instants}, {"local", LocalTimes}, {"a\"`\\ß", Doubles}}
	var out bytes.Buffer
	w, err := NewWriter(&out, columns)
	if err != nil {
		t.Fatal(err)
	}
	w.e.groupRows = 3 // a piece ends in the middle of a row group
	bits := func(all ...float64) (words []int64) {
		for _, x := range all {
			words = append(words, int64(math.Float64bits(x)))
		}
		return words
	}
	pieces := [][]Values{
		{{Words: []int64{1, -1 << 53}}, {Words: []int64{-1, 1}}, {Words: bits(0.1, math.Inf(1)), Null: []bool{false, false}}, {Words: []int64{1, 0}}, {Texts: []string{"a", "ignored"}, Null: []bool{false, true}},
			{Words: []int64{-1, 20000}}, {Words: []int64{-1, 1e15}}, {Words: []int64{0, 86400e6}}, {Words: bits(1, 2)}},
		{{}, {}, {}, {}, {}, {}, {}, {}, {}},
		{{Words: []int64{7, 8, 9}, Null: []bool{true, false, false}}, {Words: []int64{0, 5, 6}}, {Words: bits(math.NaN(), -0.5, 2)}, {Words: []int64{0, 0, 1}, Null: []bool{false, true, false}}, {Texts: []string{"", "b", "a"}},
			{Words: []int64{0, 1, 2}}, {Words: []int64{0, 1, 2}}, {Words: []int64{0, 1, 2}}, {Words: bits(3, 4, 5), Null: []bool{true, true, true}}},
	}
	for _, piece := range pieces {
		if err := w.Append(piece); err != nil {
			t.Fatal(err)
		}
		for i := range piece { // it keeps nothing
			clear(piece[i].Words)
			clear(piece[i].Texts)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "table.parquet")
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	table, res := decode(t, path)
	if len(res.Skipped) > 0 || table.Rows() != 5 {
		t.Errorf("%d rows, skipped %v", table.Rows(), res.Skipped)
	}
	got := map[string][]string{}
	for i := range table.Columns() {
		c := table.Column(i)
		got[c.Name+" "+c.Kind.String()+" "+c.Source] = rendered(c)
	}
	want := map[string][]string{
		"whole number INT64":              {"1", "-9.007199254740992e+15", "null", "8", "9"},
		"large text UINT64":               {`"18446744073709551615"`, `"1"`, `"0"`, `"5"`, `"6"`}, // beyond 2^53
		"x number DOUBLE":                 {"0.1", "infinite", "null", "-0.5", "2"},
		"truth bool BOOLEAN":              {"true", "false", "false", "null", "true"},
		"text text STRING":                {`"a"`, "null", `""`, `"b"`, `"a"`},
		"day time DATE":                   {"1969-12-31T00:00:00", "2024-10-04T00:00:00", "1970-01-01T00:00:00", "1970-01-02T00:00:00", "1970-01-03T00:00:00"},
		"instant time TIMESTAMP(us, UTC)": {"1969-12-31T23:59:59.999999", "2001-09-09T01:46:40", "1970-01-01T00:00:00", "1970-01-01T00:00:00.000001", "1970-01-01T00:00:00.000002"},
		"local time TIMESTAMP(us)":        {"1970-01-01T00:00:00", "1970-01-02T00:00:00", "1970-01-01T00:00:00", "1970-01-01T00:00:00.000001", "1970-01-01T00:00:00.000002"},
		"a\"`\\ß number DOUBLE":           {"1", "2", "null", "null", "null"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestWriterRefuses what is no table.
func TestWriterRefuses(t *testing.T) {
	for what, piece := range map[string][]Values{
		"0 columns":      {},
		"has 1 values":   {{Words: []int64{1, 2}}, {Words: []int64{1}}},
		"and 1 nulls":    {{Words: []int64{1, 2}, Null: []bool{true}}, {Words: []int64{1, 2}}},
		"a day beyond":   {{Words: []int64{1}}, {Words: []int64{1 << 31}}},
		"has 0 values a": {{Words: []int64{1}}, {Texts: []string{"a"}}},
	} {
		w, err := NewWriter(&bytes.Buffer{}, []ValueColumn{{"a", Integers}, {"b", Days}})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Append(piece); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := NewWriter(&bytes.Buffer{}, []ValueColumn{{"a", 0}}); err == nil {
		t.Error("a column without a kind of values")
	}
}
