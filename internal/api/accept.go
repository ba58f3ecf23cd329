package api

import (
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"
)

// Pauses after an error of Accept, each twice as long as the one before.
const (
	firstAcceptPause = 5 * time.Millisecond
	lastAcceptPause  = time.Second
)

// patient is a listener whose Accept goes on, after a pause, after every error but that it is closed. What accept(2) says passes: a connection that was
// broken off, files or memory that are short (EMFILE, ENFILE, ENOBUFS, ENOMEM). net/http ends the server at some of these.
type patient struct {
	net.Listener
	log    *slog.Logger
	closed chan struct{}
	close  sync.Once
}

func newPatient(l net.Listener, log *slog.Logger) *patient {
	return &patient{Listener: l, log: log, closed: make(chan struct{})}
}

// Accept implements net.Listener.
func (p *patient) Accept() (net.Conn, error) {
	for pause := firstAcceptPause; ; pause = min(2*pause, lastAcceptPause) {
		conn, err := p.Listener.Accept()
		if err == nil || errors.Is(err, net.ErrClosed) {
			return conn, err
		}
		p.log.Warn("a connection could not be accepted; going on", "error", err, "pause", pause.String())
		select {
		case <-time.After(pause):
		case <-p.closed:
			return nil, net.ErrClosed
		}
	}
}

// Close implements net.Listener. It ends a pause, too.
func (p *patient) Close() error {
	p.close.Do(func() { close(p.closed) })
	return p.Listener.Close()
}
