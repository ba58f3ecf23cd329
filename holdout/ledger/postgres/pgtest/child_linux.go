package pgtest

import (
	"runtime"
	"syscall"
)

// childOf makes a child of this process that ends with it, whatever ends it; as another user, unless uid is -1.
func childOf(uid, gid int) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT, Setpgid: true}
	if uid >= 0 {
		a.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	return a
}

// locked runs f on a thread of its own: the kernel signals a child when the thread ends that has started it.
func locked(f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	f()
}

// free is how many bytes a file system has room for, or 0.
func free(dir string) int64 {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0
	}
	return int64(s.Bavail) * s.Bsize
}
