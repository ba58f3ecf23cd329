package sql

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/rowfn"
)

var update = flag.Bool("update", false, "write the statements of docs/format/sql.md anew")

// page has the statements, so that the page that explains them cannot say others.
const page = "../../docs/format/sql.md"

// TestStatementsOfThePage: the statements that docs/format/sql.md shows are those that are printed.
func TestStatementsOfThePage(t *testing.T) {
	schema := dataset.Schema{Fields: []dataset.Field{{Name: "age", Kind: dataset.Number}, {Name: "income", Kind: dataset.Number}, {Name: "member", Kind: dataset.Bool}, {Name: "town", Kind: dataset.Text}}}
	age, income := rowfn.Column("age", rowfn.Number), rowfn.Column("income", rowfn.Number)
	mean := rowfn.Batch{Functions: []rowfn.Function{{Value: age, Lo: 0, Hi: 100, Where: rowfn.Compare(rowfn.OpEq, rowfn.Column("town", rowfn.Text), rowfn.TextConst("Rome"))}}}
	quotient := rowfn.Batch{Functions: []rowfn.Function{{Value: rowfn.Div(income, age), Lo: 0, Hi: 1000}}}
	square := rowfn.Batch{Functions: []rowfn.Function{{Value: rowfn.Column("member", rowfn.Condition), Lo: 0, Hi: 1, Where: rowfn.CompareTo(rowfn.OpLess, age, 30)}}, Products: []rowfn.Product{{A: 0, B: 0}}}
	var text strings.Builder
	show := func(what string, d *Dialect, grouped bool, batch rowfn.Batch) {
		plan, err := Plan(d, Part{Table: "part", Schema: schema, Units: 70_000, Grouped: grouped, Cap: 5}, batch, 0, 70_000)
		if err != nil || len(plan.Statements) != 1 {
			t.Fatalf("%d statements, %v", len(plan.Statements), err)
		}
		broken := strings.NewReplacer(" FROM (", "\nFROM (", ", coalesce(", ",\n  coalesce(", ", sum(", ",\n  sum(", ", toInt64(sum(", ",\n  toInt64(sum(").Replace(plan.Statements[0].Text)
		fmt.Fprintf(&text, "%s:\n\n```sql\n%s\n```\n\n", what, broken)
	}
	show("The mean of `age` between 0 and 100 where `town` is \"Rome\", in ClickHouse", ClickHouse, false, mean)
	show("The same in Trino", Trino, false, mean)
	show("The mean of `income / age` between 0 and 1000, in Trino: the quotient has a name, for its infinities must be seen twice", Trino, false, quotient)
	show("How many of those below 30 are members, and the sum of squares of that, of units of several rows, in ClickHouse", ClickHouse, true, square)
	const begin, end = "[//]: # \"statements: written by go test ./sources/sql -run TestStatementsOfThePage -update\"\n", "[//]: # \"end of statements\""
	have, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(have), begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no place for statements", page)
	}
	want := before + begin + "\n" + text.String() + end + after
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if string(have) != want {
		t.Errorf("%s shows other statements than are printed; run go test ./sources/sql -run TestStatementsOfThePage -update and look at the difference", page)
	}
}
