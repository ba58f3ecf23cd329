//go:build engines

package remote

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/queries/engine/remote/enginetest"
	"github.com/holdoutd/holdoutd/rowfn/sql"
)

// real is a running engine with the edge rows in two tables: every row a unit, and units of several.
type real struct {
	name    string
	engine  Engine
	sources [2]*Source
	// values runs a statement of units' values, whose rows may be in any order.
	values func(t *testing.T, statement string) [][]string
	// create makes a table of what a statement selects, by a user that may.
	create func(t *testing.T, name, statement string)
}

// dirty are doubles as a careless loader would write them: nulls that are infinities and other NaN, and zeros with a sign.
func dirty() func(x float64) float64 {
	n := 0
	return func(x float64) float64 {
		n++
		switch nulls := []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Float64frombits(0xfff8000000000abc)}; {
		case x != x:
			return nulls[n%len(nulls)]
		case x == 0 && n%2 == 0:
			return math.Copysign(0, -1)
		}
		return x
	}
}

// load writes the edge rows through a function that gets a table's layout and rows.
func (r *real) load(t *testing.T, write func(layout *sql.Table, rows func(of []int) *Rows)) {
	t.Helper()
	for i, offsets := range [][]uint32{nil, edgeUnits()} {
		layout := Layout([]string{"edge_rows", "edge_units"}[i], edges().Schema(), int64(i)*largest)
		write(&layout, func(of []int) *Rows {
			rows, err := NewRows(edges(), &layout, offsets, of)
			if err != nil {
				t.Fatal(err)
			}
			rows.number = dirty()
			return rows
		})
		units := int64(edgeRows)
		if offsets != nil {
			units = int64(len(offsets) - 1)
		}
		s, err := New(r.engine, Registered{Table: layout, Units: units, Rows: edgeRows, Offsets: offsets})
		if err != nil {
			t.Fatal(err)
		}
		r.sources[i] = s
	}
}

func all(n int) []int {
	rows := make([]int, n)
	for i := range rows {
		rows[i] = i
	}
	return rows
}

// tell shows an engine's words where a test fails.
func tell(t *testing.T) Options {
	return Options{Tell: func(text string) { t.Logf("the engine says: %.2000s", text) }}
}

func connect(t *testing.T, address string) *ClickHouse {
	t.Helper()
	c, err := NewClickHouse(address, tell(t))
	must(t, err)
	return c
}

