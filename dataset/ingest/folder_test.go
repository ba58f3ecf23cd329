package ingest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdoutd/holdoutd/dataset"
)

// lay puts files into a new folder: each is a table, a file to copy, or nothing that is Parquet.
func lay(t *testing.T, files map[string]any) string {
	t.Helper()
	folder := t.TempDir()
	for name, content := range files {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		switch c := content.(type) {
		case *dataset.Table:
			exportTo(t, path, c)
		case string:
			b, err := os.ReadFile(c)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
		default:
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return folder
}

// whole is a table of one column of whole numbers.
func whole(t *testing.T, name string, values ...float64) *dataset.Table {
	return of(t, dataset.Column{Field: dataset.Field{Name: name, Kind: dataset.Number, Source: "INT64"}, Numbers: values})
}

func of(t *testing.T, columns ...dataset.Column) *dataset.Table {
	t.Helper()
	table, err := dataset.FromColumns(columns...)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// join joins the part files of a folder and reads what comes of it through an export, as an upload does.
func join(t *testing.T, folder string) ([]string, error) {
	t.Helper()
	files, err := PartFiles(folder)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(t.TempDir(), "joined")
	done := 0
	res, err := Join(context.Background(), files, dir, Limits{}, func(n int) { done = n })
	if _, left := os.Stat(dir + ".parts"); left == nil {
		t.Error("the decoded files were left")
	}
	if err != nil {
		if _, left := os.Stat(dir); left == nil {
			t.Error("a table was left after", err)
		}
		return nil, err
	}
	if done != len(files) {
		t.Errorf("told of %d of %d files", done, len(files))
	}
	table, err := dataset.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	if int64(table.Rows()) != res.Rows {
		t.Errorf("%d rows, told %d", table.Rows(), res.Rows)
	}
	if diff := cmp.Diff(res.Schema, table.Schema()); diff != "" {
		t.Error(diff)
	}
	out := filepath.Join(t.TempDir(), "joined.parquet")
	exportTo(t, out, table)
	again, _ := decode(t, out)
	if diff := cmp.Diff(again.Rows(), table.Rows()); diff != "" {
		t.Error(diff)
	}
	return shown(table, res), nil
}

func TestJoinedFolders(t *testing.T) {
	texts := func(values ...string) *dataset.Table { return of(t, dataset.NewText("t", values, nil)) }
	for name, c := range map[string]struct {
		files map[string]any
		want  []string
	}{
		"in the order of paths": {map[string]any{"b.parquet": whole(t, "x", 3), "a.parquet": whole(t, "x", 1, 2), "a/z.parquet": whole(t, "x", 0)},
			[]string{"x number INT64 [0 1 2 3]"}},
		"what is no part": {map[string]any{"a.parquet": whole(t, "x", 1), "_SUCCESS": nil, ".a.parquet.crc": nil, "notes.txt": nil, "_temporary/0/b.parquet": whole(t, "x", 9),
			".hidden.parquet": whole(t, "x", 9)}, []string{"x number INT64 [1]"}},
		"texts of their own": {map[string]any{"a.parquet": texts("u", "v"), "b.parquet": texts("w", "u", "v")}, []string{`t text STRING ["u" "v" "w" "u" "v"]`}},
		"columns that come later": {map[string]any{"a.parquet": whole(t, "x", 1), "b.parquet": texts("u"),
			"c.parquet": of(t, dataset.Column{Field: dataset.Field{Name: "y", Kind: dataset.Bool, Source: "BOOLEAN"}, Bools: []uint8{1}})},
			[]string{"x number INT64 [1 null null]", `t text STRING [null "u" null]`, "y bool BOOLEAN [null null true]"}},
		"keys": {map[string]any{"region=a/day=1/p.parquet": whole(t, "x", 1, 2), "region=b%2Fc/day=-2/p.parquet": whole(t, "x", 3),
			"region=__HIVE_DEFAULT_PARTITION__/day=__HIVE_DEFAULT_PARTITION__/p.parquet": whole(t, "x", 4)},
			[]string{"x number INT64 [4 1 2 3]", `region text STRING [null "a" "a" "b/c"]`, "day number INT64 [null 1 1 -2]"}},
		"keys that a float cannot hold": {map[string]any{"k=9007199254740993/p.parquet": whole(t, "x", 1), "k=1/p.parquet": whole(t, "x", 2)},
			[]string{"x number INT64 [2 1]", `k text STRING ["1" "9007199254740993"]`}},
		"escaped keys":                  {map[string]any{"a%3Db=c=d%25e%zz/p.parquet": whole(t, "x", 1)}, []string{"x number INT64 [1]", `a=b text STRING ["c=d%25e%zz"]`}},
		"keys that the files have, too": {map[string]any{"x=a/p.parquet": whole(t, "x", 1), "x=b/p.parquet": whole(t, "x", 2)}, []string{"x number INT64 [1 2]"}},
		"integers beyond 2^53, and no values": {map[string]any{"a.parquet": fixture("writers/given-empty.parquet"), "b.parquet": fixture("writers/given-wide.parquet")},
			[]string{"i number INT64 [0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7]",
				`id text INT64 ["0" "1" "2" "3" "4" "5" "6" "7" "9007199254740993" "9007199254740994" "9007199254740995" "9007199254740996" "9007199254740997" "9007199254740998" "9007199254740999" "9007199254741000"]`,
				`note text STRING [null null null null null null null null "seen" "new" "seen" "new" "seen" "new" "seen" "new"]`}},
		"the null type first": {map[string]any{"a.parquet": fixture("writers/pandas-skipped.parquet"), "b.parquet": of(t, dataset.NewText("none", []string{"n"}, nil))},
			[]string{"i number INT64 [1 2 1 2 null]", `none text STRING [null null null null "n"]`}},
	} {
		t.Run(name, func(t *testing.T) {
			lines, err := join(t, lay(t, c.files))
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range c.want {
				if i >= len(lines) || lines[i] != want {
					t.Errorf("want %s in\n%s", want, strings.Join(lines, "\n"))
				}
			}
		})
	}
}

func TestFoldersThatAreNoTable(t *testing.T) {
	x := whole(t, "x", 1)
	for want, files := range map[string]map[string]any{
		"there is no file *.parquet in":                                                           {"a.csv": nil, "_b.parquet": x},
		`are not of one table: their paths name the columns ["r"] and []`:                         {"a/r=1/p.parquet": x, "b.parquet": x},
		`names the column "r" twice`:                                                              {"r=1/r=2/p.parquet": x},
		"differ: the column \"x\" is number (INT64) in the one and text (STRING) in the other":    {"a.parquet": x, "b.parquet": of(t, dataset.NewText("x", []string{"u"}, nil))},
		"is number (TIME(us), seconds since midnight) in the one and number (INT64) in the other": {"a.parquet": fixture("writers/pandas-notes.parquet"), "b.parquet": whole(t, "start", 1)},
		`have a column "k", and all of their paths have it`:                                       {"k=1/p.parquet": x, "k=2/p.parquet": whole(t, "k", 2)},
		"b.parquet: row group 0 of the column":                                                    {"a.parquet": x, "b.parquet": fixture("damaged/levels.parquet")},
		`deltalake.DeltaTable("`:                                                                  {"p.parquet": x, "_delta_log/0.json": nil},
		`.format("hudi").load("`:                                                                  {"p.parquet": x, ".hoodie/hoodie.properties": nil},
		`v10.metadata.json").collect()`:                                                           {"data/p.parquet": x, "metadata/v9.metadata.json": nil, "metadata/v10.metadata.json": nil},
	} {
		lines, err := join(t, lay(t, files))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v %v", want, lines, err)
		}
	}
}

// A column whose texts are too many together is left out, as it is of one file.
func TestJoinedTextsAreLimited(t *testing.T) {
	many := func(from int) *dataset.Table {
		var values []string
		for i := range 60 {
			values = append(values, fmt.Sprint(from+i))
		}
		return of(t, dataset.NewText("t", values, nil), dataset.Column{Field: dataset.Field{Name: "x", Kind: dataset.Number}, Numbers: make([]float64, 60)})
	}
	files, err := PartFiles(lay(t, map[string]any{"a.parquet": many(0), "b.parquet": many(50)}))
	if err != nil {
		t.Fatal(err)
	}
	for limit, want := range map[int]int{110: 2, 109: 1} {
		res, err := Join(context.Background(), files, filepath.Join(t.TempDir(), "joined"), Limits{MaxTexts: limit}, func(int) {})
		if err != nil || len(res.Schema.Fields) != want || len(res.Skipped) != 2-want {
			t.Errorf("%d texts: %v %v", limit, res, err)
		}
	}
}

// TestJoinTakesTheirPlace: a column of the decoded files has no place on the disk any more once the table has it, so that there is room for one of both. Files that cannot be written are not the folder's fault.
func TestJoinTakesTheirPlace(t *testing.T) {
	const rows = 100_000
	many := func(from int) *dataset.Table {
		columns := []dataset.Column{dataset.NewText("t", []string{"u", "v"}, nil), {Field: dataset.Field{Name: "b", Kind: dataset.Bool}, Bools: make([]uint8, rows)}}
		columns[0].Codes = make([]uint32, rows)
		for k := range 3 {
			columns = append(columns, dataset.Column{Field: dataset.Field{Name: fmt.Sprint("x", k), Kind: dataset.Number, Source: "INT64"}, Numbers: make([]float64, rows)})
			for i := range rows {
				columns[k+2].Numbers[i], columns[0].Codes[i] = float64(from+i*k), uint32(i%3)
			}
		}
		return of(t, columns...)
	}
	folder := lay(t, map[string]any{"a.parquet": many(1), "b.parquet": many(rows)})
	files, dir := inRoot(t, folder), filepath.Join(t.TempDir(), "joined")
	root, err := os.OpenRoot(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	j := joined{root: root, lim: DefaultLimits(), work: dir + partsSuffix}
	if err := os.Mkdir(j.work, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if err := j.decode(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
	taken := func(dir string) (bytes int64) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			info, err := e.Info()
			if err != nil {
				t.Fatal(err)
			}
			bytes += info.Sys().(*syscall.Stat_t).Blocks * 512
		}
		return bytes
	}
	before := taken(j.part(0))
	if err := j.plan(); err != nil {
		t.Fatal(err)
	}
	if _, err := j.write(dir); err != nil {
		t.Fatal(err)
	}
	if after := taken(j.part(0)); runtime.GOOS == "linux" && (before < rows*29 || after > rows*2) { // one of three kinds is small: its blocks stay
		t.Errorf("a decoded file takes %d bytes, and %d when its columns are in the table", before, after)
	}
}

// TestJoinClassifies: what the machine or a limit says while a table is put together is not said of the folder, and has no path of the server in it.
func TestJoinClassifies(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	x := whole(t, "x", make([]float64, 50_000)...)
	folder, dir := lay(t, map[string]any{"a.parquet": x, "b.parquet": x}), filepath.Join(t.TempDir(), "table")
	_, _, err = RunFiles(t.Context(), []string{self, childDecode}, folder, inRoot(t, folder), dir, Limits{MaxOutputBytes: 600_000}) // one file has 400,000
	if e := (*Error)(nil); !errors.As(err, &e) || e.Kind != Limit || strings.Contains(e.Detail, dir) {
		t.Errorf("a table beyond the limit: %v", err)
	}
	for errno, want := range map[error]Kind{syscall.ENOSPC: DiskFull, syscall.EDQUOT: DiskFull, syscall.EFBIG: Limit, syscall.EIO: Unavailable, syscall.EINVAL: Internal} {
		cause := fmt.Errorf("dataset: write %s: %w", dir, &os.PathError{Op: "write", Path: dir, Err: errno.(syscall.Errno)})
		if e := classify(cause, 7).(*Error); e.Kind != want || strings.Contains(e.Detail, dir) {
			t.Errorf("%v: %v", errno, e)
		}
	}
}

// inRoot are the part files of a folder, by paths within it, as they are now.
func inRoot(t *testing.T, folder string) []PartFile {
	t.Helper()
	files, err := PartFiles(folder)
	if err != nil {
		t.Fatal(err)
	}
	for i := range files {
		info, err := os.Stat(files[i].Path)
		if err != nil {
			t.Fatal(err)
		}
		files[i].Size, files[i].Modified = info.Size(), info.ModTime().UnixNano()
		if files[i].Path, err = filepath.Rel(folder, files[i].Path); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// TestRunFiles: the child joins files as this process does, also more of them than it may hold open, and says which one is damaged; an error leaves nothing.
func TestRunFiles(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	laid := map[string]any{}
	for i := range 3 * maxOpenFiles {
		laid[fmt.Sprintf("day=%03d/part.parquet", i)] = of(t,
			dataset.Column{Field: dataset.Field{Name: "x", Kind: dataset.Number, Source: "INT64"}, Numbers: []float64{float64(i), 7}}, dataset.NewText("s", []string{"a", fmt.Sprint("b", i%5)}, nil))
	}
	folder, work := lay(t, laid), t.TempDir()
	files := inRoot(t, folder)
	dir := filepath.Join(work, "table")
	res, table, err := RunFiles(t.Context(), []string{self, childDecode}, folder, files, dir, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	want, err := join(t, folder)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, shown(table, res)); diff != "" {
		t.Error("the child joins otherwise than this process", diff)
	}
	if err := table.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	seventh := filepath.Join(folder, files[7].Path)
	if err := os.WriteFile(seventh, []byte("PAR1 and no more"), 0o600); err != nil {
		t.Fatal(err)
	}
	files = inRoot(t, folder)
	_, _, err = RunFiles(t.Context(), []string{self, childDecode}, folder, files, dir, Limits{})
	if e := (*Error)(nil); !errors.As(err, &e) || e.Kind == Internal || !strings.HasPrefix(e.Detail, files[7].Path+": ") {
		t.Errorf("a damaged file: %v", err)
	}
	outside := filepath.Join(t.TempDir(), "outside.parquet")
	exportTo(t, outside, whole(t, "x", 1, 2))
	for name, c := range map[string]struct {
		change func() error
		says   string
	}{
		"a link that leads out":   {func() error { return os.Symlink(outside, seventh) }, "cannot be read"},
		"a link of the same kind": {func() error { return os.Symlink("../../"+filepath.Base(outside), seventh) }, "cannot be read"},
		"a pipe":                  {func() error { return syscall.Mkfifo(seventh, 0o600) }, "is no file"},
		"another file":            {func() error { return os.WriteFile(seventh, []byte("PAR1"), 0o600) }, "was changed"},
		"none":                    {func() error { return nil }, "cannot be read"},
	} {
		if err := errors.Join(os.RemoveAll(seventh), c.change()); err != nil {
			t.Fatal(name, err)
		}
		_, _, err = RunFiles(t.Context(), []string{self, childDecode}, folder, files, dir, Limits{})
		if e := (*Error)(nil); !errors.As(err, &e) || !strings.Contains(e.Detail, c.says) || e.Kind == Internal || e.Kind == Unavailable {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := os.Mkdir(dir+partsSuffix, 0o700); err != nil { // what a child leaves that is killed while it joins
		t.Fatal(err)
	}
	if _, _, err = RunFiles(t.Context(), []string{self, childKilled}, folder, files, dir, Limits{}); err == nil {
		t.Error("a child that was killed has joined files")
	}
	if left, err := os.ReadDir(work); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}
