//go:build unix

package ledger

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

// lock takes Path.lock for this process, or fails with ErrInUse. The kernel lets go of it when the process ends, however
// it ends; the file stays, for removing it would let two processes lock two files of one name.
func lock(path string) (*os.File, error) {
	name := path + ".lock"
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("ledger: lock file: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer f.Close()
		if err != syscall.EWOULDBLOCK {
			return nil, fmt.Errorf("ledger: lock %s: %w", name, err)
		}
		owner := make([]byte, 20)
		n, _ := f.Read(owner)
		return nil, fmt.Errorf("%w: %s is locked by process %s; stop it, or use another directory", ErrInUse, name, strings.TrimSpace(string(owner[:n])))
	}
	// The number is for the message above only.
	if err := f.Truncate(0); err == nil {
		_, err = fmt.Fprintf(f, "%d\n", os.Getpid())
		if err != nil {
			f.Truncate(0)
		}
	}
	return f, nil
}
