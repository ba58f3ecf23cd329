package api

//holdoutd:race

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/holdout"
	"github.com/holdoutd/holdoutd/internal/await"
)

// dial opens a connection that fails the test, instead of hanging it, if the server never ends it.
func (s *server) dial() net.Conn {
	s.t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(await.Patience))
	return c
}

// TestSlowHead: a client that sends its head a little at a time is hung up on.
func TestSlowHead(t *testing.T) {
	s := start(t, Options{Limits: Limits{ReadHeader: 50 * time.Millisecond}})
	c := s.dial()
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: h\r\nX-Slow: ")
	// The server may say 408 before it hangs up; what counts is that it does.
	if b, err := io.ReadAll(c); err != nil || bytes.Contains(b, []byte(" 200 ")) {
		t.Errorf("%q %v", b, err)
	}
}

// TestSlowBody: a body that stops coming is 408, for a query and for an upload, and leaves nothing behind.
func TestSlowBody(t *testing.T) {
	s := start(t, Options{Limits: Limits{ReadBody: time.Second}})
	path, _ := s.upload("name=flights&holdout=0.5&questions=5")
	idle := start(t, Options{Limits: Limits{UploadIdle: time.Second}})
	for target, s := range map[string]*server{path + "/queries": s, "/v1/holdouts?name=slow": idle} {
		c := s.dial()
		fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer %s\r\nContent-Length: 1000\r\n\r\nPAR1", target, s.key)
		reply, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(target, err)
		}
		body, _ := io.ReadAll(reply.Body)
		if reply.StatusCode != 408 || !strings.Contains(string(body), "request-timeout") {
			t.Errorf("%s: %d %s", target, reply.StatusCode, body)
		}
	}
	if b := s.get(path + "/budget"); !strings.Contains(string(b.body), `"left":5`) {
		t.Errorf("a query that never came cost something: %s", b.body)
	}
	var list struct{ Holdouts []holdout.Card }
	idle.get("/v1/holdouts").decode(t, &list)
	if len(list.Holdouts) != 0 {
		t.Errorf("half an upload is listed: %+v", list)
	}
}

// A slowBody sends its bytes in pieces, with a pause before each.
type slowBody struct {
	pieces [][]byte
	pause  time.Duration
}

func (b *slowBody) Read(p []byte) (int, error) {
	if len(b.pieces) == 0 {
		return 0, io.EOF
	}
	time.Sleep(b.pause)
	n := copy(p, b.pieces[0])
	b.pieces[0] = b.pieces[0][n:]
	if len(b.pieces[0]) == 0 {
		b.pieces = b.pieces[1:]
	}
	return n, nil
}

func pieces(b []byte, n int) [][]byte {
	var dst [][]byte
	for i := range n {
		dst = append(dst, b[len(b)*i/n:len(b)*(i+1)/n])
	}
	return dst
}

// TestUploadMayLastWhileItFlows: an upload may take longer than another body and its reply, and shutdown waits for what was accepted.
func TestUploadMayLastWhileItFlows(t *testing.T) {
	s := start(t, Options{Limits: Limits{ReadBody: 300 * time.Millisecond, Write: 300 * time.Millisecond}})
	started := make(chan struct{})
	stopped := make(chan error, 1)
	go func() {
		<-started
		stopped <- s.stop()
	}()
	body := &slowBody{pieces(fixture(t, "flights-5k.parquet"), 10), 50 * time.Millisecond}
	request, err := http.NewRequest("POST", s.url+"/v1/holdouts?name=slow", io.MultiReader(&slowBody{body.pieces[:5], body.pause}, signal(started), &slowBody{body.pieces[5:], body.pause}))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+s.key)
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := io.ReadAll(reply.Body)
	if reply.StatusCode != 201 {
		t.Errorf("%d %s", reply.StatusCode, b)
	}
	if err := <-stopped; err != nil {
		t.Errorf("shutdown: %v", err)
	}
	if _, err := http.Get(s.url + "/healthz"); err == nil {
		t.Error("still accepting after shutdown")
	}
}

