//go:build python

package ingest

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// writeFolders writes one table as a folder by each library that writes folders, with the column region as directories, and without.
const writeFolders = `
import sys
import duckdb, pandas as pd, polars as pl, pyarrow as pa, pyarrow.parquet as pq

frame = pd.DataFrame({"x": [float(k) for k in range(6)], "day": pd.date_range("2026-01-01", periods=6).astype("datetime64[us]"),
    "note": ["a", None, "b", "a", "c", None], "region": ["n", "n", "s", "s", "w/e", "w/e"]})
to = sys.argv[1]
frame.to_parquet(to + "/pandas", partition_cols=["region"])
frame.to_parquet(to + "/rows", partition_cols=["region"])
pq.write_table(pa.Table.from_pandas(frame.iloc[:0]).drop_columns(["region"]), to + "/rows/region=n/empty.parquet")  # as Spark writes a task without rows
pl.from_pandas(frame).write_parquet(pl.PartitionBy(to + "/polars", key="region"), mkdir=True)
duckdb.sql(f"COPY frame TO '{to}/duckdb' (FORMAT parquet, PARTITION_BY (region))")
duckdb.sql(f"COPY frame TO '{to}/threads' (FORMAT parquet, PER_THREAD_OUTPUT)")
`

// The folders that libraries write are the table that was written.
func TestFoldersOfWriters(t *testing.T) {
	python := os.Getenv("HOLDOUTD_PYTHON")
	if python == "" {
		t.Fatal("HOLDOUTD_PYTHON must name the interpreter that scripts/python.sh prints; make test sets it")
	}
	dir := t.TempDir()
	if out, err := exec.Command(python, "-c", writeFolders, dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want := []string{
		`day time TIMESTAMP(us) [2026-01-01T00:00:00 2026-01-02T00:00:00 2026-01-03T00:00:00 2026-01-04T00:00:00 2026-01-05T00:00:00 2026-01-06T00:00:00]`,
		`note text STRING ["a" null "b" "a" "c" null]`,
		`region text STRING ["n" "n" "s" "s" "w/e" "w/e"]`,
		`x number DOUBLE [0 1 2 3 4 5]`,
	}
	for _, writer := range []string{"pandas", "rows", "polars", "duckdb", "threads"} {
		lines, err := join(t, filepath.Join(dir, writer))
		if err != nil {
			t.Errorf("%s: %v", writer, err)
			continue
		}
		slices.Sort(lines)
		if diff := cmp.Diff(want, lines); diff != "" {
			t.Errorf("%s: %s", writer, diff)
		}
	}
}
