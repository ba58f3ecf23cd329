package sqlite

import "golang.org/x/sys/unix"

// boot names this run of the kernel, or is empty.
func boot() string {
	id, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return ""
	}
	return id
}
