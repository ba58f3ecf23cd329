package holdout

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/dataset"
)

// rowsBetween are rows from..to-1 of a table.
func rowsBetween(t *testing.T, table *dataset.Table, from, to int) *dataset.Table {
	t.Helper()
	var columns []dataset.Column
	for i := range table.Columns() {
		c := *table.Column(i)
		switch c.Kind {
		case dataset.Bool:
			c.Bools = c.Bools[from:to]
		case dataset.Text:
			c.Codes = c.Codes[from:to]
		default:
			c.Numbers = c.Numbers[from:to]
		}
		columns = append(columns, c)
	}
	made, err := dataset.FromColumns(columns...)
	must(t, err)
	return made
}

// lake is a directory with a table in parts and the same in one file, and what is no table; beside is a directory that is no part of it.
func lake(t *testing.T, table *dataset.Table) (root, beside string) {
	t.Helper()
	root, beside = filepath.Join(t.TempDir(), "lake"), t.TempDir()
	put := func(path string, content []byte) {
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, content, 0o600))
	}
	n := table.Rows()
	for i, to := range []int{n / 3, n / 2, n} {
		put(filepath.Join(root, "visits", string("abc"[i])+".parquet"), parquet(t, rowsBetween(t, table, []int{0, n / 3, n / 2}[i], to)))
	}
	put(filepath.Join(root, "visits.parquet"), parquet(t, table))
	put(filepath.Join(root, "visits", "_SUCCESS"), nil)
	put(filepath.Join(root, "empty", "readme.txt"), []byte("no table"))
	put(filepath.Join(root, "damaged", "a.parquet"), parquet(t, rowsBetween(t, table, 0, 10)))
	put(filepath.Join(root, "damaged", "b.parquet"), []byte("PAR1 and no more"))
	put(filepath.Join(beside, "secret.parquet"), parquet(t, table))
	must(t, os.Symlink(filepath.Join(beside, "secret.parquet"), filepath.Join(root, "link.parquet")))
	must(t, os.MkdirAll(filepath.Join(root, "links"), 0o700))
	must(t, os.Symlink(filepath.Join(beside, "secret.parquet"), filepath.Join(root, "links", "a.parquet")))
	must(t, os.Symlink(beside, filepath.Join(root, "away")))
	must(t, os.MkdirAll(filepath.Join(root, "within", "region=a"), 0o700))
	put(filepath.Join(root, "within", "region=a", "a.parquet"), parquet(t, rowsBetween(t, table, 0, 10)))
	must(t, os.Symlink(filepath.Join(root, "within", "region=a"), filepath.Join(root, "within", "region=b")))
	must(t, os.Symlink(filepath.Join(root, "visits.parquet"), filepath.Join(root, "again.parquet")))
	return root, beside
}

// nothing is the upload of a table that is there already.
func nothing() (string, io.Reader, error) { return "", nil, io.EOF }

// TestPath: a holdout of files in a directory is, byte for byte, that of the same table as an upload, whether they are one or several, or behind a link within the directory. It would notice files in another order, and rows that are left out.
func TestPath(t *testing.T) {
	table := visits(t, 2000, 3)
	root, _ := lake(t, table)
	sources := map[string]Source{"lake": {Engine: EngineFiles, Address: root}}
	set := Settings{Holdout: 0.5, Mechanism: "gaussian", Questions: 200}
	here := openWith(t, t.TempDir(), nil)
	one := create(t, here, set, table)
	for _, path := range []string{"lake/visits", "lake/visits.parquet", "lake/again.parquet", "lake/visits/"} {
		there := openWith(t, t.TempDir(), sources)
		of := set
		of.Path = path
		two, _, err := there.Create(t.Context(), admin, of, nothing, "")
		must(t, err)
		if two.Settings.Path != path || two.Rows != one.Rows {
			t.Errorf("%s: %+v", path, two)
		}
		if answers := sameAnswers(t, here, one.ID, there, two.ID, sourcedQueries); answers < 2 {
			t.Errorf("%s: %d answers", path, answers)
		}
		if left, err := os.ReadDir(there.path(temporaryDir)); err != nil || len(left) > 0 {
			t.Errorf("%s: left are %v, %v", path, left, err)
		}
	}
}

