package kernel_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries/engine"
	"github.com/holdoutd/holdoutd/rowfn"
)

// TestNumbersGivenByRow: numbers that come with a query are what a column of the table with the same numbers is, for any range of
// rows, alone and within expressions.
func TestNumbersGivenByRow(t *testing.T) {
	const rows = 5000
	given, label := make([]float64, rows), make([]float64, rows)
	for i := range given {
		given[i], label[i] = math.Sin(float64(i)), float64(i%3)
		if i%17 == 0 {
			given[i] = math.NaN()
		}
	}
	number := func(name string, values []float64) dataset.Column {
		return dataset.Column{Field: dataset.Field{Name: name, Kind: dataset.Number, Source: "DOUBLE"}, Numbers: slices.Clone(values)}
	}
	table, err := dataset.FromColumns(number("p", given), number("y", label))
	if err != nil {
		t.Fatal(err)
	}
	source, err := engine.NewTable(table, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	functions := func(p *rowfn.Node) []rowfn.Function {
		away := &rowfn.Node{Op: rowfn.OpSub, Type: rowfn.Number, Args: []*rowfn.Node{p, column("y")}}
		return []rowfn.Function{{Value: p, Lo: -1, Hi: 1, Null: 0.5}, {Value: away, Lo: -3, Hi: 1}, {Value: p, Lo: 0, Hi: 2}}
	}
	byRow := &rowfn.Node{Op: rowfn.OpRow, Type: rowfn.Number, Values: given}
	for _, r := range [][2]int64{{0, rows}, {0, 1}, {1023, 1025}, {3001, rows}} {
		got, err := source.Sums(context.Background(), functions(byRow), r[0], r[1])
		if err != nil {
			t.Fatal(err)
		}
		want, err := source.Sums(context.Background(), functions(column("p")), r[0], r[1])
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Errorf("rows %v: %v, of a column %v", r, got, want)
		}
	}
	for _, wrong := range [][]float64{given[:rows-1], nil, append(slices.Clone(given[1:]), math.Inf(1))} {
		_, err := source.Sums(context.Background(), functions(&rowfn.Node{Op: rowfn.OpRow, Type: rowfn.Number, Values: wrong}), 0, rows)
		if err == nil || !strings.Contains(err.Error(), "kernel: operation") {
			t.Errorf("%d numbers: %v", len(wrong), err)
		}
	}
}
