package ingest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What testdata/writers.py put into the files of the folder writers, each by the writer that its name begins with.
var writersFiles = map[string]string{
	"fastparquet-none": fastparquetTypes,
	"fastparquet-gzip": fastparquetTypes,
}

const fastparquetTypes = `i number INT64 [3 -1 0 0]
x number DOUBLE [0.5 -2 0 0]
none number DOUBLE [1.5 null 0 0]
s text STRING ["b" "a" "b" ""]
nulls text STRING ["y" null "" null]
b bool BOOLEAN [true false true false]
t time TIMESTAMP(us) [2026-01-01T00:00:00 null 1970-01-01T00:00:00 1970-01-01T00:00:00]
c text STRING ["lo" "hi" null "lo"]
w number INT64 [7 null 0 0]`

// Files of real writers say what their makers put in: every value, null, kind, source and note, and the reason of every column that is skipped.
func TestWriters(t *testing.T) {
	for name, lines := range writersFiles {
		table, res := decode(t, fixture("writers/"+name+".parquet"))
		if d := cmp.Diff(strings.Split(lines, "\n"), shown(table, res)); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// Behind the values of a page few zeros may stand, in every encoding that says where the values end; other bytes, and zeros that may be values which the header does not
// count, are damage.
func TestPadding(t *testing.T) {
	zeros := func(n int) string { return strings.Repeat("\x00", n) }
	for _, c := range []struct {
		name     string
		physical physicalType
		encoding encoding
		data     string
		present  int64
	}{
		{"numbers", int64Type, plain, "12345678", 1},
		{"numbers that are zero", int32Type, plain, zeros(8), 2},
		{"no values", double, plain, "", 0},
		{"booleans", boolean, plain, "\xff\x01", 9},
		{"texts", byteArray, plain, "\x01\x00\x00\x00a" + zeros(4), 2},
		{"stream split", int32Type, byteStreamSplit, "12345678", 2},
	} {
		form := formOf(c.physical, -1, true)
		for _, n := range []int{0, 1, 8, maxPadding} {
			if data, err := form.check([]byte(c.data+zeros(n)), c.encoding, c.present, -1); err != nil || string(data) != c.data {
				t.Errorf("%s with %d zeros: %q, %v", c.name, n, data, err)
			}
		}
		for _, rest := range []string{zeros(maxPadding + 1), zeros(7) + "\x01", "\x01" + zeros(7), "\x01"} {
			if _, err := form.check([]byte(c.data+rest), c.encoding, c.present, -1); err == nil {
				t.Errorf("%s: %q behind the values is taken", c.name, rest)
			}
		}
	}
	for _, rest := range []string{"", zeros(8)} {
		data := deltaEncoded([]int64{1, 2})
		v, err := newLengths(append(data, "abc"+rest...), 2)
		if err != nil {
			t.Fatal(err)
		}
		texts := make([][]byte, 2)
		if _, err := v.next(texts); err != nil || string(texts[0]) != "a" || string(texts[1]) != "bc" {
			t.Errorf("texts behind their lengths, then %q: %q, %v", rest, texts, err)
		}
	}
}
