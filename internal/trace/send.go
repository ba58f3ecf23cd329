package trace

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	res "go.opentelemetry.io/proto/otlp/resource/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// sender sends spans as OTLP over HTTP. It is the module otlptracehttp in small: that one brings gRPC along, which is larger than all else of
// this program's network code, and sends whatever a span has. A TracesData is, on the wire, what a collector takes as its request.
type sender struct {
	url     string
	headers map[string]string
	http    *http.Client
	log     *slog.Logger
}

const (
	tracesPath = "/v1/traces"
	firstRetry = 500 * time.Millisecond
	mostReply  = 64 << 10 // bytes of a collector's reply that are read
)

func newSender(o Options) (*sender, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("trace: %q is not the URL of a collector, such as http://127.0.0.1:4318", o.URL)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = tracesPath
	}
	log := o.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	// No redirect is followed: the headers are for this collector.
	return &sender{url: u.String(), headers: o.Headers, log: log,
		http: &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}, nil
}

// ExportSpans sends spans, and again after a while where the collector asks for that, until ctx ends. What could not be sent is dropped and
// logged.
func (s *sender) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	if len(spans) == 0 {
		return nil
	}
	body, err := encode(spans)
	if err != nil {
		return err
	}
	for pause := firstRetry; ; pause *= 2 {
		again, err := s.post(ctx, body)
		if err == nil {
			return nil
		}
		if again < 0 || ctx.Err() != nil {
			s.log.Warn("traces could not be sent, and are dropped", "spans", len(spans), "error", err)
			return nil
		}
		select {
		case <-time.After(max(again, pause)):
		case <-ctx.Done():
		}
	}
}

// post sends one body. again is how long to wait before it is sent again, and negative if that would not help.
func (s *sender) post(ctx context.Context, body []byte) (again time.Duration, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return -1, err
	}
	for name, value := range s.headers {
		request.Header.Set(name, value)
	}
	request.Header.Set("Content-Type", "application/x-protobuf")
	request.Header.Set("Content-Encoding", "gzip")
	reply, err := s.http.Do(request)
	if err != nil {
		return 0, err
	}
	defer reply.Body.Close()
	io.Copy(io.Discard, io.LimitReader(reply.Body, mostReply)) // so that the connection can be used again
	if reply.StatusCode < 300 {
		return 0, nil
	}
	err = fmt.Errorf("trace: the collector replied %s", reply.Status)
	switch reply.StatusCode { // those that the specification of OTLP/HTTP names
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		seconds, _ := strconv.Atoi(reply.Header.Get("Retry-After")) // 0 where there is none
		return time.Duration(max(0, seconds)) * time.Second, err
	}
	return -1, err
}

// Shutdown has nothing to do: nothing is kept.
func (s *sender) Shutdown(context.Context) error { return nil }

// encode writes spans of one process.
func encode(spans []sdk.ReadOnlySpan) ([]byte, error) {
	list := make([]*otlp.Span, len(spans))
	for i, span := range spans {
		id, trace, parent := span.SpanContext().SpanID(), span.SpanContext().TraceID(), span.Parent()
		s := &otlp.Span{
			TraceId: trace[:], SpanId: id[:], Name: span.Name(), Kind: otlp.Span_SpanKind(span.SpanKind()),
			StartTimeUnixNano: uint64(span.StartTime().UnixNano()), EndTimeUnixNano: uint64(span.EndTime().UnixNano()),
			Attributes: allowed(span.Attributes()), Status: &otlp.Status{},
		}
		if parent.HasSpanID() {
			id := parent.SpanID()
			s.ParentSpanId = id[:]
		}
		if span.Status().Code == codes.Error {
			s.Status.Code = otlp.Status_STATUS_CODE_ERROR
		}
		list[i] = s
	}
	raw, err := proto.Marshal(&otlp.TracesData{ResourceSpans: []*otlp.ResourceSpans{{
		Resource:   &res.Resource{Attributes: allowed(spans[0].Resource().Attributes())},
		ScopeSpans: []*otlp.ScopeSpans{{Scope: &common.InstrumentationScope{Name: "holdoutd"}, Spans: list}},
	}}})
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(raw); err != nil {
		return nil, err
	}
	err = z.Close()
	return b.Bytes(), err
}

// allowed keeps the attributes that may be said. They are texts and whole numbers.
func allowed(attributes []attribute.KeyValue) (kept []*common.KeyValue) {
	for _, a := range attributes {
		if !slices.Contains(Attributes, string(a.Key)) {
			continue
		}
		value := &common.AnyValue{}
		switch a.Value.Type() {
		case attribute.INT64:
			value.Value = &common.AnyValue_IntValue{IntValue: a.Value.AsInt64()}
		case attribute.STRING:
			value.Value = &common.AnyValue_StringValue{StringValue: a.Value.AsString()}
		default:
			continue
		}
		kept = append(kept, &common.KeyValue{Key: string(a.Key), Value: value})
	}
	return kept
}
