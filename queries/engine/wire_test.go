package engine

import (
	"context"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/queries/randomtree"
	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/rowfn/wire"
)

// TestWireKeepsTheSums: row functions that were written and read have the sums that they had, and are written again as they were. The
// trees are random, and have nodes of all kinds that the language makes; nodes are shared between functions.
func TestWireKeepsTheSums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := randomtree.Rows(t, rapid.IntRange(1, 30).Draw(t, "rows"))
		s, err := NewTable(randomtree.Table(rows), nil, 1)
		if err != nil {
			t.Fatal(err)
		}
		b := rowfn.Batch{Functions: make([]rowfn.Function, rapid.IntRange(1, 4).Draw(t, "functions"))}
		for i := range b.Functions {
			if b.Functions[i] = drawFunction(t); i > 0 && rapid.Bool().Draw(t, "shared") {
				b.Functions[i].Where = b.Functions[0].Where
			}
		}
		for range rapid.IntRange(0, 3).Draw(t, "products") {
			place := rapid.IntRange(0, len(b.Functions)-1)
			b.Products = append(b.Products, rowfn.Product{A: place.Draw(t, "a"), B: place.Draw(t, "b")})
		}
		text, err := wire.Marshal(b, nil)
		if err != nil {
			t.Fatal(err)
		}
		read, err := wire.Parse(text, nil)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		again, err := wire.Marshal(read, nil)
		if err != nil || string(again) != string(text) {
			t.Fatalf("%v: written again\n%s\nit was\n%s", err, again, text)
		}
		want, err := s.Moments(context.Background(), b, 0, s.Units())
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.Moments(context.Background(), read, 0, s.Units())
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got.Values, want.Values) || !slices.Equal(got.Products, want.Products) {
			t.Fatalf("%s: sums %v, they were %v", text, got, want)
		}
	})
}
