package ingest

import (
	"bytes"
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// What testdata/writers.py put into the files of the folder writers, each by the writer that its name begins with.
var writersFiles = map[string]string{
	"fastparquet-none": fastparquetTypes,
	"fastparquet-gzip": fastparquetTypes,
	"fastparquet-bytes": `i number INT64 [1 2]
y skipped: binary without a text annotation; if it holds text, decode it; in pandas: df["y"] = df["y"].str.decode("utf-8")
e skipped: binary without a text annotation, and it has no values; give it a type; in pandas: df["e"] = df["e"].astype("string")`,

	"pyarrow-decimals": `price number DECIMAL(38,18) [12.5 null 0.1 -1.2345678901234567e+19] (each value is the nearest 64-bit float, which keeps 15 digits of the 38)
id text DECIMAL(38,0) ["9223372036854775809" null "-7" "0"]
small number DECIMAL(38,0) [5 null -7 9.007199254740992e+15]
wide number DECIMAL(76,4) [1e+70 null -0.25 0] (each value is the nearest 64-bit float, which keeps 15 digits of the 76)
cents number DECIMAL(18,2) [9.007199254740994e+13 null 0.01 -0.01] (each value is the nearest 64-bit float, which keeps 15 digits of the 18)`,
	"duckdb-decimals": `d number DECIMAL(18,2) [9.007199254740992e+14 1.25] (each value is the nearest 64-bit float, which keeps 15 digits of the 18)
id text DECIMAL(18,0) ["9007199254740993" "1"]`,

	"duckdb-infinity": `t time TIMESTAMP(us) [infinite 2026-01-01T00:00:00 infinite null]
tz time TIMESTAMP(us, UTC) [infinite 2026-01-01T00:00:00 infinite null]
ms time TIMESTAMP(ms) [infinite 2026-01-01T00:00:00 infinite null]
ns time TIMESTAMP(ns) [infinite 2026-01-01T00:00:00 infinite null]
d time DATE [infinite 2026-01-01T00:00:00 infinite null]`,
	"pyarrow-last-ns": `ns time TIMESTAMP(ns) [2262-04-11T23:47:16.854776 1970-01-01T00:00:00 1970-01-01T00:00:00 null]`,

	"duckdb-skipped": `i number INT32 [1]
wait skipped: INTERVAL: months, days and milliseconds are not one number; in DuckDB: epoch("wait") AS "wait"
v skipped: VARIANT: its values may be of any type; in DuckDB: "v"::DOUBLE AS "v"
bl skipped: binary without a text annotation; if it holds text, decode it; in DuckDB: decode("bl") AS "bl"
l skipped: LIST: nested values are not read; take what you need of it; in DuckDB: "l"[1] AS "l"
st skipped: STRUCT: nested values are not read; take what you need of it; in DuckDB: unnest("st")
m skipped: MAP: nested values are not read; take what you need of it; in DuckDB: "m"['key'] AS "m"`,
	"duckdb-geometry": `i number INT32 [1]
place skipped: GEOMETRY: shapes are not read; in DuckDB: ST_X("place") AS x, ST_Y("place") AS y`,
	"chdb-skipped": `i number UINT64 [0 1]
id skipped: 16 bytes without an annotation: a 128-bit integer, an address or a padded code; in ClickHouse: toString("id") AS "id"
u skipped: 32 bytes without an annotation: a 256-bit integer, a digest or a padded code; in ClickHouse: toString("u") AS "u"
ip skipped: 16 bytes without an annotation: a 128-bit integer, an address or a padded code; in ClickHouse: toString("ip") AS "ip"
code skipped: padded code: 5 bytes without a text annotation; in ClickHouse: toString("code") AS "code"`,
	"polars-skipped": `i number INT64 [1 2 1 2]
id skipped: 128-bit integer: no number that is read is so wide; in Polars: df = df.with_columns(pl.col("id").cast(pl.String))
u skipped: 128-bit integer: no number that is read is so wide; in Polars: df = df.with_columns(pl.col("u").cast(pl.String))
bin skipped: binary without a text annotation; if it holds text, decode it; in Polars: df = df.with_columns(pl.col("bin").cast(pl.String))
l skipped: LIST: nested values are not read; take what you need of it; in Polars: df = df.with_columns(pl.col("l").list.first())
a skipped: ARRAY: nested values are not read; take what you need of it; in Polars: df = df.with_columns(pl.col("a").arr.first())
s skipped: STRUCT: nested values are not read; take what you need of it; in Polars: df = df.unnest("s", separator=".")
n skipped: it has the null type and no values; give it a type; in Polars: df = df.with_columns(pl.col("n").cast(pl.String))`,
	"pandas-skipped": `i number INT64 [1 2 1 2]
none skipped: it has the null type and no values; give it a type; in pandas: df["none"] = df["none"].astype("string")
list skipped: LIST: nested values are not read; take what you need of it; in pandas: df["list"] = df["list"].str[0]
dict skipped: STRUCT: nested values are not read; take what you need of it; in pandas: df["dict"] = df["dict"].str["field"]
raw skipped: binary without a text annotation; if it holds text, decode it; in pandas: df["raw"] = df["raw"].str.decode("utf-8")
age skipped: pandas interval: it has two ends; in pandas: df["age"] = pd.IntervalIndex(df["age"]).mid`,

	"pandas-notes": `i number INT64 [1 2 3]
month number INT64 [672 673 674] (pandas period[M]: months since 1970; for times: df["month"] = df["month"].dt.to_timestamp())
day number INT64 [20454 20455 20456] (pandas period[D]: days since 1970; for times: df["day"] = df["day"].dt.to_timestamp())
level text STRING ["low" null "high"]
plain text STRING ["b" "a" null]
start number TIME(us) [43200 null 1] (seconds since midnight)
wait number DURATION(us) [1e+06 2e+06 null] (microseconds)
__index_level_0__ number INT64 [4 5 7]`,
	"polars-notes": `i number INT64 [1 2 3]
level text STRING ["low" null "high"]
cat text STRING ["b" null "a"]
start number TIME(ns) [43200 null 1] (seconds since midnight)`,
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

// The ends of an INT64 are infinities where their writer means that, a missing time where fastparquet wrote them, and times in 1677 and 2262 where they are nanoseconds of others.
func TestEndsOfTime(t *testing.T) {
	for _, c := range []struct {
		by   program
		unit timeUnit
		v    int64
		want string
	}{
		{duckdbWriter, micros, math.MaxInt64, "+Inf"}, {duckdbWriter, micros, -math.MaxInt64, "-Inf"}, {otherWriter, millis, math.MinInt64, "-Inf"},
		{duckdbWriter, nanos, math.MaxInt64, "+Inf"}, {pandasWriter, nanos, math.MaxInt64, "0"}, {pandasWriter, nanos, math.MinInt64, "0"},
		{fastparquetWriter, nanos, math.MinInt64, "NaN"}, {fastparquetWriter, micros, math.MinInt64, "NaN"}, {otherWriter, micros, math.MaxInt64 - 1, "0"}, {otherWriter, micros, 0, "0"},
	} {
		if got := fmt.Sprint((&column{by: c.by}).infiniteStamp(c.unit)(c.v)); got != c.want {
			t.Errorf("%d of unit %s by program %d: %s, want %s", c.v, unitNames[c.unit], c.by, got, c.want)
		}
	}
}

// The digits of integers of any width up to 32 bytes are those of big.Int, sign bytes or not; wider ones are damage.
func TestAppendBig(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.Byte(), 1, maxDecimalBytes).Draw(t, "bytes")
		want := new(big.Int).SetBytes(b)
		if b[0] >= 0x80 {
			want.Sub(want, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
		}
		sign := byte(int8(b[0]) >> 7)
		padded := append(bytes.Repeat([]byte{sign}, rapid.IntRange(0, 40).Draw(t, "sign bytes")), b...)
		if got, err := appendBig(nil, padded); err != nil || string(got) != want.String() {
			t.Fatalf("%x: %s, %v, want %s", padded, got, err, want)
		}
	})
	if _, err := appendBig(nil, append([]byte{1}, make([]byte, maxDecimalBytes)...)); err == nil {
		t.Error("a decimal of 33 bytes is taken")
	}
}

// A line of code that mends a column has its name in the quotes of its language, and a name that is too long is left out.
func TestReasonsQuoteNames(t *testing.T) {
	for _, c := range []struct {
		name string
		by   program
		want string
	}{
		{`a "b"\`, pandasWriter, `df["a \"b\"\\"]`}, {`a "b"`, clickhouseWriter, `toString("a ""b""")`}, {"%s %p", polarsWriter, `pl.col("%s %p")`},
		{strings.Repeat("z", maxQuoted+1), pandasWriter, `df["…"]`},
	} {
		if got := skipNull.reason(c.name, c.by); !strings.Contains(got, c.want) {
			t.Errorf("%q: %s, want %s in it", c.name, got, c.want)
		}
	}
}
