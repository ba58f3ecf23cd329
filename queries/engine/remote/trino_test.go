//go:build engines

package remote

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries/engine/remote/enginetest"
	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/rowfn/sql"
)

func init() { engines["trino"] = trino }

// trino is a coordinator of Trino with the edge rows in memory.
func trino(t *testing.T) *real {
	t.Helper()
	e, err := NewTrino(strings.Replace(enginetest.Trino(t), "//", "//reader@", 1), tell(t))
	must(t, err)
	r := &real{name: "Trino 476", engine: e, values: func(t *testing.T, statement string) [][]string {
		rows, err := e.rows(t.Context(), statement, BlockBytes)
		must(t, err)
		return rows
	}}
	r.create = func(t *testing.T, name, statement string) { r.values(t, "CREATE TABLE "+name+" AS "+statement) }
	r.load(t, func(layout *sql.Table, rows func([]int) *Rows) {
		layout.From = "memory.default." + layout.From
		var columns []string
		for _, typed := range columnTypes(layout) {
			columns = append(columns, strings.NewReplacer("Int64", "bigint", "UInt8", "tinyint", "Float64", "double", "String", "varchar").Replace(typed))
		}
		r.values(t, "CREATE TABLE "+layout.From+" ("+strings.Join(columns, ", ")+")")
		for part := range slices.Chunk(all(edgeRows), 50) {
			r.values(t, "INSERT INTO "+layout.From+" VALUES "+rows(part).values(layout))
		}
	})
	return r
}

// values are rows as SQL, in which no decimal of a double stands.
func (r *Rows) values(t *sql.Table) string {
	var all []string
	for _, row := range r.rows {
		cells := []string{fmt.Sprint(row)}
		if t.Unit != "" {
			cells = append(cells, fmt.Sprint(r.units[row]))
		}
		for _, c := range r.columns {
			switch c.Kind {
			case dataset.Text:
				text, null := "", 1
				if c.Codes[row] > 0 {
					text, null = c.Dictionary.Text(int(c.Codes[row]-1)), 0
				}
				cells = append(cells, sql.Trino.Text(text), fmt.Sprintf("TINYINT '%d'", null))
			case dataset.Bool:
				cells = append(cells, fmt.Sprintf("TINYINT '%d'", c.Bools[row]))
			default:
				cells = append(cells, fmt.Sprintf("from_ieee754_64(X'%016x')", math.Float64bits(r.number(c.Numbers[row]))))
			}
		}
		all = append(all, "("+strings.Join(cells, ", ")+")")
	}
	return strings.Join(all, ", ")
}

// TestTrinoBranches: Trino computes both sides of a condition in every row, whatever the condition is: its plan has them in an earlier step than the choice.
// As SQL is usually written it has not.
func TestTrinoBranches(t *testing.T) {
	r := trino(t)
	choice := rowfn.If(rowfn.Column("p", rowfn.Condition), rowfn.Sqrt(rowfn.Column("x", rowfn.Number)), rowfn.Column("y", rowfn.Number))
	b := rowfn.Batch{Functions: []rowfn.Function{{Value: choice, Lo: 0, Hi: 1}}}
	usual := sql.Trino
	usual.Pick = "(CASE WHEN $1 = BIGINT '1' THEN $2 ELSE $3 END)"
	inside := func(d *sql.Dialect) (found, chosen bool) {
		statements, err := sql.Print(d, &r.sources[0].of.Table, b, 0, edgeRows)
		must(t, err)
		for _, row := range r.values(t, "EXPLAIN "+statements[0].SQL) {
			for line := range strings.SplitSeq(row[0], `\n`) {
				choosing := strings.Contains(line, "THEN expr") || strings.Contains(line, "THEN sqrt") || strings.Contains(line, "THEN n0") || strings.Contains(line, "THEN n1")
				chosen = chosen || choosing
				found = found || choosing && strings.Contains(line, "sqrt")
			}
		}
		return found, chosen
	}
	if found, chosen := inside(&sql.Trino); found || !chosen {
		t.Errorf("a root is computed within the choice: %v; there is one: %v", found, chosen)
	}
	if found, _ := inside(&usual); !found {
		t.Error("as usual, a root is not computed within the choice: the test tells nothing")
	}
}
