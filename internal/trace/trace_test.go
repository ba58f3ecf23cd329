package trace

import (
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// collect starts a collector that refuses the first requests with a status, and hands on the spans of the others.
func collect(t testing.TB, refuse int, status int) (url string, spans func() []*otlp.Span) {
	t.Helper()
	var calls atomic.Int64
	got := make(chan []*otlp.Span, 1000)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		body, _ := io.ReadAll(z)
		if int(calls.Add(1)) <= refuse {
			w.WriteHeader(status)
			return
		}
		var d otlp.TracesData
		if err := proto.Unmarshal(body, &d); err != nil {
			t.Error(err)
		}
		got <- d.ResourceSpans[0].ScopeSpans[0].Spans
	}))
	t.Cleanup(s.Close)
	return s.URL, func() (all []*otlp.Span) {
		for {
			select {
			case spans := <-got:
				all = append(all, spans...)
			default:
				return all
			}
		}
	}
}

func open(t testing.TB, url string, share float64) *Tracer {
	t.Helper()
	tracer, err := New(Options{URL: url, Share: share})
	if err != nil {
		t.Fatal(err)
	}
	return tracer
}

// question makes the spans of a question.
func question(tracer *Tracer) {
	ctx, end := tracer.Request(context.Background())
	for _, stage := range []string{"admit", "scan", "commit"} {
		_, done := tracer.Stage(ctx, stage, "ho_1", 1)
		done()
	}
	end(Request{Method: "POST", Route: "/v1/holdouts/:id/queries", Status: 200, Holdout: "ho_1", Key: "key_1"})
}

// TestOnlyListedAttributesLeave: what is set on a span by mistake stays here, whatever its type.
func TestOnlyListedAttributesLeave(t *testing.T) {
	url, spans := collect(t, 0, 0)
	tracer := open(t, url, 1)
	ctx, end := tracer.Request(context.Background())
	trace.SpanFromContext(ctx).SetAttributes(attribute.String("query", "delay > 15"), attribute.Float64(questions, 0.25))
	trace.SpanFromContext(ctx).AddEvent("delay > 15")
	end(Request{Method: "POST", Route: "/", Status: 500})
	if err := tracer.Close(); err != nil {
		t.Fatal(err)
	}
	sent := spans()
	if len(sent) != 1 || len(sent[0].Events) != 0 || sent[0].Status.Code != otlp.Status_STATUS_CODE_ERROR {
		t.Fatalf("%v", sent)
	}
	for _, a := range sent[0].Attributes {
		if a.Key == "query" || a.Key == questions {
			t.Errorf("%v left", a)
		}
	}
}

// TestShare: a share of the requests is traced, with all their stages, and no stage without its request. The chance that it fails is below
// 1e-9: 2,000 draws, a tenth, and 12 standard deviations.
func TestShare(t *testing.T) {
	url, spans := collect(t, 0, 0)
	tracer := open(t, url, 0.1)
	for range 2000 {
		question(tracer)
	}
	if err := tracer.Close(); err != nil {
		t.Fatal(err)
	}
	stages := map[string]int{}
	for _, s := range spans() {
		stages[s.Name]++
	}
	n := stages["scan"]
	if n < 40 || n > 360 || stages["admit"] != n || stages["POST /v1/holdouts/:id/queries"] != n {
		t.Errorf("%v of 2000 at a share of 0.1", stages)
	}
	if _, err := New(Options{URL: url, Share: 0}); err == nil {
		t.Error("a share of 0 is taken")
	}
}

// TestCollectorIsBusy: what a collector asks to send again is sent again, and what it refuses is dropped.
func TestCollectorIsBusy(t *testing.T) {
	for status, want := range map[int]int{http.StatusServiceUnavailable: 4, http.StatusBadRequest: 0} {
		url, spans := collect(t, 1, status)
		tracer := open(t, url, 1)
		question(tracer)
		if err := tracer.Close(); err != nil {
			t.Fatal(err)
		}
		if got := len(spans()); got != want {
			t.Errorf("after a reply with %d: %d spans, not %d", status, got, want)
		}
	}
}

// BenchmarkQuestion is the cost of the spans of one question: of all, of one in a hundred, and of none, as a server without a tracer has it.
func BenchmarkQuestion(b *testing.B) {
	for _, share := range []float64{1, 0.01} {
		b.Run(map[float64]string{1: "all", 0.01: "hundredth"}[share], func(b *testing.B) {
			url, _ := collect(b, 0, 0)
			tracer := open(b, url, share)
			defer tracer.Close()
			for b.Loop() {
				question(tracer)
			}
		})
	}
}
