package ledger

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Call is one caller's wait for a commit that others share. It is for implementations: the writer runs what the caller has brought, and says how the commit ended. The caller may leave before.
type Call struct {
	mu       sync.Mutex // held while the writer runs what the caller has brought
	begun    bool
	left     bool // the caller is gone: what it has brought must not run any more
	panicked any
	result   error
	done     chan error
}

// NewCall is a call that waits.
func NewCall() *Call { return &Call{done: make(chan error, 1)} }

// Run runs f, unless the caller has left. It may be run again, where the commit is tried again.
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

// Result is the error of what was run last. It is for the writer: the caller knows it from Wait.
func (c *Call) Result() error { return c.result }

// End tells the caller how it ended: everything is durable, or it failed. It is called once.
func (c *Call) End(err error) { c.done <- err }

// Wait returns what End was told, and raises a panic of what was run. Where ctx ends before, it fails with ErrUnavailable, and says whether anything of the call can still become durable.
func (c *Call) Wait(ctx context.Context) error {
	select {
	case err := <-c.done:
		return c.conclude(err)
	case <-ctx.Done():
	}
	if !c.leave() {
		return NotBegun(ctx)
	}
	select {
	case err := <-c.done: // it was about to be said
		return c.conclude(err)
	default:
		return fmt.Errorf("%w: outcome not known yet: %w", ErrUnavailable, ctx.Err())
	}
}

// leave is the caller's goodbye. It reports whether anything of the call can still become durable.
func (c *Call) leave() (begun bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = true
	return c.begun
}

// conclude raises a panic where it belongs, in the caller's goroutine.
func (c *Call) conclude(err error) error {
	if c.panicked != nil {
		panic(c.panicked)
	}
	return err
}

// NotBegun is the error of a call whose context ended before anything of it was done.
func NotBegun(ctx context.Context) error {
	return fmt.Errorf("%w: not begun: %w", ErrUnavailable, ctx.Err())
}

// IsAnswer tells an answer of the ledger to its caller from a failure of what it is kept in.
func IsAnswer(err error) bool {
	for _, e := range []error{ErrNotFound, ErrExists, ErrInvalid, ErrIdempotencyMismatch, ErrDeleted, ErrAsked, ErrSettled, ErrEpsilon, ErrCorrupt} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
