package api

import (
	"container/list"
	"net"
	"net/http"
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

// connections is a listener that has a limited number of connections open. When there are as many, a connection that is idle is closed
// for a new one, the one that has been idle longest first; if none is, the new one waits in the system's queue.
type connections struct {
	net.Listener
	limit int

	mu     sync.Mutex
	room   *sync.Cond // when a connection has closed or become idle, or the listener is closed
	open   int
	idle   list.List // of net.Conn
	at     map[net.Conn]*list.Element
	closed bool
}

func limitConnections(l net.Listener, limit int) *connections {
	c := &connections{Listener: l, limit: fitConnections(limit, machine.Files()), at: map[net.Conn]*list.Element{}}
	c.room = sync.NewCond(&c.mu)
	return c
}

// Accept takes a connection when there is room for one.
func (c *connections) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	for c.open >= c.limit && !c.closed {
		if oldest := c.idle.Front(); oldest != nil {
			c.forget(oldest.Value.(net.Conn))
			go oldest.Value.(net.Conn).Close()
		}
		c.room.Wait()
	}
	c.open++
	c.mu.Unlock()
	return &counted{Conn: conn, of: c}, nil
}

// Close ends Accept, also one that waits for room.
func (c *connections) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.room.Broadcast()
	return c.Listener.Close()
}

// observe is told by the server what its connections do.
func (c *connections) observe(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget(conn)
	if state == http.StateIdle {
		c.at[conn] = c.idle.PushBack(conn)
		c.room.Signal()
	}
}

// forget takes a connection out of the idle ones. The lock is held.
func (c *connections) forget(conn net.Conn) {
	if e, ok := c.at[conn]; ok {
		c.idle.Remove(e)
		delete(c.at, conn)
	}
}

// counted is a connection that is counted until it is closed.
type counted struct {
	net.Conn
	of   *connections
	once sync.Once
}

func (c *counted) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() {
		c.of.mu.Lock()
		c.of.open--
		c.of.mu.Unlock()
		c.of.room.Signal()
	})
	return err
}
