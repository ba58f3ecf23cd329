package main

import (
	"cmp"
	"context"
	"log/slog"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/holdoutd/holdoutd/internal/api"
	"github.com/holdoutd/holdoutd/internal/trace"
)

// Where OpenTelemetry's standard says that a collector is. Headers can hold a secret, so that they are not a flag.
const (
	tracesVariable   = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	endpointVariable = "OTEL_EXPORTER_OTLP_ENDPOINT"
	headersVariable  = "OTEL_EXPORTER_OTLP_HEADERS" // name=value, separated by commas, escaped as in a URL
)

// traceFlags say whether and where traces go.
type traceFlags struct {
	url   string
	share float64
}

func (f *traceFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.url, "traces", "", "send OpenTelemetry traces to this OTLP/HTTP collector, such as http://127.0.0.1:4318; they have the times of questions, and are for the operator alone (default: "+endpointVariable+", else none)")
	flags.Float64Var(&f.share, "traces-share", 1, "share of the requests that are traced, above 0 and at most 1")
}

// open returns the tracer that the flags and the environment ask for, or nil.
func (f traceFlags) open(logger *slog.Logger) (*tracer, error) {
	to := cmp.Or(f.url, os.Getenv(tracesVariable), os.Getenv(endpointVariable))
	if to == "" {
		return nil, nil
	}
	headers := map[string]string{}
	for pair := range strings.SplitSeq(os.Getenv(headersVariable), ",") {
		if pair == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		text, err := url.PathUnescape(strings.TrimSpace(value))
		if !ok || err != nil {
			return nil, misuse("%s is not a list of name=value", headersVariable)
		}
		headers[strings.TrimSpace(name)] = text
	}
	t, err := trace.New(trace.Options{URL: to, Headers: headers, Share: f.share, Version: version(), Logger: logger})
	if err != nil {
		return nil, misuse("%w", err)
	}
	logger.Info("requests are traced; traces have the times of questions and are for the operator alone")
	return &tracer{t}, nil
}

// tracer is the tracer as the API and the service know it.
type tracer struct{ *trace.Tracer }

func (t *tracer) Request(ctx context.Context) (context.Context, func(api.Traced)) {
	within, end := t.Tracer.Request(ctx)
	return within, func(r api.Traced) { end(trace.Request(r)) }
}
