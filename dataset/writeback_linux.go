package dataset

import (
	"os"

	"golang.org/x/sys/unix"
)

// beginWriting tells the kernel to begin writing a stretch of a file to the disk. It makes nothing durable: that is Sync's, which also says what went wrong.
func beginWriting(f *os.File, from, n int64) {
	_ = unix.SyncFileRange(int(f.Fd()), from, n, unix.SYNC_FILE_RANGE_WRITE)
}
