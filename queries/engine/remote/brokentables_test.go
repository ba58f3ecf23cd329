package remote

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/dataset/ingest"
)

// blockOf is a block in the format Native: columns as name, type and content.
func blockOf(rows int, columns ...[3]string) []byte {
	b := binary.AppendUvarint(nil, uint64(len(columns)))
	b = binary.AppendUvarint(b, uint64(rows))
	for _, c := range columns {
		for _, text := range c[:2] {
			b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
		}
		b = append(b, c[2]...)
	}
	return b
}

// textsOf are texts in Native.
func textsOf(all ...string) string {
	var b []byte
	for _, text := range all {
		b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
	}
	return string(b)
}

// wordsOf are 64-bit words in Native.
func wordsOf(all ...int64) string {
	var b []byte
	for _, w := range all {
		b = binary.LittleEndian.AppendUint64(b, uint64(w))
	}
	return string(b)
}

// small is a table of three columns: two rows, and then one.
var small = []TableColumn{
	{ValueColumn: ingest.ValueColumn{Name: "x", Kind: ingest.Integers}, selected: "CAST(`x`, 'Int64')"},
	{ValueColumn: ingest.ValueColumn{Name: "y", Kind: ingest.Texts}, null: true, selected: "CAST(`y`, 'Nullable(String)')"},
	{ValueColumn: ingest.ValueColumn{Name: "z", Kind: ingest.Doubles}, null: true, text: double, selected: "CAST(toString(`z`), 'Nullable(String)')"},
}

var smallBlocks = [][]byte{
	blockOf(2, [3]string{"c0", "Int64", wordsOf(-1, 2)}, [3]string{"c1", "Nullable(String)", "\x00\x01" + textsOf("a", "")}, [3]string{"c2", "Nullable(String)", "\x01\x00" + textsOf("", "0.1")}),
	blockOf(1, [3]string{"c0", "Int64", wordsOf(3)}, [3]string{"c1", "Nullable(String)", "\x00" + textsOf("b")}, [3]string{"c2", "Nullable(String)", "\x00" + textsOf("12.5")}),
}

// collect reads a table of three columns, and says its rows.
func collect(c Tables, t *testing.T) (rows []string, err error) {
	err = c.Rows(t.Context(), "small", small, func(v []ingest.Values) error {
		for i := range v[0].Words {
			row := fmt.Sprint(v[0].Words[i])
			if !v[1].Null[i] {
				row += " " + v[1].Texts[i]
			}
			if !v[2].Null[i] {
				row += fmt.Sprint(" ", math.Float64frombits(uint64(v[2].Words[i])))
			}
			rows = append(rows, row)
		}
		return nil
	})
	return rows, err
}

