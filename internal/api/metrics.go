package api

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/holdoutd/holdoutd/holdout"
)

// MetricsAccess says who may read /metrics.
type MetricsAccess string

const (
	MetricsPublic MetricsAccess = "public" // counters for everyone who reaches the port, the rest with a key of the scope admin
	MetricsAdmin  MetricsAccess = "admin"  // all of them with a key of the scope admin only
	MetricsOff    MetricsAccess = "off"    // nobody: 404
)

// MetricsToken is a secret that reads all of /metrics, and nothing else: a scraper need not have a key. It shows itself in no print.
type MetricsToken struct{ sum [sha256.Size]byte }

// leastToken is how many characters a token has at least: 32 hex digits are 128 bits.
const leastToken = 32

// ParseMetricsToken reads a token as a file has it: one word of at least 32 characters that can stand in a header and is no key. The error does not show the text.
func ParseMetricsToken(text []byte) (*MetricsToken, error) {
	token := strings.TrimSpace(string(text))
	switch {
	case len(token) < leastToken:
		return nil, fmt.Errorf("a token for metrics has at least %d characters, and this has %d; make one with openssl rand -hex 24", leastToken, len(token))
	case !plainToken(token, holdout.MaxBearerBytes):
		return nil, fmt.Errorf("a token for metrics is one word of ASCII, of at most %d characters; make one with openssl rand -hex 24", holdout.MaxBearerBytes)
	case strings.HasPrefix(token, holdout.KeyPrefix):
		return nil, errors.New("this is a key of a server, which can do more than read metrics; make a token with openssl rand -hex 24")
	}
	return &MetricsToken{sha256.Sum256([]byte(token))}, nil
}

// sentIn reports whether a request has the token in its header. It takes as long for every wrong one.
func (t *MetricsToken) sentIn(r *http.Request) bool {
	token, err := bearerOf(r)
	if t == nil || err != nil {
		return false
	}
	sum := sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(sum[:], t.sum[:]) == 1
}

func (MetricsToken) String() string   { return "a token for metrics" }
func (MetricsToken) GoString() string { return "a token for metrics" }

// metrics are counts of requests and the state of the process. What is open to everyone is the count of requests that were answered, by
// route and status, which is what clients saw. Everything else is for admins: what is in flight tells when somebody asks and for how
// long, and the memory and processor time of the process are used by scans. The durations of questions are nowhere, and what is left of
// budgets is not here either, for it belongs to those who have a key.
type metrics struct {
	requests  *prometheus.CounterVec
	durations *prometheus.HistogramVec
	inFlight  prometheus.Gauge
	uploading prometheus.Gauge
	open      http.Handler // for everyone
	all       http.Handler // for admins
}

func newMetrics(version string, working func() int) *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "holdoutd_http_requests_total", Help: "Requests by method, route and status (499: the client did not wait).",
		}, []string{"method", "route", "status"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "holdoutd_http_request_duration_seconds", Help: "Durations of requests, but for those that ask questions.",
			Buckets: []float64{.001, .005, .02, .1, .5, 2, 10, 60, 300},
		}, []string{"route"}),
		inFlight:  prometheus.NewGauge(prometheus.GaugeOpts{Name: "holdoutd_http_requests_in_flight", Help: "Requests being handled."}),
		uploading: prometheus.NewGauge(prometheus.GaugeOpts{Name: "holdoutd_uploads_in_flight", Help: "Uploads being received or decoded."}),
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "holdoutd_build_info", Help: "1, with what was built as labels.",
		ConstLabels: prometheus.Labels{"version": version, "goversion": runtime.Version()},
	})
	build.Set(1)
	asking := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "holdoutd_questions_in_flight", Help: "Requests that ask, explain or plan and have a place to work."},
		func() float64 { return float64(working()) })
	open, all := prometheus.NewRegistry(), prometheus.NewRegistry()
	open.MustRegister(m.requests, build)
	all.MustRegister(m.requests, build, m.durations, m.inFlight, m.uploading, asking,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.open, m.all = promhttp.HandlerFor(open, promhttp.HandlerOpts{}), promhttp.HandlerFor(all, promhttp.HandlerOpts{})
	return m
}

// count records one request that is done. Labels come from closed sets: unknown paths are one route, unknown methods
// one method.
func (m *metrics) count(method, route string, status int, took time.Duration) {
	if route == "" {
		route = "none"
	}
	switch method {
	case http.MethodGet, http.MethodPost, http.MethodDelete, http.MethodPut, http.MethodPatch, http.MethodOptions:
	default:
		method = "other"
	}
	m.requests.WithLabelValues(method, route, strconv.Itoa(status)).Inc()
	if !noTiming[route] {
		m.durations.WithLabelValues(route).Observe(took.Seconds())
	}
}
