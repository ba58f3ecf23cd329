//go:build engines

package trinotest

import (
	"fmt"
	"testing"
)

func TestMain(m *testing.M) { Main(m) }

// TestCluster: both nodes work, each catalog can be written to by who may, and the reader can read parts and nothing else.
func TestCluster(t *testing.T) {
	c := Shared(t)
	for _, catalog := range Catalogs {
		table := catalog + "." + PrivateSchema + ".t"
		c.Exec(t, "CREATE TABLE "+table+" AS SELECT orderkey, totalprice FROM tpch.tiny.orders")
		rows, err := c.QueryAs(Reader, "SELECT count(*) FROM "+table)
		if err != nil || fmt.Sprint(rows) != "[[15000]]" {
			t.Errorf("%s: %v, %v", table, rows, err)
		}
		for _, statement := range []string{"DELETE FROM " + table, "DROP TABLE " + table, "CREATE TABLE " + table + "2 AS SELECT 1 x", "CREATE TABLE " + catalog + ".owner.y AS SELECT 1 x"} {
			if _, err := c.QueryAs(Reader, statement); err == nil {
				t.Errorf("the reader may %s", statement)
			}
		}
	}
	if _, err := c.QueryAs(Reader, "SELECT count(*) FROM tpch.tiny.orders"); err == nil {
		t.Error("the reader may read tables of the owner")
	}
}
