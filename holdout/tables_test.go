package holdout

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
)

// feigned answers as a ClickHouse with one table does, whose answers a test can change. The real ones are in the tests with the tag "engines".
type feigned struct {
	*httptest.Server
	table   *dataset.Table
	version int                                // of the rows: part of the checksum
	answer  func(what string, b []byte) []byte // the answer to a statement that begins so, as it is sent; nil: as it is
	asked   map[string]int
}

func newFeigned(t *testing.T, table *dataset.Table) *feigned {
	f := &feigned{table: table, asked: map[string]int{}}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		statement, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		what, _, _ := strings.Cut(string(statement), " ")
		var answer []byte
		switch {
		case strings.Contains(string(statement), "system.settings"):
			what, answer = "profile", []byte("readonly\t1\nskip_unavailable_shards\t0\nread_overflow_mode\tthrow\ntimeout_overflow_mode\tthrow\ngroup_by_overflow_mode\tthrow\nresult_overflow_mode\tthrow\nmax_execution_time\t60\nmax_memory_usage\t100000000\n")
		case what == "DESCRIBE" && strings.Contains(string(statement), "`visits`"):
			answer = f.described()
		case what == "DESCRIBE":
			w.WriteHeader(http.StatusNotFound)
			answer = []byte("Code: 60. DB::Exception: Table default.hunter2 doesn't exist")
		case strings.HasPrefix(string(statement), "SELECT count()"):
			what, answer = "state", fmt.Appendf(nil, "%d\t%d\t7\n", table.Rows(), f.version)
		case strings.HasPrefix(string(statement), "SELECT CAST("):
			what, answer = "rows", f.rows(0, table.Rows())
		default:
			w.WriteHeader(http.StatusInternalServerError)
		}
		f.asked[what]++
		if f.answer != nil {
			answer = f.answer(what, answer)
		}
		_, _ = w.Write(answer)
	}))
	t.Cleanup(f.Close)
	return f
}

// source is it as a source of tables.
func (f *feigned) source() Source {
	return Source{Address: f.URL + "/lake", Reader: Login{User: "reader"}}
}

// feignedTypes are those of the columns of visits, and of one that is not read.
var feignedTypes = map[dataset.Kind]string{dataset.Number: "Nullable(Float64)", dataset.Bool: "Bool", dataset.Text: "LowCardinality(String)", dataset.Time: "DateTime64(6)"}

func native(b []byte, all ...string) []byte {
	for _, text := range all {
		b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
	}
	return b
}

// described is the answer to DESCRIBE TABLE.
func (f *feigned) described() []byte {
	fields := f.table.Schema().Fields
	b := binary.AppendUvarint([]byte{3}, uint64(len(fields)+1))
	for _, member := range []string{"name", "type", "default_type"} {
		b = native(b, member, "String")
		for _, field := range fields {
			b = native(b, map[string]string{"name": field.Name, "type": feignedTypes[field.Kind]}[member])
		}
		b = native(b, map[string]string{"name": "tags", "type": "Array(String)"}[member])
	}
	return b
}

// rows are some rows in blocks of 300.
func (f *feigned) rows(from, to int) (b []byte) {
	for ; from < to; from += 300 {
		upto := min(from+300, to)
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(f.table.Columns())), uint64(upto-from))
		for i := range f.table.Columns() {
			c := f.table.Column(i)
			switch c.Kind {
			case dataset.Bool:
				b = append(native(b, fmt.Sprint("c", i), "UInt8"), c.Bools[from:upto]...)
			case dataset.Text:
				b = native(b, fmt.Sprint("c", i), "String")
				for _, code := range c.Codes[from:upto] {
					b = native(b, c.Dictionary.Text(int(code-1)))
				}
			case dataset.Time:
				b = native(b, fmt.Sprint("c", i), "Int64")
				for _, x := range c.Numbers[from:upto] {
					b = binary.LittleEndian.AppendUint64(b, uint64(int64(math.Floor(x))))
				}
			default:
				b = native(b, fmt.Sprint("c", i), "Nullable(Float64)")
				for _, x := range c.Numbers[from:upto] {
					if b = append(b, 0); x != x {
						b[len(b)-1] = 1
					}
				}
				for _, x := range c.Numbers[from:upto] {
					b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
				}
			}
		}
	}
	return b
}

