package tracing

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/holdoutd/holdoutd/internal/await"
)

// collect starts a tracer and its collector. spans ends the tracer, and returns what it has sent.
func collect(t *testing.T) (tracer *Tracer, spans func() []*tracepb.Span) {
	t.Helper()
	var mu sync.Mutex
	var got []*tracepb.Span
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body := make([]byte, r.ContentLength)
		var sent tracepb.TracesData
		if _, err := io.ReadFull(r.Body, body); err != nil {
			t.Error(err)
		}
		if err := proto.Unmarshal(body, &sent); err != nil {
			t.Error(err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		for _, scope := range sent.ResourceSpans[0].ScopeSpans {
			got = append(got, scope.Spans...)
		}
	}))
	t.Cleanup(collector.Close)
	tracer, err := New(collector.URL, "v0", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	tracer.Allow(Method, "GET")
	tracer.Allow(Route, "/here")
	tracer.Allow(QueryType, "mean", "fraction")
	return tracer, func() []*tracepb.Span {
		tracer.Close()
		mu.Lock()
		defer mu.Unlock()
		return got
	}
}

// TestClosedLists: a word that is in no list leaves as "other", in a name, an attribute and a list, and one of another list's too.
func TestClosedLists(t *testing.T) {
	tracer, spans := collect(t)
	ctx, s := tracer.Begin(context.Background(), "SECRET", "/here/secret", "", true)
	_, child := Start(ctx, Parse)
	child.Say(QueryType, "mean", "secret", "another secret", "mean", "fraction")
	child.Say(Mechanism, "mean")
	child.Done(fmt.Errorf("a secret of %s", "rows"))
	s.Say(Problem, "secret")
	s.End()
	got := spans()
	if len(got) != 2 || got[0].Name != "parse" || got[1].Name != "other other" {
		t.Fatalf("the spans are %v", got)
	}
	if text := fmt.Sprint(got); strings.Contains(strings.ToLower(text), "secret") {
		t.Errorf("a span says more than its lists: %s", text)
	}
	var types []string
	for _, v := range got[0].Attributes[0].Value.GetArrayValue().Values {
		types = append(types, v.GetStringValue())
	}
	if !slices.Equal(types, []string{"mean", "other", "fraction"}) || got[0].Attributes[1].Value.GetStringValue() != "other" || got[0].Status.Code != tracepb.Status_STATUS_CODE_ERROR {
		t.Errorf("the span of the stage is %v", got[0])
	}
}

// TestUntimed: a request without durations is sent when it ends, all of it at the time of its end; another one as it was.
func TestUntimed(t *testing.T) {
	for _, timed := range []bool{false, true} {
		tracer, spans := collect(t)
		ctx, s := tracer.Begin(context.Background(), "GET", "/here", "", timed)
		below, scan := Start(ctx, Parse)
		_, commit := Start(below, Admit)
		commit.End()
		scan.End()
		s.End()
		got := spans()
		if len(got) != 3 {
			t.Fatalf("the spans are %v", got)
		}
		root := got[2]
		for i, one := range got {
			if same := one.StartTimeUnixNano == root.EndTimeUnixNano && one.EndTimeUnixNano == root.EndTimeUnixNano; same == timed {
				t.Errorf("timed %v: %v", timed, one)
			}
			if i < 2 && string(one.ParentSpanId) != string(got[i+1].SpanId) {
				t.Errorf("%s is not below %s", one.Name, got[i+1].Name)
			}
		}
	}
}

// TestManySpans: a request has so many spans and no more, and says how many it left out.
func TestManySpans(t *testing.T) {
	tracer, spans := collect(t)
	ctx, s := tracer.Begin(context.Background(), "GET", "/here", "", true)
	for range spansOfTrace + 7 {
		_, child := Start(ctx, Parse)
		child.Set(Queries, 1)
		child.End()
	}
	s.End()
	got := spans()
	last := got[len(got)-1] // the request
	if len(got) != spansOfTrace || last.Attributes[0].Key != string(LeftOut) || last.Attributes[0].Value.GetIntValue() != 8 {
		t.Errorf("%d spans, the last %v", len(got), last)
	}
}

