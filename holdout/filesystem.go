package holdout

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/holdoutd/holdoutd/internal/machine"
)

// unsafeFileSystem says in what way a debit may not be durable in a data directory, or a lock keeps nobody out; it is empty where nothing is known against it. A
// directory that is not there yet will be on the file system of the one that it is made in.
func unsafeFileSystem(dir string) string {
	at, err := filepath.Abs(dir)
	for err == nil {
		var name, reason string
		name, reason, err = machine.Unsafe(at)
		switch {
		case reason != "":
			return fmt.Sprintf("the data directory %s is on %s, which %s", dir, name, reason)
		case errors.Is(err, fs.ErrNotExist) && at != filepath.Dir(at):
			at, err = filepath.Dir(at), nil
		default:
			return ""
		}
	}
	return "" // what is wrong with it is said when it is used
}
