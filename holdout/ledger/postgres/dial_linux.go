package postgres

import (
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// bounded ends a connection on which what was sent is not confirmed in time. Without it a commit whose database has vanished would wait for a quarter of an hour; it
// must not be cancelled, for a cancelled one may be durable here and not on a synchronous standby.
func bounded(network, _ string, conn syscall.RawConn) (err error) {
	if !strings.HasPrefix(network, "tcp") {
		return nil
	}
	if failed := conn.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(unheard.Milliseconds()))
	}); failed != nil {
		return failed
	}
	return err
}
