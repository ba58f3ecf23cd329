package tracing

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// Limits of what is sent, and how.
const (
	maxWaiting = 4096             // spans: 2 MB; for more, a collector is too slow, and they are dropped
	batchSpans = 512              // of one message, some 100 kB
	sendEvery  = 2 * time.Second  // what waits
	sendTime   = 10 * time.Second // for one message, as OTLP's default
	closeTime  = 5 * time.Second  // for what is left when the server ends
	complain   = time.Minute      // that messages are not taken, at most so often
)

// HeadersVariable is the environment variable with headers for the collector, as name=value,name=value with escapes as in URLs: it may have a secret, which a command line must not.
const HeadersVariable = "OTEL_EXPORTER_OTLP_HEADERS"

// exporter sends spans to a collector.
type exporter struct {
	url      string
	headers  http.Header
	client   http.Client
	resource []byte
	log      *slog.Logger

	spans     chan *Span
	dropped   atomic.Int64
	closing   chan struct{}
	sending   context.Context // of messages; it ends when the tracer is closed, which waits for closeTime and not for a collector that does not reply
	closeOnce sync.Once
	stop      context.CancelFunc // of sending
	ended     chan struct{}

	complained time.Time
}

// New makes a tracer that sends spans to the collector at an endpoint, such as http://127.0.0.1:4318: OTLP over HTTP, in binary form, at its path /v1/traces. Close ends it.
func New(endpoint, version string, log *slog.Logger) (*Tracer, error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, fmt.Errorf("%q is not the address of a collector, such as http://127.0.0.1:4318", endpoint)
	}
	e := &exporter{url: u.JoinPath("v1", "traces").String(), log: log, headers: http.Header{"Content-Type": {"application/x-protobuf"}},
		spans: make(chan *Span, maxWaiting), closing: make(chan struct{}), ended: make(chan struct{})}
	e.sending, e.stop = context.WithCancel(context.Background())
	e.client.Timeout = sendTime
	e.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // the headers are for this collector alone
	for pair := range strings.SplitSeq(os.Getenv(HeadersVariable), ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		if value, err = url.PathUnescape(strings.TrimSpace(value)); !ok || err != nil {
			return nil, fmt.Errorf("%s is not name=value,name=value", HeadersVariable) // not its contents
		}
		e.headers.Set(strings.TrimSpace(name), value)
	}
	if loopback := u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback(); len(e.headers) > 1 && u.Scheme == "http" && !loopback {
		return nil, fmt.Errorf("%s may have a secret, which would leave this machine in clear: give an https address", HeadersVariable)
	}
	e.resource = message(nil, 1, text(nil, "service.name", "holdoutd"))
	e.resource = message(e.resource, 1, text(nil, "service.version", version))
	go e.run()
	return &Tracer{exporter: e, words: map[Word]map[string]bool{}}, nil
}

// Close sends what waits, for at most closeTime, and ends the tracer. Spans that end later are dropped.
func (t *Tracer) Close() {
	if t == nil {
		return
	}
	t.exporter.closeOnce.Do(func() { close(t.exporter.closing); t.exporter.stop() })
	<-t.exporter.ended
}

// take keeps a span that has ended until it is sent. No request waits for it.
func (e *exporter) take(s *Span) {
	select {
	case e.spans <- s:
	default:
		e.dropped.Add(1)
	}
}

func (e *exporter) run() {
	defer close(e.ended)
	tick := time.NewTicker(sendEvery)
	defer tick.Stop()
	var batch []*Span
	for {
		select {
		case s := <-e.spans:
			if batch = append(batch, s); len(batch) < batchSpans {
				continue
			}
		case <-tick.C:
		case <-e.closing:
			e.finish(batch)
			return
		}
		e.send(e.sending, batch)
		batch = nil
	}
}

