package enginetest

import (
	"os/exec"
	"runtime"
	"syscall"
)

// child makes a child of this process that ends with it, in a group of its own.
func child() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// locked runs f on a thread of its own: the kernel signals a child when the thread ends that has started it.
func locked(f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	f()
}

// end ends a child and its group.
func end(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