// TestTableThatBreaks: what is not the whole answer of ClickHouse is an error, in words that are ours. One that ends between two blocks cannot be told from a shorter table: who reads counts the rows.
func TestTableThatBreaks(t *testing.T) {
	whole := slices.Concat(smallBlocks...)
	var answer []byte
	breaks := false
	f := newFrail(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write(answer)
		if breaks {
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
	})
	c, err := NewClickHouse(f.address(), Options{})
	must(t, err)
	want := []string{"-1 a", "2 0.1", "3 b 12.5"}
	answer = slices.Concat(smallBlocks[0], blockOf(0), smallBlocks[1])
	if rows, err := collect(c, t); err != nil || !slices.Equal(rows, want) {
		t.Fatalf("%q, %v", rows, err)
	}
	if asked, want := f.asked[0], "SELECT CAST(`x`, 'Int64') AS c0, CAST(`y`, 'Nullable(String)') AS c1, CAST(toString(`z`), 'Nullable(String)') AS c2 FROM `small` FORMAT Native"; asked != want {
		t.Errorf("asked was %s", asked)
	}
	for n := range len(whole) {
		answer = whole[:n]
		rows, err := collect(c, t)
		if between := n == 0 || n == len(smallBlocks[0]); (err == nil) != between || !slices.Equal(rows, want[:len(rows)]) {
			t.Errorf("the first %d bytes: %q, %v", n, rows, err)
		}
	}
	for what, text := range map[string][]byte{
		"words":             append(slices.Clone(smallBlocks[0]), "Code: 241. DB::Exception: hunter2\n"...),
		"a column less":     blockOf(1, [3]string{"c0", "Int64", wordsOf(1)}),
		"another type":      blockOf(1, [3]string{"c0", "UInt64", wordsOf(3)}, [3]string{"c1", "Nullable(String)", "\x00" + textsOf("b")}, [3]string{"c2", "Nullable(String)", "\x00" + textsOf("1")}),
		"null of no null":   blockOf(1, [3]string{"c0", "Nullable(Int64)", "\x00" + wordsOf(3)}, [3]string{"c1", "Nullable(String)", "\x00" + textsOf("b")}, [3]string{"c2", "Nullable(String)", "\x00" + textsOf("1")}),
		"no number":         blockOf(1, [3]string{"c0", "Int64", wordsOf(3)}, [3]string{"c1", "Nullable(String)", "\x00" + textsOf("b")}, [3]string{"c2", "Nullable(String)", "\x00" + textsOf("hunter2")}),
		"too many rows":     binary.AppendUvarint([]byte{3}, 1<<40),
		"too long a text":   blockOf(1, [3]string{"c0", "Int64", wordsOf(3)}, [3]string{"c1", "Nullable(String)", "\x00\xff\xff\xff\xff\x07"}),
		"a name of all":     append([]byte{3, 1}, binary.AppendUvarint(nil, math.MaxInt32)...),
		"a number too long": bytes.Repeat([]byte{0xff}, 20),
	} {
		answer = text
		_, err := collect(c, t)
		if !errors.Is(err, &Error{Kind: Failed}) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", what, err)
		}
	}
	answer, breaks = whole, true
	if _, err := collect(c, t); !errors.Is(err, &Error{Kind: Unreachable}) && !errors.Is(err, &Error{Kind: Failed}) {
		t.Errorf("a connection that broke: %v", err)
	}
	if len(f.kills) == 0 {
		t.Error("no statement was ended whose answer nobody waits for")
	}
}

// TestNamesOfTables: only plain names are sent to an engine, and none of a table of held-out rows.
func TestNamesOfTables(t *testing.T) {
	asked := 0
	f := newFrail(t, func(int, http.ResponseWriter, *http.Request) { asked++ })
	c, err := NewClickHouse(f.address(), Options{})
	must(t, err)
	trino, err := NewTrino(strings.Replace(f.URL, "//", "//reader@", 1)+"/hive/lake", Options{})
	must(t, err)
	hex := strings.Repeat("0a", 16)
	for _, name := range []string{"", "a b", "a.b", "a`b", `a"b`, "a/b", "1a", "a;", "ä", "a\n", strings.Repeat("a", 129), "holdoutd_" + hex, "HOLDOUTD_" + strings.ToUpper(hex), "holdoutd_" + hex + "_probe", "holdoutd_" + hex + "_local"} {
		for _, e := range []Tables{c, trino} {
			if _, err := e.Columns(t.Context(), name); err == nil || CheckTableName(name) == nil {
				t.Errorf("%q is taken for the name of a table", name)
			}
		}
	}
	if asked > 0 {
		t.Errorf("%d statements were sent", asked)
	}
	for _, name := range []string{"a", "_", "Orders_2026", "holdoutd_orders"} {
		must(t, CheckTableName(name))
	}
}

