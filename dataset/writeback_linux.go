package dataset

import (
	"os"

	"golang.org/x/sys/unix"
)

// beginWriting tells the kernel to begin writing a stretch of a file to the disk. It makes nothing durable: that is Sync's, which also says what went wrong.
func beginWriting(f *os.File, from, n int64) {
	_ = unix.SyncFileRange(int(f.Fd()), from, n, unix.SYNC_FILE_RANGE_WRITE)
}

// giveBack frees the blocks of a stretch of a file, which then is zeros. A file system that cannot keeps them until the file is removed, and that is no error.
func giveBack(f *os.File, from, n int64) {
	if n > 0 {
		_ = unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, from, n)
	}
}

// writtenSoFar waits for what the disk is writing of a file, and returns what went wrong since the file was made or somebody was told.
func writtenSoFar(f *os.File) error {
	return unix.SyncFileRange(int(f.Fd()), 0, 0, unix.SYNC_FILE_RANGE_WAIT_BEFORE)
}
