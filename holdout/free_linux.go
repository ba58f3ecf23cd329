package holdout

import "golang.org/x/sys/unix"

// freeBytes is how much room the file system of a directory has for this user.
func freeBytes(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * s.Bsize, nil
}
