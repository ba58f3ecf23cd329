//go:build !linux

package run

// resetPeak does nothing: no portable call tells resident memory.
func resetPeak() {}

// peakBytes is 0: it cannot be told.
func peakBytes() int64 { return 0 }
