// Package engine computes the exact integer sums of many row functions in one pass over a table.
package engine

import (
	"context"

	"github.com/holdoutd/holdoutd/rowfn"
)

// Source is a set of units over which row functions can be summed. A remote engine implements it too.
type Source interface {
	// Units is the number of units, n.
	Units() int64
	// Sums returns, for each row function, the sum of its values over the units from..to-1 (0 <= from <= to <= Units())
	// in fixed point: 0 <= sum <= (to-from)*rowfn.One. The result does not depend on the number of workers.
	Sums(ctx context.Context, functions []rowfn.Function, from, to int64) ([]int64, error)
}

// MomentSource is a Source that can also sum products of two row functions' values, exactly and in the same pass: what an interval of
// an answer's own variance needs.
type MomentSource interface {
	Source
	// Moments returns the sums of a batch over the units from..to-1: those of its functions, which are what Sums returns, and those of
	// its products. The result does not depend on the number of workers, nor on what else is in the batch.
	Moments(ctx context.Context, batch rowfn.Batch, from, to int64) (rowfn.Sums, error)
}
