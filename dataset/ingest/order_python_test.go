//go:build python

package ingest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// ordered writes categories by each library, in row groups, and reads exports of them: argv is a verb and a folder.
const ordered = `
import sys
import duckdb, pandas as pd, polars as pl, pyarrow as pa, pyarrow.parquet as pq

verb, to = sys.argv[1], sys.argv[2]
scale = ["low", "mid", "hïgh", "never"]
texts = [("low", "mid", "hïgh", None)[k % 4] for k in range(600)]
other = {"i": list(range(600)), "x": [k / 2 for k in range(600)], "b": [k % 3 == 0 for k in range(600)], "text": [f"t{k % 7}" for k in range(600)],
    "t": pd.date_range("2026-01-01", periods=600, freq="h").astype("datetime64[us]"), "utc": pd.date_range("2026-01-01", periods=600, tz="UTC").astype("datetime64[us, UTC]")}
if verb == "write":
    frame = pd.DataFrame(other | {"level": pd.Categorical(texts, scale, ordered=True), "plain": pd.Categorical(texts, scale)})
    frame["d"] = frame["t"].dt.date
    frame.to_parquet(to + "/pandas.parquet", row_group_size=250)
    frame.to_parquet(to + "/folder", partition_cols=["b"])
    bears = pl.DataFrame({"level": texts}).with_columns(pl.col("level").cast(pl.Enum(scale)), plain=pl.col("level").cast(pl.Categorical))
    bears.write_parquet(to + "/polars.parquet", row_group_size=250)
    parts = [pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), pa.array(s), ordered=True) for s in (["a", "b"], ["b", "a"])]
    pq.write_table(pa.table({"level": pa.chunked_array(parts[:1])}), to + "/one.parquet")
    with pq.ParquetWriter(to + "/two.parquet", pa.schema({"level": parts[0].type})) as w:
        for part in parts:
            w.write_table(pa.table({"level": part}))
    tall = pa.DictionaryArray.from_arrays(pa.array(range(2000), pa.int32()), pa.array([str(k) for k in range(2000)]), ordered=True)
    pq.write_table(pa.table({"level": tall, "i": list(range(2000))}), to + "/tall.parquet")
else:
    name = to + "/export.parquet"
    frame, bears, table = pd.read_parquet(name), pl.read_parquet(name), pq.read_table(name)
    assert isinstance(frame.level.dtype, pd.CategoricalDtype) and frame.level.cat.ordered, frame.dtypes
    assert bears["level"].dtype == pl.Enum(list(frame.level.cat.categories)), bears.schema
    assert pa.types.is_dictionary(table["level"].type) and table["level"].type.ordered, table.schema
    duck = [r[0] for r in duckdb.sql(f"select level from read_parquet('{name}')").fetchall()]
    as_texts = [None if pd.isna(v) else v for v in frame.level]
    assert as_texts == duck == bears["level"].to_list() == table["level"].to_pylist()
    assert sum(v is None for v in duck) == duckdb.sql(f"select count(*) from read_parquet('{name}') where level is null").fetchone()[0]
    if len(duck) == 600:
        assert as_texts == texts, as_texts[:8]
        for column, values in other.items():
            if column in frame:
                assert frame[column].tolist() == list(values) == bears[column].to_list() == table[column].to_pylist(), column
        assert "d" not in frame or pa.types.is_date32(table["d"].type), table.schema
    print("|".join(frame.level.cat.categories))
`

// Ordered categories of pandas, pyarrow and Polars keep their order, through an export, too; what has no one order is text. Of pandas those without an order are known, too.
func TestOrderedCategories(t *testing.T) {
	python := os.Getenv("HOLDOUTD_PYTHON")
	if python == "" {
		t.Fatal("HOLDOUTD_PYTHON must name the interpreter that scripts/python.sh prints; make test sets it")
	}
	dir := t.TempDir()
	run := func(verb, dir string) string {
		t.Helper()
		out, err := exec.Command(python, "-c", ordered, verb, dir).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return strings.TrimSpace(string(out))
	}
	run("write", dir)
	scale := []string{"low", "mid", "hïgh", "never"}
	for name, want := range map[string]map[string][]string{"pandas": {"level": scale}, "polars": {"level": scale}, "one": {"level": {"a", "b"}}, "two": nil, "tall": nil} {
		table, res := decode(t, filepath.Join(dir, name+".parquet"))
		if diff := cmp.Diff(want, res.Orders); diff != "" {
			t.Errorf("%s: %s", name, diff)
			continue
		}
		if unordered := map[string][]string{"pandas": {"plain"}}[name]; !cmp.Equal(unordered, res.Categories) {
			t.Errorf("%s: categories without an order are %q, want %q", name, res.Categories, unordered)
		}
		if want == nil {
			continue
		}
		out := t.TempDir()
		f, err := os.Create(filepath.Join(out, "export.parquet"))
		if err != nil {
			t.Fatal(err)
		}
		if err := ExportOrdered(f, table, res.Orders); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if got := run("read", out); got != strings.Join(want["level"], "|") {
			t.Errorf("%s: read as %s", name, got)
		}
		again, read := decode(t, f.Name())
		if diff := cmp.Diff(want, read.Orders); diff != "" {
			t.Errorf("%s: exported: %s", name, diff)
		}
		if diff := cmp.Diff(shown(table, Result{}), shown(again, Result{})); name == "one" && diff != "" {
			t.Errorf("%s: exported: %s", name, diff)
		}
	}
	files, err := PartFiles(filepath.Join(dir, "folder"))
	if err != nil {
		t.Fatal(err)
	}
	res, err := Join(t.Context(), files, filepath.Join(dir, "joined"), Limits{}, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string][]string{"level": scale}, res.Orders); diff != "" {
		t.Errorf("folder: %s", diff)
	}
	if !cmp.Equal([]string{"plain"}, res.Categories) {
		t.Errorf("folder: categories without an order are %q", res.Categories)
	}
}

// A table without an order is exported as ever; an order that lacks a text, or has one twice, is none.
func TestOrdersThatAreNone(t *testing.T) {
	table, _ := decode(t, fixture("polars.parquet"))
	var text string
	for _, f := range table.Schema().Fields {
		if c, _ := table.Lookup(f.Name); c.Dictionary.Len() > 1 {
			text = f.Name
		}
	}
	c, _ := table.Lookup(text)
	all := c.Dictionary.Sorted()
	for _, order := range [][]string{all[1:], append(all[:len(all):len(all)], all[0]), {}} {
		path := filepath.Join(t.TempDir(), "export.parquet")
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := ExportOrdered(f, table, map[string][]string{text: order, "no such": all}); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if _, res := decode(t, path); res.Orders != nil {
			t.Errorf("%d texts of %d: %v", len(order), len(all), res.Orders)
		}
	}
}
