//go:build engines

package remote

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
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
		must(t, e.Make(t.Context(), layout))
		must(t, e.Insert(t.Context(), layout, rows(all(edgeRows))))
	})
	return r
}

// losing loses the answer to some INSERTs, which the coordinator has taken.
type losing struct {
	lost, inserts int
}

func (l *losing) RoundTrip(r *http.Request) (*http.Response, error) {
	insert := false
	if r.Body != nil {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r.Body, insert = io.NopCloser(bytes.NewReader(text)), bytes.HasPrefix(text, []byte("INSERT"))
	}
	response, err := http.DefaultTransport.RoundTrip(r)
	if insert {
		l.inserts++
	}
	if err == nil && insert && l.lost > 0 {
		l.lost--
		response.Body.Close()
		return nil, errors.New("the connection was lost")
	}
	return response, err
}

// TestTrinoLoads: a table that is written in several statements has all rows once, though one that was taken seemed lost; one of which a statement is lost each time is not there. It is read in blocks as it was
// written, to the last bit, and the probe is summed as here. A table that is gone is one that was changed.
func TestTrinoLoads(t *testing.T) {
	address := strings.Replace(enginetest.Trino(t), "//", "//loader@", 1) + "/memory/default"
	lose := &losing{lost: 1}
	loader, err := NewTrino(address, Options{Transport: lose})
	must(t, err)
	reader, err := NewTrino(strings.Replace(address, "loader", "reader", 1), tell(t))
	must(t, err)
	must(t, reader.CheckProfile(t.Context()))

	const n = 23_000
	numbers, texts, flags := make([]float64, n), make([]string, n), make([]uint8, n)
	for i := range n {
		numbers[i], texts[i], flags[i] = math.Sqrt(float64(i))/7-5, fmt.Sprint("é", i%1000), uint8(i%3)
	}
	numbers[5], texts[7] = math.NaN(), strings.Repeat("x", 2*trinoText/3)
	table, err := dataset.FromColumns(dataset.Column{Field: dataset.Field{Name: "x", Kind: dataset.Number}, Numbers: numbers},
		dataset.Column{Field: dataset.Field{Name: "p", Kind: dataset.Bool}, Bools: flags}, dataset.NewText("s", texts, func(row int) bool { return row%5 == 0 }))
	must(t, err)
	layout := Layout("loaded", table.Schema(), 0)
	must(t, Load(t.Context(), loader, &layout, Blocks(table, &layout, nil)))
	if lose.inserts < 4 {
		t.Errorf("%d statements wrote %d rows, after one that was lost", lose.inserts, n)
	}
	s, err := New(reader, Registered{Table: layout, Units: n, Rows: n})
	must(t, err)
	must(t, s.Verify(t.Context()))
	block, err := reader.Block(t.Context(), &layout, []string{"x", "p", "s"}, 0, n)
	must(t, err)
	if len(block.Rows) != n {
		t.Fatalf("%d rows", len(block.Rows))
	}
	for at, row := range block.Rows {
		text, null := "", row%5 == 0
		if code := block.Columns[2].Codes[at]; code > 0 {
			text = block.Columns[2].Dictionary.Text(int(code - 1))
		}
		if x := block.Columns[0].Numbers[at]; x != numbers[row] && x == x || (x != x) != (row == 5) || block.Columns[1].Bools[at] != flags[row] || (block.Columns[2].Codes[at] == 0) != null || !null && text != texts[row] {
			t.Fatalf("row %d: %v, %d, %.20q", row, x, block.Columns[1].Bools[at], text)
		}
	}
	must(t, LoadProbe(t.Context(), loader, "probe"))
	must(t, CheckProbe(t.Context(), reader, "probe"))
	lose.lost = LoadAttempts
	never := Layout("never_loaded", table.Schema(), 0)
	if err := Load(t.Context(), loader, &never, Blocks(table, &never, nil)); !errors.Is(err, &Error{Kind: Unreachable}) {
		t.Errorf("each INSERT is lost: %v", err)
	}
	for _, gone := range []string{"never_loaded", "loaded"} {
		layout := Layout(gone, table.Schema(), 0)
		must(t, loader.Drop(t.Context(), &layout))
		if s, err = New(reader, Registered{Table: layout, Units: n, Rows: n}); err != nil {
			t.Fatal(err)
		}
		if err := s.Verify(t.Context()); !errors.Is(err, &Error{Kind: Changed}) {
			t.Errorf("%s is not there: %v", gone, err)
		}
	}
}

// TestTrinoReads: what is computed here over blocks of Trino's rows is what the engine in memory computes.
func TestTrinoReads(t *testing.T) { trino(t).reads(t) }

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
