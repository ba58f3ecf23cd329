package machine

import "golang.org/x/sys/unix"

// filesystem is the kind of the file system that holds a path: its magic number.
func filesystem(path string) (uint32, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return 0, err
	}
	return uint32(s.Type), nil
}

// unsafe are kinds by their magic number: of linux/magic.h, or of the file system's own source where its driver is not the kernel's.
var unsafe = map[uint32]unsafeFS{
	unix.TMPFS_MAGIC:       {"tmpfs", inMemory},
	unix.RAMFS_MAGIC:       {"ramfs", inMemory},
	unix.NFS_SUPER_MAGIC:   {"NFS", remote},
	unix.SMB_SUPER_MAGIC:   {"SMB", remote},
	unix.SMB2_SUPER_MAGIC:  {"SMB", remote},
	unix.CIFS_SUPER_MAGIC:  {"SMB", remote},
	unix.AFS_SUPER_MAGIC:   {"AFS", remote},
	unix.AFS_FS_MAGIC:      {"AFS", remote},
	unix.CODA_SUPER_MAGIC:  {"Coda", remote},
	unix.NCP_SUPER_MAGIC:   {"NCP", remote},
	unix.CEPH_SUPER_MAGIC:  {"Ceph", ofACluster},
	unix.OCFS2_SUPER_MAGIC: {"OCFS2", ofACluster},
	0x01161970:             {"GFS2", ofACluster},
	0x0bd00bd0:             {"Lustre", ofACluster},
	0x47504653:             {"GPFS", ofACluster},
	0x19830326:             {"BeeGFS", ofACluster},
	unix.FUSE_SUPER_MAGIC:  {"FUSE", passesOn}, // also virtiofs, sshfs, s3fs, gocryptfs
	unix.V9FS_MAGIC:        {"9p", ofTheHost},
	0x786f4256:             {"vboxsf", ofTheHost},
	0xbacbacbc:             {"vmhgfs", ofTheHost},
	0x7c7c6673:             {"prl_fs", ofTheHost},
}
