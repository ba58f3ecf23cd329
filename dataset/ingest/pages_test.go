package ingest

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/dataset"
)

// In a file with checksums no flipped bit may change a value: the file is refused, or what it says is the same. The
// test flips a bit of every byte before the footer, in turn. It would notice a reader that ignores checksums.
func TestChecksumsFindFlippedBits(t *testing.T) {
	data := read(t, "checksums.parquet")
	table, res := decode(t, fixture("checksums.parquet"))
	want := shown(table, res)
	footer := len(data) - 8 - int(binary.LittleEndian.Uint32(data[len(data)-8:]))
	refusals := 0
	for bit := 4 * 8; bit < footer*8; bit += 9 {
		b := slices.Clone(data)
		b[bit/8] ^= 1 << (bit % 8)
		dir := filepath.Join(t.TempDir(), "table")
		res, err := Decode(context.Background(), write(t, b), dir, hostileLimits)
		if e := (*Error)(nil); errors.As(err, &e) {
			refusals++
			if e.Kind != Damaged && e.Kind != TooLarge || !strings.Contains(e.Detail, "page") && !strings.Contains(e.Detail, "row group") {
				t.Fatalf("bit %d: %v, want a damaged file and where", bit, err)
			}
			continue
		}
		table, err := dataset.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, shown(table, res)); d != "" {
			t.Fatalf("bit %d is flipped and values change without an error:\n%s", bit, d)
		}
		if err := table.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if total := (footer*8 - 32) / 9; refusals < total*9/10 {
		t.Errorf("%d of %d flipped bits are noticed; some may be in what nobody reads, not so many", refusals, total)
	}
}

// Damage that a page shows without a checksum, and that a decoder makes nulls or numbers of. pyarrow
// refuses each of these files too.
func TestDamageThatPagesShow(t *testing.T) {
	for name, reason := range map[string]string{
		"levels":     "its levels are damaged",
		"snappy":     "snappy: corrupt input",
		"indices":    "its values are damaged",
		"values-end": "its values are damaged",
		"run-length": "its values are damaged",
		"header":     "its header is not complete",
		"page-size":  "a size that cannot be",
	} {
		e := refused(t, fixture(filepath.Join("damaged", name+".parquet")), Limits{}, Damaged)
		if e.Column == "" || !strings.Contains(e.Detail, reason) || !strings.Contains(e.Detail, "row group 0") {
			t.Errorf("%s: %v, want %q with column and row group", name, e, reason)
		}
	}
}

// What each encoding's bytes must be for a number of values: one right, and what is wrong in all ways that lengths and
// counts can show.
func TestValueForms(t *testing.T) {
	number := formOf(int32Type, -1, true)
	text := formOf(byteArray, -1, true)
	truth := formOf(boolean, -1, true)
	fixed := formOf(fixedLenByteArray, 3, true)
	for _, c := range []struct {
		name       string
		form       valueForm
		encoding   encoding
		data       string
		present    int64
		dictionary int64
		ok         bool
	}{
		{"plain", number, plain, "12345678", 2, -1, true},
		{"plain, a byte too many", number, plain, "123456789", 2, -1, false},
		{"plain, a value too many", number, plain, "12345678\x00\x00\x00\x01", 2, -1, false},
		{"plain, a value too few", number, plain, "1234", 2, -1, false},
		{"plain fixed", fixed, plain, "abcdef", 2, -1, true},
		{"plain fixed short", fixed, plain, "abcde", 2, -1, false},
		{"plain booleans", truth, plain, "\xff\x01", 9, -1, true},
		{"plain booleans short", truth, plain, "\xff", 9, -1, false},
		{"plain texts", text, plain, "\x01\x00\x00\x00a\x00\x00\x00\x00", 2, -1, true},
		{"plain texts beyond", text, plain, "\x02\x00\x00\x00a", 1, -1, false},
		{"plain texts left", text, plain, "\x01\x00\x00\x00ab", 1, -1, false},
		{"indexes", number, rleDictionary, "\x02\x08\x03", 4, 4, true},
		{"indexes, old name", number, plainDictionary, "\x02\x08\x03", 4, 4, true},
		{"indexes too few", number, rleDictionary, "\x02\x06\x03", 4, 4, false},
		{"indexes too many", number, rleDictionary, "\x02\x0a\x03", 4, 4, false},
		{"index beyond the dictionary", number, rleDictionary, "\x02\x08\x03", 4, 3, false},
		{"no dictionary", number, rleDictionary, "\x02\x08\x03", 4, -1, false},
		{"no dictionary for no values", number, rleDictionary, "\x00", 0, -1, true},
		{"empty dictionary", number, rleDictionary, "\x02\x08\x00", 4, 0, false},
		{"no indexes for no values", number, rleDictionary, "", 0, 4, true},
		{"no indexes for values", number, rleDictionary, "", 1, 4, false},
		{"32 bits", number, rleDictionary, "\x20\x08\x01\x00\x00\x00", 4, 4, true},
		{"34 bits", number, rleDictionary, "\x22\x08\x01\x00\x00\x00\x00", 4, 4, false},
		{"packed indexes", number, rleDictionary, "\x01\x03\xff", 4, 4, true},
		{"packed indexes short", number, rleDictionary, "\x02\x03\xff", 4, 4, false},
		{"run of none", number, rleDictionary, "\x02\x00\x03\x08\x03", 4, 4, false},
		{"booleans", truth, rle, "\x02\x00\x00\x00\x08\x01", 4, -1, true},
		{"booleans beyond", truth, rle, "\x03\x00\x00\x00\x08\x01", 4, -1, false},
		{"delta", number, deltaBinaryPacked, "\x80\x01\x04\x01\x00", 1, -1, true},
		{"delta of another count", number, deltaBinaryPacked, "\x80\x01\x04\x02\x00", 1, -1, false},
		{"delta texts of another count", text, deltaByteArray, "\x80\x01\x04\x02\x00", 1, -1, false},
		{"stream split", number, byteStreamSplit, "12345678", 2, -1, true},
		{"stream split short", number, byteStreamSplit, "1234567", 2, -1, false},
		{"stream split of texts", text, byteStreamSplit, "", 1, -1, false},
		{"an encoding of the future", number, encoding(77), "1234", 1, -1, false},
	} {
		if _, err := c.form.check([]byte(c.data), c.encoding, c.present, c.dictionary); (err == nil) != c.ok {
			t.Errorf("%s: %v, want ok %v", c.name, err, c.ok)
		}
	}
}