// signal is an empty reader that closes c when it is reached.
func signal(c chan struct{}) io.Reader { return signalReader(c) }

type signalReader chan struct{}

func (r signalReader) Read([]byte) (int, error) {
	close(r)
	return 0, io.EOF
}

// TestDrainLimit: shutdown does not wait for ever.
func TestDrainLimit(t *testing.T) {
	s := start(t, Options{Limits: Limits{Drain: 50 * time.Millisecond}})
	c := s.dial()
	fmt.Fprintf(c, "POST /v1/holdouts?name=x HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer %s\r\nContent-Length: 1000\r\nExpect: 100-continue\r\n\r\n", s.key)
	if _, err := bufio.NewReader(c).ReadString('\n'); err != nil { // 100: the handler is at work
		t.Fatal(err)
	}
	if err := s.stop(); err == nil {
		t.Error("a request was cut off, and nobody was told")
	}
}

// TestClientGone: a client that hangs up in the middle of an upload leaves nothing, and no error of the server.
func TestClientGone(t *testing.T) {
	s := start(t, Options{})
	file := fixture(t, "flights-5k.parquet")
	c := s.dial()
	fmt.Fprintf(c, "POST /v1/holdouts?name=x HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n", s.key, len(file))
	c.Write(file[:len(file)/2])
	c.Close()
	path, _ := s.upload("name=whole&holdout=0.5&questions=5") // the same table: refused if the half had left something
	ctx, cancel := context.WithCancel(t.Context())
	request, _ := http.NewRequestWithContext(ctx, "POST", s.url+path+"/queries", io.MultiReader(strings.NewReader(`{"type":`), cancelReader(cancel)))
	request.Header.Set("Authorization", "Bearer "+s.key)
	if _, err := http.DefaultClient.Do(request); err == nil {
		t.Error("a cancelled request has a reply")
	}
	if r := s.post(path+"/queries", late); r.StatusCode != 200 {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	s.stop() // the log is complete
	if strings.Contains(s.log.String(), `"level":"ERROR"`) {
		t.Errorf("clients that hang up are no errors of the server:\n%s", s.log)
	}
}

type cancelReader context.CancelFunc

func (r cancelReader) Read([]byte) (int, error) {
	r()
	time.Sleep(10 * time.Millisecond)
	return 0, io.ErrUnexpectedEOF
}

// TestDefaultLimits: what is not given is the default, and each default is one that makes sense. Their values are pinned: a limit that
// changes by accident is noticed.
func TestDefaultLimits(t *testing.T) {
	want := Limits{
		ReadHeader: 10 * time.Second, ReadBody: 30 * time.Second, Handle: 2 * time.Minute, Write: time.Minute, Idle: 2 * time.Minute,
		UploadIdle: time.Minute, UploadTime: 4 * time.Hour, Drain: 2 * time.Minute,
		HeaderBytes: 65536, BatchBytes: 67108864, KeyBytes: 4096, Uploads: 2, Connections: 4096, Rate: 5000, Burst: 10000,
	}
	if got := (Limits{}).withDefaults(); got != want {
		t.Errorf("%+v", got)
	}
	if got := (Limits{Rate: -1, BatchBytes: 7}).withDefaults(); got.Rate != -1 || got.BatchBytes != 7 {
		t.Errorf("%+v", got)
	}
	if err := want.Check(); err != nil {
		t.Error(err)
	}
}

// TestNonsenseLimits: every limit that is zero, negative or no number is refused by its name.
func TestNonsenseLimits(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(l *Limits)
	}{
		{"read-header", func(l *Limits) { l.ReadHeader = -time.Second }}, {"read-body", func(l *Limits) { l.ReadBody = 0 }},
		{"handle", func(l *Limits) { l.Handle = -time.Second }}, {"write", func(l *Limits) { l.Write = 1 }}, {"idle", func(l *Limits) { l.Idle = -1 }},
		{"upload-idle", func(l *Limits) { l.UploadIdle = 0 }}, {"upload-time", func(l *Limits) { l.UploadTime = 0 }}, {"drain", func(l *Limits) { l.Drain = -1 }},
		{"header-bytes", func(l *Limits) { l.HeaderBytes = -1 }}, {"batch-bytes", func(l *Limits) { l.BatchBytes = -5 }}, {"key-bytes", func(l *Limits) { l.KeyBytes = 0 }},
		{"uploads", func(l *Limits) { l.Uploads = -1 }}, {"connections", func(l *Limits) { l.Connections = 0 }}, {"connections-each", func(l *Limits) { l.ConnectionsEach = -1 }}, {"burst", func(l *Limits) { l.Burst = 0 }},
		{"rate", func(l *Limits) { l.Rate = math.NaN() }}, {"rate", func(l *Limits) { l.Rate = 0 }}, {"rate", func(l *Limits) { l.Rate = math.Inf(1) }},
	} {
		l := DefaultLimits
		c.set(&l)
		var wrong *holdout.LimitError
		if err := l.Check(); !errors.As(err, &wrong) || wrong.Name != c.name || !strings.Contains(err.Error(), "at least") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestRateLimit(t *testing.T) {
	s := start(t, Options{Limits: Limits{Rate: 0.001, Burst: 3}})
	_, other := s.newKey("analyst") // the first of three
	s.get("/v1/keys")
	s.get("/v1/keys")
	r := s.get("/v1/keys")
	if r.StatusCode != 429 || r.problem(t).Code != "rate-limited" || r.Header.Get("Retry-After") == "" || r.Header.Get("Retry-After") == "0" {
		t.Errorf("%d %s %v", r.StatusCode, r.body, r.Header)
	}
	if r := s.get("/v1/holdouts", "Authorization: Bearer "+other); r.StatusCode != 200 {
		t.Errorf("the limit of one key is another's: %d", r.StatusCode)
	}
	if r := s.get("/healthz"); r.StatusCode != 200 {
		t.Errorf("health needs no key and has no limit: %d", r.StatusCode)
	}
}

// TestBusy fills the places of uploads and of questions. Each kind of request that works has to wait for a place: would one not, it
// would be answered here.
func TestBusy(t *testing.T) {
	s := start(t, Options{Limits: Limits{Uploads: 1}}, holdout.Limits{Questions: 1, Wait: 20 * time.Millisecond})
	path, _ := s.upload("name=flights&holdout=0.5&questions=5")
	s.api.uploads <- struct{}{}
	working, done := make(chan struct{}), make(chan struct{})
	go s.api.service.InTurn(context.Background(), holdout.Principal{KeyID: "other"}, holdout.Work{}, func(context.Context) error {
		close(working)
		<-done
		return nil
	})
	<-working
	for _, r := range []result{
		s.send("POST", "/v1/holdouts?name=x", strings.NewReader("PAR1")),
		s.post(path+"/queries", late), s.post(path+"/queries/batch", `{"queries":[`+late+`]}`), s.post(path+"/queries/explain", late),
		s.post("/v1/plans", `{"n":1000,"questions":10}`),
	} {
		if r.StatusCode != 503 || r.problem(t).Code != "busy" || r.Header.Get("Retry-After") == "" {
			t.Errorf("%s: %d %s", r.Request.URL, r.StatusCode, r.body)
		}
	}
	if s.api.service.Working() != 1 {
		t.Error("the place that is taken is not counted")
	}
	<-s.api.uploads
	close(done)
	if r := s.post(path+"/queries", late); r.StatusCode != 200 || !strings.Contains(string(r.body), `"left":4`) {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	if s.api.service.Working() != 0 || len(s.api.uploads) != 0 {
		t.Error("a place was not given back")
	}
}

// TestUploadsTakeTurns: an upload beyond those that are received at a time waits for a place, and is taken when there is one.
func TestUploadsTakeTurns(t *testing.T) {
	s := start(t, Options{Limits: Limits{Uploads: 1}}, holdout.Limits{Wait: await.Patience})
	s.api.uploads <- struct{}{}
	replied := make(chan result, 1)
	go func() {
		replied <- s.send("POST", "/v1/holdouts?name=flights", bytes.NewReader(fixture(t, "flights-5k.parquet")))
	}()
	await.Until(t, "the upload is there", func() bool {
		return len(replied) > 0 || strings.Contains(string(s.get("/metrics").body), "holdoutd_http_requests_in_flight 2")
	})
	<-s.api.uploads
	if r := <-replied; r.StatusCode != 201 {
		t.Errorf("an upload that had to wait: %d %s", r.StatusCode, r.body)
	}
}

// TestHugeHead: a head beyond the limit is refused without being kept.
func TestHugeHead(t *testing.T) {
	s := start(t, Options{Limits: Limits{HeaderBytes: 4096}})
	c := s.dial()
	go fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: h\r\nX-Huge: %s\r\n\r\n", strings.Repeat("x", 1<<20))
	line, err := bufio.NewReader(c).ReadString('\n')
	if err == nil && !strings.Contains(line, "431") {
		t.Errorf("%q", line)
	}
}

// TestUploadsLeaveNothing looks into the data directory after uploads that failed.
func TestUploadsLeaveNothing(t *testing.T) {
	s := start(t, Options{})
	file := fixture(t, "flights-5k.parquet")
	for _, body := range [][]byte{nil, file[:len(file)-5], file[:100], []byte("no"), bytes.Repeat([]byte("PAR1"), 1000)} {
		r := s.send("POST", "/v1/holdouts?name=x", bytes.NewReader(body))
		if r.StatusCode != 422 || r.problem(t).Code != "bad-upload" {
			t.Errorf("%d bytes: %d %s", len(body), r.StatusCode, r.body)
		}
	}
	for _, dir := range []string{"holdouts", "tmp"} {
		entries, err := os.ReadDir(s.dir + "/" + dir)
		if err != nil || len(entries) > 0 {
			t.Errorf("%s: %v %v", dir, entries, err)
		}
	}
}

// TestRevokedWhileItsBodyComes: a key that is revoked while the body of its request is on its way makes no key, and asks nothing. It notices rights that are those of the request's head.
func TestRevokedWhileItsBodyComes(t *testing.T) {
	s := start(t, Options{})
	path, card := s.upload("name=flights&holdout=0.5&questions=5")
	for target, body := range map[string]string{
		"/v1/keys":        `{"name":"eve","scope":"admin"}`,
		path + "/queries": `{"type":"fraction","of":"delay > 15"}`,
		"/v1/grants":      `{"key":"key_1","holdout":"` + card.ID + `","questions":1}`,
		"/mcp":            `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`,
	} {
		admin := holdout.Principal{KeyID: "key_of_the_test", Scope: holdout.Admin}
		key, secret, err := s.api.service.CreateKey(t.Context(), admin, "mallory", holdout.Admin)
		if err != nil {
			t.Fatal(err)
		}
		c := s.dial()
		fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n",
			target, strings.TrimPrefix(s.url, "http://"), secret, len(body))
		r := bufio.NewReader(c)
		if line, err := r.ReadString('\n'); err != nil || !strings.Contains(line, " 100 ") { // the head was taken, and the body is being read
			t.Fatalf("%s: %q %v", target, line, err)
		}
		r.ReadString('\n')
		fmt.Fprint(c, body[:5])
		if err := s.api.service.RevokeKey(t.Context(), admin, key.ID); err != nil {
			t.Fatal(err)
		}
		time.Sleep(bodyAtOnce + 10*time.Millisecond)
		fmt.Fprint(c, body[5:])
		reply, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(target, err)
		}
		if text, _ := io.ReadAll(reply.Body); reply.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: %d %s", target, reply.StatusCode, text)
		}
	}
	if b := s.get(path + "/budget"); !strings.Contains(string(b.body), `"left":5`) {
		t.Errorf("something was paid: %s", b.body)
	}
}
