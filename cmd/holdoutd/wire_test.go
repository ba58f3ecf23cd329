//go:build engines

package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/holdoutd/holdoutd/sources/clickhouse/chtest"
)

// moment is when a wire stops a statement.
type moment string

const (
	before  moment = "before the engine has the statement"
	half    moment = "when the engine has half of the statement's rows"
	sent    moment = "when the engine has the statement"
	done    moment = "when the engine has answered, and nothing of that has come"
	short   moment = "when all of the answer but its last byte has come"
	arrived moment = "when the answer's last byte has come"
)

// wire is the network between a server and the servers of an engine: a proxy for each, which takes statements one by one, and does something at an exact moment of one of them.
type wire struct {
	t      testing.TB
	engine *chtest.Engine
	at     []net.Listener // of each server

	mu    sync.Mutex
	gone  bool // nothing goes through
	stop  *stop
	taken int // statements, since they were counted last
}

// stop is what a wire waits for.
type stop struct {
	skip  int // so many of the statements before it
	of    func(text string) bool
	when  moment
	then  func() error // the connection is broken off behind it
	text  string       // of the statement
	ended chan struct{}
}

func newWire(t testing.TB, e *chtest.Engine) *wire {
	t.Helper()
	w := &wire{t: t, engine: e}
	for _, s := range e.Servers {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		w.at = append(w.at, l)
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go w.serve(c, s.Address())
			}
		}()
	}
	return w
}

// url is the source's URL by way of the wire.
func (w *wire) url(t testing.TB) string {
	t.Helper()
	u, err := url.Parse(w.engine.URL())
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, l := range w.at {
		all = append(all, l.Addr().String())
	}
	q := u.Query()
	q.Set("servers", strings.Join(all, ","))
	u.Host, u.RawQuery = all[0], q.Encode()
	return u.String()
}

// arm stops the first statement of which of says so, behind the first skip ones of these.
func (w *wire) arm(skip int, when moment, of func(text string) bool, then func() error) *stop {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stop = &stop{skip: skip, of: of, when: when, then: then, ended: make(chan struct{})}
	return w.stop
}

// disarm lets all through again, and reports whether the statement that was waited for has come.
func (w *wire) disarm() (came bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	came, w.stop = w.stop == nil, nil
	return came
}

// cut breaks the network off, or mends it.
func (w *wire) cut(gone bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gone = gone
}

// takes says what happens to a statement: whether it goes through, and whether it is the one.
func (w *wire) takes(text string) (through bool, s *stop) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.taken++
	if w.gone {
		return false, nil
	}
	if s = w.stop; s == nil || !s.of(text) {
		return true, nil
	}
	if s.skip > 0 {
		s.skip--
		return true, nil
	}
	w.stop, s.text = nil, text
	return true, s
}

// serve takes the statements of a connection.
func (w *wire) serve(c net.Conn, to string) {
	defer c.Close()
	in := bufio.NewReader(c)
	for {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		rows, err := io.ReadAll(r.Body)
		if err != nil {
			return // whoever asked is gone
		}
		text := string(rows)
		if of := r.URL.Query().Get("query"); of != "" {
			text = of
		}
		through, s := w.takes(text)
		if !through {
			return
		}
		reached := func(m moment) bool {
			if s == nil || s.when != m {
				return false
			}
			if err := s.then(); err != nil {
				w.t.Error(err)
			}
			close(s.ended)
			return true
		}
		if reached(before) {
			return
		}
		up, err := net.Dial("tcp", to)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(rows))
		if s != nil && s.when == half {
			r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(rows[:len(rows)/2]), broken{}))
		}
		err = r.Write(up)
		if reached(half) || reached(sent) || err != nil {
			up.Close()
			return
		}
		reply, err := http.ReadResponse(bufio.NewReader(up), r)
		if err != nil {
			up.Close()
			return
		}
		var out bytes.Buffer
		err = reply.Write(&out)
		up.Close()
		if err != nil || reached(done) {
			return
		}
		if s != nil && s.when == short {
			c.Write(out.Bytes()[:out.Len()-1])
			reached(short)
			return
		}
		if _, err := c.Write(out.Bytes()); err != nil || reached(arrived) {
			return
		}
	}
}

// broken is a stream that breaks off.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("broken off") }
