package api

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"syscall"
	"testing"
)

// failing is a listener whose first calls of Accept fail.
type failing struct {
	net.Listener
	errors []error
	ended  chan struct{} // closed when all errors were returned
}

func (f *failing) Accept() (net.Conn, error) {
	if len(f.errors) == 0 {
		return f.Listener.Accept()
	}
	err := f.errors[0]
	if f.errors = f.errors[1:]; len(f.errors) == 0 {
		close(f.ended)
	}
	return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", err)}
}

// TestAcceptGoesOn: whatever accept says, the next connection is accepted; a listener that is closed ends it, also in a pause. It would notice a server that
// ends because memory was short for a moment.
func TestAcceptGoesOn(t *testing.T) {
	listen := func(says ...error) (*patient, *failing) {
		t.Helper()
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		f := &failing{Listener: l, errors: says, ended: make(chan struct{})}
		return newPatient(f, slog.New(slog.DiscardHandler)), f
	}
	p, _ := listen(syscall.ENOMEM, syscall.ENOBUFS, syscall.EMFILE, syscall.ENFILE, syscall.ECONNABORTED, syscall.EPROTO)
	client, err := net.Dial("tcp", p.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	conn, err := p.Accept()
	if err != nil {
		t.Fatalf("the server would end: %v", err)
	}
	conn.Close()

	p, f := listen(syscall.ENOMEM, syscall.ENOMEM, syscall.ENOMEM, syscall.ENOMEM)
	said := make(chan error)
	go func() { _, err := p.Accept(); said <- err }()
	<-f.ended
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if err := <-said; !errors.Is(err, net.ErrClosed) {
		t.Errorf("a closed listener says %v", err)
	}
}
