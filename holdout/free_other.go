//go:build !linux

package holdout

import "math"

// freeBytes does not know: a disk that is full says so itself.
func freeBytes(string) (int64, error) { return math.MaxInt64, nil }
