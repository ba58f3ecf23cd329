//go:build engines

package trino

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/sources"
	"github.com/holdoutd/holdoutd/sources/sourcetest"
	"github.com/holdoutd/holdoutd/sources/trino/trinotest"
)

// conformance runs the suite of all sources, with the owner's tables and the parts in a catalog.
func conformance(t *testing.T, catalog string, o sourcetest.Options) {
	c := trinotest.Shared(t)
	o.Open = func(t testing.TB) sources.Source { return open(t, c, catalog) }
	o.Load = func(t testing.TB, name string, rows sourcetest.Rows) string { return load(t, c, catalog, name, rows) }
	o.Replace = func(t testing.TB, table string, rows sourcetest.Rows) {
		empty := "TRUNCATE TABLE "
		if catalog == "hive" { // which cannot
			empty = "DELETE FROM "
		}
		c.Exec(t, empty+table)
		insert(t, c, catalog, table, rows)
	}
	if o.Faults == nil {
		o.Faults = map[string]func(t testing.TB, part sources.PartInfo){}
	}
	o.Faults["two units have exchanged values"] = func(t testing.TB, part sources.PartInfo) { exchange(t, c, catalog, part) }
	sourcetest.Run(t, o)
}

// exchange lets two units of one row each, of one block of checks, exchange their values of the column "id". No sum of values, or of units, is another.
func exchange(t testing.TB, c *trinotest.Cluster, catalog string, part sources.PartInfo) {
	t.Helper()
	table := catalog + "." + trinotest.PrivateSchema + "." + tableOf(partTable, part.Name)
	at := slices.IndexFunc(part.Schema.Fields, func(f dataset.Field) bool { return f.Name == "id" })
	column := fmt.Sprintf("c%d", at)
	rows, err := c.Query(fmt.Sprintf("SELECT _unit, CAST(arbitrary(%s) AS bigint) FROM %s GROUP BY _unit HAVING count(*) = 1 ORDER BY _unit LIMIT 2", column, table))
	if err != nil || len(rows) != 2 {
		t.Fatalf("there are no two units of one row: %v, %v", rows, err)
	}
	exchanged := fmt.Sprintf("CASE _unit WHEN %v THEN %ve0 WHEN %v THEN %ve0 ELSE %s END", rows[0][0], rows[1][1], rows[1][0], rows[0][1], column)
	if catalog == "iceberg" {
		c.Exec(t, fmt.Sprintf("UPDATE %s SET %s = %s WHERE _unit IN (%v, %v)", table, column, exchanged, rows[0][0], rows[1][0]))
		return
	}
	names, err := c.Query(fmt.Sprintf("SELECT column_name FROM %s.information_schema.columns WHERE table_schema = '%s' AND table_name = '%s' ORDER BY ordinal_position", catalog, trinotest.PrivateSchema, tableOf(partTable, part.Name)))
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, name := range names {
		if text := fmt.Sprint(name[0]); text == column {
			list = append(list, exchanged+" AS "+column)
		} else {
			list = append(list, text)
		}
	}
	aside := fmt.Sprintf("%s.%s.aside_%d", catalog, trinotest.OwnerSchema, tables.Add(1))
	c.Exec(t, "CREATE TABLE "+aside+" AS SELECT "+strings.Join(list, ", ")+" FROM "+table, "DROP TABLE "+table, "CREATE TABLE "+table+" AS SELECT * FROM "+aside, "DROP TABLE "+aside)
}

// TestConformanceMemory: the suite with everything in the nodes' memory, which is the fastest, with most of the random row functions.
func TestConformanceMemory(t *testing.T) {
	conformance(t, "memory", sourcetest.Options{Programs: 1500}) // of rows, and of units
}

// TestConformanceIceberg and its like: the same on the formats of lakes, whose types and ways of keeping values are their own; row functions are fewer, for it is one engine that sums them.
func TestConformanceIceberg(t *testing.T) {
	c := trinotest.Shared(t)
	faults := map[string]func(t testing.TB, part sources.PartInfo){}
	for name, change := range map[string]string{
		"a row twice":  "INSERT INTO %[1]s SELECT * FROM %[1]s WHERE _unit = 3 LIMIT 1",
		"a unit less":  "DELETE FROM %[1]s WHERE _unit = 3",
		"another null": "UPDATE %[1]s SET c3 = if(is_nan(c3), 1e0, nan()) WHERE _unit = 3",
		"no rows":      "DROP TABLE %[1]s",
	} {
		faults[name] = func(t testing.TB, part sources.PartInfo) {
			c.Exec(t, fmt.Sprintf(change, "iceberg."+trinotest.PrivateSchema+"."+tableOf(partTable, part.Name)))
		}
	}
	conformance(t, "iceberg", sourcetest.Options{Programs: 50, Rows: 300, Faults: faults})
}

func TestConformanceHive(t *testing.T) {
	conformance(t, "hive", sourcetest.Options{Programs: 50, Rows: 300, Instant: milliseconds})
}

// milliseconds are what Hive's timestamps have unless its catalog says otherwise.
func milliseconds(us int64) int64 {
	if us < 0 {
		us -= 999
	}
	return us / 1000 * 1000
}
