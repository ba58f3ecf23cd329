//go:build engines

package remote

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdoutd/holdoutd/dataset/ingest"
	"github.com/holdoutd/holdoutd/queries/engine/remote/enginetest"
)

// said writes the columns of a table that are read, and their values by rows.
func said(t *testing.T, e Tables, table string) (columns map[string]string, rows []string) {
	t.Helper()
	all, err := e.Columns(t.Context(), table)
	must(t, err)
	columns = map[string]string{}
	for _, c := range all {
		columns[c.Name] = c.Why
	}
	read := Read(all)
	counted, checksums, err := e.State(t.Context(), table, read)
	must(t, err)
	must(t, e.Rows(t.Context(), table, read, func(values []ingest.Values) error {
		n := max(len(values[0].Words), len(values[0].Texts))
		for row := range n {
			var cells []string
			for i, v := range values {
				switch {
				case v.Null != nil && v.Null[row]:
					cells = append(cells, "-")
				case read[i].Kind == ingest.Texts:
					cells = append(cells, fmt.Sprintf("%q", v.Texts[row]))
				case read[i].Kind == ingest.Doubles:
					cells = append(cells, fmt.Sprint(math.Float64frombits(uint64(v.Words[row]))))
				case read[i].Kind == ingest.Unsigned:
					cells = append(cells, fmt.Sprint(uint64(v.Words[row])))
				default:
					cells = append(cells, fmt.Sprint(v.Words[row]))
				}
			}
			rows = append(rows, strings.Join(cells, " "))
		}
		return nil
	}))
	slices.Sort(rows)
	again, same, err := e.State(t.Context(), table, read)
	must(t, err)
	if counted != int64(len(rows)) || again != counted || !slices.Equal(checksums, same) || len(checksums) == 0 {
		t.Errorf("%d rows of %d, then %d; checksums %v, then %v", len(rows), counted, again, checksums, same)
	}
	return columns, rows
}

// typed is a column of a type, two values of it as the engine's SQL has them, and how they are read; "": it is not read, for the reason why.
type typed struct{ name, of, first, second, one, two, why string }

// clickHouseTyped are columns of all versions.
var clickHouseTyped = []typed{
	{"i8", "Int8", "-128", "127", "-128", "127", ""},
	{"i16", "Int16", "-32768", "1", "-32768", "1", ""},
	{"i32", "Nullable(Int32)", "NULL", "-5", "-", "-5", ""},
	{"i64", "Int64", "-9223372036854775808", "9223372036854775807", "-9223372036854775808", "9223372036854775807", ""},
	{"u8", "UInt8", "255", "0", "255", "0", ""},
	{"u32", "UInt32", "4294967295", "1", "4294967295", "1", ""},
	{"u64", "Nullable(UInt64)", "18446744073709551615", "NULL", "18446744073709551615", "-", ""},
	{"f32", "Float32", "0.1", "nan", "0.10000000149011612", "NaN", ""},
	{"f64", "Nullable(Float64)", "-inf", "0.1", "-Inf", "0.1", ""},
	{"d9", "Decimal(9,2)", "'12.34'", "'-0.10'", "12.34", "-0.1", ""},
	{"d38", "Decimal(38,10)", "'123456789012345678.0123456789'", "'0.1'", "1.2345678901234568e+17", "0.1", ""},
	{"whole", "Decimal(18,0)", "'123456789012345678'", "'-1'", "123456789012345678", "-1", ""},
	{"wide", "Decimal(19,0)", "'1'", "'2'", "", "", "Decimal(19, 0): it has more digits than a 64-bit integer; cast it to text or to a float in a view"},
	{"text", "Nullable(String)", `'a\tb\nü\0'`, "NULL", `"a\tb\nü\x00"`, "-", ""},
	{"fixed", "FixedString(4)", "'ab'", "'abcd'", `"ab"`, `"abcd"`, ""},
	{"grade", "Enum8('low' = 1, 'hi, (gh' = -2)", "'low'", "'hi, (gh'", `"low"`, `"hi, (gh"`, ""},
	{"id", "UUID", "'61f0c404-5cb3-11e7-907b-a6006ad3dba0'", "'00000000-0000-0000-0000-000000000001'", `"61f0c404-5cb3-11e7-907b-a6006ad3dba0"`, `"00000000-0000-0000-0000-000000000001"`, ""},
	{"day", "Date", "'1970-01-02'", "'2020-02-29'", "1", "18321", ""},
	{"time", "Nullable(DateTime)", "1582934400", "NULL", "1582934400000000", "-", ""},
	{"zoned", "DateTime('Asia/Tokyo')", "0", "1582934400", "0", "1582934400000000", ""},
	{"list", "Array(Int8)", "[1]", "[]", "", "", "Array: nested values are not read; take what you need of it in a view"},
	{"pair", "Tuple(Int8, String)", "(1, 'a')", "(2, 'b')", "", "", "Tuple: nested values are not read; take what you need of it in a view"},
	{"a `\\'\" ü", "Int8", "1", "2", "1", "2", ""},
}

