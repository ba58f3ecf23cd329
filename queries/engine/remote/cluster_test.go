//go:build engines

package remote

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries/engine"
	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/rowfn/sql"
)

// readPrograms are row functions that no engine computes bit by bit, with one that it does and products of both kinds.
func readPrograms() rowfn.Batch {
	x, y := rowfn.Column("x", rowfn.Number), rowfn.Column("y", rowfn.Number)
	values := make([]float64, edgeRows)
	for i := range values {
		if values[i] = float64(i%7) - 2; i%11 == 0 {
			values[i] = math.NaN()
		}
	}
	ofRow := &rowfn.Node{Op: rowfn.OpRow, Type: rowfn.Number, Values: values}
	return rowfn.Batch{Functions: []rowfn.Function{
		{Value: rowfn.Log(x), Lo: -3, Hi: 3, Null: 1},
		{Value: y, Lo: -1, Hi: 1, PerUnit: rowfn.UnitShare},
		{Value: rowfn.Sub(ofRow, rowfn.Exp(y)), Lo: -5, Hi: 5, Where: rowfn.IsNull(rowfn.Column("p", rowfn.Condition))},
		{Value: ofRow, Lo: -5, Hi: 5, Null: -5, Where: rowfn.Compare(rowfn.OpNe, rowfn.Column("s", rowfn.Text), rowfn.Column("t", rowfn.Text)), PerUnit: rowfn.UnitAny},
	}, Products: []rowfn.Product{{A: 0, B: 1}, {A: 1, B: 1}, {A: 2, B: 3}}}
}

// reads compares what is computed here over blocks of rows with the engine in memory, over all units and parts of them.
func (r *real) reads(t *testing.T) {
	t.Helper()
	for i, offsets := range [][]uint32{nil, edgeUnits()} {
		here, err := engine.NewTable(edges(), offsets, largest)
		must(t, err)
		s := r.sources[i]
		for _, of := range [][2]int64{{0, s.Units()}, {3, 17}, {5, 6}, {4, 4}, {s.Units() - 1, s.Units()}} {
			for _, b := range []rowfn.Batch{readPrograms(), drawn(t, i == 1)[0].batch} {
				want, err := here.Moments(t.Context(), b, of[0], of[1])
				must(t, err)
				got, err := s.Moments(t.Context(), b, of[0], of[1])
				must(t, err)
				if !slices.Equal(got.Values, want.Values) || !slices.Equal(got.Products, want.Products) {
					t.Errorf("%s, units %d to %d: %v, want %v", r.name, of[0], of[1], got, want)
				}
			}
		}
	}
}

// TestCurrentReads: rows of the current ClickHouse are read in blocks as they were written.
func TestCurrentReads(t *testing.T) { current(t).reads(t) }