// tabbed are the units' values of ClickHouse.
func tabbed(c *ClickHouse) func(t *testing.T, statement string) [][]string {
	return func(t *testing.T, statement string) (rows [][]string) {
		text, err := c.ask(t.Context(), statement, BlockBytes)
		must(t, err)
		for line := range strings.Lines(string(text)) {
			rows = append(rows, strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
		}
		return rows
	}
}

// cluster18 is ClickHouse 18.16 with the units in two shards.
func cluster18(t *testing.T) (*real, *enginetest.Cluster) {
	t.Helper()
	cluster := enginetest.ClickHouse18(t)
	reader := connect(t, cluster.Address(0, "reader"))
	must(t, reader.CheckProfile(t.Context()))
	r := &real{name: "ClickHouse 18.16, 2 shards", engine: reader, values: tabbed(reader)}
	loader := connect(t, cluster.Address(0, "loader"))
	r.create = func(t *testing.T, name, statement string) {
		must(t, loader.change(t.Context(), "CREATE TABLE "+name+" ENGINE = Memory AS "+statement, nil))
	}
	r.load(t, func(layout *sql.Table, rows func([]int) *Rows) { writeShards(t, cluster, layout, rows) })
	return r, cluster
}

// writeShards writes the rows into the local tables of two shards, by unit, and makes the distributed table.
func writeShards(t *testing.T, cluster *enginetest.Cluster, layout *sql.Table, rows func([]int) *Rows) {
	t.Helper()
	local, order := *layout, "row_number"
	local.From += "_local"
	if layout.Unit != "" {
		order = "(unit_number, row_number)"
	}
	units := make([]uint32, edgeRows)
	copy(units, rows(nil).units)
	if layout.Unit == "" {
		for i := range units {
			units[i] = uint32(i)
		}
	}
	for shard := range 2 {
		node := connect(t, cluster.Address(shard, "loader"))
		var of []int
		for row, unit := range units {
			if int(unit)%2 == shard {
				of = append(of, row)
			}
		}
		must(t, node.Create(t.Context(), &local, "MergeTree() ORDER BY "+order))
		must(t, node.Insert(t.Context(), &local, rows(of)))
		if shard == 0 {
			must(t, node.Create(t.Context(), layout, "Distributed(shards, default, "+local.From+")"))
		}
	}
}

// current is the current ClickHouse.
func current(t *testing.T) *real {
	t.Helper()
	c := connect(t, enginetest.CurrentClickHouse(t))
	r := &real{name: "current ClickHouse", engine: c, values: tabbed(c)}
	r.create = func(t *testing.T, name, statement string) {
		must(t, c.change(t.Context(), "CREATE TABLE "+name+" ENGINE = Memory AS "+statement, nil))
	}
	r.load(t, func(layout *sql.Table, rows func([]int) *Rows) {
		must(t, c.Create(t.Context(), layout, "MergeTree() ORDER BY row_number"))
		must(t, c.Insert(t.Context(), layout, rows(all(edgeRows))))
	})
	return r
}

// differences are the cells in which an engine differs from the one in memory: values of units, and sums. It stops at some.
func (r *real) differences(t *testing.T, units bool, d *sql.Dialect, e expected) (different []string, compared int) {
	t.Helper()
	s := r.sources[0]
	if units {
		s = r.sources[1]
	}
	statements, functions, err := sql.PrintUnits(d, &s.of.Table, e.batch, 0, s.Units())
	must(t, err)
	for i, statement := range statements {
		rows := r.values(t, statement)
		if int64(len(rows)) != s.Units() {
			different = append(different, fmt.Sprintf("%d units", len(rows)))
		}
		for _, row := range rows {
			var unit int
			if _, err := fmt.Sscan(row[0], &unit); err != nil || unit >= len(e.units) || len(row) != len(functions[i])+1 {
				t.Fatalf("%q", row)
			}
			for j, cell := range row[1:] {
				compared++
				at := functions[i][j]
				if want := e.units[unit][at]; cell != fmt.Sprint(want) {
					different = append(different, fmt.Sprintf("unit %d of program %d: %s, want %d", unit, at, cell, want))
				}
			}
		}
	}
	return different, compared
}

// TestConformance: every engine has, of random and directed programs on edge rows, the value of each row or unit, the sums, and the sums of products of the
// engine in memory, to the last unit. A range of units, and rows that are read in blocks, have them too.
func TestConformance(t *testing.T) {
	for name, open := range engines {
		t.Run(name, func(t *testing.T) { open(t).conforms(t) })
	}
}

var engines = map[string]func(t *testing.T) *real{
	"clickhouse18": func(t *testing.T) *real { r, _ := cluster18(t); return r },
	"clickhouse":   current,
}

func (r *real) conforms(t *testing.T) {
	t.Helper()
	programs, cells, sums := 0, 0, 0
	for _, units := range []bool{false, true} {
		s := r.sources[0]
		if units {
			s = r.sources[1]
		}
		for i, e := range drawn(t, units) {
			different, compared := r.differences(t, units, r.engine.Dialect(), e)
			for _, d := range different[:min(3, len(different))] {
				t.Errorf("%s, batch %d, units %v: %s", r.name, i, units, d)
			}
			got, err := s.Moments(t.Context(), e.batch, 0, s.Units())
			must(t, err)
			if !slices.Equal(got.Values, e.sums.Values) || !slices.Equal(got.Products, e.sums.Products) {
				t.Errorf("%s, batch %d, units %v: sums differ", r.name, i, units)
			}
			programs, cells, sums = programs+len(e.batch.Functions), cells+compared, sums+len(got.Values)+len(got.Products)
			if t.Failed() && i > 20 {
				t.FailNow()
			}
		}
	}
	if programs < 3000 {
		t.Errorf("%d programs", programs)
	}
	t.Logf("%s: %d programs, %d values of rows and units, %d sums of the aggregates", r.name, programs, cells, sums)
}