// TestQuotedNames: whatever a column is called, its name stays one name.
func TestQuotedNames(t *testing.T) {
	c, trino := &ClickHouse{}, &Trino{}
	for name, want := range map[string][2]string{
		"a":       {"`a`", `"a"`},
		"a`b\\":   {"`a\\`b\\\\`", "\"a`b\\\""},
		`a"b`:     {"`a\"b`", `"a""b"`},
		"x) FROM": {"`x) FROM`", `"x) FROM"`},
	} {
		if got := [2]string{c.quoted(name), trino.quoted(name)}; got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// TestTrinoTableThatBreaks: an error on a later page, cells of another kind, and a page less than is named are errors.
func TestTrinoTableThatBreaks(t *testing.T) {
	columns := []TableColumn{
		{ValueColumn: ingest.ValueColumn{Name: "x", Kind: ingest.Integers}, null: true, selected: "x"},
		{ValueColumn: ingest.ValueColumn{Name: "y", Kind: ingest.Texts}, null: true, selected: "y"},
		{ValueColumn: ingest.ValueColumn{Name: "t", Kind: ingest.LocalTimes}, null: true, text: microseconds, selected: "t"},
		{ValueColumn: ingest.ValueColumn{Name: "b", Kind: ingest.Truths}, null: true, selected: "b"},
	}
	var second string
	f := newFrail(t, func(n int, w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			fmt.Fprintf(w, `{"nextUri":"http://elsewhere/v1/statement/executing/1","data":[[1,"a","1970-01-01 00:00:00.000001",true],[null,null,null,null]]}`)
			return
		}
		fmt.Fprint(w, second)
	})
	e, err := NewTrino(strings.Replace(f.URL, "//", "//reader@", 1)+"/hive/lake", Options{})
	must(t, err)
	rows := 0
	read := func() error {
		rows = 0
		return e.Rows(t.Context(), "small", columns, func(v []ingest.Values) error {
			if rows == 0 && (v[0].Words[0] != 1 || v[1].Texts[0] != "a" || v[2].Words[0] != 1 || v[3].Words[0] != 1 || !v[0].Null[1] || !v[1].Null[1] || !v[2].Null[1] || !v[3].Null[1]) {
				t.Errorf("%+v", v)
			}
			rows += len(v[0].Words)
			return nil
		})
	}
	second = `{"data":[[2,"b","1969-12-31 23:59:59",false]]}`
	if err := read(); err != nil || rows != 3 {
		t.Errorf("%d rows, %v", rows, err)
	}
	for what, text := range map[string]string{
		"an error":           `{"error":{"message":"hunter2","errorName":"GENERIC_INTERNAL_ERROR","errorType":"INTERNAL_ERROR"}}`,
		"a cell less":        `{"data":[[2,"b","1969-12-31 23:59:59"]]}`,
		"a text of a number": `{"data":[["2","b","1969-12-31 23:59:59",false]]}`,
		"a number of a text": `{"data":[[2,3,"1969-12-31 23:59:59",false]]}`,
		"a fraction":         `{"data":[[2.5,"b","1969-12-31 23:59:59",false]]}`,
		"no time":            `{"data":[[2,"b","hunter2",false]]}`,
		"no truth":           `{"data":[[2,"b","1969-12-31 23:59:59",1]]}`,
		"no JSON":            `{"data":[[2,"b"`,
	} {
		second = text
		if err := read(); !errors.Is(err, &Error{Kind: Failed}) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// FuzzNative: whatever comes is read without a fault, in bounded memory, and what is read is of the columns that are wanted.
func FuzzNative(f *testing.F) {
	f.Add(slices.Concat(smallBlocks...))
	f.Add(blockOf(2, [3]string{"name", "String", textsOf("x", "y")}, [3]string{"type", "String", textsOf("Int8", "Array(Int8)")}, [3]string{"is_subcolumn", "UInt8", "\x00\x00"}))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, want := range [][]TableColumn{nil, small} {
			in := native{r: bufio.NewReader(bytes.NewReader(data)), want: want}
			for {
				in.left = 1 << 20
				b, more := in.block()
				if !more {
					break
				}
				for i, v := range b.values {
					if want != nil && (len(v.Words)+len(v.Texts) == 0 || want[i].null != (v.Null != nil) || v.Null != nil && len(v.Null) != len(v.Words)+len(v.Texts)) {
						t.Errorf("column %d: %+v", i, v)
					}
				}
			}
			if rest, _ := io.ReadAll(in.r); !in.failed && len(rest) > 0 {
				t.Errorf("%d bytes were left", len(rest))
			}
		}
	})
}
