package main

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/experiments/data"
)

// tracedAttributes are all that a trace may say. What is added to spans must be added here, by someone who has thought about it: a route is a
// pattern, ids are not names, a number of questions is public, and nothing else is.
var tracedAttributes = map[string]bool{
	"http.request.method": true, "http.route": true, "http.response.status_code": true,
	"holdoutd.problem": true, "holdoutd.holdout": true, "holdoutd.key": true, "holdoutd.questions": true,
	"service.name": true, "service.version": true, "service.instance.id": true,
}

// tracedSpans are the names of spans, beside METHOD route.
var tracedSpans = []string{"admit", "scan", "commit", "ledger"}

// A collector takes traces as OTLP over HTTP.
type collector struct {
	*httptest.Server
	mu    sync.Mutex
	spans []*otlp.Span
	said  map[string][]string // values by attribute
	auth  []string
}

func startCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{said: map[string][]string{}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		z, err := gzip.NewReader(r.Body)
		if err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
			t.Errorf("%s %s: %v", r.URL.Path, r.Header.Get("Content-Type"), err)
			return
		}
		body, err := io.ReadAll(z)
		var d otlp.TracesData
		if err == nil {
			err = proto.Unmarshal(body, &d)
		}
		if err != nil {
			t.Error(err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.auth = append(c.auth, r.Header.Get("Authorization"))
		for _, resource := range d.ResourceSpans {
			for _, a := range resource.Resource.Attributes {
				c.said[a.Key] = append(c.said[a.Key], a.Value.String())
			}
			for _, scope := range resource.ScopeSpans {
				c.spans = append(c.spans, scope.Spans...)
				for _, s := range scope.Spans {
					for _, a := range s.Attributes {
						c.said[a.Key] = append(c.said[a.Key], a.Value.String())
					}
				}
			}
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// A recorder keeps every reply, and sends what could force a trace.
type recorder struct {
	mu      sync.Mutex
	replies bytes.Buffer
}

const (
	forcedTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	forced      = "00-" + forcedTrace + "-00f067aa0ba902b7-01"
)

func (r *recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	request.Header.Set("Traceparent", forced)
	request.Header.Set("Tracestate", "rojo=00f067aa0ba902b7")
	request.Header.Set("Baggage", "holdoutd.holdout=forced")
	request.Header.Set("X-Request-Id", "wilhelmina-was-here")
	reply, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(reply.Body)
	reply.Body.Close()
	reply.Body = io.NopCloser(bytes.NewReader(body))
	r.mu.Lock()
	defer r.mu.Unlock()
	reply.Header.Write(&r.replies)
	r.replies.Write(body)
	return reply, err
}

// TestTraces runs everything that clients do against the real program with a collector. Every attribute of every span must be on the list
// above; no text of a query, value or name may be anywhere in a trace; no id of a trace in a reply; and a client's traceparent must change
// nothing.
func TestTraces(t *testing.T) {
	ctx, dir, to := t.Context(), t.TempDir(), startCollector(t)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Bearer%20for-the-collector")
	p := startServer(t, dir, "--traces", to.URL)
	replies := &recorder{}
	through := client.WithHTTPClient(&http.Client{Transport: replies})
	key, err := readKey("@" + dir + "/admin.key")
	if err != nil {
		t.Fatal(err)
	}
	admin, err := client.New(p.url, key, through, client.WithRetries(0))
	if err != nil {
		t.Fatal(err)
	}
	made, err := admin.CreateKey(ctx, "wilhelmina", "analyst")
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(p.url, made.Secret, through, client.WithRetries(0))
	if err != nil {
		t.Fatal(err)
	}
	card, err := admin.CreateHoldout(ctx, strings.NewReader(data.Flights), client.Settings{Name: "wilhelmina-flights", Holdout: 0.5, Mechanism: "gaussian", Questions: 20})
	if err != nil {
		t.Fatal(err)
	}
	var texts []string // that must be nowhere
	for i := range 3 {
		reply, err := c.Ask(ctx, card.ID, map[string]any{"type": "fraction", "of": fmt.Sprintf("delay > %d.4375", 10+i), "note": "wilhelmina-note"})
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, fmt.Sprint(*reply.Answer.Value), fmt.Sprintf("%d.4375", 10+i))
	}
	var batch []any
	for i := range 5 {
		batch = append(batch, above(100+i))
	}
	c.AskBatch(ctx, card.ID, batch, true)
	c.Ask(ctx, card.ID, batch[0])                                           // a replay
	c.Ask(ctx, card.ID, map[string]any{"type": "mean", "of": "wilhelmina"}) // refused
	c.Ask(ctx, "ho_wilhelmina", batch[0])                                   // not there
	c.Explain(ctx, card.ID, above(77))
	c.Budget(ctx, card.ID)
	for range c.Answers(ctx, card.ID) {
	}
	var export bytes.Buffer
	admin.Ledger(ctx, card.ID, &export)
	admin.RevokeKey(ctx, made.ID)
	c.Budget(ctx, card.ID) // unauthorized
	http.Get(p.url + "/wilhelmina")
	admin.Delete(ctx, card.ID)
	if code := p.stop(t); code != 0 { // which sends the last spans
		t.Fatalf("exit code %d\n%s", code, p.stderr)
	}

	to.mu.Lock()
	defer to.mu.Unlock()
	for name, values := range to.said {
		if !tracedAttributes[name] {
			t.Errorf("spans say %s, such as %s", name, values[0])
		}
	}
	for name := range tracedAttributes {
		if len(to.said[name]) == 0 {
			t.Errorf("no span says %s: the run shows nothing of it", name)
		}
	}
	names, requests := map[string]int{}, map[string]string{} // trace ids and what they are
	for _, s := range to.spans {
		names[s.Name]++
		id := hex.EncodeToString(s.TraceId)
		if id == forcedTrace {
			t.Error("a client's traceparent is used")
		}
		for _, id := range []string{id, hex.EncodeToString(s.SpanId)} {
			if strings.Contains(replies.replies.String(), id) {
				t.Errorf("an id of a trace is in a reply: %s", id)
			}
		}
		root := len(s.ParentSpanId) == 0
		if stage := slices.Contains(tracedSpans, s.Name); stage == root {
			t.Errorf("span %q: a root: %v", s.Name, root)
		}
		if root {
			if other := requests[id]; other != "" {
				t.Errorf("%q and %q are one trace", s.Name, other)
			}
			requests[id] = s.Name
		}
		if len(s.Events)+len(s.Links) > 0 || s.TraceState != "" || s.Status.GetMessage() != "" {
			t.Errorf("a span says more than attributes: %v", s)
		}
	}
	for _, s := range to.spans {
		if requests[hex.EncodeToString(s.TraceId)] == "" {
			t.Errorf("%q has no request", s.Name)
		}
	}
	for _, name := range append(tracedSpans, "POST /v1/holdouts/:id/queries", "POST /v1/holdouts/:id/queries/batch", "GET none", "DELETE /v1/holdouts/:id") {
		if names[name] == 0 {
			t.Errorf("no span %q among %v", name, names)
		}
	}
	if names["scan"] != 4 || names["ledger"] != names["commit"] {
		t.Errorf("4 requests asked something new: %v", names)
	}
	all := fmt.Sprint(to.spans)
	for _, text := range append(texts, "wilhelmina", "delay", "forced") {
		if strings.Contains(all, text) {
			t.Errorf("%q is in a trace", text)
		}
	}
	if len(to.auth) == 0 || to.auth[0] != "Bearer for-the-collector" {
		t.Errorf("headers for the collector: %q", to.auth)
	}
	for _, word := range []string{"traceresponse", "traceparent", "server-timing"} {
		if strings.Contains(strings.ToLower(replies.replies.String()), word) {
			t.Errorf("%s is in a reply", word)
		}
	}
}

// TestNoCollector: traces that nobody takes hold nothing up, and a server without --traces sends none.
func TestNoCollector(t *testing.T) {
	dir := t.TempDir()
	p := startServer(t, dir, "--traces", "http://127.0.0.1:9")
	if _, err := connect(t, p, dir).Holdouts(t.Context()); err != nil {
		t.Error(err)
	}
	if code := p.stop(t); code != 0 {
		t.Errorf("exit code %d\n%s", code, p.stderr)
	}
	if _, stderr, code := holdoutd(t, "serve", "--data", dir, "--traces", "collector:4318"); code != exitMisused || !strings.Contains(stderr, "is not the URL of a collector") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}
