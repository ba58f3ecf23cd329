package postgres_test

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// proxy is the way to a database, on this machine, that a test can cut.
type proxy struct {
	listener net.Listener
	socket   string

	mu     sync.Mutex
	open   map[net.Conn]bool
	down   bool         // nothing new comes through
	upTo   atomic.Int64 // bytes to the database that come through before all connections are cut; negative: no limit
	downTo atomic.Int64 // bytes from it
	cut    atomic.Int64 // how often that has happened
	conns  sync.WaitGroup
}

func newProxy(t *testing.T, socket string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, socket: socket, open: map[net.Conn]bool{}}
	p.upTo.Store(-1)
	p.downTo.Store(-1)
	p.conns.Go(p.accept)
	t.Cleanup(func() {
		l.Close()
		p.cutAll(true)
		p.conns.Wait()
	})
	return p
}

func (p *proxy) addr() string { return p.listener.Addr().String() }

func (p *proxy) accept() {
	for {
		from, err := p.listener.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("unix", p.socket)
		p.mu.Lock()
		if err != nil || p.down {
			p.mu.Unlock()
			from.Close()
			if to != nil {
				to.Close()
			}
			continue
		}
		p.open[from], p.open[to] = true, true
		p.mu.Unlock()
		p.conns.Go(func() { p.copy(to, from, &p.upTo) })
		p.conns.Go(func() { p.copy(from, to, &p.downTo) })
	}
}

// copy carries bytes until either end is closed, or the limit is reached: what is beyond it does not come through, and all is cut.
func (p *proxy) copy(to, from net.Conn, limit *atomic.Int64) {
	buffer := make([]byte, 1<<15)
	for {
		n, err := from.Read(buffer)
		if limit.Load() >= 0 {
			if left := limit.Add(-int64(n)); left < 0 {
				_, _ = to.Write(buffer[:max(0, int64(n)+left)])
				limit.Store(-1)
				p.cut.Add(1)
				p.cutAll(false)
				return
			}
		}
		if _, failed := to.Write(buffer[:n]); err != nil || failed != nil {
			p.close(to, from)
			return
		}
	}
}

func (p *proxy) close(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		c.Close()
		delete(p.open, c)
	}
}

// cutAll closes all connections; where it is down none is taken until up.
func (p *proxy) cutAll(down bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = down
	for c := range p.open {
		c.Close()
	}
	p.open = map[net.Conn]bool{}
}

func (p *proxy) up() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = false
}
