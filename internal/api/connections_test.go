package api

//holdoutd:race

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/holdout"
	"github.com/holdoutd/holdoutd/internal/await"
)

// dialFrom opens a connection from an address of this machine. The server takes connections in the order in which they were opened.
func (s *server) dialFrom(address string) net.Conn {
	s.t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	c, err := d.DialContext(s.t.Context(), "tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(await.Patience))
	return c
}

// ended waits until the server has closed a connection on which it has nothing more to say.
func ended(t *testing.T, what string, c net.Conn) {
	t.Helper()
	var late net.Error
	if b, err := io.ReadAll(c); len(b) > 0 || errors.As(err, &late) && late.Timeout() {
		t.Fatalf("%s is not closed: %q %v", what, b, err)
	}
}

// asks sends a request on a connection, and returns the status and the body of its reply.
func (s *server) asks(c net.Conn, method, path string, body []byte, headers string) (int, []byte) {
	s.t.Helper()
	fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n%s\r\n", method, path, s.key, len(body), headers)
	c.Write(body)
	return replied(s.t, c)
}

func replied(t *testing.T, c net.Conn) (int, []byte) {
	t.Helper()
	reply, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatalf("on a connection from %v that should be open: %v", c.LocalAddr(), err)
	}
	b, err := io.ReadAll(reply.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply.StatusCode, b
}

// lastWord asks that the server closes the connection behind its reply.
const lastWord = "Connection: close\r\n"

// uploadOnce makes a holdout, and leaves no connection behind.
func (s *server) uploadOnce() (path string) {
	s.t.Helper()
	c := s.dialFrom("127.0.0.1")
	code, body := s.asks(c, "POST", "/v1/holdouts?name=flights&holdout=0.5&mechanism=gaussian&questions=1000", fixture(s.t, "flights-5k.parquet"), lastWord)
	var card holdout.Card
	if err := json.Unmarshal(body, &card); code != 201 || err != nil {
		s.t.Fatalf("%d %s", code, body)
	}
	ended(s.t, "the connection of the upload", c)
	return "/v1/holdouts/" + card.ID
}

// TestSilentConnections: connections that have not sent a whole head make room for new ones, the oldest first, whatever else is open. A client keeps its connection, and
// has all of its questions answered, while strangers hold all the others and open a new one for each that is closed. It would notice strangers that keep others out, that
// have a client's connection closed, and a connection that is closed before an older one.
func TestSilentConnections(t *testing.T) {
	const limit = 6
	s := start(t, Options{Limits: Limits{Connections: limit, ConnectionsEach: limit, ReadHeader: await.Patience}})
	path := s.uploadOnce()
	client, asked := s.dialFrom("127.0.0.1"), 0
	ask := func() {
		t.Helper()
		asked++
		if code, body := s.asks(client, "POST", path+"/queries", fmt.Appendf(nil, `{"type":"fraction","of":"delay > %d"}`, asked), ""); code != 200 {
			t.Fatalf("question %d beside silent connections: %d %s", asked, code, body)
		}
	}
	ask()
	type end struct {
		stranger int
		said     []byte
	}
	ends := make(chan end)
	var silent []net.Conn
	rest := []string{"GET /healthz HTTP/1.1\r\nHost: h\r\n", lastWord + "\r\n"}
	come := func() {
		t.Helper()
		c, i := s.dialFrom("127.0.0.1"), len(silent)
		if i%2 == 0 { // half a head is none
			fmt.Fprint(c, rest[0])
		}
		silent = append(silent, c)
		go func() {
			said, _ := io.ReadAll(c)
			select {
			case ends <- end{i, said}:
			case <-t.Context().Done():
			}
		}()
	}
	for range limit - 1 {
		come()
	}
	oldest := 0
	for range 3 * limit {
		come()
		newcomer := s.dialFrom("127.0.0.1")
		if code, body := s.asks(newcomer, "GET", path, nil, lastWord); code != 200 {
			t.Fatalf("a new client beside silent connections: %d %s", code, body)
		}
		ask()
		for range 2 { // for the one that came and for the new client
			if e := <-ends; e.stranger < oldest || e.stranger > oldest+1 || len(e.said) > 0 {
				t.Fatalf("silent connection %d was closed, while %d and %d are the oldest: %q", e.stranger, oldest, oldest+1, e.said)
			}
		}
		oldest += 2
		ended(t, "the new client's connection", newcomer)
		come()
	}
	ask()
	for i := oldest; i < len(silent); i++ { // the younger ones were left alone
		fmt.Fprint(silent[i], strings.Join(rest[(i+1)%2:], ""))
	}
	for range len(silent) - oldest {
		if e := <-ends; !strings.HasPrefix(string(e.said), "HTTP/1.1 200 ") {
			t.Errorf("the silent connection %d, which speaks in the end: %q", e.stranger, e.said)
		}
	}
}

// TestConnectionsEach: one address has at most its share of the connections. For one more it loses its own oldest silent one, and where all of its connections are at work the new
// one is closed; other addresses get in, and keep what they have.
func TestConnectionsEach(t *testing.T) {
	s := start(t, Options{Limits: Limits{Connections: 3, ConnectionsEach: 2, ReadHeader: await.Patience}})
	path := s.uploadOnce()
	client := s.dialFrom("127.0.0.1")
	if code, body := s.asks(client, "GET", path, nil, ""); code != 200 {
		t.Fatalf("%d %s", code, body)
	}
	first, second := s.dialFrom("127.0.0.2"), s.dialFrom("127.0.0.2")
	third := s.dialFrom("127.0.0.2")
	ended(t, "the first of three connections of one address", first)
	for _, c := range []net.Conn{second, third} { // at work: an upload that does not come
		fmt.Fprintf(c, "POST /v1/holdouts?name=x HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer %s\r\nContent-Length: 1000\r\nExpect: 100-continue\r\n\r\n", s.key)
		if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || !strings.Contains(line, " 100 ") {
			t.Fatalf("%q %v", line, err)
		}
	}
	fourth := s.dialFrom("127.0.0.2")
	fmt.Fprintf(fourth, "GET /healthz HTTP/1.1\r\nHost: h\r\n%s\r\n", lastWord)
	ended(t, "a new connection of an address whose connections are all at work", fourth)
	if code, body := s.asks(client, "GET", path, nil, ""); code != 200 {
		t.Errorf("a client that was there before: %d %s", code, body)
	}
	if code, body := s.asks(s.dialFrom("127.0.0.3"), "GET", path, nil, ""); code != 200 {
		t.Errorf("a client that comes: %d %s", code, body)
	}
}

// TestAddressOf: what connections are counted by.
func TestAddressOf(t *testing.T) {
	for _, c := range []struct{ at, want string }{
		{"192.0.2.1:80", "192.0.2.1/32"}, {"[::ffff:192.0.2.1]:80", "192.0.2.1/32"}, {"[2001:db8:1:2:3:4:5:6]:80", "2001:db8:1:2::/64"}, {"[fe80::1%lo]:80", "fe80::/64"},
	} {
		at, err := net.ResolveTCPAddr("tcp", c.at)
		if err != nil {
			t.Fatal(err)
		}
		if got := addressOf(at).String(); got != c.want {
			t.Errorf("%s is counted as %s, want %s", c.at, got, c.want)
		}
	}
	l := limitConnections(nil, 1001, 0)
	if l.each != (l.limit+1)/2 {
		t.Errorf("one address has %d of %d", l.each, l.limit)
	}
}
