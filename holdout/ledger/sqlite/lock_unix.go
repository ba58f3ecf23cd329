//go:build unix

package sqlite

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// lock takes Path.lock and the ledger itself for this process, or fails with ledger.ErrInUse. The kernel lets go of both when the
// process ends, however it ends. The lock file stays, for removing it would let two processes lock two files of one name;
// should somebody remove it all the same, the ledger's own lock keeps the second process out. SQLite's locks are of another
// kind (POSIX) and are not touched; but they would end with the first close of the ledger's file, so it is closed last.
func lock(path string) (files []*os.File, err error) {
	name := path + ".lock"
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, inaccessible(name, err)
	}
	if err := flock(f, path, name); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	self, err := os.Open(path)
	if err != nil {
		return nil, errors.Join(inaccessible(path, err), f.Close())
	}
	if err := flock(self, path, name); err != nil {
		return nil, errors.Join(err, self.Close(), f.Close())
	}
	// The number is for the message below only.
	if err := f.Truncate(0); err == nil {
		if _, err = fmt.Fprintf(f, "%d\n", os.Getpid()); err != nil {
			f.Truncate(0)
		}
	}
	return []*os.File{f, self}, nil
}

func flock(f *os.File, path, lockName string) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case err == nil:
		return nil
	case err != syscall.EWOULDBLOCK:
		return fmt.Errorf("ledger: lock %s: %w", f.Name(), err)
	case f.Name() == path:
		return fmt.Errorf("%w: %s is locked by another process, whose %s was removed; stop it, or use another directory", ledger.ErrInUse, path, lockName)
	}
	owner := make([]byte, 20)
	n, _ := f.Read(owner)
	return fmt.Errorf("%w: %s is locked by process %s; stop it, or use another directory", ledger.ErrInUse, lockName, strings.TrimSpace(string(owner[:n])))
}

// device is the file system of a file, to this kernel.
func device(info os.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Dev)
	}
	return 0
}