// TestTableOfAnEngine: a holdout of a table that lies in an engine is, byte for byte, that of the same table as an upload; what cannot be read is on the card. Asked again with its key it is the same holdout, and
// the rows are not read again; when the table was changed it is another request.
func TestTableOfAnEngine(t *testing.T) {
	table := visits(t, 2000, 3)
	f := newFeigned(t, table)
	set := Settings{Holdout: 0.5, Mechanism: "gaussian", Questions: 200}
	here := openWith(t, t.TempDir(), nil)
	one := create(t, here, set, table)
	there := openWith(t, t.TempDir(), map[string]Source{"lake": f.source()})
	set.Path = "lake/visits"
	dry, err := there.DryRun(t.Context(), admin, set, nothing)
	must(t, err)
	two, replayed, err := there.Create(t.Context(), admin, set, nothing, "k")
	must(t, err)
	if replayed || two.Rows != one.Rows || dry.Rows != one.Rows || two.Settings.Path != set.Path || len(two.Skipped) != 1 || two.Skipped[0].Name != "tags" || !strings.HasPrefix(two.Skipped[0].Reason, "Array: ") {
		t.Errorf("the card: %+v", two)
	}
	if answers := sameAnswers(t, here, one.ID, there, two.ID, sourcedQueries); answers < 5 {
		t.Errorf("%d answers", answers)
	}
	read := f.asked["rows"]
	again, replayed, err := there.Create(t.Context(), admin, set, nothing, "k")
	if must(t, err); !replayed || again.ID != two.ID || f.asked["rows"] != read {
		t.Errorf("again: %v, %s and %s, read %d times", replayed, two.ID, again.ID, f.asked["rows"])
	}
	f.version++
	if _, _, err := there.Create(t.Context(), admin, set, nothing, "k"); KindOf(err) != IdempotencyMismatch {
		t.Errorf("after the table was changed: %v", err)
	}
	if _, _, err := there.Create(t.Context(), admin, set, nothing, ""); KindOf(err) != Exists {
		t.Errorf("the table of which something was asked: %v", err)
	}
}

// TestTableOfAnEngineBreaks: what is not the whole table, as it was before and is after, makes no holdout and leaves nothing behind.
func TestTableOfAnEngineBreaks(t *testing.T) {
	table := visits(t, 1000, 3)
	f := newFeigned(t, table)
	s := openWith(t, t.TempDir(), map[string]Source{"lake": f.source(), "files": {Engine: EngineFiles, Address: t.TempDir()}, "held": {Address: f.URL + "/held", Reader: Login{User: "reader"}, Loader: Login{User: "loader"}}})
	of := func(of string, change func([]byte) []byte) func(string, []byte) []byte {
		return func(what string, b []byte) []byte {
			if what == of {
				return change(b)
			}
			return b
		}
	}
	states := 0
	whole := f.rows(0, 1000)
	for name, c := range map[string]struct {
		set    Settings
		answer func(string, []byte) []byte
		kind   Kind
		says   string
	}{
		"it ends between blocks": {Settings{}, of("rows", func([]byte) []byte { return f.rows(0, 900) }), Unavailable, "changed while it was read, or not all of it came"},
		"nothing comes":          {Settings{}, of("rows", func([]byte) []byte { return nil }), Unavailable, "not all of it came"},
		"it ends in a block":     {Settings{}, of("rows", func(b []byte) []byte { return b[:len(b)-1] }), Unavailable, "broke off"},
		"rows come twice":        {Settings{}, of("rows", func(b []byte) []byte { return append(b, f.rows(0, 300)...) }), Unavailable, "changed while it was read"},
		"an error comes":         {Settings{}, of("rows", func(b []byte) []byte { return append(f.rows(0, 600), "Code: 241. DB::Exception: hunter2"...) }), Unavailable, "broke off"},
		"rows change":            {Settings{}, of("state", func([]byte) []byte { states++; return fmt.Appendf(nil, "1000\t%d\t7\n", states) }), Unavailable, "changed while it was read"},
		"another type": {Settings{}, of("rows", func(b []byte) []byte {
			return bytes.ReplaceAll(b, []byte("Nullable(Float64)"), []byte("Nullable(Float32)"))
		}), Unavailable, "broke off"},
		"no state":          {Settings{}, of("state", func([]byte) []byte { return []byte("-1\t2\t3\n") }), Unavailable, "no number of rows"},
		"a user who writes": {Settings{}, of("profile", func(b []byte) []byte { return bytes.Replace(b, []byte("readonly\t1"), []byte("readonly\t0"), 1) }), Unavailable, "readonly"},
		"too many rows":     {Settings{}, of("state", func([]byte) []byte { return []byte("3000000000\t2\t3\n") }), TooLarge, "3000000000 rows"},
		"no columns": {Settings{}, of("DESCRIBE", func([]byte) []byte {
			return native([]byte{3, 1}, "name", "String", "tags", "type", "String", "Array(Int8)", "default_type", "String", "")
		}), Invalid, "no column"},
		"no table":                 {Settings{Path: "lake/nothing"}, nil, Invalid, "there is no table"},
		"no name":                  {Settings{Path: "lake"}, nil, Invalid, "the name of a table is"},
		"a way to another":         {Settings{Path: "lake/other.visits"}, nil, Invalid, "the name of a table is"},
		"a table of held-out rows": {Settings{Path: "lake/holdoutd_0123456789abcdef0123456789abcdef"}, nil, Invalid, "held-out rows"},
		"held-out rows":            {Settings{Path: "held/visits"}, nil, Invalid, "no table is taken from it"},
		"no source":                {Settings{Path: "pond/visits"}, nil, Invalid, "takes no tables"},
		"rows put there":           {Settings{Source: "lake"}, nil, Invalid, "no held-out rows are put there"},
		"parts":                    {Settings{Split: splitGiven}, nil, Invalid, "split=given"},
	} {
		f.answer, c.set.Questions = c.answer, 20
		if c.set.Path == "" && c.set.Source == "" {
			c.set.Path = "lake/visits"
		}
		if _, _, err := s.Create(t.Context(), admin, c.set, nothing, ""); KindOf(err) != c.kind || !strings.Contains(fmt.Sprint(err), c.says) || strings.Contains(fmt.Sprint(err), "hunter2") {
			t.Errorf("%s: %v, of kind %v", name, err, KindOf(err))
		}
		if left, err := os.ReadDir(s.path(temporaryDir)); err != nil || len(left) > 0 {
			t.Errorf("%s: left are %v, %v", name, left, err)
		}
	}
	f.answer = nil
	if _, _, err := s.Create(t.Context(), analyst, Settings{Path: "lake/visits", Questions: 20}, nothing, ""); KindOf(err) != Forbidden {
		t.Errorf("an analyst's: %v", err)
	}
	if _, _, err := s.Create(t.Context(), admin, Settings{Path: "lake/visits", Questions: 20}, SingleUpload(bytes.NewReader(parquet(t, table))), ""); err == nil || !strings.Contains(err.Error(), "send no body") {
		t.Errorf("a body: %v", err)
	}
	limited := openWith(t, t.TempDir(), map[string]Source{"lake": f.source()}, func(o *Options) { o.Limits.UploadBytes = int64(len(whole) / 2) })
	if _, _, err := limited.Create(t.Context(), admin, Settings{Path: "lake/visits", Questions: 20}, nothing, ""); KindOf(err) != TooLarge {
		t.Errorf("a table beyond the limit: %v", err)
	}
}

