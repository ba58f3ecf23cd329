package engine

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries"
)

// Models are benchmarked by the accuracy question that one would ask about them: ns/row is the time of a scan on all cores. Eight
// number columns f0 to f7, a hundredth of each null, and a label. bench/models.py gives models that it exported in the folder
// HOLDOUTD_MODELS; without it they are made here, of the same shapes.

const modelColumns = 8

func modelTable(b *testing.B, rows int) *dataset.Table {
	b.Helper()
	r := rand.New(rand.NewPCG(3, 9))
	columns := make([]dataset.Column, modelColumns)
	for j := range columns {
		columns[j] = dataset.Column{Field: dataset.Field{Name: string([]byte{'f', byte('0' + j)}), Kind: dataset.Number}}
		for range rows {
			columns[j].Numbers = append(columns[j].Numbers, r.NormFloat64())
		}
	}
	label := dataset.Column{Field: dataset.Field{Name: "late", Kind: dataset.Bool}}
	for range rows {
		label.Bools = append(label.Bools, uint8(r.IntN(2)))
	}
	t, err := dataset.FromColumns(append(columns, label)...)
	if err != nil {
		b.Fatal(err)
	}
	return t
}

// modelOf is the model of a name: linear, or trees of a depth.
func modelOf(b *testing.B, name string, trees, depth int) []byte {
	b.Helper()
	if dir := os.Getenv("HOLDOUTD_MODELS"); dir != "" {
		body, err := os.ReadFile(filepath.Join(dir, name+".json"))
		if err != nil {
			b.Fatal(err)
		}
		return body
	}
	r := rand.New(rand.NewPCG(1, 2))
	feature := func() string { return string([]byte{'f', byte('0' + r.IntN(modelColumns))}) }
	var grow func(depth int) []any
	grow = func(depth int) []any {
		if depth == 0 {
			return []any{r.NormFloat64()}
		}
		return append(append([]any{[]any{feature(), r.NormFloat64()}}, grow(depth-1)...), grow(depth-1)...)
	}
	var m any
	if trees == 0 {
		weights := map[string]float64{}
		for j := range modelColumns {
			weights[string([]byte{'f', byte('0' + j)})] = r.NormFloat64()
		}
		m = map[string]any{"linear": map[string]any{"weights": weights, "link": "logit"}}
	} else {
		all := make([]any, trees)
		for i := range all {
			all[i] = grow(depth)
		}
		m = map[string]any{"trees": map[string]any{"trees": all, "link": "logit"}}
	}
	body, err := json.Marshal(m)
	if err != nil {
		b.Fatal(err)
	}
	return body
}

func benchmarkModel(b *testing.B, name string, trees, depth int) {
	const rows = 200_000
	q, err := queries.Parse(append(append([]byte(`{"type":"accuracy","label":"late","model":`), modelOf(b, name, trees, depth)...), '}'))
	if err != nil {
		b.Fatal(err)
	}
	table := modelTable(b, rows)
	p, err := q.Compile(context.Background(), table.Schema())
	if err != nil {
		b.Fatal(err)
	}
	source, err := NewTable(table, nil, 1)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := source.Sums(b.Context(), p.Functions, 0, rows); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
}

func BenchmarkModelLogistic(b *testing.B) { benchmarkModel(b, "logistic", 0, 0) }
func BenchmarkModelBoosted(b *testing.B)  { benchmarkModel(b, "boosted", 100, 3) }

// BenchmarkModelThousand has as many trees as boosting usually ends with.
func BenchmarkModelThousand(b *testing.B) { benchmarkModel(b, "thousand", 1000, 6) }
func BenchmarkModelForest(b *testing.B)   { benchmarkModel(b, "forest", 100, 6) }
func BenchmarkModelDeep(b *testing.B)     { benchmarkModel(b, "deep", 20, 10) }