// finish sends what is left.
func (e *exporter) finish(batch []*Span) {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	for {
		select {
		case s := <-e.spans:
			if batch = append(batch, s); len(batch) == batchSpans {
				e.send(ctx, batch)
				batch = nil
			}
		default:
			e.send(ctx, batch)
			return
		}
	}
}

// send sends a batch once. What is not taken is dropped: a trace is worth no more than that, and spans must not pile up.
func (e *exporter) send(ctx context.Context, batch []*Span) {
	if len(batch) == 0 {
		return
	}
	err := e.post(ctx, e.encode(batch))
	if err != nil {
		e.dropped.Add(int64(len(batch)))
	}
	if n := e.dropped.Load(); n > 0 && time.Since(e.complained) > complain {
		e.dropped.Add(-n)
		e.complained = time.Now()
		e.log.Warn("spans were dropped: the collector did not take them in time", "spans", n, "error", err)
	}
}

func (e *exporter) post(ctx context.Context, body []byte) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header = e.headers
	reply, err := e.client.Do(r)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	if _, err := io.Copy(io.Discard, io.LimitReader(reply.Body, 1<<20)); err != nil {
		return err
	}
	if reply.StatusCode != http.StatusOK {
		return fmt.Errorf("the collector replied %s", reply.Status)
	}
	return nil
}

// encode writes spans as an ExportTraceServiceRequest (opentelemetry-proto 1.x, collector/trace/v1). The messages are few and their numbers are frozen: the library for them imports gRPC.
func (e *exporter) encode(batch []*Span) []byte {
	scope := message(nil, 1, bytesField(nil, 1, "holdoutd"))
	for _, s := range batch {
		scope = message(scope, 2, s.encode())
	}
	return message(nil, 1, message(message(nil, 1, e.resource), 2, scope))
}

// Values of the enumerations SpanKind and StatusCode.
const (
	kindInternal = 1
	kindServer   = 2
	statusError  = 2
)

func (s *Span) encode() (b []byte) {
	kind := uint64(kindInternal)
	if s.server {
		kind = kindServer
	}
	b = bytesField(b, 1, s.trace.id[:])
	b = bytesField(b, 2, s.id[:])
	if s.parent != [8]byte{} {
		b = bytesField(b, 4, s.parent[:])
	}
	b = bytesField(b, 5, s.name)
	b = protowire.AppendVarint(protowire.AppendTag(b, 6, protowire.VarintType), kind)
	b = protowire.AppendFixed64(protowire.AppendTag(b, 7, protowire.Fixed64Type), uint64(s.begin.UnixNano()))
	b = protowire.AppendFixed64(protowire.AppendTag(b, 8, protowire.Fixed64Type), uint64(s.end.UnixNano()))
	for _, c := range s.counts {
		n := protowire.AppendVarint(protowire.AppendTag(nil, 3, protowire.VarintType), uint64(c.n))
		b = message(b, 9, message(bytesField(nil, 1, string(c.name)), 2, n))
	}
	for _, w := range s.words {
		if w.name != QueryType {
			b = message(b, 9, text(nil, string(w.name), w.all[0]))
			continue
		}
		var list []byte
		for _, word := range w.all {
			list = message(list, 1, bytesField(nil, 1, word))
		}
		b = message(b, 9, message(bytesField(nil, 1, string(w.name)), 2, message(nil, 5, list)))
	}
	if s.failed {
		b = message(b, 15, protowire.AppendVarint(protowire.AppendTag(nil, 3, protowire.VarintType), statusError))
	}
	return b
}

// text is a KeyValue with a text.
func text(b []byte, key, value string) []byte {
	return message(bytesField(b, 1, key), 2, bytesField(nil, 1, value))
}

func message(b []byte, number protowire.Number, m []byte) []byte { return bytesField(b, number, m) }

func bytesField[T string | []byte](b []byte, number protowire.Number, value T) []byte {
	return append(protowire.AppendVarint(protowire.AppendTag(b, number, protowire.BytesType), uint64(len(value))), value...)
}
