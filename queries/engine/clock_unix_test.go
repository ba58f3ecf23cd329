//go:build unix

package engine

import (
	"syscall"
	"time"
)

// processorTime is what this process has had of the processors: what others do on the machine is not in it.
func processorTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