// currentTyped are those that the current ClickHouse has beside them.
var currentTyped = []typed{
	{"grade16", "Nullable(Enum16('x' = 1000))", "'x'", "NULL", `"x"`, "-", ""}, // 18.16 itself fails at text of a null of these
	{"truth", "Nullable(Bool)", "true", "NULL", "1", "-", ""},
	{"day32", "Date32", "'1900-01-01'", "'2299-12-31'", "-25567", "120529", ""},
	{"milli", "DateTime64(3, 'UTC')", "'1969-12-31 23:59:59.999'", "'2020-02-29 00:00:00.001'", "-1000", "1582934400001000", ""},
	{"nano", "Nullable(DateTime64(9))", "'2020-02-29 00:00:00.123456789'", "NULL", "1582934400123456", "-", ""},
	{"low", "LowCardinality(Nullable(String))", "'x'", "NULL", `"x"`, "-", ""},
	{"lowtext", "LowCardinality(String)", "'7'", "'8'", `"7"`, `"8"`, ""},
	{"d76", "Decimal(76, 2)", "'1.25'", "'-2'", "1.25", "-2", ""},
	{"ip", "IPv4", "'127.0.0.1'", "'10.0.0.2'", `"127.0.0.1"`, `"10.0.0.2"`, ""},
	{"ip6", "Nullable(IPv6)", "'::1'", "NULL", `"::1"`, "-", ""},
	{"large", "Int128", "1", "2", "", "", "Int128: it has more digits than a 64-bit integer; cast it to text or to a float in a view"},
	{"map", "Map(String, Int8)", "map('a', 1)", "map()", "", "", "Map: nested values are not read; take what you need of it in a view"},
}

// check compares how a table of the columns is read.
func checkTyped(t *testing.T, e Tables, table string, all []typed) {
	t.Helper()
	want, rows := map[string]string{}, [2][]string{}
	for _, c := range all {
		want[c.name] = c.why
		if c.why == "" {
			rows[0], rows[1] = append(rows[0], c.one), append(rows[1], c.two)
		}
	}
	wanted := []string{strings.Join(rows[0], " "), strings.Join(rows[1], " ")}
	slices.Sort(wanted)
	columns, got := said(t, e, table)
	if diff := cmp.Diff(want, columns); diff != "" {
		t.Errorf("columns: %s", diff)
	}
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Errorf("values: %s", diff)
	}
}

func clickHouseTable(t *testing.T, loader *ClickHouse, name string, all []typed) {
	t.Helper()
	var types, names, one, two []string
	for _, c := range all {
		types = append(types, loader.quoted(c.name)+" "+c.of)
		names = append(names, loader.quoted(c.name))
		one, two = append(one, c.first), append(two, c.second)
	}
	must(t, loader.change(t.Context(), "CREATE TABLE "+name+" ("+strings.Join(types, ", ")+", computed Int8 ALIAS 1, kept Int8 MATERIALIZED 2) ENGINE = Memory", nil))
	for _, row := range [][]string{one, two} {
		must(t, loader.change(t.Context(), "INSERT INTO "+name+" ("+strings.Join(names, ", ")+") VALUES ("+strings.Join(row, ", ")+")", nil))
	}
}

// computed are the columns that clickHouseTable adds.
var computed = []typed{{name: "computed", why: "ALIAS: ClickHouse computes it; select it in a view"}, {name: "kept", why: "MATERIALIZED: ClickHouse computes it; select it in a view"}}