// Levels in any mixture of runs are counted as they were put in, and no level may be missing.
func TestLevelsAreCounted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var data []byte
		var values, ones int64
		for range rapid.IntRange(1, 6).Draw(t, "runs") {
			if rapid.Bool().Draw(t, "packed") {
				packed := rapid.SliceOfN(rapid.Byte(), 1, 20).Draw(t, "bits")
				data = append(binary.AppendUvarint(data, uint64(len(packed))<<1|1), packed...)
				values += int64(8 * len(packed))
				ones += countBits(append(packed, make([]byte, 8)...), int64(8*len(packed)))
				continue
			}
			run, v := rapid.Int64Range(1, 1000).Draw(t, "run"), rapid.ByteRange(0, 1).Draw(t, "level")
			data = append(binary.AppendUvarint(data, uint64(run)<<1), v)
			values, ones = values+run, ones+run*int64(v)
		}
		if got, err := countLevels(data, values); err != nil || got != ones {
			t.Fatalf("%d, %v, want %d", got, err, ones)
		}
		if _, err := countLevels(data, values+1); err == nil {
			t.Fatal("a level too few is not noticed")
		}
		if _, err := countLevels(data[:len(data)-1], values); err == nil {
			t.Fatal("a missing byte is not noticed")
		}
	})
}

func TestBitPackedLevels(t *testing.T) {
	if present, length, err := levelsV1([]byte{0b1011_0000, 0b1000_0000, 9}, bitPacked, 9); present != 4 || length != 2 || err != nil {
		t.Errorf("%d present, %d bytes, %v, want 4, 2", present, length, err)
	}
	if _, _, err := levelsV1([]byte{1}, bitPacked, 9); err == nil {
		t.Error("levels beyond the page are taken")
	}
}

// Columns that cannot be read are named with the reason, and their neighbours are read.
func TestColumnsThatAreSkipped(t *testing.T) {
	for name, want := range map[string]struct {
		columns int
		skipped string
	}{
		"unknown-logical-type.parquet": {1, "its logical type is newer than this program"},
		"encrypted-columns.parquet":    {3, "DOUBLE: it is encrypted"},
	} {
		table, res := decode(t, fixture(name))
		found := slices.ContainsFunc(res.Skipped, func(s Skipped) bool { return strings.HasPrefix(s.Reason, want.skipped) })
		if table.Columns() != want.columns || !found {
			t.Errorf("%s: %d columns, skipped %v", name, table.Columns(), res.Skipped)
		}
	}
	table, _ := decode(t, fixture("datapage_v2_empty_datapage.snappy.parquet"))
	if c, _ := table.Lookup("value"); table.Rows() != 1 || c == nil || !c.Null(0) {
		t.Error("a page of version 2 without values is one null")
	}
}

// The unit of a duration stands in Arrow's schema alone; it is the column's source.
func TestDurations(t *testing.T) {
	table, _ := decode(t, fixture("checksums.parquet"))
	c, _ := table.Lookup("d")
	if c.Source != "DURATION(us)" || c.Kind != dataset.Number || c.Numbers[2] != 3 {
		t.Errorf("%+v", c.Field)
	}
	path := filepath.Join(t.TempDir(), "export.parquet")
	exportTo(t, path, table)
	back, _ := decode(t, path)
	if c, _ := back.Lookup("d"); c.Source != "INT64" {
		t.Errorf("exported as %s", c.Source)
	}
}

func FuzzPageHeader(f *testing.F) {
	data, err := os.ReadFile(fixture("checksums.parquet"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data[4:64])
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, n, err := readPageHeader(data); n < 0 || n > len(data) || err == nil && n == 0 {
			t.Errorf("%d of %d bytes, %v", n, len(data), err)
		}
		if m, err := readMetadata(data); (m == nil) != (err != nil) {
			t.Errorf("%v, %v", m, err)
		}
	})
}

// The texts of all columns have one budget: the column with which they would exceed it is skipped, a later one that fits is not.
func TestTextsOfATable(t *testing.T) {
	table, err := dataset.FromColumns(dataset.NewText("a", []string{strings.Repeat("a", 100), "x"}, nil),
		dataset.NewText("b", []string{strings.Repeat("b", 100), "x"}, nil), dataset.NewText("c", []string{"y", "x"}, nil))
	if err != nil {
		t.Fatal(err)
	}
	path, dir := filepath.Join(t.TempDir(), "f.parquet"), filepath.Join(t.TempDir(), "table")
	exportTo(t, path, table)
	res, err := Decode(context.Background(), path, dir, Limits{MaxTextBytes: 100 + 1 + 2*textOverhead + 2 + 2*textOverhead})
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Skipped) != 1 || res.Skipped[0].Name != "b" || !strings.Contains(res.Skipped[0].Reason, "distinct texts") {
		t.Errorf("skipped %v, want b", res.Skipped)
	}
}
