package sql

import (
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/rowfn"
)

// TestEachMachineSums: of a part on several machines each sums its own rows, and no statement reads the table of all machines, whose rows would travel to one. What is joined has a name, without which current
// versions refuse the statement.
func TestEachMachineSums(t *testing.T) {
	part := Part{Table: "everywhere", Local: "own", Each: "each", Schema: dataset.Schema{Fields: []dataset.Field{{Name: "x", Kind: dataset.Number}}}, Units: 10, Cap: 3}
	x := rowfn.Function{Value: rowfn.Column("x", rowfn.Number), Lo: 0, Hi: 1}
	for _, part.Grouped = range []bool{false, true} {
		plan, err := Plan(ClickHouse, part, rowfn.Batch{Functions: []rowfn.Function{x}, Products: []rowfn.Product{{}}}, 0, 10)
		if err != nil || len(plan.Statements) != 1 {
			t.Fatal(plan, err)
		}
		text := plan.Statements[0].Text
		if strings.Contains(text, part.Table) || !strings.Contains(text, " FROM own") || !strings.Contains(text, " FROM each ALL INNER JOIN (SELECT ") || !strings.HasSuffix(text, ") AS sums USING dummy") {
			t.Errorf("units of several rows: %v: %s", part.Grouped, text)
		}
	}
}
