package machine

import "golang.org/x/sys/unix"

// filesystem is the kind of the file system that holds a path.
func filesystem(path string) (string, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return "", err
	}
	return unix.ByteSliceToString(s.Fstypename[:]), nil
}

// unsafe are kinds by the names that mount(8) prints.
var unsafe = map[string]unsafeFS{
	"nfs":           {"NFS", remote},
	"smbfs":         {"SMB", remote},
	"afpfs":         {"AFP", remote},
	"webdav":        {"WebDAV", remote},
	"macfuse":       {"FUSE", passesOn},
	"osxfuse":       {"FUSE", passesOn},
	"fuse-t":        {"FUSE", passesOn},
	"AppleVirtIOFS": {"virtiofs", ofTheHost},
	"prl_fs":        {"prl_fs", ofTheHost},
	"tmpfs":         {"tmpfs", inMemory},
}