func TestTablesOfClickHouse18(t *testing.T) {
	cluster := enginetest.ClickHouse18(t)
	loader, err := NewClickHouse(cluster.Address(0, "loader"), tell(t))
	must(t, err)
	reader, err := NewClickHouse(cluster.Address(0, "reader"), tell(t))
	must(t, err)
	clickHouseTable(t, loader, "typed", clickHouseTyped)
	checkTyped(t, reader, "typed", slices.Concat(clickHouseTyped, computed))

	must(t, loader.change(t.Context(), "CREATE TABLE many ENGINE = MergeTree() ORDER BY x AS SELECT number AS x, toString(number % 7) AS y, if(number % 3 = 0, NULL, number / 7) AS z FROM numbers(200000)", nil))
	checkMany(t, reader, func(statement string) { must(t, loader.change(t.Context(), statement, nil)) })
	checkNone(t, reader)
}

func TestTablesOfTheCurrentClickHouse(t *testing.T) {
	e, err := NewClickHouse(enginetest.CurrentClickHouse(t), tell(t))
	must(t, err)
	all := slices.Concat(clickHouseTyped, currentTyped)
	clickHouseTable(t, e, "typed", all)
	checkTyped(t, e, "typed", slices.Concat(all, computed))
	must(t, e.change(t.Context(), "CREATE TABLE many ENGINE = MergeTree() ORDER BY x AS SELECT number AS x, toString(number % 7) AS y, if(number % 3 = 0, NULL, number / 7) AS z FROM numbers(200000)", nil))
	checkMany(t, e, nil)
	checkNone(t, e)
}

