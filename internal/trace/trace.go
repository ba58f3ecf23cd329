// Package trace sends OpenTelemetry traces of requests to the operator's collector: what a request was (route, status), and its stages (turn,
// admit, scan, commit, ledger) with their times.
//
// Traces are for the operator alone. The time that a question takes can depend on rows (docs/SECURITY.md), so that whoever reads traces is
// trusted with the rows. No id and no time of a trace is in a reply, and what clients send (traceparent, tracestate, baggage) is not read: which
// requests are traced is the server's choice, and a client cannot learn or force it.
//
// A span says what the public shape and the paid-for facts say: routes, statuses, ids of keys and holdouts, numbers of questions. It says no
// text of a query, no value, no name, and no reason of a void. [Attributes] lists all that may be said; anything else is left out when a span is
// sent, so that a mistake elsewhere does not leave the process.
package trace

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Attributes are what spans may say, by their OpenTelemetry names where there are any.
var Attributes = []string{
	method, route, status, problem, holdoutID, keyID, questions,
	"service.name", "service.version", "service.instance.id", // of the process
}

const (
	method    = "http.request.method"
	route     = "http.route" // the pattern, not the path
	status    = "http.response.status_code"
	problem   = "holdoutd.problem"   // the problem's code
	holdoutID = "holdoutd.holdout"   // ho_…
	keyID     = "holdoutd.key"       // key_…, never the key or its name
	questions = "holdoutd.questions" // how many queries a stage works on
)

// Limits of what waits to be sent. Beyond them spans are dropped: tracing never holds a request up.
const (
	queued     = 8192             // spans; some 5 MB
	sentAtOnce = 512              // spans in a request to the collector
	sendEvery  = 2 * time.Second  // at the latest
	sendTime   = 10 * time.Second // of one request to the collector, with its retries
	flushTime  = 3 * time.Second  // at the end
)

// Options say where traces go.
type Options struct {
	URL     string            // of the collector's OTLP/HTTP endpoint, such as http://127.0.0.1:4318; /v1/traces is added where it has no path
	Headers map[string]string // sent with each request, such as an authorization
	Share   float64           // of the requests that are traced, in (0,1]
	Version string            // of the program
	Logger  *slog.Logger
}

// Tracer makes the spans of requests. The zero value and nil make none.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
}

// New returns a tracer that sends in the background. [Tracer.Close] sends what is left.
func New(o Options) (*Tracer, error) {
	if !(o.Share > 0 && o.Share <= 1) {
		return nil, fmt.Errorf("trace: the share of traced requests is %v; it must be above 0 and at most 1", o.Share)
	}
	out, err := newSender(o)
	if err != nil {
		return nil, err
	}
	// Not resource.New: it would add what the environment says.
	process := resource.NewSchemaless(attribute.String("service.name", "holdoutd"), attribute.String("service.version", o.Version),
		attribute.String("service.instance.id", rand.Text()))
	t := &Tracer{provider: sdk.NewTracerProvider(
		sdk.WithResource(process),
		sdk.WithSampler(sdk.TraceIDRatioBased(o.Share)),
		sdk.WithRawSpanLimits(sdk.SpanLimits{AttributeValueLengthLimit: 128, AttributeCountLimit: 16, EventCountLimit: 0, LinkCountLimit: 0, AttributePerEventCountLimit: 0, AttributePerLinkCountLimit: 0}),
		sdk.WithBatcher(out, sdk.WithMaxQueueSize(queued), sdk.WithMaxExportBatchSize(sentAtOnce), sdk.WithBatchTimeout(sendEvery), sdk.WithExportTimeout(sendTime)),
	)}
	t.tracer = t.provider.Tracer("")
	return t, nil
}

// Close sends what waits, for some seconds at most.
func (t *Tracer) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), flushTime)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("trace: %w", err)
	}
	return nil
}

// A Request is what the span of a request says at its end.
type Request struct {
	Method, Route string // of closed sets: the route is a pattern
	Status        int
	Problem       string // the problem's code, or ""
	Holdout       string // id, where there is such a holdout
	Key           string // id, or ""
}

// Request begins the span of a request, as the root of a trace of its own, whatever ctx and the client say. end ends it.
func (t *Tracer) Request(ctx context.Context) (within context.Context, end func(Request)) {
	within, span := t.tracer.Start(ctx, "request", trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindServer))
	return within, func(r Request) {
		if span.IsRecording() {
			span.SetName(r.Method + " " + r.Route)
			span.SetAttributes(attribute.String(method, r.Method), attribute.String(route, r.Route), attribute.Int(status, r.Status))
			for name, value := range map[string]string{problem: r.Problem, holdoutID: r.Holdout, keyID: r.Key} {
				if value != "" {
					span.SetAttributes(attribute.String(name, value))
				}
			}
			if r.Status >= http.StatusInternalServerError {
				span.SetStatus(codes.Error, "")
			}
		}
		span.End()
	}
}

// Stage begins the span of a stage of a question's way, within that of its request. Outside of a request that is traced it makes none.
func (t *Tracer) Stage(ctx context.Context, stage, holdout string, n int) (within context.Context, end func()) {
	if !trace.SpanFromContext(ctx).IsRecording() {
		return ctx, func() {}
	}
	within, span := t.tracer.Start(ctx, stage, trace.WithAttributes(attribute.String(holdoutID, holdout)))
	if n > 0 {
		span.SetAttributes(attribute.Int(questions, n))
	}
	return within, func() { span.End() }
}
