package pgtest

import (
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

// Proxy is the way to a database, on this machine, that a test can cut.
type Proxy struct {
	listener net.Listener
	socket   string

	mu    sync.Mutex
	open  map[net.Conn]bool
	down  bool // nothing new comes through
	conns sync.WaitGroup

	UpTo   atomic.Int64 // bytes to the database that come through before all connections are cut; negative: no limit
	DownTo atomic.Int64 // bytes from it
	Cuts   atomic.Int64 // how often that has happened
}

// NewProxy is a way to the cluster.
func NewProxy(t testing.TB, c *Cluster) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: l, socket: filepath.Join(c.dir, ".s.PGSQL.5432"), open: map[net.Conn]bool{}}
	p.UpTo.Store(-1)
	p.DownTo.Store(-1)
	p.conns.Go(p.accept)
	t.Cleanup(func() {
		l.Close()
		p.close(true)
		p.conns.Wait()
	})
	return p
}

// Addr is the proxy's address, for [Ledger.Through].
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

func (p *Proxy) accept() {
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
		p.conns.Go(func() { p.copy(to, from, &p.UpTo) })
		p.conns.Go(func() { p.copy(from, to, &p.DownTo) })
	}
}

// copy carries bytes until either end is closed, or the limit is reached: what is beyond it does not come through, and all is cut.
func (p *Proxy) copy(to, from net.Conn, limit *atomic.Int64) {
	buffer := make([]byte, 1<<15)
	for {
		n, err := from.Read(buffer)
		if limit.Load() >= 0 {
			if left := limit.Add(-int64(n)); left < 0 {
				_, _ = to.Write(buffer[:max(0, int64(n)+left)])
				limit.Store(-1)
				p.Cuts.Add(1)
				p.Cut()
				return
			}
		}
		if _, failed := to.Write(buffer[:n]); err != nil || failed != nil {
			p.drop(to, from)
			return
		}
	}
}

func (p *Proxy) drop(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		c.Close()
		delete(p.open, c)
	}
}

// Cut closes all connections.
func (p *Proxy) Cut() { p.close(false) }

func (p *Proxy) close(down bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = down
	for c := range p.open {
		c.Close()
	}
	p.open = map[net.Conn]bool{}
}
