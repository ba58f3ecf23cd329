package api

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/dataset/ingest/ingesttest"
	"github.com/holdoutd/holdoutd/holdout"
	"github.com/holdoutd/holdoutd/internal/oidc"
	"github.com/holdoutd/holdoutd/internal/stattest"
)

// The tests run against the real service: uploads are decoded by this test binary, started as the decoding child.
func TestMain(m *testing.M) {
	ingesttest.Child()
	os.Exit(m.Run())
}

// A server is an API on a socket with a service of its own.
type server struct {
	t    *testing.T
	api  *API
	url  string
	key  string // admin
	dir  string
	log  *lockedBuffer
	stop func() error // shuts down and returns what Serve returned
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// panicValue stands for a cell in a panic's message; nothing else that is written, such as a time, looks like it.
const panicValue = "cell-4711-secret"

func start(t *testing.T, o Options, limits ...holdout.Limits) *server {
	t.Helper()
	return startIn(t, t.TempDir(), o, limits...)
}

// startIn serves a data directory, which may be new.
func startIn(t *testing.T, dir string, o Options, limits ...holdout.Limits) *server {
	t.Helper()
	return startWith(t, dir, nil, o, limits...)
}

// startWith serves with an issuer, whose tokens are taken.
func startWith(t *testing.T, dir string, issuer *oidc.Issuer, o Options, limits ...holdout.Limits) *server {
	t.Helper()
	stattest.Secrets(t)
	s := &server{t: t, dir: dir, log: &lockedBuffer{}}
	o.Logger = slog.New(slog.NewJSONHandler(s.log, nil))
	var limited holdout.Limits
	for _, l := range limits {
		limited = l
	}
	service, err := holdout.Open(t.Context(), holdout.Options{Dir: dir, Issuer: issuer, AnyFileSystem: true, Logger: o.Logger, Decoder: ingesttest.Decoder(t), Limits: limited})
	if err != nil {
		t.Fatal(err)
	}
	key, err := os.ReadFile(filepath.Join(dir, "admin.key"))
	if err != nil {
		t.Fatal(err)
	}
	s.key = strings.TrimSpace(string(key))
	s.api = New(service, o)
	s.api.router.GET("/test/panic", func(c *ginContext) { panic("a value of a row: " + panicValue) })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.url = "http://" + l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.api.Serve(ctx, l) }()
	s.stop = sync.OnceValue(func() error {
		cancel()
		return <-served
	})
	t.Cleanup(func() {
		s.stop()
		if err := service.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// A sent request, with what came back.
type result struct {
	*http.Response
	body []byte
}

func (r result) problem(t *testing.T) Problem {
	t.Helper()
	var p Problem
	if ct := r.Header.Get("Content-Type"); ct != problemType {
		t.Fatalf("status %d with Content-Type %q, want a problem: %s", r.StatusCode, ct, r.body)
	}
	if err := json.Unmarshal(r.body, &p); err != nil {
		t.Fatalf("%v: %s", err, r.body)
	}
	return p
}

func (r result) decode(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal(r.body, v); err != nil {
		t.Fatalf("status %d: %v: %s", r.StatusCode, err, r.body)
	}
}

func (s *server) send(method, path string, body io.Reader, headers ...string) result {
	s.t.Helper()
	request, err := http.NewRequest(method, s.url+path, body)
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+s.key)
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		request.Header.Del(name)
		if value != "" {
			request.Header.Set(name, value)
		}
	}
	// Redirects are replies too.
	reply, err := (&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, Timeout: time.Minute}).Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer reply.Body.Close()
	b, err := io.ReadAll(reply.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return result{reply, b}
}

func (s *server) get(path string, headers ...string) result {
	s.t.Helper()
	return s.send(http.MethodGet, path, nil, headers...)
}

func (s *server) post(path, body string, headers ...string) result {
	s.t.Helper()
	return s.send(http.MethodPost, path, strings.NewReader(body), append([]string{"Content-Type: application/json"}, headers...)...)
}

func fixture(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// upload makes a holdout of the flights and returns its path.
func (s *server) upload(parameters string, headers ...string) (path string, card holdout.Card) {
	s.t.Helper()
	r := s.send(http.MethodPost, "/v1/holdouts?"+parameters, bytes.NewReader(fixture(s.t, "flights-5k.parquet")), headers...)
	if r.StatusCode != http.StatusCreated {
		s.t.Fatalf("upload: %d %s", r.StatusCode, r.body)
	}
	r.decode(s.t, &card)
	return "/v1/holdouts/" + card.ID, card
}

func (s *server) newKey(scope string) (id, secret string) {
	s.t.Helper()
	r := s.post("/v1/keys", `{"name":"ana","scope":"`+scope+`"}`)
	if r.StatusCode != http.StatusCreated {
		s.t.Fatalf("new key: %d %s", r.StatusCode, r.body)
	}
	var k struct{ ID, Secret string }
	r.decode(s.t, &k)
	return k.ID, k.Secret
}
