package engine

import (
	"context"
	"time"
)

// Processors lets passes take turns: whoever has many of them at once does not keep others waiting until all of his are done. A pass
// asks for a processor for each of its workers, and yields it between chunks of rows.
type Processors interface {
	// Enter waits for a processor. An error is ctx's.
	Enter(ctx context.Context) (Processor, error)
}

// Processor is one that a worker has.
type Processor interface {
	// Yield says how long the worker has worked since the last time, and waits while it is the turn of others. An error is ctx's; then
	// the processor is given back.
	Yield(ctx context.Context, worked time.Duration) error
	// Leave gives the processor back; a second call does nothing.
	Leave()
}

type processorsKey struct{}

// WithProcessors returns a context in which passes take their turns with p. Without one they work at once.
func WithProcessors(ctx context.Context, p Processors) context.Context {
	return context.WithValue(ctx, processorsKey{}, p)
}

// Enter waits for a processor of the context's, for work that is no pass: what a source does to have its rows. Without [WithProcessors] it does not wait.
func Enter(ctx context.Context) (Processor, error) {
	if p, ok := ctx.Value(processorsKey{}).(Processors); ok {
		return p.Enter(ctx)
	}
	return free{}, nil
}

// free is the processor of passes that take no turns.
type free struct{}

func (free) Yield(context.Context, time.Duration) error { return nil }
func (free) Leave()                                     {}
