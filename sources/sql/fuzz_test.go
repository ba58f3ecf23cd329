package sql

import (
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries/engine"
	"github.com/holdoutd/holdoutd/queries/randomtree"
	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/rowfn/wire"

	"pgregory.net/rapid"
)

// FuzzPlan: whatever row functions come in the wire form, they are refused where the server's own engine refuses them, or have that engine's sums; nothing panics.
func FuzzPlan(f *testing.F) {
	draw := rapid.Custom(func(t *rapid.T) rowfn.Function { return randomtree.Plain.Function(t, 3) })
	for seed := range 20 {
		text, err := wire.Marshal(rowfn.Batch{Functions: []rowfn.Function{draw.Example(2 * seed), draw.Example(2*seed + 1)}, Products: []rowfn.Product{{A: 0, B: 1}}}, nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	table, offsets := edges(6, 12)
	parts := []*kept{keep(f, ClickHouse, table, nil, 1), keep(f, Trino, table, offsets, 3)}
	f.Fuzz(func(t *testing.T, text []byte) {
		batch, err := wire.Parse(text, nil)
		if err != nil || engine.EstimateBatch(batch, dataset.Shape{Rows: 12}).Steps > 20_000 {
			return
		}
		for _, k := range parts {
			_, refused := k.want.Moments(t.Context(), batch, 0, k.Units)
			got, plan, err := k.moments(batch, 0, k.Units)
			switch {
			case refused != nil && err == nil:
				t.Fatalf("%v: %v, %v; the server's engine says %v", k.d, got, plan, refused)
			case refused == nil && err != nil:
				t.Fatalf("%v: %v", k.d, err)
			case refused == nil:
				k.agree(t, batch, 0, k.Units)
			}
		}
	})
}
