package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/holdoutd/holdoutd/dataset"
)

// What the fixtures hold, as testdata/make.py put it in: the lowest value, a null, the highest.
const (
	pyarrowTypes = `i8 number INT8 [-128 null 127]
i16 number INT16 [-32768 null 32767]
i32 number INT32 [-2.147483648e+09 null 2.147483647e+09]
i64 number INT64 [-9.007199254740992e+15 null 9.007199254740992e+15]
wide text INT64 ["-9223372036854775808" null "9223372036854775807"]
u8 number UINT8 [0 null 255]
u16 number UINT16 [0 null 65535]
u32 number UINT32 [0 null 4.294967295e+09]
u64 number UINT64 [0 null 9.007199254740992e+15]
uwide text UINT64 ["0" null "18446744073709551615"]
f16 number FLOAT16 [-1.5 null 65504]
f32 number FLOAT [-0.10000000149011612 null 3.3999999521443642e+38]
f64 number DOUBLE [0 null infinite]
b bool BOOLEAN [true null false]
s text STRING ["é" null ""]
ls text STRING ["x" null "y"]
cat text STRING ["b" null "a"]
d time DATE [1969-12-31T00:00:00 null 2024-02-29T00:00:00]
ms time TIMESTAMP(ms) [1969-12-31T23:59:59.999 null 2023-11-14T22:13:20.123]
us time TIMESTAMP(us) [1969-12-31T23:59:59.999999 null 2023-11-14T22:13:20.123456]
ns time TIMESTAMP(ns) [1969-12-31T23:59:59.999999 null 2023-11-14T22:13:20.123456]
utc time TIMESTAMP(us, UTC) [1969-12-31T23:59:59.999999 null 2023-11-14T22:13:20.123456]
t32 number TIME(ms) [1.5 null 86399.999] (seconds since midnight)
t64 number TIME(us) [1.5 null 86399.999999] (seconds since midnight)
dec number DECIMAL(9,2) [-1.25 null 1.23456789e+06]
dec38 number DECIMAL(38,5) [-9.007199254740993e+10 null 1e-05] (each value is the nearest 64-bit float, which keeps 15 digits of the 38)
bin skipped: binary without a text annotation; if it holds text, decode it; in pandas: df["bin"] = df["bin"].str.decode("utf-8")
list skipped: LIST: nested values are not read; take what you need of it; in pandas: df["list"] = df["list"].str[0]
struct skipped: STRUCT: nested values are not read; take what you need of it; in pandas: df["struct"] = df["struct"].str["field"]
null skipped: it has the null type and no values; give it a type; in pandas: df["null"] = df["null"].astype("string")`
	int96Types = `us time INT96 [1969-12-31T23:59:59.999999 null 2023-11-14T22:13:20.123456]
ns time INT96 [1969-12-31T23:59:59.999999 null 2023-11-14T22:13:20.123456]
s text STRING ["é" null ""]`
	polarsTypes = `a number INT64 [1 null 3]
s text STRING ["x" null "y"]
b bool BOOLEAN [true null false]
c text STRING ["p" null "q"]
d time DATE [2020-01-01T00:00:00 null 1950-06-01T00:00:00]
t time TIMESTAMP(us) [2020-01-01T01:02:03.456789 null 1960-01-01T00:00:00]
tm number TIME(ns) [3723 null 86399] (seconds since midnight)
l skipped: LIST: nested values are not read; take what you need of it; in Polars: df = df.with_columns(pl.col("l").list.first())`
	duckdbTypes = `ti number INT8 [1 null]
ut number UINT8 [1 null]
hu number DOUBLE [1 null]
de number DECIMAL(4,1) [1.5 null]
uu text UUID ["00000000-0000-0000-0000-000000000001" null]
ts time TIMESTAMP(us) [2020-01-01T00:00:00.5 null]
tz time TIMESTAMP(us, UTC) [2019-12-31T23:00:00 null]
en text STRING ["m" null]
js text JSON ["{}" null]
tm number TIME(us) [3723.5 null] (seconds since midnight)
iv skipped: INTERVAL: months, days and milliseconds are not one number; in DuckDB: epoch("iv") AS "iv"
bl skipped: binary without a text annotation; if it holds text, decode it; in DuckDB: decode("bl") AS "bl"`
)

