package holdout

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/holdoutd/holdoutd/internal/machine"
)

// checkFileSystem refuses a data directory where a debit may not be durable, or a lock keeps nobody out. One that is not there yet will be on the file system of
// the directory that it is made in.
func checkFileSystem(dir string) error {
	at, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("holdout: data directory: %w", err)
	}
	for {
		name, reason, err := machine.Unsafe(at)
		switch {
		case reason != "":
			return &Error{Kind: Unavailable, Detail: fmt.Sprintf("the data directory %s is on %s, which %s. Put it on a disk of this machine; or, where you know that this file system keeps locks and what was synced, start with --any-filesystem", dir, name, reason)}
		case errors.Is(err, fs.ErrNotExist) && at != filepath.Dir(at):
			at = filepath.Dir(at)
		default:
			return nil // what is wrong with it is said when it is used
		}
	}
}
