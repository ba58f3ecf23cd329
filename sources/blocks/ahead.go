package blocks

import (
	"context"
	"errors"

	"github.com/holdoutd/holdoutd/sources"
)

// Ahead lets a source read its next blocks while the last one is summed: read runs in a goroutine of its own, and yield is called in the caller's, in the same order. Up to
// most blocks wait, and each must stay as it is after it was yielded. When yield fails, or ctx ends, read's context ends, and Ahead returns when read has returned.
func Ahead(ctx context.Context, most int, read func(ctx context.Context, yield func(sources.Block) error) error, yield func(sources.Block) error) error {
	reading, stop := context.WithCancel(ctx)
	defer stop()
	waiting, done := make(chan sources.Block, max(most-1, 0)), make(chan error, 1)
	go func() {
		err := errors.New("blocks: the reader did not return") // it ended its goroutine
		defer func() {
			close(waiting)
			done <- err
		}()
		err = read(reading, func(b sources.Block) error {
			select {
			case waiting <- b:
				return nil
			case <-reading.Done():
				return reading.Err()
			}
		})
	}()
	var failed error
	for b := range waiting {
		if failed != nil {
			continue
		}
		if failed = yield(b); failed != nil {
			stop()
		}
	}
	if err := <-done; failed == nil {
		failed = err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return failed
}
