package ingest

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
)

// sameRows holds rows of a table against a piece of it.
func sameRows(whole, piece *dataset.Table, from int) error {
	for i := range piece.Columns() {
		p := piece.Column(i)
		w, _ := whole.Lookup(p.Name)
		for row := range piece.Rows() {
			at := from + row
			same := p.Null(row) == w.Null(at)
			if same && !p.Null(row) {
				switch p.Kind {
				case dataset.Bool:
					same = p.Bools[row] == w.Bools[at]
				case dataset.Text:
					same = p.Dictionary.Text(int(p.Codes[row])-1) == w.Dictionary.Text(int(w.Codes[at])-1)
				default:
					same = p.Numbers[row] == w.Numbers[at]
				}
			}
			if !same {
				return fmt.Errorf("column %q differs in row %d", p.Name, at)
			}
		}
	}
	return nil
}

// TestPieces: the row groups of a file, each decoded by itself, are the file. A file that is refused as a whole is refused in pieces. Checksums of pieces are of their rows, in any
// order. It would notice a row group that is taken for another, and a text of another dictionary.
func TestPieces(t *testing.T) {
	paths, _ := filepath.Glob("testdata/*.parquet")
	if len(paths) < 20 {
		t.Fatalf("%d files", len(paths))
	}
	groups := 0
	for _, path := range paths {
		lim := DefaultLimits()
		dir := filepath.Join(t.TempDir(), "whole")
		res, err := Decode(t.Context(), path, dir, lim)
		if err != nil {
			continue // the tests of Decode say why; see below for some of them
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		p := Pieces{Argv: []string{os.Args[0], childDecode}, File: f}
		whole, err := dataset.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer whole.Close()
		var wanted []Wanted
		for _, field := range res.Schema.Fields {
			wanted = append(wanted, Wanted{field.Name, field.Kind})
		}
		survey, err := p.Survey(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		slices.Reverse(wanted)
		from := 0
		for group, rows := range survey.Groups {
			if rows == 0 {
				continue
			}
			groups++
			scratch := filepath.Join(t.TempDir(), "piece")
			piece, err := p.Table(t.Context(), scratch, group, group+1, wanted)
			if err != nil {
				t.Fatalf("%s, row group %d: %v", path, group, err)
			}
			defer piece.Close()
			if piece.Rows() != int(rows) || piece.Columns() != len(wanted) {
				t.Fatalf("%s, row group %d: %d rows of %d columns", path, group, piece.Rows(), piece.Columns())
			}
			if err := sameRows(whole, piece, from); err != nil {
				t.Errorf("%s, row group %d: %v", path, group, err)
			}
			if _, err := os.Stat(scratch); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s, row group %d: the directory is still there: %v", path, group, err)
			}
			from += int(rows)
		}
		if from != whole.Rows() {
			t.Errorf("%s: pieces of %d rows, it has %d", path, from, whole.Rows())
		}
	}
	if groups < 20 {
		t.Errorf("%d row groups", groups)
	}
}

// TestRowGroups: of a file of many row groups each has its own rows.
func TestRowGroups(t *testing.T) {
	values := make([]float64, 50)
	for i := range values {
		values[i] = float64(i)
	}
	table, err := dataset.FromColumns(dataset.Column{Field: dataset.Field{Name: "n", Kind: dataset.Number, Source: "DOUBLE"}, Numbers: values})
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "groups.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := bufio.NewWriter(f)
	e, err := newExporter(out, table.Schema(), []bool{false})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.take(table); err != nil {
		t.Fatal(err)
	}
	e.groupRows = 7
	for from := 0; from < 50; from += 7 {
		if err := e.writeGroup(from, min(from+7, 50)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(e.finish(), out.Flush()); err != nil {
		t.Fatal(err)
	}
	p := Pieces{Argv: []string{os.Args[0], childDecode}, File: f}
	for _, groups := range [][2]int{{0, 8}, {0, 1}, {3, 5}, {7, 8}} {
		piece, err := p.Table(t.Context(), filepath.Join(t.TempDir(), "piece"), groups[0], groups[1], []Wanted{{"n", dataset.Number}})
		if err != nil {
			t.Fatal(err)
		}
		if want := values[7*groups[0] : min(7*groups[1], 50)]; !slices.Equal(piece.Column(0).Numbers, want) {
			t.Errorf("row groups %v have %v, want %v", groups, piece.Column(0).Numbers, want)
		}
		if err := piece.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestScan: what a scan finds is what decoding finds, and checksums add up.
func TestScan(t *testing.T) {
	f, err := os.Open("testdata/encodings.parquet")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p := Pieces{Argv: []string{os.Args[0], childDecode}, File: f}
	survey, err := p.Survey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	res, err := Decode(t.Context(), "testdata/encodings.parquet", filepath.Join(t.TempDir(), "whole"), DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	var wanted []Wanted
	for _, field := range survey.Fields {
		wanted = append(wanted, Wanted{field.Name, field.Kind})
	}
	n := len(survey.Groups)
	scan, err := p.Scan(t.Context(), 0, n, wanted)
	if err != nil {
		t.Fatal(err)
	}
	var wide []string
	for i, field := range res.Schema.Fields {
		if survey.Fields[i].Kind != field.Kind {
			wide = append(wide, field.Name)
		}
	}
	if !slices.Equal(scan.Wide, wide) || len(scan.Skipped) != len(res.Skipped)-len(survey.Skipped) {
		t.Errorf("%+v, decoding found %q and %v", scan, wide, res.Skipped)
	}
	slices.Reverse(wanted)
	again, err := p.Scan(t.Context(), 0, n, wanted)
	if err != nil || again.Checksum != scan.Checksum || scan.Checksum == (Checksum{}) {
		t.Errorf("columns in another order: %v %v, want %v", again, err, scan)
	}
	var sum Checksum
	for group := range n {
		s, err := p.Scan(t.Context(), group, group+1, wanted)
		if err != nil {
			t.Fatal(err)
		}
		sum = sum.Plus(s.Checksum)
	}
	if sum != scan.Checksum {
		t.Errorf("row groups have %v, all %v", sum, scan.Checksum)
	}
	fewer, err := p.Scan(t.Context(), 0, n, wanted[1:])
	if err != nil || fewer.Checksum == scan.Checksum {
		t.Errorf("a column less has the same checksum: %v", err)
	}
}

// TestPiecesRefuse: what is asked of a file that it has not is an error of the file.
func TestPiecesRefuse(t *testing.T) {
	for path, kind := range map[string]Kind{"testdata/damaged/levels.parquet": Damaged, "testdata/bomb.parquet": TooLarge, "child.go": NotParquet} {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		p := Pieces{Argv: []string{os.Args[0], childDecode}, File: f}
		survey, err := p.Survey(t.Context())
		if err == nil {
			_, err = p.Scan(t.Context(), 0, len(survey.Groups), wantedOf(survey))
		}
		if e := (*Error)(nil); !errors.As(err, &e) || e.Kind != kind {
			t.Errorf("%s: %v, want %s", path, err, kind)
		}
	}
	f, err := os.Open("testdata/flights-20k.parquet")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p := Pieces{Argv: []string{os.Args[0], childDecode}, File: f}
	survey, err := p.Survey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wanted := wantedOf(survey)
	other := slices.Clone(wanted)
	other[0].Kind = dataset.Bool
	none := append(slices.Clone(wanted), Wanted{"no such column", dataset.Number})
	for _, c := range []struct {
		from, to int
		wanted   []Wanted
	}{{0, len(survey.Groups) + 1, wanted}, {-1, 0, wanted}, {1, 0, wanted}, {0, 1, other}, {0, 1, none}} {
		dir := filepath.Join(t.TempDir(), "piece")
		if _, err := p.Table(t.Context(), dir, c.from, c.to, c.wanted); !errors.As(err, new(*Error)) {
			t.Errorf("%+v: %v", c, err)
		}
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%+v: the directory is still there: %v", c, err)
		}
	}
}

func wantedOf(s Survey) (wanted []Wanted) {
	for _, f := range s.Fields {
		wanted = append(wanted, Wanted{f.Name, f.Kind})
	}
	return wanted
}

// TestKnownTexts: texts of a dictionary of many entries, some of which are empty or come twice, are their own in every row.
func TestKnownTexts(t *testing.T) {
	values := make([]string, 200)
	for i := range values {
		values[i] = fmt.Sprint("t", i*i%1201)
		if i%7 == 0 {
			values[i] = ""
		}
	}
	b := batch{}
	b.begin(DefaultLimits())
	b.textsLeft = 1 << 20
	var data, index []byte
	places := map[string]byte{}
	for _, v := range values[:200] { // entries of the dictionary share places in the list of those that are known
		if _, ok := places[v]; !ok {
			places[v] = byte(len(places))
			data = append(append(data, byte(len(v)), 0, 0, 0), v...)
		}
		index = append(index, places[v])
	}
	form := valueForm{physical: byteArray}
	p := &page{form: form, rows: 200, present: 200, encoding: rleDictionary, dict: &dictionary{data: data, entries: int64(len(places))},
		data: append([]byte{8, 25<<1 | 1}, index...)}
	read := byteTexts(func(v []byte) []byte { return v })
	n, err := read(&b, p)
	if err != nil || n != 200 {
		t.Fatal(n, err)
	}
	for row := range n {
		if got := b.dictionary[b.codes[row]-1]; got != values[row] {
			t.Fatalf("row %d is %q, want %q", row, got, values[row])
		}
	}
	if len(b.dictionary) != len(places) {
		t.Errorf("%d texts, want %d", len(b.dictionary), len(places))
	}
}
