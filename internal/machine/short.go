package machine

import (
	"errors"
	"syscall"
)

// Short reports whether an error says that the machine, or this process, has no more memory or open files for the moment: nothing is wrong with what was read.
func Short(err error) bool {
	for _, short := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EAGAIN} {
		if errors.Is(err, short) {
			return true
		}
	}
	return false
}
