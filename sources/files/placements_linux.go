package files

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

func newPlacements(dir string, rows int64) (*placements, error) {
	f, err := os.CreateTemp(dir, "places")
	if err != nil {
		return nil, err
	}
	defer f.Close() // the mapping stays
	size := 8 * max(rows, 1)
	// Room is reserved, for a disk that is full would end the process when a page is written.
	if err := errors.Join(os.Remove(f.Name()), unix.Fallocate(int(f.Fd()), 0, 0, size)); err != nil {
		return nil, err
	}
	b, err := unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return &placements{mapping: b, places: bytesAs[uint64](b)}, nil
}

func (p *placements) close() error { return unix.Munmap(p.mapping) }
