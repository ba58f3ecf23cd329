//go:build python

package ingest

import (
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
)

// readExport prints, for pandas (pyarrow), DuckDB and Polars each, the columns of a Parquet file as lists: numbers as
// they are, times as microseconds since 1970, nulls as null; and the types that each gave them.
const readExport = `
import datetime as dt, json, math, sys
import duckdb, pandas as pd, polars as pl, pyarrow.parquet as pq

epoch = dt.datetime(1970, 1, 1)

def plain(v):
    if v is None or v is pd.NaT or (isinstance(v, float) and math.isnan(v)):
        return None
    if isinstance(v, pd.Timestamp):
        v = v.to_pydatetime()
    if isinstance(v, dt.datetime):
        if v.tzinfo is not None:
            v = v.astimezone(dt.timezone.utc).replace(tzinfo=None)
        return (v - epoch) // dt.timedelta(microseconds=1)
    if isinstance(v, dt.date):
        return (v - epoch.date()).days * 86400 * 10**6
    if hasattr(v, 'item'):
        v = v.item()
    return v

path = sys.argv[1]
table = pq.read_table(path)
frame = pd.read_parquet(path, dtype_backend='numpy_nullable')
duck = duckdb.connect()
described = duck.execute('describe select * from read_parquet(?)', [path]).fetchall()
names = [d[0] for d in described]
# Through epoch_us, since DuckDB hands out zoned timestamps only where pytz is installed.
wanted = ', '.join(('epoch_us("%s")' if d[1].startswith(('TIMESTAMP', 'DATE')) else '"%s"') % d[0] for d in described)
fetched = duck.execute(f'select {wanted} from read_parquet(?)', [path]).fetchall()
bears = pl.read_parquet(path)
out = {
    'pyarrow': {n: [plain(v) for v in table.column(n).to_pylist()] for n in table.column_names},
    'pandas': {n: [None if v is pd.NA else plain(v) for v in frame[n].tolist()] for n in frame.columns},
    'duckdb': {n: [plain(r[i]) for r in fetched] for i, n in enumerate(names)},
    'polars': {n: [plain(v) for v in bears[n].to_list()] for n in bears.columns},
}
types = {f.name: str(f.type) for f in table.schema}
json.dump({'columns': out, 'types': types}, sys.stdout)
`

// Exports open in pandas, pyarrow, DuckDB and Polars with the same values, nulls and types.
func TestExportOpensInPython(t *testing.T) {
	python := os.Getenv("HOLDOUTD_PYTHON")
	if python == "" {
		t.Fatal("HOLDOUTD_PYTHON must name the interpreter that scripts/python.sh prints; make test sets it")
	}
	for _, name := range []string{"types-pyarrow-none-v1.parquet", "polars.parquet", "duckdb.parquet", "flights-20k.parquet"} {
		t.Run(name, func(t *testing.T) {
			table, _ := decode(t, fixture(name))
			path := filepath.Join(t.TempDir(), "export.parquet")
			exportTo(t, path, table)
			cmd := exec.Command(python, "-c", readExport, path)
			var stderr strings.Builder
			cmd.Stderr = &stderr
			stdout, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v\n%s", err, stderr.String())
			}
			var got struct {
				Columns map[string]map[string][]any
				Types   map[string]string
			}
			if err := json.Unmarshal(stdout, &got); err != nil {
				t.Fatal(err)
			}
			for _, library := range []string{"pyarrow", "pandas", "duckdb", "polars"} {
				compareColumns(t, library, table, got.Columns[library])
			}
			checkTypes(t, table, got.Types)
		})
	}
}

func compareColumns(t *testing.T, library string, table *dataset.Table, got map[string][]any) {
	t.Helper()
	if len(got) != table.Columns() {
		t.Errorf("%s sees %d columns, want %d", library, len(got), table.Columns())
	}
	for i := range table.Columns() {
		c := table.Column(i)
		values := got[c.Name]
		if len(values) != c.Len() {
			t.Errorf("%s: %s has %d rows, want %d", library, c.Name, len(values), c.Len())
			continue
		}
		for row, v := range values {
			if want := expected(c, row); v != want {
				t.Errorf("%s: %s row %d: %v, want %v", library, c.Name, row, v, want)
				break
			}
		}
	}
}

// expected is a value as JSON gives it back.
func expected(c *dataset.Column, row int) any {
	switch {
	case c.Null(row):
		return nil
	case c.Kind == dataset.Bool:
		return c.Bools[row] == 1
	case c.Kind == dataset.Text:
		return c.Dictionary.Text(int(c.Codes[row]) - 1)
	case c.Kind == dataset.Time:
		return math.Floor(c.Numbers[row])
	}
	return c.Numbers[row]
}

// checkTypes compares what pyarrow calls the columns with what their sources were.
func checkTypes(t *testing.T, table *dataset.Table, types map[string]string) {
	t.Helper()
	for _, f := range table.Schema().Fields {
		want := map[dataset.Kind]string{dataset.Bool: "bool", dataset.Text: "string", dataset.Number: "double"}[f.Kind]
		switch {
		case f.Kind == dataset.Time && f.Source == "DATE":
			want = "date32[day]"
		case f.Kind == dataset.Time && strings.HasSuffix(f.Source, "UTC)"):
			want = "timestamp[us, tz=UTC]"
		case f.Kind == dataset.Time:
			want = "timestamp[us]"
		case f.Kind == dataset.Number && strings.Contains(f.Source, "INT"):
			want = "int64"
		}
		if types[f.Name] != want {
			t.Errorf("%s (%s) is exported as %s, want %s", f.Name, f.Source, types[f.Name], want)
		}
	}
}

// TestRandomFiles: 160 files that pyarrow, Polars and DuckDB wrote of random values hold what was put into them: in every encoding of every
// type, decimals of every number of digits, with nulls and without, of both versions of pages and three of the format, of pages of one value
// and of thousands, with row groups that are empty, with dictionaries that end in the middle of a chunk, and beside nested columns. A decoder
// that is wrong for a width, a sign, the last values of a block, or behind a null, gives other values.
func TestRandomFiles(t *testing.T) {
	for _, some := range []struct{ writer, files string }{{"pyarrow", "110"}, {"polars", "25"}, {"duckdb", "25"}} {
		t.Run(some.writer, func(t *testing.T) { randomFiles(t, some.writer, some.files, "20261122") })
	}
}

func randomFiles(t *testing.T, writer, files, seed string) {
	dir := t.TempDir()
	if out, err := exec.Command(os.Getenv("HOLDOUTD_PYTHON"), "testdata/write_random.py", dir, files, seed, writer).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*.parquet"))
	if err != nil || strconv.Itoa(len(paths)) != files {
		t.Fatalf("%d files, %v", len(paths), err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(strings.TrimSuffix(path, "parquet") + "json")
		if err != nil {
			t.Fatal(err)
		}
		var want map[string][]any
		if err := json.Unmarshal(data, &want); err != nil {
			t.Fatal(err)
		}
		table, res := decode(t, path)
		for _, s := range res.Skipped {
			if s.Name != "nested" {
				t.Errorf("%s: %s is skipped: %s", path, s.Name, s.Reason)
			}
		}
		if res.Rows != int64(table.Rows()) {
			t.Errorf("%s: %d rows", path, res.Rows)
		}
		compareColumns(t, filepath.Base(path), table, want)
	}
}