// One table, written by pyarrow with every codec and both page versions (version 1 with dictionaries, 2 without),
// and what other writers make of the same types.
func TestTypesAndCodecs(t *testing.T) {
	want := map[string]string{"int96.parquet": int96Types, "polars.parquet": polarsTypes, "duckdb.parquet": duckdbTypes}
	for _, codec := range []string{"none", "snappy", "gzip", "brotli", "zstd", "lz4"} {
		want["types-pyarrow-"+codec+"-v1.parquet"] = pyarrowTypes
		want["types-pyarrow-"+codec+"-v2.parquet"] = pyarrowTypes
	}
	for name, lines := range want {
		table, res := decode(t, fixture(name))
		if d := cmp.Diff(strings.Split(lines, "\n"), shown(table, res)); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// Delta, delta-length and byte-stream-split encodings over several hundred rows.
func TestEncodings(t *testing.T) {
	table, _ := decode(t, fixture("encodings.parquet"))
	a, _ := table.Lookup("a")
	x, _ := table.Lookup("x")
	s, _ := table.Lookup("s")
	if table.Rows() != 500 {
		t.Fatalf("%d rows", table.Rows())
	}
	for i := range 500 {
		text := s.Dictionary.Text(int(s.Codes[i]) - 1)
		key := "key" + string([]byte{'0', byte('0' + i/300), byte('0' + i/30%10), byte('0' + i/3%10)})
		if a.Numbers[i] != float64(i*3-700) || x.Numbers[i] != float64(i)/7 || text != key {
			t.Fatalf("row %d: %v %v %q", i, a.Numbers[i], x.Numbers[i], text)
		}
	}
}

// 20,000 real flights; the means were taken by pandas from the same rows.
func TestFlights(t *testing.T) {
	table, res := decode(t, fixture("flights-20k.parquet"))
	delay, _ := table.Lookup("delay")
	sum, late := 0.0, 0
	for _, v := range delay.Numbers {
		sum += v
		if v > 15 {
			late++
		}
	}
	if table.Rows() != 20000 || res.Rows != 20000 || sum/20000 != 7.00275 || late != 3988 || len(res.Skipped) != 0 {
		t.Errorf("rows %d and %d, mean %v, late %d, skipped %v", table.Rows(), res.Rows, sum/20000, late, res.Skipped)
	}
}

func write(t testing.TB, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "upload")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(fixture(name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestRefusedFiles(t *testing.T) {
	flights := read(t, "flights-20k.parquet")
	footer := append(append([]byte{}, flights[:len(flights)-8]...), 0xff, 0xff, 0xff, 0x7f, 'P', 'A', 'R', '1')
	for name, c := range map[string]struct {
		data []byte
		lim  Limits
		kind Kind
	}{
		"empty":         {nil, Limits{}, Empty},
		"csv":           {[]byte("a,b\n1,2\n3,4\n5,6\n"), Limits{}, NotParquet},
		"short":         {[]byte("PAR1"), Limits{}, NotParquet},
		"magic only":    {[]byte("PAR1PAR1PAR1"), Limits{}, Damaged},
		"cut":           {flights[:len(flights)/2], Limits{}, Damaged},
		"encrypted":     {[]byte("PARE12345678PARE"), Limits{}, Unsupported},
		"footer length": {footer, Limits{}, Damaged},
		"file bytes":    {flights, Limits{MaxFileBytes: 1000}, TooLarge},
		"footer bytes":  {flights, Limits{MaxFooterBytes: 100}, TooLarge},
		"rows":          {flights, Limits{MaxRows: 19999}, TooLarge},
		"columns":       {flights, Limits{MaxColumns: 4}, TooManyColumns},
		"output":        {flights, Limits{MaxOutputBytes: 1000}, TooLarge},
		"bomb":          {read(t, "bomb.parquet"), Limits{}, TooLarge},
		"small bomb":    {flights, Limits{FreeExpansionBytes: 1, MaxExpansion: 1}, TooLarge},
		"times too far": {read(t, "writers/pyarrow-far.parquet"), Limits{}, Unsupported},
	} {
		t.Run(name, func(t *testing.T) { refused(t, write(t, c.data), c.lim, c.kind) })
	}
	if e := refused(t, fixture("writers/pyarrow-far.parquet"), Limits{}, Unsupported); e.Column != "far" || !strings.Contains(e.Detail, "TIMESTAMP(ms): ") || !strings.Contains(e.Detail, `abs(year("far")) < 10000`) {
		t.Errorf("times too far: %v, want the column, its type and what to do", e)
	}
	refused(t, filepath.Join(t.TempDir(), "none"), Limits{}, Internal)
	socket := filepath.Join(t.TempDir(), "socket") // opening one fails as a device does that is gone
	if l, err := net.Listen("unix", socket); err != nil {
		t.Fatal(err)
	} else {
		defer l.Close()
	}
	refused(t, socket, Limits{}, Unavailable)
}

// TestNameLimits: a name at the limit is taken, one byte more is refused, with the beginning of the name and what to do; so are names that are too long together.
// Names of columns that are skipped count as others do.
func TestNameLimits(t *testing.T) {
	file := func(names ...string) string {
		t.Helper()
		columns := make([]dataset.Column, len(names))
		for i, name := range names {
			columns[i] = dataset.Column{Field: dataset.Field{Name: name, Kind: dataset.Bool}, Bools: make([]uint8, 1)}
		}
		table, err := dataset.FromColumns(columns...)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "f.parquet")
		exportTo(t, path, table)
		return path
	}
	long := strings.Repeat("é", MaxNameLength/2)
	if _, res := decode(t, file("a", long)); len(res.Schema.Fields) != 2 || res.Schema.Fields[1].Name != long {
		t.Errorf("a name of %d bytes is %+v", len(long), res)
	}
	for _, name := range []string{long + "z", strings.Repeat("z", 20<<20), strings.Repeat("\x01", MaxNameLength+1)} {
		e := refused(t, file("a", name), Limits{}, LongName)
		if begin, ok := strings.CutSuffix(e.Column, "…"); !ok || utf8.RuneCountInString(begin) != 40 || !strings.HasPrefix(name, begin) ||
			!strings.Contains(e.Detail, fmt.Sprintf("%d bytes, the limit is 1024; rename it", len(name))) {
			t.Errorf("%d bytes: %v", len(name), e)
		}
	}
	many := make([]string, MaxNameBytes/MaxNameLength)
	for i := range many {
		many[i] = fmt.Sprintf("%0*d", MaxNameLength, i)
	}
	if _, res := decode(t, file(many...)); len(res.Schema.Fields) != len(many) {
		t.Errorf("%d names of the longest are %d columns", len(many), len(res.Schema.Fields))
	}
	refused(t, file(append(many, "z")...), Limits{}, LongName)
}

// TestRowsCount: a row counts by what it costs the server, however few bytes of the file say it: a file of equal truths is refused from the row on that the limit
// says, before a row is decoded, and with words that say the limit and what to do. It would notice rows that are free.
func TestRowsCount(t *testing.T) {
	truths := func(rows int) (string, int64) {
		t.Helper()
		table, err := dataset.FromColumns(dataset.Column{Field: dataset.Field{Name: "v", Kind: dataset.Bool}, Bools: make([]uint8, rows)})
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "f.parquet")
		exportTo(t, path, table)
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return path, info.Size()
	}
	const rows = 100_000
	path, size := truths(rows)
	free := rows*(RowBytes+1) - DefaultMaxExpansion*size
	if _, err := Decode(t.Context(), path, filepath.Join(t.TempDir(), "table"), Limits{FreeExpansionBytes: free}); err != nil {
		t.Errorf("with as much as the rows count: %v", err)
	}
	e := refused(t, path, Limits{FreeExpansionBytes: free - 1}, TooLarge)
	for _, part := range []string{"100000 rows", "9700000 bytes", "96 for each row", "at most 9699999", "200 times its size", "without compression"} {
		if !strings.Contains(e.Detail, part) {
			t.Errorf("%q is not in %q", part, e.Detail)
		}
	}
	path, _ = truths(5_000_000)
	refused(t, path, Limits{}, TooLarge)
}

func TestDirectoryExists(t *testing.T) {
	dir := t.TempDir()
	if _, err := Decode(context.Background(), fixture("polars.parquet"), dir, Limits{}); err == nil {
		t.Error("Decode writes into a directory that exists")
	}
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("Decode removed a directory that it did not make: %v", err)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	dir := filepath.Join(t.TempDir(), "table")
	_, err := Decode(ctx, fixture("flights-20k.parquet"), dir, Limits{})
	if e := (*Error)(nil); !errors.As(err, &e) || e.Kind != Limit || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want kind limit", err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("a cancelled Decode leaves a directory")
	}
}

// A column with too many texts, or too long ones, is left out; the others stay whole.
func TestTextLimits(t *testing.T) {
	for reason, lim := range map[string]Limits{
		`STRING: it has more than 3 distinct texts; in pandas: df["s"] = df["s"].str[:3]`:                                         {MaxTexts: 3},
		`STRING: with its distinct texts those of the table would take more than 100 bytes; in pandas: df["s"] = df["s"].str[:3]`: {MaxTextBytes: 100},
		`STRING: it has texts of more than 5 bytes: it holds free text, not categories; in pandas: df["s"] = df["s"].str[:100]`:   {MaxTextLength: 5},
	} {
		dir := filepath.Join(t.TempDir(), "table")
		res, err := Decode(context.Background(), fixture("encodings.parquet"), dir, lim)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]Skipped{{Name: "s", Reason: reason}}, res.Skipped); d != "" {
			t.Error(d)
		}
		table, err := dataset.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer table.Close()
		if table.Columns() != 2 || table.Rows() != 500 {
			t.Errorf("%d columns of %d rows are left, want 2 of 500", table.Columns(), table.Rows())
		}
	}
}

