//go:build engines

package clickhouse_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/sources"
	"github.com/holdoutd/holdoutd/sources/clickhouse"
	"github.com/holdoutd/holdoutd/sources/clickhouse/chtest"
	"github.com/holdoutd/holdoutd/sources/sourcetest"
)

func TestMain(m *testing.M) { chtest.Main(m) }

// TestConformance is the suite that every source passes, on two shards of 18.16 and on the current engine.
func TestConformance(t *testing.T) {
	for _, e := range chtest.Engines(t) {
		t.Run(e.Name, func(t *testing.T) { sourcetest.Run(t, conformance(e)) })
	}
}

func conformance(e *chtest.Engine) sourcetest.Options {
	o := sourcetest.Options{
		Programs: 1500, // of rows, and of units
		Open:     func(t testing.TB) sources.Source { return open(t, e) },
		Load: func(t testing.TB, name string, rows sourcetest.Rows) string {
			return load(t, e, fmt.Sprintf("%s_%d", name, number()), rows)
		},
		Replace: func(t testing.TB, table string, rows sourcetest.Rows) {
			empty(t, e, table)
			insert(t, e, table, rows)
		},
		Faults: map[string]func(t testing.TB, part sources.PartInfo){},
	}
	if e.Cluster != "" { // 18.16 has moments in whole seconds, from 1970 to 2106
		o.Instant = func(us int64) int64 { return min(max(us/1e6, 0), math.MaxUint32) * 1e6 }
	}
	for name, change := range map[string]string{
		"a row twice": "INSERT INTO %[1]s SELECT * FROM %[1]s WHERE _unit = 3 LIMIT 1",
		"another row": "INSERT INTO %[1]s (_unit) VALUES (7)",
		"a unit more": "INSERT INTO %[1]s (_unit) VALUES (100000)",
		"no rows":     "DROP TABLE %[1]s",
	} {
		o.Faults[name] = func(t testing.TB, part sources.PartInfo) {
			e.Query(t, fmt.Sprintf(change, "`"+chtest.Private+"`.`"+part.Name+"`"))
		}
	}
	o.Faults["two units have exchanged values"] = func(t testing.TB, part sources.PartInfo) { exchange(t, e, part) }
	if e.Cluster != "" {
		o.Faults["no rows"] = func(t testing.TB, part sources.PartInfo) {
			e.Exec(t, "DROP TABLE `"+chtest.Private+"`.`"+part.Name+"~local`") // each shard sums its own
		}
		o.Faults["a shard without its table"] = func(t testing.TB, part sources.PartInfo) {
			if _, err := e.Servers[1].Do(chtest.Owner, "DROP TABLE `"+chtest.Private+"`.`"+part.Name+"~local`", nil); err != nil {
				t.Fatal(err)
			}
		}
		o.Faults["a shard without its rows"] = func(t testing.TB, part sources.PartInfo) {
			table := "`" + chtest.Private + "`.`" + part.Name + "~local`"
			if _, err := e.Servers[1].Do(chtest.Owner, "TRUNCATE TABLE "+table, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	return o
}

// exchange lets two units of one row each, of one block of checks, exchange their values of the column "id". No sum of values, or of units, is another.
func exchange(t testing.TB, e *chtest.Engine, part sources.PartInfo) {
	t.Helper()
	table := "`" + chtest.Private + "`.`" + part.Name + "`"
	at := slices.IndexFunc(part.Schema.Fields, func(f dataset.Field) bool { return f.Name == "id" })
	rows := strings.Fields(e.Query(t, fmt.Sprintf("SELECT _unit, toInt64(any(c%d)) FROM %s GROUP BY _unit HAVING count() = 1 ORDER BY _unit LIMIT 2", at, table)))
	if len(rows) != 4 {
		t.Fatalf("there are no two units of one row: %q", rows)
	}
	if e.Cluster != "" {
		table = strings.TrimSuffix(table, "`") + "~local`"
	}
	column := strings.TrimSpace(e.Query(t, fmt.Sprintf("SELECT name FROM system.columns WHERE database = '%s' AND table = '%s' AND name IN ('c%d', 'n%[3]d') AND default_kind = ''", chtest.Private, strings.Split(table, "`")[3], at)))
	e.Exec(t, fmt.Sprintf("ALTER TABLE %s UPDATE %s = if(equals(_unit, %s), %s, %s) WHERE in(_unit, tuple(%s, %s))", table, column, rows[0], rows[3], rows[1], rows[0], rows[2]))
	changed := func() string {
		return e.Query(t, fmt.Sprintf("SELECT count() FROM `%s`.`%s` WHERE (_unit = %s AND c%d = %s) OR (_unit = %s AND c%d = %s)", chtest.Private, part.Name, rows[0], at, rows[3], rows[2], at, rows[1]))
	}
	for deadline := time.Now().Add(time.Minute); changed() != "2\n"; time.Sleep(20 * time.Millisecond) { // a mutation runs in the background
		if time.Now().After(deadline) {
			t.Fatal("values are not exchanged")
		}
	}
}

var numbers int

// number tells tables apart.
func number() int {
	numbers++
	return numbers
}

// open opens the source of an engine.
func open(t testing.TB, e *chtest.Engine) *clickhouse.Source {
	t.Helper()
	s, err := clickhouse.Open(t.Context(), sourceURL(e))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// sourceURL is a source's URL: of a cluster with all its servers, for the tests have no coordination service.
func sourceURL(e *chtest.Engine) string {
	if e.Cluster == "" {
		return e.URL()
	}
	var servers []string
	for _, s := range e.Servers {
		servers = append(servers, s.Address())
	}
	return e.URL() + "&servers=" + strings.Join(servers, ",")
}

// load makes an owner's table of rows: on a cluster a Distributed one.
func load(t testing.TB, e *chtest.Engine, name string, rows sourcetest.Rows) string {
	t.Helper()
	var columns []string
	for _, c := range rows {
		kind := map[sourcetest.Type]string{sourcetest.Float64: "Float64", sourcetest.Float32: "Float32", sourcetest.Int64: "Int64", sourcetest.Bool: "Bool", sourcetest.Text: "String", sourcetest.Instant: "DateTime64(6)"}[c.Type]
		if e.Cluster != "" {
			kind = map[sourcetest.Type]string{sourcetest.Bool: "Enum8('false' = 0, 'true' = 1)", sourcetest.Instant: "DateTime"}[c.Type] + kind[:len(kind)*b2i(c.Type != sourcetest.Bool && c.Type != sourcetest.Instant)]
		}
		if c.Null != nil {
			kind = "Nullable(" + kind + ")"
		}
		columns = append(columns, "`"+strings.NewReplacer("\\", "\\\\", "`", "\\`").Replace(c.Name)+"` "+kind)
	}
	list := strings.Join(columns, ", ")
	table := chtest.Data + "." + name
	if e.Cluster == "" {
		e.Exec(t, "CREATE TABLE "+table+" ("+list+") ENGINE = MergeTree ORDER BY tuple()")
	} else {
		e.Exec(t, "CREATE TABLE "+table+"_local ("+list+") ENGINE = MergeTree ORDER BY tuple()",
			"CREATE TABLE "+table+" ("+list+") ENGINE = Distributed("+e.Cluster+", "+chtest.Data+", "+name+"_local, rand())")
	}
	insert(t, e, table, rows)
	return table
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// empty takes all rows from a table.
func empty(t testing.TB, e *chtest.Engine, table string) {
	t.Helper()
	if e.Cluster != "" {
		table += "_local"
	}
	e.Exec(t, "TRUNCATE TABLE "+table)
}

// insert writes rows into a table.
func insert(t testing.TB, e *chtest.Engine, table string, rows sourcetest.Rows) {
	t.Helper()
	var out []byte
	for row := range rows.Len() {
		for i := range rows {
			c := &rows[i]
			if c.Null != nil {
				out = append(out, byte(b2i(c.Null[row])))
				if c.Null[row] {
					continue
				}
			}
			switch c.Type {
			case sourcetest.Float64:
				out = binary.LittleEndian.AppendUint64(out, math.Float64bits(c.Floats[row]))
			case sourcetest.Float32:
				out = binary.LittleEndian.AppendUint32(out, math.Float32bits(float32(c.Floats[row])))
			case sourcetest.Bool:
				out = append(out, byte(b2i(c.Bools[row])))
			case sourcetest.Text:
				out = append(binary.AppendUvarint(out, uint64(len(c.Texts[row]))), c.Texts[row]...)
			case sourcetest.Instant:
				if e.Cluster != "" {
					out = binary.LittleEndian.AppendUint32(out, uint32(c.Ints[row]/1e6))
					continue
				}
				fallthrough
			default:
				out = binary.LittleEndian.AppendUint64(out, uint64(c.Ints[row]))
			}
		}
	}
	if len(out) > 0 {
		e.Insert(t, table, out)
	}
}