// TestRowsAreReadUntimed: a request that reads rows has no durations, whatever its route, and shows that it read and recorded once, however often it did: that depends on what the rows say.
func TestRowsAreReadUntimed(t *testing.T) {
	tracer, spans := collect(t)
	ctx, s := tracer.Begin(context.Background(), "GET", "/here", "", true)
	for range 7 {
		for _, stage := range []Stage{Scan, Commit} {
			_, child := Start(ctx, stage)
			child.Done(nil)
		}
	}
	s.End()
	got := spans()
	if len(got) != 3 {
		t.Fatalf("the spans are %v", got)
	}
	for _, one := range got {
		if one.StartTimeUnixNano != one.EndTimeUnixNano || one.EndTimeUnixNano != got[2].EndTimeUnixNano {
			t.Errorf("%s has a duration", one.Name)
		}
	}
}

// TestNoTracer: without a tracer, and in a context without a request, nothing happens.
func TestNoTracer(t *testing.T) {
	var none *Tracer
	none.Allow(Route, "/here")
	ctx, s := none.Begin(context.Background(), "GET", "/here", "", true)
	_, child := Start(ctx, Scan)
	for _, span := range []*Span{s, child} {
		span.Set(Queries, 1)
		span.Say(Route, "/here")
		span.Fail()
		span.Done(nil)
		span.End()
	}
	none.Close()
	if s != nil || child != nil {
		t.Error("there is a span without a tracer")
	}
}

func TestTraceparent(t *testing.T) {
	const trace, span = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	for text, want := range map[string][2]bool{ // kept, ok
		"00-" + trace + "-" + span + "-01":                              {true, true},
		"00-" + trace + "-" + span + "-00":                              {false, true},
		"01-" + trace + "-" + span + "-03-more":                         {true, true},
		"00-" + trace + "-" + span + "-01-more":                         {},
		"ff-" + trace + "-" + span + "-01":                              {},
		"00-" + strings.ToUpper(trace) + "-" + span + "-01":             {},
		"00-" + strings.Repeat("0", 32) + "-" + span + "-01":            {},
		"00-" + trace + "-" + strings.Repeat("0", 16) + "-01":           {},
		"00-" + trace[1:] + "-" + span + "-01":                          {},
		"00-" + trace[:31] + "x-" + span + "-01":                        {},
		"00-" + trace + "-" + span + "-1":                               {},
		"00-" + trace + "-" + span:                                      {},
		"":                                                              {},
		"00-" + trace + "-" + span + "-01" + strings.Repeat("-a", 1000): {},
	} {
		id, parent, kept, ok := parseParent(text)
		if ok != want[1] || ok && (kept != want[0] || hex.EncodeToString(id[:]) != trace || hex.EncodeToString(parent[:]) != span) {
			t.Errorf("%.80q: %x %x %v %v", text, id, parent, kept, ok)
		}
	}
}

// TestSlowCollector: spans that a collector does not take are dropped and counted. No request waits, and memory has a bound.
func TestSlowCollector(t *testing.T) {
	release, asked := make(chan struct{}), make(chan struct{}, 1)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case asked <- struct{}{}:
		default:
		}
		<-release
	}))
	defer collector.Close()
	tracer, err := New(collector.URL, "v0", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	one := func() {
		_, s := tracer.Begin(context.Background(), "GET", "/here", "", true)
		s.End()
	}
	for range batchSpans {
		one()
	}
	<-asked // a message is under way, and does not end
	for range 2 * maxWaiting {
		one()
	}
	if n := tracer.exporter.dropped.Load(); n < maxWaiting-batchSpans || len(tracer.exporter.spans) > maxWaiting {
		t.Errorf("%d spans were dropped, %d wait", n, len(tracer.exporter.spans))
	}
	close(release)
	await.Until(t, "what waits is sent", func() bool { return len(tracer.exporter.spans) < maxWaiting })
	tracer.Close()
}

// TestTheCollectorsHeadersStay: headers for a collector, which may be a secret, go to no other address, in clear to no other machine, and nothing is sent where a collector sends it on.
func TestTheCollectorsHeadersStay(t *testing.T) {
	t.Setenv(HeadersVariable, "x-api-key=secret")
	var elsewhere atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	t.Cleanup(other.Close)
	collector := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	t.Cleanup(collector.Close)
	tracer, err := New(collector.URL, "v0", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	_, s := tracer.Begin(context.Background(), "GET", "/here", "", true)
	s.End()
	tracer.Close()
	if elsewhere.Load() != 0 {
		t.Error("spans and headers followed a redirect")
	}
	if _, err := New("http://collector.example:4318", "v0", slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), HeadersVariable) {
		t.Errorf("headers over http to another machine: %v", err)
	}
	if tracer, err := New("https://collector.example:4318", "v0", slog.New(slog.DiscardHandler)); err != nil {
		t.Error(err)
	} else {
		tracer.Close()
	}
}
