//go:build !linux

package enginetest

import (
	"os/exec"
	"syscall"
)

// child makes a child of this process. On this system a killed test leaves it running.
func child() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }

func locked(f func()) { f() }

func end(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