func TestScaled(t *testing.T) {
	for _, c := range []struct {
		unscaled int64
		scale    int
		want     float64
	}{
		{1, 1, 0.1}, {-125, 2, -1.25}, {7, 0, 7}, {9007199254740991, 22, 9007199254740991e-22},
		{123, 38, 123e-38}, {9223372036854775807, 3, 9223372036854775.807}, {-9007199254740993, 1, -900719925474099.3}, {7717579703832308966, 7, 771757970383.231}, {5, -3, 5000}, {1, 400, 0}, {0, 30, 0},
	} {
		if got := scaled(c.unscaled, c.scale); got != c.want {
			t.Errorf("scaled(%d, %d) = %v, want %v", c.unscaled, c.scale, got, c.want)
		}
	}
}

// Every scale that a float64 can hold a power of ten of, and some beyond: the value is the nearest to the decimal's own digits.
func TestScaledByEveryPower(t *testing.T) {
	for scale := -3; scale <= 40; scale++ {
		for _, unscaled := range []int64{1, -7, 123456789, 9007199254740991} {
			want, err := strconv.ParseFloat(fmt.Sprintf("%de%d", unscaled, -scale), 64)
			if err != nil {
				t.Fatal(err)
			}
			if got := scaled(unscaled, scale); got != want {
				t.Errorf("scaled(%d, %d) = %v, want %v", unscaled, scale, got, want)
			}
		}
	}
}