// TestTablesApart: no database is both one that tables are taken from and one that held-out rows are put into.
func TestTablesApart(t *testing.T) {
	reader, loader := Login{User: "reader"}, Login{User: "loader"}
	for name, c := range map[string]struct {
		one, two Source
		refused  bool
	}{
		"one database":    {Source{Address: "http://db:8123/x", Reader: reader}, Source{Address: "https://DB:8123/x/", Reader: reader, Loader: loader}, true},
		"the default":     {Source{Address: "http://db:8123", Reader: reader}, Source{Engine: EngineClickHouse, Address: "http://db:8123/default", Reader: reader, Loader: loader}, true},
		"a shard":         {Source{Address: "http://two:8123/x", Reader: reader}, Source{Address: "http://one:8123/x", Reader: reader, Loader: loader, Cluster: "c", Shards: []string{"http://two:8123/x"}}, true},
		"one schema":      {Source{Engine: EngineTrino, Address: "http://lake:8080/hive/Held", Reader: reader}, Source{Engine: EngineTrino, Address: "http://lake:8080/hive/held", Reader: reader, Loader: loader}, true},
		"two databases":   {Source{Address: "http://db:8123/x", Reader: reader}, Source{Address: "http://db:8123/y", Reader: reader, Loader: loader}, false},
		"two of tables":   {Source{Address: "http://db:8123/x", Reader: reader}, Source{Address: "http://db:8123/x", Reader: reader}, false},
		"two of holdouts": {Source{Address: "http://db:8123/x", Reader: reader, Loader: loader}, Source{Address: "http://db:8123/x", Reader: reader, Loader: loader}, false},
	} {
		if err := checkApart(map[string]Source{"one": c.one, "two": c.two}); err != nil != c.refused {
			t.Errorf("%s: %v", name, err)
		}
	}
	s := &Service{}
	if err := s.openSources(map[string]Source{"one": {Address: "http://db:8123/x", Reader: reader, Cluster: "c", Shards: []string{"http://two:8123/x"}}}); err == nil || !strings.Contains(err.Error(), "cluster") {
		t.Errorf("a cluster without a loader: %v", err)
	}
}
