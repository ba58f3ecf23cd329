package api

import (
	"net/http"
	"runtime"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// MetricsAccess says who may read /metrics.
type MetricsAccess string

const (
	MetricsPublic MetricsAccess = "public" // counters for everyone who reaches the port, the rest with a key of the scope admin
	MetricsAdmin  MetricsAccess = "admin"  // all of them with a key of the scope admin only
	MetricsOff    MetricsAccess = "off"    // nobody: 404
)

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
