package holdout

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// newRoom reserves so many bytes in dir.
func newRoom(dir string, bytes int64) (r *room, err error) {
	if bytes <= roomOnHeap {
		return nil, nil
	}
	f, err := os.CreateTemp(dir, "room-")
	if err != nil {
		return nil, fmt.Errorf("holdout: upload: %w", err)
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name()), f.Close()) }()
	if err := unix.Fallocate(int(f.Fd()), 0, 0, bytes); err != nil {
		if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
			return nil, &Error{Kind: Unavailable, Detail: fmt.Sprintf("the disk of the data directory is full: dividing this table needs %d bytes for a while; make room and send the file again", bytes), Err: err}
		}
		return nil, fmt.Errorf("holdout: upload: %w", err)
	}
	mapping, err := unix.Mmap(int(f.Fd()), 0, int(bytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("holdout: upload: %w", err)
	}
	return &room{mapping: mapping}, nil
}

// close gives the room back; nothing that lies in it may be used afterwards.
func (r *room) close() error {
	if r == nil {
		return nil
	}
	return unix.Munmap(r.mapping)
}

// rest gives the memory of the room back; its arrays stay in the pages of the file, and are mapped again where they are read.
func (r *room) rest() {
	if r != nil {
		_ = unix.Madvise(r.mapping, unix.MADV_DONTNEED) // that it cannot be is no error: it stays
	}
}

// restOf is rest of one list, which need not lie in the room.
func (r *room) restOf(list []uint32) {
	if r == nil || len(list) == 0 {
		return
	}
	from := uintptr(unsafe.Pointer(unsafe.SliceData(list))) - uintptr(unsafe.Pointer(unsafe.SliceData(r.mapping)))
	if from >= uintptr(len(r.mapping)) { // ordinary memory, which would be lost
		return
	}
	to := from + 4*uintptr(len(list))
	from -= from % uintptr(os.Getpagesize())
	_ = unix.Madvise(r.mapping[from:to], unix.MADV_DONTNEED)
}
