package dataset

import (
	"errors"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

// Values are gathered in the order that is asked for, of long columns too, in which they are read in another one: orders of more values than are put in order together, and of few.
func TestPieces(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	values := make([]uint32, farValues+farValues/3)
	for i := range values {
		values[i] = uint32(i) * 2654435761
	}
	for _, n := range []int{0, 1, farValues / 16, farChunk, 3*farChunk + selectChunk + 1} {
		order := make([]uint32, n)
		for i := range order {
			order[i] = uint32(r.IntN(len(values)))
		}
		if n > 0 {
			order[n-1] = uint32(len(values) - 1)
		}
		at := 0
		var released atomic.Int64 // by all gatherers
		release := func(from, to int) {
			if from < 0 || to <= from || to > len(values) {
				t.Errorf("rows %d to %d are released", from, to)
			}
			released.Add(int64(to - from))
		}
		read := make([]atomic.Bool, n)
		behind := func(some []uint32) {
			at := n - cap(some)
			for i := range some {
				if read[at+i].Swap(true) {
					t.Errorf("place %d of %d is given back twice", at+i, n)
				}
			}
		}
		for piece := range pieces(values, &selection{order, release, behind}) {
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
		if turns := (n + farChunk - 1) / farChunk; n >= farValues/16 && released.Load() != int64(turns*len(values)) {
			t.Errorf("%d values are released in %d turns", released.Load(), turns)
		}
		for i := range read {
			if n >= farValues/16 && !read[i].Load() {
				t.Fatalf("place %d of %d is not given back", i, n)
			}
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
	for i := range table.Columns() {
		at := 0
		for from, to := range table.Pieces(i) {
			if from != at || to <= from {
				t.Fatalf("column %d: rows %d to %d after %d", i, from, to, at)
			}
			at = to
		}
		if at != rows {
			t.Errorf("column %d: %d rows of %d in pieces", i, at, rows)
		}
	}
	for from, to := range small.Pieces(0) {
		if from != 0 || to != rows {
			t.Errorf("a table in memory is read in pieces: %d to %d", from, to)
		}
	}
}

// A large table that is spent is written as often as was said, by several at the same time, and each copy is what it would be otherwise; then its values have no place on
// the disk any more, and are not read as zeros.
func TestSpend(t *testing.T) {
	const rows = releaseLeast/8 + 12345
	columns := []Column{
		{Field: Field{Name: "x", Kind: Number}, Numbers: make([]float64, rows)},
		{Field: Field{Name: "b", Kind: Bool}, Bools: make([]uint8, rows)},
		NewText("t", []string{"one", "two"}, nil),
	}
	columns[2].Codes = make([]uint32, rows)
	for i := range rows {
		columns[0].Numbers[i], columns[1].Bools[i], columns[2].Codes[i] = float64(i), uint8(i%3), uint32(i%3)
	}
	given, err := FromColumns(columns...)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "passing")
	if err := Write(dir, given); err != nil {
		t.Fatal(err)
	}
	opened, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	orders := [][]uint32{ordinals(rows)[:rows/2], ordinals(rows)[rows/2:]}
	opened.Spend(dir, len(orders))
	copies := make([]string, len(orders))
	var wait sync.WaitGroup
	failures := make([]error, len(orders))
	for i, order := range orders {
		copies[i] = filepath.Join(t.TempDir(), "copy")
		wait.Go(func() { failures[i] = Select(copies[i], opened, order, nil) })
	}
	wait.Wait()
	if err := errors.Join(append(failures, Passed(dir))...); err != nil {
		t.Fatal(err)
	}
	digest := func(tables ...*Table) [32]byte {
		d := NewDigest()
		for _, table := range tables {
			if err := d.Add(table); err != nil {
				t.Fatal(err)
			}
		}
		return d.Sum(nil)
	}
	var halves []*Table
	for _, dir := range copies {
		half, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer half.Close()
		halves = append(halves, half)
	}
	if digest(halves...) != digest(given) {
		t.Error("the copies are not the table")
	}
	for i := range opened.columns {
		if c := &opened.columns[i]; c.Numbers != nil || c.Bools != nil || c.Codes != nil {
			t.Errorf("the column %q can be read still", c.Name)
		}
	}
	if err := opened.Close(); err != nil {
		t.Error(err)
	}
	if damaged, err := Open(dir); runtime.GOOS == "linux" && err == nil {
		t.Error("a spent table opens", damaged.Close())
	}
}
