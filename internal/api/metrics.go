package api

import (
	"net/http"
	"runtime"
	"strconv"
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

// metrics are counts of requests and the state of the process. What is open to everyone is the count of requests that were answered, by
// route and status, which is what clients saw. Everything else is for admins: what is in flight tells when somebody asks and for how
// long, the memory and processor time of the process are used by scans, and budgets belong to those who have a key. The durations of
// questions are nowhere.
type metrics struct {
	requests  *prometheus.CounterVec
	durations *prometheus.HistogramVec
	inFlight  prometheus.Gauge
	uploading prometheus.Gauge
	problems  *prometheus.CounterVec
	open      http.Handler // for everyone
	all       http.Handler // for admins
}

func newMetrics(version string, service *holdout.Service) *metrics {
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
		problems: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "holdoutd_problems_total", Help: "Requests that were not done, by the problem's code: /problems/CODE says what it means.",
		}, []string{"code"}),
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "holdoutd_build_info", Help: "1, with what was built as labels.",
		ConstLabels: prometheus.Labels{"version": version, "goversion": runtime.Version()},
	})
	build.Set(1)
	open, all := prometheus.NewRegistry(), prometheus.NewRegistry()
	open.MustRegister(m.requests, build)
	all.MustRegister(m.requests, build, m.durations, m.inFlight, m.uploading, m.problems, activity{service},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.open, m.all = promhttp.HandlerFor(open, promhttp.HandlerOpts{}), promhttp.HandlerFor(all, promhttp.HandlerOpts{})
	return m
}

// count records one request that is done.
func (m *metrics) count(method, route string, status int, took time.Duration) {
	route = knownRoute(route)
	m.requests.WithLabelValues(knownMethod(method), route, strconv.Itoa(status)).Inc()
	if !noTiming[route] {
		m.durations.WithLabelValues(route).Observe(took.Seconds())
	}
}

// knownRoute is the pattern of a route. Unknown paths are one.
func knownRoute(route string) string {
	if route == "" {
		return "none"
	}
	return route
}

// knownMethod is a method of a closed set.
func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodPost, http.MethodDelete, http.MethodPut, http.MethodPatch, http.MethodOptions:
		return method
	}
	return "other"
}
