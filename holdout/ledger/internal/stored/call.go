package stored

import (
	"context"
	"fmt"
	"sync"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// Call is a caller who waits for what a writer does in another goroutine, and who may leave before it is done.
type Call struct {
	mu       sync.Mutex // held while the writer runs the caller's function
	begun    bool
	left     bool // the caller is gone: its function must not run any more
	panicked any
	result   error
	done     chan error // takes the result when everything is durable, or failed
}

// NewCall is a call of which nothing has run.
func NewCall() *Call { return &Call{done: make(chan error, 1)} }

// BegunCall is a call that the writer will carry out, whether or not its caller waits.
func BegunCall() *Call { return &Call{begun: true, done: make(chan error, 1)} }

// Run calls f, unless the caller has left. It may be called again: the last run counts. It is the writer's.
func (c *Call) Run(f func() error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left {
		c.result = context.Canceled
		return
	}
	c.begun, c.panicked = true, nil
	defer func() {
		if p := recover(); p != nil {
			c.panicked, c.result = p, fmt.Errorf("ledger: update panicked: %v", p)
		}
	}()
	c.result = f()
}

// Result is what the last run returned. It is the writer's.
func (c *Call) Result() error { return c.result }

// Finish ends the call, once: err is what its caller is told. It is the writer's.
func (c *Call) Finish(err error) { c.done <- err }

// Wait waits for the end of the call, or of ctx: then the error is ledger.ErrUnavailable and says whether anything of it can still become durable.
// A panic of the caller's function is raised here, in the goroutine that it belongs to.
func (c *Call) Wait(ctx context.Context) error {
	select {
	case err := <-c.done:
		return c.conclude(err)
	case <-ctx.Done():
	}
	if !c.leave() {
		return fmt.Errorf("%w: not begun: %w", ledger.ErrUnavailable, ctx.Err())
	}
	select {
	case err := <-c.done: // it was about to be said
		return c.conclude(err)
	default:
		return fmt.Errorf("%w: outcome not known yet: %w", ledger.ErrUnavailable, ctx.Err())
	}
}

// leave is the caller's goodbye. It reports whether anything of the call can still become durable.
func (c *Call) leave() (begun bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = true
	return c.begun
}

func (c *Call) conclude(err error) error {
	if c.panicked != nil {
		panic(c.panicked)
	}
	return err
}
