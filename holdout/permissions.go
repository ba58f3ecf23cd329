package holdout

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// checkPrivate refuses a data directory that others can write, and keys that others can read or own, as ssh does with its own.
// Whoever can write the directory can put an admin.key there before the first start, or exchange files under the server; whoever reads
// server.key opens what is sealed. Not the directories above it: they are the machine's.
func (s *Service) checkPrivate() error {
	for _, name := range []string{"", holdoutsDir, revokedDir, temporaryDir} {
		if err := private(filepath.Join(s.dir, name), 0o022, "can be written by others, who could plant a key or exchange files", "chmod go-w"); err != nil {
			return err
		}
	}
	for _, name := range []string{serverKeyFile, adminKeyFile} {
		err := private(filepath.Join(s.dir, name), 0o077, "can be read by others", "chmod 600")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// private refuses a file with one of the bits in its mode, and one of another owner: only root's and the server's own are trusted.
func private(path string, bits fs.FileMode, because, mend string) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("holdout: data directory: %w", err)
	}
	if mode := info.Mode().Perm(); mode&bits != 0 {
		return fmt.Errorf("holdout: %s %s (its mode is %04o); make sure of what is in it, then: %s %s", path, because, mode, mend, path)
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && owner.Uid != 0 && int(owner.Uid) != os.Geteuid() {
		return fmt.Errorf("holdout: %s belongs to another user (uid %d, the server runs as %d); make sure of what is in it, then: chown %d %s",
			path, owner.Uid, os.Geteuid(), os.Geteuid(), path)
	}
	return nil
}
