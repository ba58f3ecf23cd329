//go:build !unix

package dataset

import (
	"io"
	"os"
	"unsafe"
)

// mapFile reads the first size bytes of a file into memory that is aligned for float64.
func mapFile(f *os.File, size int64) ([]byte, error) {
	words := make([]float64, (size+7)/8)
	b := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), size)
	_, err := io.ReadFull(f, b)
	return b, err
}

func unmapFile([]byte) error { return nil }

func releasePages([]byte) {}
