//go:build unix

package dataset

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// mapFile maps the first size bytes of a file for reading. The file may be closed afterwards.
func mapFile(f *os.File, size int64) ([]byte, error) {
	return syscall.Mmap(int(f.Fd()), 0, int(size), syscall.PROT_READ, syscall.MAP_SHARED)
}

func unmapFile(b []byte) error { return syscall.Munmap(b) }

// releasePages gives memory of a mapping back. That it cannot be is no error: it stays.
func releasePages(b []byte) {
	if len(b) > 0 {
		_ = unix.Madvise(pagesOf(b, os.Getpagesize()), unix.MADV_DONTNEED)
	}
}
