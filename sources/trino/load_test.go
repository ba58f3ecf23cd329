//go:build engines

package trino

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdoutd/holdoutd/sources"
	"github.com/holdoutd/holdoutd/sources/sourcetest"
	"github.com/holdoutd/holdoutd/sources/sql"
	"github.com/holdoutd/holdoutd/sources/trino/trinotest"
)

func TestMain(m *testing.M) { trinotest.Main(m) }

// open opens the cluster as a source whose parts are in a catalog.
func open(t testing.TB, c *trinotest.Cluster, catalog string, options ...string) *Source {
	t.Helper()
	s, err := Open(fmt.Sprintf("trino://%s@127.0.0.1:%d/%s/%s?%s", trinotest.Loader, c.Port, catalog, trinotest.PrivateSchema, strings.Join(append(options, "reader="+trinotest.Reader), "&")))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var tables atomic.Int64

// sqlTypes are the owner's types, by the catalog's own.
var sqlTypes = map[sourcetest.Type]string{sourcetest.Float64: "double", sourcetest.Float32: "real", sourcetest.Int64: "bigint", sourcetest.Bool: "boolean", sourcetest.Text: "varchar", sourcetest.Instant: "timestamp(6)"}

// load makes an owner's table. All values travel in binary, by a way that the code under test does not have: records of a flag and eight bytes for each column.
func load(t testing.TB, c *trinotest.Cluster, catalog, name string, rows sourcetest.Rows) string {
	t.Helper()
	table := fmt.Sprintf("%s.%s.%s_%d", catalog, trinotest.OwnerSchema, name, tables.Add(1))
	var definitions []string
	for i := range rows {
		definitions = append(definitions, sql.Trino.Name(rows[i].Name)+" "+typeOf(catalog, rows[i].Type))
	}
	c.Exec(t, "DROP TABLE IF EXISTS "+table, "CREATE TABLE "+table+" ("+strings.Join(definitions, ", ")+")")
	insert(t, c, catalog, table, rows)
	return table
}

func typeOf(catalog string, typ sourcetest.Type) string {
	switch {
	case typ == sourcetest.Instant && catalog == "hive":
		return "timestamp(3)" // its types have no precision; what they are read with is the catalog's
	case typ == sourcetest.Instant && catalog == "delta":
		return "timestamp(3) with time zone"
	}
	return sqlTypes[typ]
}

func insert(t testing.TB, c *trinotest.Cluster, catalog, table string, rows sourcetest.Rows) {
	t.Helper()
	const most = 400
	for from := 0; from < rows.Len(); from += most {
		var some []int
		for i := from; i < min(from+most, rows.Len()); i++ {
			some = append(some, i)
		}
		c.Exec(t, "INSERT INTO "+table+" "+valuesOf(catalog, rows.Take(some)))
	}
}

func valuesOf(catalog string, rows sourcetest.Rows) string {
	var records, texts []byte
	width := 9 * len(rows)
	for row := range rows.Len() {
		for i := range rows {
			column := &rows[i]
			flag, bits := byte(0), uint64(0)
			if column.IsNull(row) {
				flag = 1
			} else {
				switch column.Type {
				case sourcetest.Float64, sourcetest.Float32:
					bits = math.Float64bits(column.Floats[row])
				case sourcetest.Int64, sourcetest.Instant:
					bits = uint64(column.Ints[row])
				case sourcetest.Bool:
					if column.Bools[row] {
						bits = 1
					}
				case sourcetest.Text:
					bits = uint64(len(texts)+1)<<32 | uint64(len(column.Texts[row]))
					texts = append(texts, column.Texts[row]...)
				}
			}
			records = binary.BigEndian.AppendUint64(append(records, flag), bits)
		}
	}
	var list []string
	for i := range rows {
		flag, bits := fmt.Sprintf("substr(b, i * %d + %d, 1)", width, 9*i+1), fmt.Sprintf("substr(b, i * %d + %d, 8)", width, 9*i+2)
		value := "from_ieee754_64(" + bits + ")"
		switch rows[i].Type {
		case sourcetest.Float32:
			value = "CAST(" + value + " AS real)"
		case sourcetest.Int64:
			value = "from_big_endian_64(" + bits + ")"
		case sourcetest.Bool:
			value = "from_big_endian_64(" + bits + ") = 1"
		case sourcetest.Text:
			value = fmt.Sprintf("from_utf8(substr(x, from_big_endian_32(substr(%[1]s, 1, 4)), from_big_endian_32(substr(%[1]s, 5, 4))))", bits)
		case sourcetest.Instant:
			value = "at_timezone(from_unixtime_nanos(CAST(from_big_endian_64(" + bits + ") AS decimal(38, 0)) * 1000), 'UTC')"
			value = "CAST(" + value + " AS " + typeOf(catalog, sourcetest.Instant) + ")"
		}
		list = append(list, fmt.Sprintf("if(%s = X'00', %s)", flag, value))
	}
	return fmt.Sprintf("SELECT %s FROM (VALUES (from_base64('%s'), from_base64('%s'))) v (b, x) CROSS JOIN UNNEST(sequence(0, %d)) u (i)", strings.Join(list, ", "),
		base64.StdEncoding.EncodeToString(records), base64.StdEncoding.EncodeToString(texts), rows.Len()-1)
}

var _ sources.Source = (*Source)(nil)