// TestCluster: what a real cluster does when it is asked by the wrong user, loses a shard, or is not waited for.
func TestCluster(t *testing.T) {
	r, cluster := cluster18(t)
	r.reads(t)
	s := r.sources[0]
	ofX := []rowfn.Function{{Value: rowfn.Column("x", rowfn.Number), Lo: 0, Hi: 1}}

	// Profiles that would let a sum be wrong.
	for user, setting := range map[string]string{"lenient": "skip_unavailable_shards", "loader": "readonly"} {
		if err := connect(t, cluster.Address(0, user)).CheckProfile(t.Context()); !errors.Is(err, &Error{Kind: Profile}) || !strings.Contains(err.Error(), setting) {
			t.Errorf("%s: %v", user, err)
		}
	}

	// A user that is not known, and one that may not write.
	wrong := connect(t, strings.Replace(cluster.Address(0, "reader"), "reader@", "guessed@", 1))
	if _, err := over(t, wrong, s.of).Sums(t.Context(), ofX, 0, s.Units()); !errors.Is(err, &Error{Kind: Denied}) || strings.Contains(err.Error(), "guessed") {
		t.Errorf("with a wrong password: %v", err)
	}
	reader := connect(t, cluster.Address(0, "reader"))
	other := s.of.Table
	other.From = "by_reader"
	if err := reader.Create(t.Context(), &other, "Memory"); err == nil {
		t.Error("the reader makes tables")
	}
	if missing := s.of; true {
		missing.Table.From = "no_such_table"
		if _, err := over(t, reader, missing).Sums(t.Context(), ofX, 0, s.Units()); !errors.Is(err, &Error{Kind: Changed}) || strings.Contains(err.Error(), "no_such") {
			t.Errorf("a table that is not there: %v", err)
		}
	}

	// Half of the rows, by the table of one shard alone.
	half := s.of
	half.Table.From += "_local"
	if _, err := over(t, reader, half).Sums(t.Context(), ofX, 0, s.Units()); !errors.Is(err, &Error{Kind: Changed}) {
		t.Errorf("the rows of one shard: %v", err)
	}

	// Nobody waits any more: the statement ends in the engine.
	loader := connect(t, cluster.Address(0, "loader"))
	ctx, cancel := context.WithCancel(t.Context())
	given := make(chan error)
	go func() {
		_, err := reader.ask(ctx, "SELECT sum(number) FROM system.numbers", AnswerBytes)
		given <- err
	}()
	running := func() string {
		text, err := loader.ask(t.Context(), "SELECT count() FROM system.processes WHERE query LIKE '%system.numbers%' AND user = 'reader' FORMAT TabSeparated", AnswerBytes)
		must(t, err)
		return strings.TrimSpace(string(text))
	}
	for until := time.Now().Add(time.Minute); running() != "1"; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("the statement does not run")
		}
	}
	cancel()
	if err := <-given; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for until := time.Now().Add(time.Minute); running() != "0"; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("the statement goes on")
		}
	}

	// A shard is away: an error by default, and none of half the rows where a profile leaves it out.
	cluster.Crash(1)
	if _, err := s.Sums(t.Context(), ofX, 0, s.Units()); !errors.Is(err, &Error{Kind: Unreachable}) {
		t.Errorf("a shard is away: %v", err)
	}
	if _, err := over(t, connect(t, cluster.Address(0, "lenient")), s.of).Sums(t.Context(), ofX, 0, s.Units()); !errors.Is(err, &Error{Kind: Changed}) {
		t.Errorf("a shard is left out: %v", err)
	}
}

// TestManyRows: a hundred sums are one statement, and a table that is many blocks of rows is read as it is.
func TestManyRows(t *testing.T) {
	c := connect(t, clickhouse(t))
	const rows = 3*BlockRows + 17
	numbers, texts := make([]float64, rows), make([]string, rows)
	for i := range numbers {
		numbers[i], texts[i] = float64(i%1013)/7-40, fmt.Sprint("t", i%31)
	}
	table, err := dataset.FromColumns(dataset.Column{Field: dataset.Field{Name: "x", Kind: dataset.Number}, Numbers: numbers}, dataset.NewText("s", texts, nil))
	must(t, err)
	layout := Layout("many", table.Schema(), 0)
	written, err := NewRows(table, &layout, nil, all(rows))
	must(t, err)
	must(t, c.Create(t.Context(), &layout, "MergeTree() ORDER BY row_number"))
	must(t, c.Insert(t.Context(), &layout, written))
	s := over(t, c, Registered{Table: layout, Units: rows, Rows: rows})
	here, err := engine.NewTable(table, nil, 1)
	must(t, err)
	x := rowfn.Column("x", rowfn.Number)
	b := rowfn.Batch{}
	for i := range 97 {
		b.Functions = append(b.Functions, rowfn.Function{Value: rowfn.Clamp(rowfn.Mul(x, rowfn.Const(float64(i))), -60, 180), Lo: -60, Hi: 180,
			Where: rowfn.Compare(rowfn.OpEq, rowfn.Column("s", rowfn.Text), rowfn.TextConst(fmt.Sprint("t", i%31)))})
	}
	if statements, err := sql.Print(c.Dialect(), &layout, b, 0, rows); err != nil || len(statements) != 1 {
		t.Errorf("97 sums are %d statements, %v", len(statements), err)
	}
	b.Functions = append(b.Functions, rowfn.Function{Value: rowfn.Exp(x), Lo: 0, Hi: 100})
	want, err := here.Moments(t.Context(), b, 1, rows)
	must(t, err)
	got, err := s.Moments(t.Context(), b, 1, rows)
	must(t, err)
	if !slices.Equal(got.Values, want.Values) {
		t.Errorf("%v, want %v", got.Values, want.Values)
	}
}

func clickhouse(t *testing.T) string {
	t.Helper()
	_, cluster := cluster18(t)
	return cluster.Address(0, "loader")
}
