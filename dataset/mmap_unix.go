//go:build unix

package dataset

import (
	"os"
	"syscall"
)

// mapFile maps the first size bytes of a file for reading. The file may be closed afterwards.
func mapFile(f *os.File, size int64) ([]byte, error) {
	return syscall.Mmap(int(f.Fd()), 0, int(size), syscall.PROT_READ, syscall.MAP_SHARED)
}

func unmapFile(b []byte) error { return syscall.Munmap(b) }
