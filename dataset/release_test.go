package dataset

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
)

// Values are gathered in the order that is asked for, of long columns too, in which they are read in another one: orders of more values than are put in order together, and of few.
func TestPieces(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	values := make([]uint32, farValues+farValues/3)
	for i := range values {
		values[i] = uint32(i) * 2654435761
	}
	for _, n := range []int{0, 1, farValues / 16, farChunk, farChunk + selectChunk + 1} {
		order := make([]uint32, n)
		for i := range order {
			order[i] = uint32(r.IntN(len(values)))
		}
		if n > 0 {
			order[n-1] = uint32(len(values) - 1)
		}
		at, released := 0, 0
		release := func(from, to int) {
			if from < 0 || to <= from || to > len(values) {
				t.Fatalf("rows %d to %d are released", from, to)
			}
			released += to - from
		}
		for piece := range pieces(values, order, release) {
			for _, v := range piece {
				if v != values[order[at]] {
					t.Fatalf("value %d of %d is %d, not that of row %d", at, n, v, order[at])
				}
				at++
			}
		}
		if at != n {
			t.Errorf("%d values of %d", at, n)
		}
		if turns := (n + farChunk - 1) / farChunk; n >= farValues/16 && released != turns*len(values) {
			t.Errorf("%d values are released in %d turns", released, turns)
		}
	}
}

// Memory of a large table is given back while others read it, and it reads as before.
func TestRelease(t *testing.T) {
	const rows = releaseLeast/8 + 12345
	x := Column{Field: Field{Name: "x", Kind: Number}, Numbers: make([]float64, rows)}
	b := Column{Field: Field{Name: "b", Kind: Bool}, Bools: make([]uint8, rows)}
	for i := range rows {
		x.Numbers[i], b.Bools[i] = float64(i), uint8(i%3)
	}
	small, err := FromColumns(x, b)
	if err != nil {
		t.Fatal(err)
	}
	if small.Stride() != 0 {
		t.Error("a table in memory has a stride")
	}
	small.Release(0, rows)
	small.ReleaseAll()
	for i := range rows {
		if x.Numbers[i] != float64(i) || b.Bools[i] != uint8(i%3) {
			t.Fatalf("row %d of a table in memory is lost", i)
		}
	}
	dir := filepath.Join(t.TempDir(), "table")
	if err := Write(dir, small); err != nil {
		t.Fatal(err)
	}
	table, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	if s := table.Stride(); s < 1 || s*9 > 2*releaseBytes {
		t.Errorf("a stride of %d rows", s)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for from := -1000; from < rows; from += 777_777 {
			table.Release(from, from+1_000_000)
			table.ReleaseAll()
		}
	}()
	for i := range 3 {
		if !slices.Equal(table.Column(0).Numbers, x.Numbers) || !slices.Equal(table.Column(1).Bools, b.Bools) {
			t.Fatalf("reading %d: other values", i)
		}
	}
	<-done
}
