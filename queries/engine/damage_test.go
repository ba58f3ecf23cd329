package engine

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/rowfn"
)

// TestDamagedWhileMapped cuts the columns short under a table that is being summed, for one worker and for several. It
// would catch a worker whose fault ends the process.
func TestDamagedWhileMapped(t *testing.T) {
	const rows = 300_000
	table, err := dataset.FromColumns(dataset.Column{Field: dataset.Field{Name: "x", Kind: dataset.Number}, Numbers: make([]float64, rows)})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "table")
	if err := dataset.Write(dir, table); err != nil {
		t.Fatal(err)
	}
	mapped, err := dataset.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer mapped.Close()
	source, err := NewTable(mapped, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	x := &rowfn.Node{Op: rowfn.OpColumn, Type: rowfn.Number, Text: "x"}
	functions := []rowfn.Function{{Value: x, Lo: 0, Hi: 1}}
	if _, err := source.Sums(t.Context(), functions, 0, rows); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, "columns"), 1<<16); err != nil {
		t.Fatal(err)
	}
	for _, workers := range []int{1, 3} {
		source.workers = workers
		if sums, err := source.Sums(t.Context(), functions, 0, rows); !errors.Is(err, dataset.ErrDamaged) || sums != nil {
			t.Errorf("%d workers: sums %v, %v", workers, sums, err)
		}
	}
}