// checkMany reads a table of several blocks: x is 0 to 199,999, y the text of x % 7, z null or x / 7. add sends a statement that changes it; nil: it stays.
func checkMany(t *testing.T, e Tables, change func(string)) {
	t.Helper()
	columns, err := e.Columns(t.Context(), "many")
	must(t, err)
	seen, pieces := map[int64]bool{}, 0
	take := func(values []ingest.Values) error {
		pieces++
		for row, x := range values[0].Words {
			z := math.Float64frombits(uint64(values[2].Words[row]))
			if seen[x] || x < 0 || x >= 200_000 || values[1].Texts[row] != fmt.Sprint(x%7) || values[2].Null[row] != (x%3 == 0) || x%3 != 0 && z != float64(x)/7 {
				t.Fatalf("the row %d: %q, %v, %v", x, values[1].Texts[row], values[2].Null[row], z)
			}
			seen[x] = true
		}
		return nil
	}
	must(t, e.Rows(t.Context(), "many", columns, take))
	if len(seen) != 200_000 || pieces < 2 {
		t.Errorf("%d rows in %d pieces", len(seen), pieces)
	}
	stop := errors.New("no more")
	if err := e.Rows(t.Context(), "many", columns, func([]ingest.Values) error { return stop }); err != stop {
		t.Errorf("it is to end, and says %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	if err := e.Rows(ended, "many", columns, func([]ingest.Values) error { end(); return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("it was given up, and says %v", err)
	}
	if change == nil {
		return
	}
	rows, before, err := e.State(t.Context(), "many", columns)
	must(t, err)
	change("INSERT INTO many SELECT 5, '5', NULL")
	more, after, err := e.State(t.Context(), "many", columns)
	must(t, err)
	if rows != 200_000 || more != rows+1 || slices.Equal(before, after) {
		t.Errorf("%d rows %v, then %d rows %v", rows, before, more, after)
	}
}

// checkNone asks for tables that are not there, and for names that are none.
func checkNone(t *testing.T, e Tables) {
	t.Helper()
	if _, err := e.Columns(t.Context(), "nobody"); !errors.Is(err, ErrNoTable) {
		t.Errorf("a table that is not there: %v", err)
	}
}

// trinoTyped are columns of Trino.
var trinoTyped = []typed{
	{"truth", "boolean", "true", "NULL", "1", "-", ""},
	{"i8", "tinyint", "-128", "127", "-128", "127", ""},
	{"i64", "bigint", "-9223372036854775808", "9223372036854775807", "-9223372036854775808", "9223372036854775807", ""},
	{"f32", "real", "REAL '0.1'", "NULL", "0.10000000149011612", "-", ""},
	{"f64", "double", "infinity()", "0.1e0", "+Inf", "0.1", ""},
	{"hole", "double", "nan()", "-0.0e0", "NaN", "-0", ""},
	{"d9", "decimal(9,2)", "DECIMAL '12.34'", "DECIMAL '-0.10'", "12.34", "-0.1", ""},
	{"d38", "decimal(38,10)", "DECIMAL '123456789012345678.0123456789'", "DECIMAL '0.1'", "1.2345678901234568e+17", "0.1", ""},
	{"whole", "decimal(18,0)", "DECIMAL '123456789012345678'", "DECIMAL '-1'", "123456789012345678", "-1", ""},
	{"wide", "decimal(19,0)", "DECIMAL '1'", "NULL", "", "", "decimal(19,0): it has more digits than a 64-bit integer; cast it to text or to a float in a view"},
	{"text", "varchar", `U&'a\0009b\000Aü\0001'`, "NULL", `"a\tb\nü\x01"`, "-", ""},
	{"fixed", "char(4)", "'ab'", "'abcd'", `"ab  "`, `"abcd"`, ""},
	{"id", "uuid", "UUID '61f0c404-5cb3-11e7-907b-a6006ad3dba0'", "NULL", `"61f0c404-5cb3-11e7-907b-a6006ad3dba0"`, "-", ""},
	{"ip", "ipaddress", "IPADDRESS '127.0.0.1'", "NULL", `"127.0.0.1"`, "-", ""},
	{"day", "date", "DATE '1900-01-01'", "DATE '2020-02-29'", "-25567", "18321", ""},
	{"time", "timestamp(3)", "TIMESTAMP '1969-12-31 23:59:59.999'", "NULL", "-1000", "-", ""},
	{"nano", "timestamp(9)", "TIMESTAMP '2020-02-29 00:00:00.123456400'", "NULL", "1582934400123456", "-", ""},
	{"zoned", "timestamp(3) with time zone", "TIMESTAMP '2020-02-29 09:00:00.001 Asia/Tokyo'", "NULL", "1582934400001000", "-", ""},
	{"clock", "time(3)", "TIME '01:02:03.004'", "NULL", "", "", "time: it is neither number, truth, time nor text; cast it in a view"},
	{"list", "array(integer)", "ARRAY[1]", "NULL", "", "", "array: nested values are not read; take what you need of it in a view"},
	{"pair", "row(a integer, b varchar)", "ROW(1, 'a')", "NULL", "", "", "row: nested values are not read; take what you need of it in a view"},
	{"bytes", "varbinary", "X'00'", "NULL", "", "", "varbinary: it is neither number, truth, time nor text; cast it in a view"},
	{`a "` + "`" + `\' ü`, "integer", "1", "2", "1", "2", ""},
}

func TestTablesOfTrino(t *testing.T) {
	e, err := NewTrino(strings.Replace(enginetest.Trino(t), "//", "//reader@", 1)+"/memory/default", tell(t))
	must(t, err)
	var types, one, two []string
	for _, c := range trinoTyped {
		types = append(types, e.quoted(c.name)+" "+c.of)
		one, two = append(one, "CAST("+c.first+" AS "+c.of+")"), append(two, "CAST("+c.second+" AS "+c.of+")")
	}
	change := func(statement string) {
		t.Helper()
		_, err := e.change(t.Context(), statement)
		must(t, err)
	}
	change("CREATE TABLE typed (" + strings.Join(types, ", ") + ")")
	for _, row := range [][]string{one, two} {
		change("INSERT INTO typed SELECT " + strings.Join(row, ", "))
	}
	checkTyped(t, e, "typed", trinoTyped)
	change("CREATE TABLE many AS SELECT x, CAST(x % 7 AS varchar) AS y, IF(x % 3 = 0, NULL, x / 7e0) AS z FROM UNNEST(sequence(0, 19)) AS a (i), UNNEST(sequence(i * 10000, i * 10000 + 9999)) AS b (x)")
	checkMany(t, e, func(statement string) { change(strings.Replace(statement, "SELECT 5", "SELECT BIGINT '5'", 1)) })
	checkNone(t, e)
}
