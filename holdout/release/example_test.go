package release_test

import (
	"context"
	"fmt"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/dp/unit"
	"github.com/holdoutd/holdoutd/holdout/release"
)

// What 3,000 customers with one to three visits each look like, for a page that anyone may read.
func ExampleOf() {
	var ages []float64
	var owners []unit.Owner
	for customer := range uint64(3000) {
		for range 1 + customer%3 {
			ages, owners = append(ages, float64(18+customer%60)), append(owners, unit.Owner{User: customer})
		}
	}
	visits, err := dataset.FromColumns(dataset.Column{Field: dataset.Field{Name: "age", Kind: dataset.Number, Source: "DOUBLE"}, Numbers: ages})
	if err != nil {
		panic(err)
	}
	request := release.Request{Epsilon: 1_000_000, RowsPerUnit: 1, Columns: []release.ColumnRequest{{Name: "age", Low: new(0.), High: new(100.)}}}
	var key noise.Key // 32 secret random bytes
	out, err := release.Of(context.Background(), visits, owners, request, key.Stream("release", request.Canonical()))
	if err != nil {
		panic(err)
	}
	age := out.Columns[0]
	fmt.Printf("%.0f customers, from %.0f to %.0f\n", out.Units.Value, out.Units.Low, out.Units.High)
	fmt.Printf("mean age %.1f, from %.1f to %.1f\n", age.Mean.Value, age.Mean.Low, age.Mean.High)
	fmt.Printf("median from %.0f to %.0f\n", age.Quantiles[1].Low, age.Quantiles[1].High)
	// Output:
	// 2998 customers, from 2983 to 3013
	// mean age 47.5, from 46.9 to 48.0
	// median from 46 to 53
}
