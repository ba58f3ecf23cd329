package queries

import (
	"context"
	"fmt"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
)

// BenchmarkCompile is the way from JSON to row functions, on a table with a usual and with the largest number of columns.
func BenchmarkCompile(b *testing.B) {
	body := []byte(`{"type":"mean","of":"delay","range":[-60,180],"where":"distance < 500 && origin in ['SFO','OAK']"}`)
	for _, columns := range []int{20, 16384} {
		schema := dataset.Schema{}
		for i := range columns - len(flights.Fields) {
			schema.Fields = append(schema.Fields, dataset.Field{Name: fmt.Sprintf("column_%d", i), Kind: dataset.Number})
		}
		schema.Fields = append(schema.Fields, flights.Fields...)
		b.Run(fmt.Sprint(columns), func(b *testing.B) {
			for b.Loop() {
				q, err := Parse(body)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := q.Compile(context.Background(), schema); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
