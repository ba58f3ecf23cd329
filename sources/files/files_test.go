package files

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dataset/ingest"
	"github.com/holdoutd/holdoutd/queries/engine"
	"github.com/holdoutd/holdoutd/sources"
)

// The test binary is its own decoding process, and the server that is killed.
const (
	childDecode = "child-decode"
	childDie    = "child-die"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case childDecode:
			os.Exit(ingest.ChildMain())
		case childDie:
			die(os.Args[2], os.Args[3], os.Args[4])
		}
	}
	os.Exit(m.Run())
}

// folder writes rows as files of a table, cut at the given rows.
func folder(t testing.TB, dir string, c *columns, cuts ...int) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	from := 0
	for i, to := range cuts {
		export(t, filepath.Join(dir, fmt.Sprintf("part %d.parquet", i)), c.table(span(from, to)))
		from = to
	}
}

func export(t testing.TB, path string, table *dataset.Table) {
	t.Helper()
	f, err := os.Create(path)
	if err == nil {
		err = errors.Join(ingest.Export(f, table), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, dir string, SegmentRows int64) *Source {
	t.Helper()
	s, err := New(Options{Dir: dir, Parts: filepath.Join(t.TempDir(), "parts"), Argv: []string{os.Args[0], childDecode}, SegmentRows: SegmentRows})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// divide makes two parts of a table, with numbers drawn at random, and returns the places that it gave to rows.
func divide(s *Source, snapshot sources.Snapshot, by sources.Keys, r *rand.Rand) ([]sources.PartInfo, []sources.Place, error) {
	ctx := context.Background()
	units := 0
	if err := s.Units(ctx, snapshot, by, func(u sources.Units) error { units += u.Len(); return nil }); err != nil {
		return nil, nil, err
	}
	where := make([]sources.Place, units)
	specs := []sources.PartSpec{{Name: "training"}, {Name: "holdout"}}
	for _, u := range r.Perm(units) {
		part := 0
		if r.IntN(3) == 0 {
			part = 1
		}
		where[u] = sources.Place{Part: part, Number: specs[part].Units}
		specs[part].Units++
	}
	given := map[string]sources.Place{}
	next := 0
	infos, err := s.Divide(ctx, snapshot, by, specs, func(u sources.Units, to []sources.Place) error {
		for i := range to {
			key := unitName(u.Keys, i)
			if _, ok := given[key]; ok {
				return fmt.Errorf("unit %s comes twice", key)
			}
			given[key] = where[next]
			to[i] = where[next]
			next++
		}
		return nil
	}, nil)
	return infos, where, err
}

func unitName(t *dataset.Table, row int) string {
	var b []byte
	for i := range t.Columns() {
		b = appendCell(b, t.Column(i), row, false)
	}
	return string(b)
}

// TestFolder: a folder of files becomes parts that have its rows, whether rows are units, or values of a key are, or days. It goes the whole way, with decoding processes.
func TestFolder(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	c := draw(r, 300)
	for i := range c.s {
		c.s[i] = fmt.Sprintf("user %d", i%37)
		c.when[i] = float64(i%11)*day + float64(i)
		c.x[i] = float64(i % 37 % 4) // is the same in all rows of a user
		c.p[i] = uint8(i % 2)
	}
	dir := t.TempDir()
	folder(t, filepath.Join(dir, "a table"), c, 80, 80, 299, 300) // one is empty
	s := open(t, dir, 64)
	snapshot, err := s.Look(t.Context(), "a table")
	if err != nil {
		t.Fatal(err)
	}
	if snapshot.Rows != 300 || len(snapshot.Skipped) != 0 || len(snapshot.Schema.Fields) != 6 {
		t.Fatalf("%+v", snapshot)
	}
	for _, by := range []sources.Keys{
		{},
		{Latest: "when", Stratum: "x"},
		{Columns: []string{"at"}, Rows: true},
		{Columns: []string{"s"}, Stratum: "x", Latest: "when"},
		{Columns: []string{"s", "p"}},
		{Columns: []string{"when"}, Day: true},
	} {
		t.Run(fmt.Sprintf("%+v", by), func(t *testing.T) {
			unit := checkUnits(t, s, snapshot, by, c)
			infos, where, err := divide(s, snapshot, by, r)
			if err != nil {
				t.Fatal(err)
			}
			left, _ := s.Parts(t.Context())
			if !slices.Equal(left, []string{"holdout", "training"}) {
				t.Fatalf("it left %q", left)
			}
			a := assigned{rows: make([][]int, len(where)), place: where, specs: []sources.PartSpec{{Units: infos[0].Units}, {Units: infos[1].Units}}}
			for row, u := range unit {
				a.rows[u] = append(a.rows[u], row)
			}
			for i, info := range infos {
				rows, offsets := a.of(i)
				if info.Grouped != (len(by.Columns) > 0 && !by.Rows) {
					t.Errorf("grouped: %v", info.Grouped)
				}
				part, err := s.Open(t.Context(), info, 3)
				if err != nil {
					t.Fatal(err)
				}
				wantWhole(t, part, c)
				if !info.Grouped {
					checkRead(t, part, info, c, rows, offsets)
				}
				if err := s.Drop(t.Context(), info.Name); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// checkUnits returns the unit of each row, in the order in which units are yielded when rows are units, else in the order of their names.
func checkUnits(t *testing.T, s *Source, snapshot sources.Snapshot, by sources.Keys, c *columns) []int {
	t.Helper()
	name := func(row int) string {
		table := c.table([]int{row})
		var b []byte
		for _, column := range by.Columns {
			cell, _ := table.Lookup(column)
			b = appendCell(b, cell, 0, by.Day)
		}
		if len(by.Columns) == 0 {
			cell, _ := table.Lookup("at")
			b = appendCell(b, cell, 0, false)
		}
		return string(b)
	}
	rows, latest := map[string]int64{}, map[string]float64{}
	for row := range len(c.x) {
		rows[name(row)]++
		if at, ok := latest[name(row)]; !ok || c.when[row] > at {
			latest[name(row)] = c.when[row]
		}
	}
	order := map[string]int{}
	err := s.Units(t.Context(), snapshot, by, func(u sources.Units) error {
		for i := range u.Len() {
			unit := unitName(u.Keys, i)
			if u.Rows[i] != rows[unit] {
				return fmt.Errorf("a unit has %d rows, want %d", u.Rows[i], rows[unit])
			}
			if by.Latest != "" && u.Latest[i] != latest[unit] || (by.Latest != "") != (u.Latest != nil) || (by.Stratum != "") != (u.Strata != nil) {
				return fmt.Errorf("its latest time is not %v", latest[unit])
			}
			order[unit] = len(order)
		}
		return nil
	})
	if err != nil || len(order) != len(rows) {
		t.Fatalf("%d units, want %d: %v", len(order), len(rows), err)
	}
	unit := make([]int, len(c.x))
	for row := range unit {
		unit[row] = order[name(row)]
	}
	return unit
}

// wantWhole holds the sums of a part against those of one table of the rows that it says it has, in its order.
func wantWhole(t *testing.T, part sources.Part, c *columns) {
	t.Helper()
	var rows []int
	offsets := []uint32{0}
	grouped := false
	err := part.Read(t.Context(), []string{"at"}, 0, part.Units(), func(b sources.Block) error {
		at := b.Rows.Column(0)
		for _, v := range at.Numbers {
			rows = append(rows, int(v))
			if b.Offsets == nil {
				offsets = append(offsets, uint32(len(rows)))
			}
		}
		if b.Offsets != nil {
			grouped = true
			base := offsets[len(offsets)-1]
			for _, o := range b.Offsets[1:] {
				offsets = append(offsets, base+o)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !grouped {
		offsets = nil
	}
	whole, err := engine.NewTable(c.table(rows), offsets, 3)
	if err != nil {
		t.Fatal(err)
	}
	want, err := whole.Moments(t.Context(), questions(), 1, whole.Units())
	if err != nil {
		t.Fatal(err)
	}
	got, err := part.Moments(t.Context(), questions(), 1, part.Units())
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%v %v, want %v", got, err, want)
	}
}

// TestPlaces: rows that are units have the place that the order of files and rows says, and the parts have them under the numbers that were given.
func TestPlaces(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	c := draw(r, 200)
	for i, x := range c.x {
		if math.IsInf(x, 0) {
			c.x[i] = math.NaN() // for they are exported as nulls
		}
	}
	dir := t.TempDir()
	folder(t, filepath.Join(dir, "t"), c, 50, 120, 200)
	s := open(t, dir, 40)
	snapshot, err := s.Look(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	infos, where, err := divide(s, snapshot, sources.Keys{}, r)
	if err != nil {
		t.Fatal(err)
	}
	a := assigned{place: where, specs: []sources.PartSpec{{Units: infos[0].Units}, {Units: infos[1].Units}}}
	for row := range where {
		a.rows = append(a.rows, []int{row})
	}
	for i, info := range infos {
		rows, offsets := a.of(i)
		checkPart(t, s, info, c, rows, offsets, r)
	}
	facts := func() []sources.Facts {
		part, err := s.Open(t.Context(), infos[0], 1)
		if err != nil {
			t.Fatal(err)
		}
		facts, err := part.Facts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, most := range []int{4, 3} {
			column, ok, err := part.Distinct(t.Context(), "s", most)
			if err != nil || ok != (most == 4) || ok && (column.Len() != 4 || column.Dictionary.Text(int(column.Codes[0])-1) != "a") {
				t.Errorf("at most %d texts: %v %v %v", most, column, ok, err)
			}
		}
		return facts
	}()
	rows, _ := a.of(0)
	want := sources.Facts{Low: math.Inf(1), High: math.Inf(-1)}
	texts := map[string]bool{}
	for _, row := range rows {
		if texts[c.t[row]] = true; math.IsInf(c.x[row], 0) {
			want.Infinite++
		}
		if x := c.x[row]; x-x != 0 {
			want.Nulls++
		} else {
			want.Low, want.High = min(want.Low, x), max(want.High, x)
		}
	}
	delete(texts, "")
	if facts[0] != want || facts[3].Distinct != int64(len(texts)) {
		t.Errorf("%+v and %d texts, want %+v and %d", facts[0], facts[3].Distinct, want, len(texts))
	}
}

// TestTables: what is a table, and what is said of what is none.
func TestTables(t *testing.T) {
	outside := t.TempDir()
	dir := filepath.Join(t.TempDir(), "source")
	c := draw(rand.New(rand.NewPCG(1, 1)), 20)
	folder(t, filepath.Join(dir, "odd [name] ü"), c, 10, 20)
	folder(t, filepath.Join(dir, "deep", "year=2024"), c, 20)
	folder(t, outside, c, 20)
	for name, text := range map[string]string{"odd [name] ü/_SUCCESS": "", "odd [name] ü/.crc": "x", "odd [name] ü/_metadata.parquet": "x", "odd [name] ü/read me.txt": "x"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	folder(t, filepath.Join(dir, "empty"), c, 0, 0)
	folder(t, filepath.Join(dir, "short"), c, 10)
	if err := os.WriteFile(filepath.Join(dir, "short", "z.parquet"), []byte("PAR1"), 0o600); err != nil {
		t.Fatal(err)
	}
	folder(t, filepath.Join(dir, "differs"), c, 10)
	other, err := dataset.FromColumns(dataset.NewText("x", []string{"a"}, nil))
	if err != nil {
		t.Fatal(err)
	}
	export(t, filepath.Join(dir, "differs", "z.parquet"), other)
	for link, to := range map[string]string{"link": outside, "inside": "short", "file.parquet": filepath.Join(outside, "part 0.parquet")} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "linked"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(outside, "part 0.parquet"), filepath.Join(dir, "linked", "a.parquet")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe.parquet"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir, 100)
	for table, want := range map[string]struct {
		rows  int64
		kind  sources.Kind
		words string
	}{
		"odd [name] ü":                {rows: 20},
		"odd [name] ü/":               {rows: 20},
		"odd [name] ü/part 1.parquet": {rows: 10},
		"odd*/part*.parquet":          {rows: 20},
		"deep/*/*.parquet":            {rows: 20},
		"deep":                        {kind: sources.Refused, words: "deep/*/*.parquet"},
		"inside":                      {kind: sources.Refused, words: `file "inside/z.parquet"`},
		"empty":                       {kind: sources.Refused, words: "no rows"},
		"differs":                     {kind: sources.Refused, words: `file "differs/z.parquet"`},
		"":                            {kind: sources.NotFound},
		"none":                        {kind: sources.NotFound},
		"none*":                       {kind: sources.NotFound},
		"..":                          {kind: sources.NotFound},
		"../source":                   {kind: sources.NotFound},
		"deep/../../x":                {kind: sources.NotFound},
		"/etc":                        {kind: sources.NotFound},
		"link":                        {kind: sources.NotFound},
		"link/*":                      {kind: sources.NotFound},
		"link/part 0.parquet":         {kind: sources.NotFound},
		"file.parquet":                {kind: sources.NotFound},
		"linked":                      {kind: sources.NotFound},
		"pipe.parquet":                {kind: sources.Refused, words: "is no file"},
	} {
		snapshot, err := s.Look(t.Context(), table)
		e := (*sources.Error)(nil)
		switch {
		case want.rows > 0:
			if err != nil || snapshot.Rows != want.rows {
				t.Errorf("%q: %d rows, %v", table, snapshot.Rows, err)
			}
		case !errors.As(err, &e) || e.Kind != want.kind || !strings.Contains(e.Detail, want.words):
			t.Errorf("%q: %v, want %s with %q", table, err, want.kind, want.words)
		case strings.Contains(e.Detail, outside) || strings.Contains(e.Detail, dir):
			t.Errorf("%q: the text names a directory: %s", table, e.Detail)
		}
	}
}

// TestOtherTypes: a column of another type, and a column that is missing, in a later file are refused with the name of the file and of the column.
func TestOtherTypes(t *testing.T) {
	dir := t.TempDir()
	column := func(name string, kind dataset.Kind) dataset.Column {
		c := dataset.Column{Field: dataset.Field{Name: name, Kind: kind}}
		if kind == dataset.Bool {
			c.Bools = []uint8{1}
		} else {
			c.Numbers = []float64{1.5}
		}
		return c
	}
	whole := dataset.Column{Field: dataset.Field{Name: "b", Kind: dataset.Number, Source: "INT64"}, Numbers: []float64{1}}
	for name, columns := range map[string][]dataset.Column{
		"width":   {column("a", dataset.Number), whole}, // which would be read as numbers, too
		"type":    {column("a", dataset.Number), column("b", dataset.Bool)},
		"missing": {column("a", dataset.Number)},
		"more":    {column("a", dataset.Number), column("b", dataset.Number), column("c", dataset.Number)},
		"order":   {column("b", dataset.Number), column("a", dataset.Number)},
	} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		for file, columns := range map[string][]dataset.Column{"1.parquet": {column("a", dataset.Number), column("b", dataset.Number)}, "2.parquet": columns} {
			table, err := dataset.FromColumns(columns...)
			if err != nil {
				t.Fatal(err)
			}
			export(t, filepath.Join(dir, name, file), table)
		}
	}
	s := open(t, dir, 100)
	for name, said := range map[string]string{"width": `"b"`, "type": `"b"`, "missing": `"b"`, "more": `"c"`} {
		_, err := s.Look(t.Context(), name)
		if e := (*sources.Error)(nil); !errors.As(err, &e) || e.Kind != sources.Refused || !strings.Contains(e.Detail, said) || !strings.Contains(e.Detail, name+"/2.parquet") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if snapshot, err := s.Look(t.Context(), "order"); err != nil || snapshot.Rows != 2 || snapshot.Schema.Fields[0].Name != "a" {
		t.Errorf("columns in another order: %+v %v", snapshot, err)
	}
}

// TestNoWayOut: a file is not opened through a link, or a path, that leads out of the directory, whoever names it.
func TestNoWayOut(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	folder(t, outside, draw(rand.New(rand.NewPCG(1, 1)), 5), 5)
	if err := os.Symlink(filepath.Join(outside, "part 0.parquet"), filepath.Join(dir, "a.parquet")); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir, 100)
	for _, name := range []string{"a.parquet", "../" + filepath.Base(outside) + "/part 0.parquet"} {
		f, err := s.root.Open(name)
		if err == nil {
			f.Close()
			t.Errorf("%s is opened", name)
		}
		if f, _, err := s.open(name); err == nil {
			f.Close()
			t.Errorf("%s is a file", name)
		}
	}
}

// TestChecksum: rows in another order, and in other files, have the same checksum; another value has not.
func TestChecksum(t *testing.T) {
	c := draw(rand.New(rand.NewPCG(1, 1)), 60)
	dir := t.TempDir()
	folder(t, filepath.Join(dir, "a"), c, 60)
	rows := rand.New(rand.NewPCG(2, 2)).Perm(60)
	export := func(name string, rows []int) {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		export(t, filepath.Join(dir, name, fmt.Sprint(len(rows), ".parquet")), c.table(rows))
	}
	export("b", rows[:13])
	export("b", rows[13:])
	c.p[7] = (c.p[7] + 1) % 3
	export("c", span(0, 60))
	s := open(t, dir, 100)
	var sums []string
	for _, name := range []string{"a", "b", "c"} {
		snapshot, err := s.Look(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, snapshot.Checksum)
	}
	if sums[0] != sums[1] || sums[0] == sums[2] {
		t.Errorf("%q", sums)
	}
}

// TestLateKinds: integers that a float64 cannot hold make their column a text in all files, also where they come in the last one.
func TestLateKinds(t *testing.T) {
	dir := t.TempDir()
	for i, v := range []string{"7", "9007199254740993"} {
		writeInt64(t, filepath.Join(dir, fmt.Sprint(i, ".parquet")), v)
	}
	s := open(t, dir, 100)
	snapshot, err := s.Look(t.Context(), ".")
	if err != nil {
		t.Fatal(err)
	}
	if f := snapshot.Schema.Fields[0]; f.Kind != dataset.Text || f.Source != "INT64" || snapshot.Checksum == "" {
		t.Fatalf("%+v", snapshot)
	}
	infos, _, err := divide(s, snapshot, sources.Keys{}, rand.New(rand.NewPCG(3, 3)))
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]bool{}
	for _, info := range infos {
		if info.Units == 0 {
			continue
		}
		part, err := s.Open(t.Context(), info, 1)
		if err != nil {
			t.Fatal(err)
		}
		column, _, err := part.Distinct(t.Context(), "n", 5)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range column.Dictionary.Sorted() {
			texts[text] = true
		}
	}
	if !texts["7"] || !texts["9007199254740993"] {
		t.Errorf("%v", texts)
	}
}

// TestRefusedKeys: keys that do not say which unit each row is of.
func TestRefusedKeys(t *testing.T) {
	c := draw(rand.New(rand.NewPCG(1, 1)), 40)
	for i := range c.p {
		c.p[i] = uint8(i % 2)
	}
	dir := t.TempDir()
	folder(t, filepath.Join(dir, "t"), c, 20, 40)
	s := open(t, dir, 100)
	snapshot, err := s.Look(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	for _, by := range []sources.Keys{
		{Columns: []string{"s"}},                                // has nulls
		{Columns: []string{"none"}},                             //
		{Columns: []string{"at", "p"}, Places: true},            // of two columns
		{Places: true},                                          // of none
		{Columns: []string{"at"}, Day: true},                    // is no time
		{Columns: []string{"p"}, Rows: true},                    // comes twice
		{Columns: []string{"p"}, Stratum: "s"},                  // differs within p
		{Columns: []string{"at"}, Stratum: "none"},              //
		{Columns: []string{"at"}, Latest: "x"},                  // is no time
		{Columns: []string{"at"}, Latest: "when", Stratum: "-"}, //
	} {
		err := s.Units(t.Context(), snapshot, by, func(sources.Units) error { return nil })
		if e := (*sources.Error)(nil); !errors.As(err, &e) || e.Kind != sources.Refused {
			t.Errorf("%+v: %v", by, err)
		}
		if left, _ := s.Parts(t.Context()); len(left) > 0 {
			t.Errorf("%+v left %q", by, left)
		}
	}
}

// damages are what can happen to a part's files.
func damages() map[string]func(part string) error {
	return map[string]func(part string) error{
		"a value": func(part string) error {
			f, err := os.OpenFile(filepath.Join(segmentDir(part, 1), dataset.ColumnsFile), os.O_RDWR, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteAt([]byte{1, 2, 3}, 64) // of the first column
			return errors.Join(err, f.Close())
		},
		"cut short": func(part string) error {
			return os.Truncate(filepath.Join(segmentDir(part, 1), dataset.ColumnsFile), 100)
		},
		"missing": func(part string) error { return os.RemoveAll(segmentDir(part, 1)) },
		"exchanged": func(part string) error {
			return errors.Join(os.Rename(segmentDir(part, 0), segmentDir(part, 9)), os.Rename(segmentDir(part, 1), segmentDir(part, 0)), os.Rename(segmentDir(part, 9), segmentDir(part, 1)))
		},
		"another manifest": func(part string) error {
			return os.Rename(filepath.Join(segmentDir(part, 0), dataset.ManifestFile), filepath.Join(segmentDir(part, 1), dataset.ManifestFile))
		},
		"other units": func(part string) error { return os.Rename(offsetsFile(part, 0), offsetsFile(part, 1)) },
		"no units":    func(part string) error { return os.Remove(offsetsFile(part, 1)) },
	}
}

// TestDamage: a part whose files are not what was written is [sources.Changed] when it is opened or when the column is read, and never a sum.
func TestDamage(t *testing.T) {
	c := draw(rand.New(rand.NewPCG(9, 9)), 60)
	for name, damage := range damages() {
		for _, unit := range []int{1, 3} {
			if strings.HasSuffix(name, "units") && unit == 1 {
				continue // there are no such files
			}
			s, info := divided(t, c, unit, 25, int64(20/unit), 100)
			before, err := s.Open(t.Context(), info, 1) // it is damaged while it is open
			if err != nil {
				t.Fatal(err)
			}
			want, err := before.Moments(t.Context(), questions(), 0, before.Units())
			if err != nil {
				t.Fatal(err)
			}
			if err := damage(filepath.Join(s.o.Parts, info.Name)); err != nil {
				t.Fatal(err)
			}
			for _, step := range []string{"open before", "opened after"} {
				part := before
				if step == "opened after" {
					if part, err = s.Open(t.Context(), info, 1); err != nil {
						if e := (*sources.Error)(nil); !errors.As(err, &e) || e.Kind != sources.Changed {
							t.Errorf("%s, %s: %v", name, step, err)
						}
						continue
					}
				}
				got, sums := part.Moments(t.Context(), questions(), 0, part.Units())
				if name == "another manifest" && step == "open before" && sums == nil && reflect.DeepEqual(got, want) {
					continue // it knows the manifest that was, and the columns are as they were
				}
				for what, err := range map[string]error{"sums": sums, "check": part.Check(t.Context())} {
					if e := (*sources.Error)(nil); !errors.As(err, &e) || e.Kind != sources.Changed {
						t.Errorf("%s, %s: %s: %v", name, step, what, err)
					}
				}
			}
		}
	}
}

// TestOffsets: units that are cut elsewhere, in a file of the same form, are [sources.Changed]. Nothing else would notice: no row is another.
func TestOffsets(t *testing.T) {
	s, info := divided(t, draw(rand.New(rand.NewPCG(1, 1)), 12), 3, 12, 4, 100)
	dir := filepath.Join(s.o.Parts, "part")
	part, err := s.Open(t.Context(), info, 3)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := part.Moments(t.Context(), questions(), 0, 4); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(offsetsFile(dir, 0)); err != nil {
		t.Fatal(err)
	}
	if _, err := writeOffsets(offsetsFile(dir, 0), []uint32{0, 4, 6, 9, 12}); err != nil {
		t.Fatal(err)
	}
	_, err = part.Moments(t.Context(), questions(), 0, 4)
	if e := (*sources.Error)(nil); !errors.As(err, &e) || e.Kind != sources.Changed {
		t.Error(err)
	}
}

// TestChangedTable: a table that changes before or while it is divided makes no parts, and nothing is left of them.
func TestChangedTable(t *testing.T) {
	c := draw(rand.New(rand.NewPCG(1, 1)), 60)
	dir := t.TempDir()
	at := filepath.Join(dir, "t")
	first := filepath.Join(at, "part 0.parquet")
	changes := map[string]func() error{
		"a byte": func() error {
			f, err := os.OpenFile(first, os.O_RDWR, 0)
			if err != nil {
				return err
			}
			b := make([]byte, 1)
			_, err = f.ReadAt(b, 10)
			b[0]++
			_, err2 := f.WriteAt(b, 10)
			return errors.Join(err, err2, f.Close())
		},
		"a file more": func() error { return os.Link(first, filepath.Join(at, "z.parquet")) },
		"a file less": func() error { return os.Remove(first) },
		"longer": func() error {
			f, err := os.OpenFile(first, os.O_WRONLY|os.O_APPEND, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteString("x")
			return errors.Join(err, f.Close())
		},
	}
	for name, change := range changes {
		for _, when := range []string{"before", "while"} {
			if err := os.RemoveAll(at); err != nil {
				t.Fatal(err)
			}
			folder(t, at, c, 30, 60)
			s := open(t, dir, 100)
			snapshot, err := s.Look(t.Context(), "t")
			if err != nil {
				t.Fatal(err)
			}
			done := false
			alter := func() {
				if !done {
					if done = true; change() != nil {
						t.Fatal("it could not be changed")
					}
				}
			}
			if when == "before" {
				alter()
			}
			number := int64(0)
			_, err = s.Divide(t.Context(), snapshot, sources.Keys{}, []sources.PartSpec{{Name: "all", Units: 60}}, func(u sources.Units, to []sources.Place) error {
				for i := range to {
					to[i].Number = number
					number++
				}
				return nil
			}, func(rows int64) {
				if rows == 60 {
					alter()
				}
			})
			if e := (*sources.Error)(nil); !errors.As(err, &e) || e.Kind != sources.Changed {
				t.Errorf("%s, %s: %v", name, when, err)
			}
			if left, _ := s.Parts(t.Context()); len(left) > 0 {
				t.Errorf("%s, %s: it left %q", name, when, left)
			}
		}
	}
}

// TestDiskFull: a disk that is full in the middle is said to be, and nothing of the parts is left.
func TestDiskFull(t *testing.T) {
	c := draw(rand.New(rand.NewPCG(1, 1)), 60)
	dir := t.TempDir()
	folder(t, filepath.Join(dir, "t"), c, 60)
	s := open(t, dir, 20)
	snapshot, err := s.Look(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Divide(t.Context(), snapshot, sources.Keys{}, []sources.PartSpec{{Name: "all", Units: 60}}, func(u sources.Units, to []sources.Place) error {
		for i := range to {
			to[i].Number = int64(i)
		}
		return os.Symlink("/dev/full", filepath.Join(s.o.Parts, "all", "bucket1"))
	}, nil)
	if e := (*sources.Error)(nil); !errors.As(err, &e) || e.Kind != sources.Unavailable || !strings.Contains(e.Detail, "full") {
		t.Error(err)
	}
	if left, _ := s.Parts(t.Context()); len(left) > 0 {
		t.Errorf("it left %q", left)
	}
}

// TestKilled: what a server that is killed leaves is listed by Parts, goes with Drop, and does not hinder the next one.
func TestKilled(t *testing.T) {
	c := draw(rand.New(rand.NewPCG(1, 1)), 60)
	dir := t.TempDir()
	folder(t, filepath.Join(dir, "t"), c, 30, 60)
	for _, when := range []string{"units", "first", "place", "routed", "made"} {
		s := open(t, dir, 20)
		out, err := exec.Command(os.Args[0], childDie, dir, s.o.Parts, when).CombinedOutput()
		if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("%s: %v\n%s", when, err, out)
		}
		left, err := s.Parts(t.Context())
		if err != nil || len(left) == 0 {
			t.Fatalf("%s: %q %v", when, left, err)
		}
		for _, name := range left {
			if err := s.Drop(t.Context(), name); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.working.sweep(); err != nil { // as the next one does that is opened
			t.Fatal(err)
		}
		if entries, _ := os.ReadDir(s.o.Parts); len(entries) != 1 || entries[0].Name() != filepath.Base(s.working.file()) {
			t.Fatalf("%s: it left %v", when, entries)
		}
		snapshot, err := s.Look(t.Context(), "t")
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := divide(s, snapshot, sources.Keys{}, rand.New(rand.NewPCG(1, 1))); err != nil {
			t.Fatal(err)
		}
	}
}

// die divides a table and is killed on the way.
func die(dir, parts, when string) {
	fail := func(err error) {
		fmt.Println(err)
		os.Exit(1)
	}
	now := func(at string) {
		if at == when {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	s, err := New(Options{Dir: dir, Parts: parts, Argv: []string{os.Args[0], childDecode}, SegmentRows: 20})
	if err != nil {
		fail(err)
	}
	ctx := context.Background()
	snapshot, err := s.Look(ctx, "t")
	if err != nil {
		fail(err)
	}
	by := sources.Keys{Columns: []string{"at"}, Rows: true}
	if err := s.Units(ctx, snapshot, by, func(sources.Units) error { now("units"); return nil }); err != nil {
		fail(err)
	}
	number := int64(0)
	_, err = s.Divide(ctx, snapshot, by, []sources.PartSpec{{Name: "all", Units: 60}}, func(u sources.Units, to []sources.Place) error {
		now("place")
		for i := range to {
			to[i].Number = number
			number++
		}
		return nil
	}, func(rows int64) {
		now("first")
		if rows == 60 {
			now("routed")
		}
	})
	now("made")
	fail(err)
}

// TestParse: what an address says.
func TestParse(t *testing.T) {
	for location, want := range map[string]Options{
		"file:///data/tables":                   {Dir: "/data/tables", Parts: "/here"},
		"file:///data/a%20b/?parts=/other/disk": {Dir: "/data/a b", Parts: "/other/disk"},
	} {
		if got, err := Parse(location, Options{Parts: "/here"}); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v %v", location, got, err)
		}
	}
	for _, location := range []string{"file://data/tables", "file:data", "file:///a?part=/b", "file:///a?parts=b", "file:///a?parts=/b&parts=/c", "file:///a#b", "http:///a", "%"} {
		if got, err := Parse(location, Options{}); err == nil {
			t.Errorf("%s: %+v", location, got)
		}
	}
}

// TestSizeOf: the size of a file is that of its rows, decoded.
func TestSizeOf(t *testing.T) {
	dir := t.TempDir()
	folder(t, dir, draw(rand.New(rand.NewPCG(1, 1)), 50), 50)
	argv := []string{os.Args[0], childDecode}
	got, err := SizeOf(t.Context(), argv, filepath.Join(dir, "part 0.parquet"), ingest.Limits{})
	if want := (Size{Rows: 50, Columns: 6, Bytes: 50 * (3*8 + 2*4 + 1)}); err != nil || got != want {
		t.Errorf("%+v %v, want %+v", got, err, want)
	}
	if _, err := SizeOf(t.Context(), argv, os.Args[0], ingest.Limits{}); !errors.As(err, new(*ingest.Error)) {
		t.Errorf("a file that is no Parquet: %v", err)
	}
}
