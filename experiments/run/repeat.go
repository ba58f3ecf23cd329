package run

import (
	"context"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Repeat calls work for each index from 0 below count, on all cores, until all is done or ctx is. What work returns is
// kept in the checkpoint, under the part's name, and taken from there instead of being worked for again: so T must come
// back from JSON as it went in (exported fields, no NaN or infinity), and work must depend on nothing but its index and
// the options. Calls of Repeat in one experiment have different parts.
//
// values[i] is what work returned for i where finished[i], also on an error.
func Repeat[T any](ctx context.Context, o Options, part string, count int,
	work func(ctx context.Context, index int) (T, error)) (values []T, finished []bool, err error) {
	values, finished = make([]T, count), make([]bool, count)
	done := 0
	for i := range count {
		known, err := o.Checkpoint.load(part, i, &values[i])
		if err != nil {
			return values, finished, err
		}
		if finished[i] = known; known {
			done++
		}
	}
	var mu sync.Mutex
	report := func() {
		if o.Progress != nil && count > 0 {
			o.Progress(part, done, count)
		}
	}
	if done > 0 {
		report()
	}
	return values, finished, parallel(ctx, count, func(ctx context.Context, i int) error {
		if finished[i] {
			return nil
		}
		v, err := work(ctx, i)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if err := o.Checkpoint.store(part, i, v); err != nil {
			return err
		}
		values[i], finished[i] = v, true
		done++
		report()
		return nil
	})
}

// parallel calls work for each index from 0, on all cores, until all is done or ctx is.
func parallel(ctx context.Context, count int, work func(ctx context.Context, index int) error) error {
	parent := ctx
	group, ctx := errgroup.WithContext(parent)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range count {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return work(ctx, i)
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return parent.Err() // that of ctx is set by Wait
}

// Finished are the values that Repeat has finished, in their order.
func Finished[T any](values []T, finished []bool) []T {
	var out []T
	for i, v := range values {
		if finished[i] {
			out = append(out, v)
		}
	}
	return out
}

// Dealt are the values that Repeat has finished, where index i is a repetition of cell i mod cells: those of each cell, in their order. So
// an experiment that is interrupted has about as many repetitions of every cell.
func Dealt[T any](values []T, finished []bool, cells int) [][]T {
	dealt := make([][]T, cells)
	for i, v := range values {
		if finished[i] {
			dealt[i%cells] = append(dealt[i%cells], v)
		}
	}
	return dealt
}

// AllFinished reports whether everything is finished.
func AllFinished(finished []bool) bool {
	return !slices.Contains(finished, false)
}