func TestDecimalsAsByteArrays(t *testing.T) {
	table, _ := decode(t, fixture("byte_array_decimal.parquet"))
	c, _ := table.Lookup("value")
	for i := range 24 {
		if table.Rows() != 24 || c.Source != "DECIMAL(4,2)" || c.Numbers[i] != float64(i+1) {
			t.Fatalf("%d rows, %s %v, want 1 to 24", table.Rows(), c.Source, c.Numbers)
		}
	}
}

// A leaf that repeats without being in a list has no value for each row.
func TestRepeatedLeaf(t *testing.T) {
	e := refused(t, fixture("repeated_primitive_no_list.parquet"), Limits{}, NoUsableColumns)
	if !strings.Contains(e.Detail, "nested") {
		t.Error(e)
	}
}

// A chunk that begins before the file.
func TestNegativeChunk(t *testing.T) {
	data := read(t, "int96.parquet")
	// data_page_offset, field 9 after field 7, a 64-bit integer, before dictionary_page_offset: 44 becomes -44.
	at := bytes.Index(data, []byte{0x26, 0x58, 0x26, 0x08})
	if at < 0 {
		t.Fatal("the footer is not as it was")
	}
	data[at+1] = 0x57
	if e := refused(t, write(t, data), Limits{}, Damaged); e.Column != "us" || !strings.Contains(e.Detail, "outside of the file") {
		t.Error(e)
	}
}

func TestBigEndian(t *testing.T) {
	for _, c := range []struct {
		bytes string
		want  int64
		ok    bool
	}{
		{"", 0, true}, {"\x01", 1, true}, {"\xff", -1, true}, {"\x00\x80", 128, true}, {"\x80", -128, true},
		{"\x7f\xff\xff\xff\xff\xff\xff\xff", math.MaxInt64, true},
		{"\x80\x00\x00\x00\x00\x00\x00\x00", math.MinInt64, true},
		{"\x00\x80\x00\x00\x00\x00\x00\x00\x00", 0, false},
		{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xfe", -2, true},
		{"\xff\x7f\xff\xff\xff\xff\xff\xff\xff", 0, false},
	} {
		got, ok := bigEndian([]byte(c.bytes))
		if ok != c.ok || (ok && got != c.want) {
			t.Errorf("bigEndian(%x) = %d, %v, want %d, %v", c.bytes, got, ok, c.want, c.ok)
		}
	}
}

func TestFloorDiv(t *testing.T) {
	for _, c := range [][3]int64{{7, 2, 3}, {-7, 2, -4}, {-8, 2, -4}, {0, 5, 0}, {math.MinInt64, 1000, -9223372036854776}} {
		if got := floorDiv(c[0], c[1]); got != c[2] {
			t.Errorf("floorDiv(%d, %d) = %d, want %d", c[0], c[1], got, c[2])
		}
	}
}
