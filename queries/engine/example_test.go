package engine_test

import (
	"context"
	"fmt"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/queries/engine"
	"github.com/holdoutd/holdoutd/rowfn"
)

// A table sums the row functions of a query, exactly, in one pass.
func Example() {
	table, err := dataset.FromColumns(dataset.Column{Field: dataset.Field{Name: "delay", Kind: dataset.Number}, Numbers: []float64{-5, 20, 40, 3}})
	if err != nil {
		panic(err)
	}
	source, err := engine.NewTable(table, nil, 1)
	if err != nil {
		panic(err)
	}
	q, err := queries.Parse([]byte(`{"type":"fraction","of":"delay > 15"}`))
	if err != nil {
		panic(err)
	}
	plan, err := q.Compile(context.Background(), table.Schema())
	if err != nil {
		panic(err)
	}
	sums, err := source.Sums(context.Background(), plan.Functions, 0, source.Units())
	if err != nil {
		panic(err)
	}
	fmt.Println(float64(sums[0]) / float64(rowfn.One*source.Units()))
	// Output:
	// 0.5
}
