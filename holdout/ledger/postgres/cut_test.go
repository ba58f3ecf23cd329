//go:build postgres

package postgres_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/holdout/ledger/postgres"
	"github.com/holdoutd/holdoutd/holdout/ledger/postgres/pgtest"
)

// proxy stands between a ledger and its server, and can cut what goes through it.
type proxy struct {
	listener net.Listener
	to       string
	replies  atomic.Int64 // how many bytes of the server's still pass once holds is set
	holds    atomic.Bool
	sent     atomic.Int64 // how often something of a client's came

	mu    sync.Mutex
	conns []net.Conn
}

func newProxy(t *testing.T, to string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, to: to}
	t.Cleanup(func() { l.Close(); p.cut() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", p.to)
			if err != nil {
				client.Close()
				continue
			}
			p.mu.Lock()
			p.conns = append(p.conns, client, server)
			p.mu.Unlock()
			go func() { io.Copy(server, &counted{p, client}); server.Close() }()
			go func() { io.Copy(client, &held{p, server}); client.Close() }()
		}
	}()
	return p
}

// counted counts what a client sends.
type counted struct {
	*proxy
	from net.Conn
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.from.Read(b)
	c.sent.Add(1)
	return n, err
}

// held lets pass what the proxy lets pass of the server's bytes.
type held struct {
	*proxy
	from net.Conn
}

func (h *held) Read(b []byte) (int, error) {
	n, err := h.from.Read(b)
	if h.holds.Load() {
		if left := h.replies.Add(-int64(n)); left < 0 {
			h.cut()
			return 0, io.EOF
		}
	}
	return n, err
}

// cut ends every connection.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.Close()
	}
	p.conns = nil
}

// url is the URL of a database whose server has this port, through the proxy.
func (p *proxy) url(direct string, port int) string {
	return strings.Replace(direct, fmt.Sprint(port), p.listener.Addr().String()[len("127.0.0.1:"):], 1)
}

// TestGrantsExpireInFewRoundTrips: the update that ends many grants at once takes no round trip for each of them: with a database that is some milliseconds away that would be longer than a
// commit may take, and nothing could be asked of the holdout any more.
func TestGrantsExpireInFewRoundTrips(t *testing.T) {
	db := pgtest.NewDatabase(t)
	newLedger(t, db, 1000)
	p := newProxy(t, fmt.Sprint("127.0.0.1:", db.Cluster.Port))
	var later atomic.Int64
	begin := time.Now()
	open := func() ledger.Ledger {
		t.Helper()
		l, err := postgres.Open(t.Context(), p.url(db.Service, db.Cluster.Port), ledger.Options{Key: testKey, Now: func() time.Time { return begin.Add(time.Duration(later.Load())) }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return l
	}
	const grants, most = 400, 40
	if err := open().Update(t.Context(), "ho_1", func(tx *ledger.Tx) error {
		for i := range grants {
			g := ledger.Grant{ID: fmt.Sprint("gr_", i), Holder: "key_ana", Shows: "full", Expires: begin.Add(time.Hour), Limits: ledger.Meters{}}
			for name := range tx.Limits() {
				g.Limits[name] = 0
			}
			if i%2 == 1 {
				g.Parent = fmt.Sprint("gr_", i-1)
			}
			if err := tx.MakeGrant(g); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	l := open() // it has seen none of them
	later.Store(int64(2 * time.Hour))
	before := p.sent.Load()
	if _, _, err := ask(t.Context(), l, "ho_1", named("after them", 1)); err != nil {
		t.Fatal(err)
	}
	if took := p.sent.Load() - before; took > most {
		t.Errorf("to end %d grants took %d messages to the database, want %d at most", grants, took, most)
	}
	for _, id := range []string{"gr_0", "gr_399"} {
		if g, err := l.Grant(t.Context(), id); err != nil || g.Ended.IsZero() {
			t.Errorf("%+v %v: want it ended", g, err)
		}
	}
}

// TestConnectionIsCut cuts the connections before an update is sent, while its reply is on the way (after each number of bytes of it: the server has
// committed, and nobody is told), and after it was heard. Whoever asks again gets one answer, and it was charged once.
func TestConnectionIsCut(t *testing.T) {
	db := pgtest.NewDatabase(t)
	newLedger(t, db, 1000)
	p := newProxy(t, fmt.Sprint("127.0.0.1:", db.Cluster.Port))
	through := p.url(db.Service, db.Cluster.Port)
	var fault atomic.Pointer[func(step string) error]
	l, err := postgres.Open(t.Context(), through,
		ledger.Options{Key: testKey, Fault: func(step string) error {
			if f := fault.Load(); f != nil {
				return (*f)(step)
			}
			return nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	questions, unknown, durable := int64(0), 0, 0
	try := func(name string, at string, do func()) {
		t.Helper()
		for l.Ready(t.Context()) != nil {
			time.Sleep(time.Millisecond)
		}
		once := sync.OnceFunc(do)
		f := func(step string) error {
			if step == at {
				once()
			}
			return nil
		}
		fault.Store(&f)
		first, _, err := ask(t.Context(), l, "ho_1", named(name, 1))
		fault.Store(nil)
		p.holds.Store(false)
		if err != nil && !errors.Is(err, ledger.ErrUnavailable) {
			t.Fatalf("%s: %v", name, err)
		}
		if err != nil {
			unknown++
		}
		for l.Ready(t.Context()) != nil {
			time.Sleep(time.Millisecond)
		}
		again, replay, errAgain := ask(t.Context(), l, "ho_1", named(name, 1))
		for errors.Is(errAgain, ledger.ErrUnavailable) { // the cut came after the last commit, and this one is the first to notice
			time.Sleep(time.Millisecond)
			again, replay, errAgain = ask(t.Context(), l, "ho_1", named(name, 1))
		}
		questions++
		if errAgain != nil || err == nil && (again != first || !replay) {
			t.Errorf("%s: first %q (%v), then %q (%v)", name, first, err, again, errAgain)
		}
		if err != nil && replay {
			durable++
		}
		if h, err := l.Holdout(t.Context(), "ho_1"); err != nil || h.Spent["questions"] != questions {
			t.Errorf("%s: %v spent for %d questions (%v)", name, h.Spent, questions, err)
		}
	}
	for _, step := range []string{ledger.StepBegin, ledger.StepCommit, ledger.StepCommitted} {
		try("at "+step, step, p.cut)
	}
	for passed := int64(0); passed < 100; passed += 7 {
		try(fmt.Sprint("after ", passed, " bytes"), ledger.StepCommit, func() {
			p.replies.Store(passed)
			p.holds.Store(true)
		})
	}
	if unknown < 5 || durable < 3 {
		t.Errorf("%d outcomes were unknown, %d of them durable: the test cuts too little", unknown, durable)
	}
	if _, err := postgres.Verify(t.Context(), db.Service); err != nil {
		t.Error(err)
	}
	t.Logf("%d cuts: %d outcomes unknown, %d of them durable, each charged once", questions, unknown, durable)
}
