//go:build !linux

package pgtest

import "syscall"

// childOf makes a child of this process, as another user unless uid is -1. On this system a killed test leaves it running.
func childOf(uid, gid int) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{}
	if uid >= 0 {
		a.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	return a
}

func locked(f func()) { f() }

func free(string) int64 { return 0 }
