package dump

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// written is a dump of these tables and rows.
func written(t interface {
	Helper()
	Fatal(...any)
}, tables []Table, rows [][][]any) []byte {
	t.Helper()
	var text bytes.Buffer
	w, err := NewWriter(&text, "sqlite", 3)
	for i := range tables {
		err = errors.Join(err, w.Table(tables[i]))
		for _, row := range rows[i] {
			err = errors.Join(err, w.Row(row))
		}
	}
	if err = errors.Join(err, w.End()); err != nil {
		t.Fatal(err)
	}
	return text.Bytes()
}

// readAll reads a dump.
func readAll(text []byte) (h Header, tables []Table, rows [][][]any, err error) {
	d, err := NewReader(bytes.NewReader(text))
	if err != nil {
		return h, nil, nil, err
	}
	for {
		table, values, err := d.Next()
		switch {
		case errors.Is(err, io.EOF):
			return d.Header, tables, rows, nil
		case err != nil:
			return d.Header, tables, rows, err
		case values == nil:
			tables, rows = append(tables, *table), append(rows, nil)
		default:
			rows[len(rows)-1] = append(rows[len(rows)-1], values)
		}
	}
}

// TestRowsComeBack writes random rows and reads them. It notices a value that a dump changes: an integer beyond 2^53, a text with <, U+2028 or a quote, empty bytes
// that are not null.
func TestRowsComeBack(t *testing.T) {
	value := rapid.OneOf(rapid.Just[any](nil), rapid.Map(rapid.Int64(), func(n int64) any { return n }), rapid.Map(rapid.String(), func(s string) any { return s }),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) any { return append([]byte{}, b...) }), rapid.SampledFrom([]any{"<&>\u2028\"\\", []byte{}, "", int64(1<<63 - 1), int64(-1 << 63)}))
	rapid.Check(t, func(t *rapid.T) {
		tables := []Table{{"first", []string{"a", "b_2"}}, {"second", []string{"c"}}, {"empty", []string{"d"}}}
		rows := make([][][]any, len(tables))
		for i := range 2 {
			rows[i] = rapid.SliceOfN(rapid.SliceOfN(value, len(tables[i].Columns), len(tables[i].Columns)), 1, 4).Draw(t, "rows")
		}
		text := written(t, tables, rows)
		h, gotTables, gotRows, err := readAll(text)
		if err != nil || h != (Header{Format, "sqlite", 3}) || !reflect.DeepEqual(gotTables, tables) || !reflect.DeepEqual(gotRows, rows) {
			t.Fatalf("%+v %+v %#v (%v) is not what was written:\n%s", h, gotTables, gotRows, err, text)
		}
	})
}

// small is a dump to damage.
func small(t testing.TB) []byte {
	return written(t, []Table{{"keys", []string{"id", "hash", "created"}}, {"meta", []string{"name"}}},
		[][][]any{{{"key_1", []byte{1, 2}, int64(5)}, {"key_2", nil, int64(-5)}}, {{"a name"}}})
}

// TestCutDumpIsRefused cuts a dump after each byte, and drops each line. It notices a reader that takes a part for the whole.
func TestCutDumpIsRefused(t *testing.T) {
	text := small(t)
	for n := range text {
		if _, _, _, err := readAll(text[:n]); !errors.Is(err, ledger.ErrCorrupt) {
			t.Fatalf("%d of %d bytes: %v", n, len(text), err)
		}
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	for i := range lines[:len(lines)-1] {
		var left []byte
		for j, line := range lines {
			if j != i {
				left = append(left, line...)
			}
		}
		if _, tables, rows, err := readAll(left); err == nil && !bytes.HasPrefix(lines[i], []byte(`{"table"`)) {
			t.Errorf("without line %d: %v %v", i+1, tables, rows)
		}
	}
	if _, _, _, err := readAll(append(bytes.Clone(text), '\n')); !errors.Is(err, ledger.ErrCorrupt) {
		t.Errorf("something follows: %v", err)
	}
}

// TestNoOtherSpelling: what a Writer would not write is refused, so that two dumps of the same rows are the same bytes.
func TestNoOtherSpelling(t *testing.T) {
	text := string(small(t))
	for old, other := range map[string]string{
		`["key_1",`: `[ "key_1",`, `"key_2"`: `"\u006bey_2"`, `-5]`: `-5.0]`, `5]`: `05]`, `null`: `null `, `"AQI="`: `"AQI"`, `{"b64":`: `{"B64":`,
		`"columns":["name"]`: `"columns":["name","name"]`, `"table":"meta"`: `"table":"me-ta"`, `"rows":3`: `"rows":4`, `"schema":3`: `"schema":-3`,
		`"kind":"sqlite"`: `"kind":"SQLITE"`, `["a name"]`: `["a name",1]`, `"a name"`: `["a name"]`,
	} {
		if strings.Count(text, old) == 0 {
			t.Fatalf("%s is not in the dump:\n%s", old, text)
		}
		if _, _, _, err := readAll([]byte(strings.Replace(text, old, other, 1))); !errors.Is(err, ledger.ErrCorrupt) {
			t.Errorf("%s for %s: %v", other, old, err)
		}
	}
	if _, _, _, err := readAll([]byte(strings.Replace(text, Format, formatName+"2", 1))); !errors.Is(err, ledger.ErrVersion) {
		t.Errorf("a version to come: %v", err)
	}
	w, err := NewWriter(io.Discard, "sqlite", 3)
	if err = errors.Join(err, w.Table(Table{"t", []string{"a"}})); err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []any{"\xff", 1.5, json.Number("1")} {
		if err := w.Row([]any{wrong}); err == nil {
			t.Errorf("%#v is written", wrong)
		}
	}
}

// FuzzReader reads anything. What it reads is written again as it was.
func FuzzReader(f *testing.F) {
	f.Add(small(f))
	f.Add([]byte(`{"format":"holdoutd-rows/1","kind":"sqlite","schema":3}` + "\n" + `{"end":true,"rows":0}` + "\n"))
	f.Add([]byte("[\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		h, tables, rows, err := readAll(text)
		if err != nil {
			return
		}
		var again bytes.Buffer
		w, err := NewWriter(&again, h.Kind, h.Schema)
		for i := range tables {
			err = errors.Join(err, w.Table(tables[i]))
			for _, row := range rows[i] {
				err = errors.Join(err, w.Row(row))
			}
		}
		if err = errors.Join(err, w.End()); err != nil || !bytes.Equal(again.Bytes(), text) {
			t.Fatalf("%q was read, and is written again as %q (%v)", text, again.Bytes(), err)
		}
	})
}
