//go:build python

package ingest

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// mendsFiles are files with columns that are skipped, by the language that their reasons speak.
var mendsFiles = map[string]string{"pandas-skipped": "pandas", "fastparquet-bytes": "pandas", "polars-skipped": "Polars", "duckdb-skipped": "DuckDB"}

// runMends runs, for each line of its input, the line of a reason in the language that it is written in, and writes what comes of it as Parquet. What
// stands in a line for a name of one's own is the name that the file has: "field" and "key".
const runMends = `
import json, sys
import duckdb, pandas as pd, polars as pl

for job in json.load(sys.stdin):
    path, name, out = job['file'], job['column'], job['out']
    line = job['line'].replace('"field"', '"a"').replace("'key'", "'k'")
    try:
        if job['language'] == 'DuckDB':
            quoted = '"' + name.replace('"', '""') + '"'
            duckdb.execute(f"copy (select * exclude ({quoted}), {line} from read_parquet('{path}')) to '{out}' (format parquet)")
        else:
            scope = {'pd': pd, 'pl': pl, 'df': pd.read_parquet(path) if job['language'] == 'pandas' else pl.read_parquet(path)}
            exec(line, scope)
            df = scope['df']
            df.to_parquet(out) if job['language'] == 'pandas' else df.write_parquet(out)
    except Exception as e:
        sys.exit(f"{job['language']}: {line}: {type(e).__name__}: {e}")
`

// parseMends compiles the lines of Spark, which are Python, and parses those of ClickHouse as columns of a query, by DuckDB's grammar.
const parseMends = `
import json, sys
import duckdb

for line in json.load(sys.stdin):
    if line.startswith("df"):
        compile(line, line, "exec")
    else:
        assert len(duckdb.extract_statements(f"SELECT {line} FROM t")) == 1, line
`

// TestMendsOfSparkAndClickHouse: the lines for Spark and ClickHouse, which are not installed here, are well formed and are of their language. They were run by hand, on files of
// their own, in pyspark 4.3.0 and chdb 4.4.0.
func TestMendsOfSparkAndClickHouse(t *testing.T) {
	python := os.Getenv("HOLDOUTD_PYTHON")
	if python == "" {
		t.Fatal("HOLDOUTD_PYTHON must name the interpreter that scripts/python.sh prints; make test sets it")
	}
	var lines []string
	for _, s := range []skip{skipList, skipArray, skipMap, skipStruct, skipNull, skipEmpty, skipBinary, skipNew, fixedBytes(16, otherWriter), fixedBytes(32, otherWriter), fixedBytes(5, otherWriter),
		(&skipError{"long", beginnings}).of("STRING"), (&skipError{"many", initials}).of("STRING")} {
		for by, language := range map[program]string{sparkWriter: "Spark", clickhouseWriter: "ClickHouse"} {
			_, line, ok := strings.Cut(s.reason("na\"me", by), "; in "+language+": ")
			if !ok || strings.HasPrefix(line, "df") != (by == sparkWriter) {
				t.Errorf("%s: %s", language, s.reason("na\"me", by))
			}
			lines = append(lines, line)
		}
	}
	for _, s := range []skip{skipInterval, skipVariant} { // which ClickHouse does not write
		_, line, _ := strings.Cut(s.reason("x", sparkWriter), "; in Spark: ")
		lines = append(lines, line)
	}
	input, err := json.Marshal(lines)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, "-c", parseMends)
	cmd.Stdin = strings.NewReader(string(input))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// TestMendsMend: the line in the reason of a skipped column runs in pandas, Polars or DuckDB as it stands, and the column is taken afterwards.
func TestMendsMend(t *testing.T) {
	python := os.Getenv("HOLDOUTD_PYTHON")
	if python == "" {
		t.Fatal("HOLDOUTD_PYTHON must name the interpreter that scripts/python.sh prints; make test sets it")
	}
	type job struct {
		File     string `json:"file"`
		Column   string `json:"column"`
		Language string `json:"language"`
		Line     string `json:"line"`
		Out      string `json:"out"`
	}
	var jobs []job
	dir, taken := t.TempDir(), map[string]int{}
	for name, language := range mendsFiles {
		file := fixture("writers/" + name + ".parquet")
		table, res := decode(t, file)
		taken[file] = table.Columns()
		for _, s := range res.Skipped {
			_, line, ok := strings.Cut(s.Reason, "; in "+language+": ")
			if !ok {
				t.Fatalf("%s: %s: %s", name, s.Name, s.Reason)
			}
			jobs = append(jobs, job{file, s.Name, language, line, filepath.Join(dir, name+"-"+s.Name+".parquet")})
		}
	}
	if len(jobs) < 18 {
		t.Fatalf("%d lines", len(jobs))
	}
	input, err := json.Marshal(jobs)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, "-c", runMends)
	cmd.Stdin = strings.NewReader(string(input))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, j := range jobs {
		table, res := decode(t, j.Out)
		for _, s := range res.Skipped {
			if s.Name == j.Column {
				t.Errorf("%s, %s: %s: still skipped: %s", j.Language, j.Column, j.Line, s.Reason)
			}
		}
		if table.Columns() <= taken[j.File] {
			t.Errorf("%s, %s: %s: no more columns than the %d before", j.Language, j.Column, j.Line, taken[j.File])
		}
	}
}
