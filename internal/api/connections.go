package api

import (
	"container/list"
	"net"
	"net/http"
	"net/netip"
	"sync"

	"github.com/holdoutd/holdoutd/internal/machine"
)

// filesBeside are the files that the process needs beside its connections: the ledger, column files while they are opened, uploads,
// downloads, pipes to decoders.
const filesBeside = 512

// fitConnections is how many connections there may be, where the process may open so many files: with fewer files than connections an
// upload or a download would fail for want of a file, and so would the ledger.
func fitConnections(connections, files int) int {
	return max(1, min(connections, max(files-filesBeside, files/2)))
}

// connections is a listener that has a limited number of connections open, in all and of each address. Where there are as many, a new one
// takes the place of one that has nothing to do: of those that have not sent the whole head of a first request, which every stranger can open, the
// oldest; if there is none, of those between two requests the one that has been idle longest. If all are at work, the new one waits in the
// system's queue; but one of an address that has as many as it may is closed, so that others do not wait behind it.
type connections struct {
	net.Listener
	limit, each int

	mu     sync.Mutex
	room   *sync.Cond // when a connection has closed, became idle or is new, or the listener is closed
	open   int
	from   map[netip.Prefix]int // open ones
	silent list.List            // of *counted: before the whole head of a first request
	idle   list.List            // of *counted: between requests
	closed bool
}

// limitConnections has at most limit connections open, and each of one address: 0 is half of them, so that no address keeps the others out.
func limitConnections(l net.Listener, limit, each int) *connections {
	limit = fitConnections(limit, machine.Files())
	if each == 0 {
		each = (limit + 1) / 2
	}
	c := &connections{Listener: l, limit: limit, each: each, from: map[netip.Prefix]int{}}
	c.room = sync.NewCond(&c.mu)
	return c
}

// Accept takes a connection when there is room for one.
func (c *connections) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if taken := c.take(conn); taken != nil {
			return taken, nil
		}
		conn.Close()
	}
}

// take counts a connection once there is room; it is nil where its address has as many as it may, all of them at work.
func (c *connections) take(conn net.Conn) *counted {
	t := &counted{Conn: conn, of: c, from: addressOf(conn.RemoteAddr())}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.from[t.from] >= c.each && !c.evict(func(old *counted) bool { return old.from == t.from }) {
		return nil
	}
	for c.open >= c.limit && !c.closed && !c.evict(func(*counted) bool { return true }) {
		c.room.Wait()
	}
	c.open++
	c.from[t.from]++
	return t
}

// evict closes the first connection that has nothing to do, of those that may be, and reports whether there was one. The lock is held.
func (c *connections) evict(may func(*counted) bool) bool {
	for _, l := range []*list.List{&c.silent, &c.idle} {
		for e := l.Front(); e != nil; e = e.Next() {
			if old := e.Value.(*counted); may(old) {
				old.leave()
				go old.Conn.Close()
				return true
			}
		}
	}
	return false
}

// Close ends Accept, also one that waits for room.
func (c *connections) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.room.Broadcast()
	return c.Listener.Close()
}

// observe is told by the server what its connections do. One is active from the end of a request's head to the end of its reply.
func (c *connections) observe(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := conn.(*counted)
	if t.left {
		return
	}
	switch state {
	case http.StateNew:
		t.rest(&c.silent)
	case http.StateIdle:
		t.rest(&c.idle)
	default:
		t.rest(nil)
	}
}

// counted is a connection that is counted until it is closed, or has to make room for another.
type counted struct {
	net.Conn
	of   *connections
	from netip.Prefix
	left bool          // it is not counted any more
	in   *list.List    // where it waits to be used or closed; nil while it is at work
	at   *list.Element // its place there
}

// rest moves the connection to the end of a list, or of none. The lock is held.
func (t *counted) rest(l *list.List) {
	if t.in != nil {
		t.in.Remove(t.at)
	}
	if t.in = l; l != nil {
		t.at = l.PushBack(t)
		t.of.room.Signal()
	}
}

// leave counts the connection no more. The lock is held.
func (t *counted) leave() {
	if t.left {
		return
	}
	t.rest(nil)
	t.left = true
	t.of.open--
	if t.of.from[t.from]--; t.of.from[t.from] == 0 {
		delete(t.of.from, t.from)
	}
	t.of.room.Signal()
}

// Close counts the connection no more and then closes it: whoever sees it closed finds room for another.
func (t *counted) Close() error {
	t.of.mu.Lock()
	t.leave()
	t.of.mu.Unlock()
	return t.Conn.Close()
}

// networkBits are the bits of an IPv6 address that its owner does not choose: whoever has one address has a network of them.
const networkBits = 64

// addressOf is what connections are counted by: an IPv4 address, or the network of an IPv6 address.
func addressOf(a net.Addr) netip.Prefix {
	at, _ := netip.ParseAddrPort(a.String())
	address := at.Addr().Unmap().WithZone("")
	p, _ := address.Prefix(min(address.BitLen(), networkBits))
	return p
}
