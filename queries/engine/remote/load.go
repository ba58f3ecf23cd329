package remote

import (
	"context"
	"errors"
	"iter"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/rowfn/sql"
)

// LoadAttempts is how often a table is written whose writing broke off. Each begins with an empty table: rows of a request that broke off may be there or not.
const LoadAttempts = 2

// Loader is a connection of a user that may make tables.
type Loader interface {
	// Make makes an empty table of a layout, in which rows are found by their units.
	Make(ctx context.Context, t *sql.Table) error
	// Insert adds rows, and is sent once.
	Insert(ctx context.Context, t *sql.Table, rows *Rows) error
	// Drop removes a table, or does nothing where it is not there.
	Drop(ctx context.Context, t *sql.Table) error
}

// Load writes a new table of a layout. rows gives all of its rows in blocks, each time that it is ranged over; an error of it ends the writing. Where Load
// fails nothing of the table stays, as far as the engine can be reached.
func Load(ctx context.Context, to Loader, layout *sql.Table, rows iter.Seq2[*Rows, error]) error {
	for n := 1; ; n++ {
		err := write(ctx, to, layout, rows)
		if err == nil {
			return nil
		}
		dropped := to.Drop(context.WithoutCancel(ctx), layout)
		if n == LoadAttempts || dropped != nil || !errors.Is(err, &Error{Kind: Unreachable}) {
			return err
		}
	}
}

func write(ctx context.Context, to Loader, layout *sql.Table, rows iter.Seq2[*Rows, error]) error {
	if err := to.Make(ctx, layout); err != nil {
		return err
	}
	for block, err := range rows {
		if err == nil {
			err = to.Insert(ctx, layout, block)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Blocks are all rows of a table for a layout of its schema, [BlockRows] at a time. offsets are those of the units, nil where every row is one.
func Blocks(t *dataset.Table, layout *sql.Table, offsets []uint32) iter.Seq2[*Rows, error] {
	return func(yield func(*Rows, error) bool) {
		all, err := NewRows(t, layout, offsets, nil)
		if err != nil {
			yield(nil, err)
			return
		}
		for from := 0; from < t.Rows(); from += BlockRows {
			block := *all
			for row := from; row < min(from+BlockRows, t.Rows()); row++ {
				block.rows = append(block.rows, row)
			}
			if !yield(&block, nil) {
				return
			}
		}
	}
}
