//go:build !unix

package engine

import "time"

var started = time.Now()

// processorTime is the time that has passed, on systems of which we do not ask the processor's.
func processorTime() time.Duration { return time.Since(started) }
