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

// releasePages gives memory of a mapping back. That it cannot be is no error: it stays.
func releasePages(b []byte) {
	if len(b) > 0 {
		_ = syscall.Madvise(pagesOf(b, os.Getpagesize()), syscall.MADV_DONTNEED)
	}
}