// TestPathIsRefused: nothing outside of the directory is read, what is no table is refused by its name, and no refusal says where the directory is.
func TestPathIsRefused(t *testing.T) {
	table := visits(t, 300, 3)
	root, beside := lake(t, table)
	s := openWith(t, t.TempDir(), map[string]Source{"lake": {Engine: EngineFiles, Address: root}})
	must(t, os.WriteFile(filepath.Join(root, "same.txt"), nil, 0o600))
	for path, says := range map[string]string{
		"pond/visits":                "takes no tables from a source of the name",
		"visits":                     "takes no tables from a source of the name",
		"lake/../" + "lake/visits":   "without a way out",
		"lake//" + beside:            "without a way out",
		"lake/" + "nothing":          "there is no table",
		"lake/empty":                 "there is no file *.parquet in lake/empty",
		"lake/link.parquet":          "leads out of the directory",
		"lake/links":                 "leads out of the directory",
		"lake/away":                  "leads out of the directory",
		"lake/away/secret.parquet":   "leads out of the directory",
		"lake/within":                "lake/within/region=b is a link to a directory",
		"lake":                       "is a link to a directory", // the first of them
		"lake/damaged":               "damaged/b.parquet: ",
		"lake/visits/../../etc":      "without a way out",
		"lake/same.txt":              "is empty",
		"lake/visits/nothing/at/all": "there is no table",
	} {
		_, _, err := s.Create(t.Context(), admin, Settings{Questions: 20, Path: path}, nothing, "")
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), root) || strings.Contains(strings.TrimPrefix(err.Error(), beside), beside) && !strings.Contains(path, beside) {
			t.Errorf("%s: %v, want %q and no place", path, err, says)
		}
	}
	for name, c := range map[string]struct {
		set  Settings
		up   Upload
		says string
	}{
		"a body":           {Settings{Path: "lake/visits"}, SingleUpload(bytes.NewReader(parquet(t, table))), "send no body"},
		"given":            {Settings{Path: "lake/visits", Split: splitGiven}, nothing, "split=given"},
		"a source of rows": {Settings{Source: "lake"}, SingleUpload(bytes.NewReader(parquet(t, table))), "path=lake/TABLE"},
		"an analyst's":     {Settings{Path: "lake/visits"}, nothing, "admin"},
	} {
		who := admin
		if name == "an analyst's" {
			who = analyst
		}
		c.set.Questions = 20
		if _, _, err := s.Create(t.Context(), who, c.set, c.up, ""); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if left, err := os.ReadDir(s.path(temporaryDir)); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
	for name, address := range map[string]string{"no directory": filepath.Join(root, "visits.parquet"), "the data directory": s.dir, "within it": s.path(holdoutsDir), "around it": filepath.Dir(s.dir)} {
		o := Options{Dir: s.dir, AnyFileSystem: true, Sources: map[string]Source{"lake": {Engine: EngineFiles, Address: address}}}
		if name == "no directory" {
			o.Dir = t.TempDir()
		}
		if name != "no directory" {
			other := &Service{dir: s.dir}
			if err := other.openSources(o.Sources); err == nil || !strings.Contains(err.Error(), "one in the other") {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if other, err := Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), "no directory") {
			t.Errorf("%s: %v", name, err)
			_ = other
		}
	}
}

// TestPathAgain: the same request with its Idempotency-Key is the same holdout as long as the files are the same.
func TestPathAgain(t *testing.T) {
	root, _ := lake(t, visits(t, 400, 3))
	s := openWith(t, t.TempDir(), map[string]Source{"lake": {Engine: EngineFiles, Address: root}})
	set := Settings{Questions: 20, Mechanism: "gaussian", Path: "lake/visits"}
	first, replayed, err := s.Create(t.Context(), admin, set, nothing, "k")
	if must(t, err); replayed {
		t.Error("the first time is none again")
	}
	again, replayed, err := s.Create(t.Context(), admin, set, nothing, "k")
	if must(t, err); !replayed || again.ID != first.ID {
		t.Errorf("again: %v, %s and %s", replayed, first.ID, again.ID)
	}
	files, err := filepath.Glob(filepath.Join(root, "visits", "*.parquet"))
	if must(t, err); len(files) != 3 || !slices.IsSorted(files) {
		t.Fatal(files)
	}
	must(t, os.Chtimes(files[1], time.Now(), time.Now().Add(time.Second)))
	if _, _, err := s.Create(t.Context(), admin, set, nothing, "k"); err == nil || KindOf(err) != IdempotencyMismatch {
		t.Errorf("after a file was written: %v", err)
	}
}
