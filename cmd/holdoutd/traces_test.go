package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/experiments/data"
	"github.com/holdoutd/holdoutd/internal/await"
)

// collector is an OpenTelemetry collector: it reads messages with OpenTelemetry's own package. The messages of collector/trace/v1 are those of TracesData, byte for byte.
type collector struct {
	*httptest.Server
	mu      sync.Mutex
	refuse  bool
	bodies  [][]byte
	headers []http.Header
	spans   []*tracepb.Span
	said    []*commonpb.KeyValue // of resources
}

func newCollector(t *testing.T) *collector {
	c := &collector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.refuse {
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		var sent tracepb.TracesData
		if err == nil {
			err = proto.UnmarshalOptions{DiscardUnknown: false}.Unmarshal(body, &sent)
		}
		if err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
			t.Errorf("%s %s %s: %v", r.Method, r.URL, r.Header, err)
		}
		c.bodies, c.headers = append(c.bodies, body), append(c.headers, r.Header)
		for _, resource := range sent.ResourceSpans {
			c.said = append(c.said, resource.Resource.Attributes...)
			for _, scope := range resource.ScopeSpans {
				c.spans = append(c.spans, scope.Spans...)
			}
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// words of a value: a text, or a list of texts. Whatever else it is is named.
func wordsOf(v *commonpb.AnyValue) (all []string, n *int64) {
	switch v := v.Value.(type) {
	case *commonpb.AnyValue_StringValue:
		return []string{v.StringValue}, nil
	case *commonpb.AnyValue_IntValue:
		return nil, &v.IntValue
	case *commonpb.AnyValue_ArrayValue:
		for _, one := range v.ArrayValue.Values {
			more, _ := wordsOf(one)
			all = append(all, more...)
		}
		return all, nil
	}
	return []string{fmt.Sprintf("a %T", v.Value)}, nil
}

func attribute(s *tracepb.Span, name string) string {
	for _, a := range s.Attributes {
		if a.Key == name {
			all, n := wordsOf(a.Value)
			if n != nil {
				return strconv.FormatInt(*n, 10)
			}
			return strings.Join(all, " ")
		}
	}
	return ""
}

// TestTraces follows a whole session in traces: an upload, questions, batches, replays, explanations, an agent, refusals, a download, a deletion. The collector reads all spans; each has attributes of the list alone, with the
// counts that are expected; none has an event, a link or a message; no byte of what is sent is a value, a name, a text of a query, a key or an id of the session; and spans of requests that ask have no duration.
func TestTraces(t *testing.T) {
	ctx, dir, c := t.Context(), t.TempDir(), newCollector(t)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=one%20two")
	p := startServer(t, dir, "--otlp-endpoint", c.URL)
	key := strings.TrimSpace(readFile(t, filepath.Join(dir, "admin.key")))
	h := connect(t, p, dir)
	secrets := []string{key, "flights-of-june", "delay", "origin", "carrier-remark", "no_such_column"}

	card, err := h.CreateHoldout(ctx, strings.NewReader(data.Flights), client.Settings{Name: "flights-of-june", Mechanism: "guess_and_check", Questions: 200})
	if err != nil {
		t.Fatal(err)
	}
	secrets = append(secrets, card.ID, strings.TrimPrefix(card.ID, "ho_"))
	tell := func(answer client.Answer) {
		for _, x := range []float64{*answer.Value, *answer.Interval.Low, *answer.Interval.High} {
			secrets = append(secrets, strconv.FormatFloat(x, 'g', -1, 64))
		}
		secrets = append(secrets, answer.Ledger.Head, answer.Query, answer.ID)
	}
	mean := map[string]any{"type": "mean", "of": "delay", "range": []float64{-60, 180}, "note": "carrier-remark"}
	for _, q := range []any{above(15), mean, map[string]any{"type": "fraction", "of": `origin == "SFO"`, "guess": 0.9}, above(15)} {
		reply, err := h.Ask(ctx, card.ID, q)
		if err != nil {
			t.Fatal(err)
		}
		tell(reply.Answer)
	}
	batch, err := h.AskBatch(ctx, card.ID, []any{above(15), above(16), above(17)}, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range batch.Answers {
		tell(*item.Answer)
	}
	if _, err := h.Explain(ctx, card.ID, above(18)); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Ask(ctx, card.ID, map[string]any{"type": "fraction", "of": "no_such_column > 3.25"}); err == nil {
		t.Error("a question about no column was answered")
	}
	if _, err := h.Ask(ctx, card.ID, map[string]any{"type": "no_such_column"}); err == nil {
		t.Error("a question of no type was answered")
	}
	if _, err := look(ctx, h, card.ID); err != nil {
		t.Fatal(err)
	}
	post := func(path, body string, header http.Header) int {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = header
		reply, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer reply.Body.Close()
		io.Copy(io.Discard, reply.Body)
		return reply.StatusCode
	}
	agent := http.Header{"Authorization": {"Bearer " + key}, "Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	if status := post("/mcp", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask","arguments":{"holdout":%q,"query":{"type":"fraction","of":"delay > 19"}}}}`, card.ID), agent); status != 200 {
		t.Errorf("the agent's question: %d", status)
	}
	const above, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	traced := http.Header{"Authorization": {"Bearer " + key}, "Content-Type": {"application/json"}, "Traceparent": {"00-" + above + "-" + parent + "-01"}}
	post("/v1/holdouts/"+card.ID+"/queries", `{"type":"fraction","of":"delay > 20"}`, traced)
	traced.Set("Traceparent", "00-"+strings.Repeat("1", 32)+"-"+parent+"-00") // it is not kept
	post("/v1/holdouts/"+card.ID+"/queries", `{"type":"fraction","of":"delay > 20"}`, traced)
	post("/nothing/"+card.ID+"?key="+key, "", http.Header{"Authorization": {"Bearer " + key + "x"}})
	if err := h.Delete(ctx, card.ID); err != nil {
		t.Fatal(err)
	}
	if code := p.stop(t); code != 0 { // it sends what waits
		t.Fatalf("the server ended with %d\n%s", code, p.stderr)
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	for _, body := range c.bodies {
		for _, secret := range secrets {
			if len(secret) > 3 && bytes.Contains(body, []byte(secret)) {
				t.Errorf("%q of the session is in what was sent", secret)
			}
		}
	}
	for _, header := range c.headers {
		if header.Get("X-Tenant") != "one two" {
			t.Errorf("the headers are %v", header)
		}
	}
	if len(c.said) == 0 || c.said[0].Key != "service.name" || c.said[0].Value.GetStringValue() != "holdoutd" {
		t.Errorf("the resource is %v", c.said)
	}
	texts := []string{"http.request.method", "http.route", "holdoutd.problem", "holdoutd.query.types", "holdoutd.mechanism"}
	most := map[string]int64{"http.response.status_code": 599, "holdoutd.queries": 3, "holdoutd.questions": 3, "holdoutd.replays": 3, "holdoutd.entries": 3}
	vocabulary := []string{"GET", "POST", "DELETE", "none", "fraction", "mean", "guess_and_check", "invalid", "not-found", "/v1/holdouts", "/v1/holdouts/:id", "/v1/holdouts/:id/training",
		"/v1/holdouts/:id/queries", "/v1/holdouts/:id/queries/batch", "/v1/holdouts/:id/queries/explain", "/mcp"}
	byID, all := map[string]*tracepb.Span{}, map[string]int{}
	for _, s := range c.spans {
		byID[string(s.SpanId)] = s
		if len(s.TraceId) != 16 || len(s.SpanId) != 8 || len(s.Events)+len(s.Links) > 0 || s.GetStatus().GetMessage() != "" || s.TraceState != "" || s.DroppedAttributesCount > 0 || len(s.ProtoReflect().GetUnknown()) > 0 {
			t.Errorf("a span has more than it may: %v", s)
		}
		for _, a := range s.Attributes {
			words, n := wordsOf(a.Value)
			if n != nil && (*n < 0 || *n > most[a.Key]) {
				t.Errorf("%s: %s is %d", s.Name, a.Key, *n)
			}
			for _, word := range words {
				if n == nil && (!slices.Contains(texts, a.Key) || !slices.Contains(vocabulary, word)) {
					t.Errorf("%s: %s is %q", s.Name, a.Key, word)
				}
			}
		}
	}
	line := func(s *tracepb.Span) string {
		text := s.Name
		for _, name := range []string{"http.response.status_code", "holdoutd.problem", "holdoutd.mechanism", "holdoutd.query.types", "holdoutd.queries", "holdoutd.questions", "holdoutd.replays", "holdoutd.entries"} {
			if value := attribute(s, name); value != "" {
				text += fmt.Sprintf(" %s=%s", name[strings.LastIndex(name, ".")+1:], value)
			}
		}
		if s.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR {
			text += " failed"
		}
		return text
	}
	for _, s := range c.spans {
		text := line(s)
		root := s
		for root.Kind != tracepb.Span_SPAN_KIND_SERVER {
			above := byID[string(root.ParentSpanId)]
			if above == nil || !bytes.Equal(above.TraceId, s.TraceId) {
				t.Fatalf("the span %s has no request", s.Name)
			}
			root = above
		}
		if s != root {
			text = root.Name + " > " + text
		}
		all[text]++
		asks := slices.Contains([]string{"/v1/holdouts/:id/queries", "/v1/holdouts/:id/queries/batch", "/mcp"}, attribute(root, "http.route"))
		switch {
		case s.StartTimeUnixNano == 0 || s.EndTimeUnixNano < s.StartTimeUnixNano:
			t.Errorf("%s: from %d to %d", text, s.StartTimeUnixNano, s.EndTimeUnixNano)
		case asks && (s.StartTimeUnixNano != root.EndTimeUnixNano || s.EndTimeUnixNano != root.EndTimeUnixNano || root.StartTimeUnixNano != root.EndTimeUnixNano):
			t.Errorf("%s: a request that asks has times: %v of %v", text, s, root)
		case !asks && s == root && s.EndTimeUnixNano == s.StartTimeUnixNano:
			t.Errorf("%s: it has no duration", text)
		}
		if hex.EncodeToString(s.TraceId) == strings.Repeat("1", 32) {
			t.Error("a trace that is not kept was sent")
		}
	}
	const ask, many, explain, mcp = "POST /v1/holdouts/:id/queries", "POST /v1/holdouts/:id/queries/batch", "POST /v1/holdouts/:id/queries/explain", "POST /mcp"
	want := map[string]int{
		"POST /v1/holdouts status_code=201": 1,
		ask + " status_code=200":            5, // and one that was not kept
		ask + " > parse":                    6,
		ask + " > admit mechanism=guess_and_check types=fraction queries=1 questions=1 replays=0": 3,
		ask + " > admit mechanism=guess_and_check types=mean queries=1 questions=1 replays=0":     1,
		ask + " > admit mechanism=guess_and_check types=fraction queries=1 questions=0 replays=1": 1,
		ask + " > admit mechanism=guess_and_check types=fraction queries=1 failed":                1,
		ask + " > scan":                          4,
		ask + " > commit":                        4,
		ask + " status_code=422 problem=invalid": 2,
		ask + " > parse failed":                  1,
		many + " status_code=200":                1,
		many + " > parse":                        1,
		many + " > admit mechanism=guess_and_check types=fraction queries=3 questions=2 replays=1": 1,
		explain + " status_code=200": 1,
		explain + " > parse":         1,
		mcp + " status_code=200":     1,
		mcp + " > parse":             1,
		mcp + " > admit mechanism=guess_and_check types=fraction queries=1 questions=1 replays=0": 1,
		mcp + " > scan":   1,
		mcp + " > commit": 1,
		"POST none status_code=404 problem=not-found":   1,
		"DELETE /v1/holdouts/:id status_code=204":       1,
		"GET /v1/holdouts/:id/training status_code=200": 1,
		"GET /v1/holdouts/:id status_code=200":          1,
	}
	for text, n := range want {
		if all[text] != n {
			t.Errorf("there are %d spans %q, want %d", all[text], text, n)
		}
	}
	for text, n := range all {
		if want[text] == 0 && !strings.HasPrefix(text, many+" > scan") && !strings.HasPrefix(text, many+" > commit") {
			t.Errorf("there are %d spans %q", n, text)
		}
	}
	found := false
	for _, s := range c.spans {
		if hex.EncodeToString(s.TraceId) == above && s.Kind == tracepb.Span_SPAN_KIND_SERVER {
			found = hex.EncodeToString(s.ParentSpanId) == parent
		}
	}
	if !found {
		t.Error("the request with a traceparent is not in its trace")
	}
}

// TestTracesWithoutCollector: a collector that refuses, or is not there, costs no request anything, and the log says it.
func TestTracesWithoutCollector(t *testing.T) {
	c := newCollector(t)
	c.refuse = true
	dir := t.TempDir()
	p := startServer(t, dir, "--otlp-endpoint", c.URL)
	h := connect(t, p, dir)
	if _, err := h.Holdouts(context.Background()); err != nil {
		t.Error(err)
	}
	await.Until(t, "the log's complaint", func() bool { return strings.Contains(p.stderr.String(), "spans were dropped") })
	c.Close()
	if _, err := h.Holdouts(context.Background()); err != nil {
		t.Error(err)
	}
	if code := p.stop(t); code != 0 {
		t.Errorf("the server ended with %d\n%s", code, p.stderr)
	}
	for _, address := range []string{"127.0.0.1:4318", "ftp://x", "http://", "http://user:secret@x", "http://x/?key=1"} {
		if _, errs, code := holdoutd(t, "serve", "--any-filesystem", "--data", t.TempDir(), "--otlp-endpoint", address); code != 2 || !strings.Contains(errs, "is not the address of a collector") {
			t.Errorf("--otlp-endpoint %s: %d %s", address, code, errs)
		}
	}
}
