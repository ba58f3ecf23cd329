// Package api serves package holdout over HTTP: routes, keys, limits, problem documents, OpenAPI, metrics. It knows no
// statistics, and it decides nothing about budgets: a request becomes one call of the service, an error becomes one
// problem (the table in problem.go).
//
// What a reply or a log line or a metric shows of a question is what the service released: no duration of a question
// is logged or measured here, no body, no value (DESIGN: nothing but counted answers may depend on holdout rows).
package api

import (
	"context"
	"log/slog"
	"math"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humagin"
	"github.com/gin-gonic/gin"

	"github.com/holdoutd/holdoutd/holdout"
	"github.com/holdoutd/holdoutd/internal/tracing"
	"github.com/holdoutd/holdoutd/internal/turns"
	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// Options are what an API is made with.
type Options struct {
	Logger  *slog.Logger // nil: no log
	Limits  Limits
	Metrics MetricsAccess   // empty: MetricsPublic
	Scraper *MetricsToken   // reads all of /metrics; nil: keys of the scope admin alone do
	Traces  *tracing.Tracer // nil: none
	Version string          // of the program
}

// API is the HTTP interface of one service.
type API struct {
	service *holdout.Service
	log     *slog.Logger
	limits  Limits
	version string

	huma        huma.API
	router      *gin.Engine
	metrics     *metrics
	access      MetricsAccess
	scraper     *MetricsToken
	traces      *tracing.Tracer
	rates       rates
	uploads     chan struct{}
	asked       holdout.Limits // those of the service
	streams     streams
	signed      sessions
	bodies      *turns.Queue // memory of bodies that are being received, by key
	simulations *turns.Queue // places of simulations, by key: who asks for a thousand waits for their own
	agents      http.Handler // of the Model Context Protocol
}

// New makes the API of a service. It panics where Limits.Check refuses the limits, defaults filled in.
func New(service *holdout.Service, o Options) *API {
	a := &API{service: service, log: o.Logger, limits: o.Limits.withDefaults(), version: o.Version, access: o.Metrics, scraper: o.Scraper, traces: o.Traces}
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	if a.access == "" {
		a.access = MetricsPublic
	}
	a.rates.limit, a.rates.burst = a.limits.Rate, a.limits.Burst
	a.streams = streams{of: map[string]int{}, end: make(chan struct{})}
	a.uploads = make(chan struct{}, a.limits.Uploads)
	a.simulations = turns.New(simulationsAtOnce, 1)
	if err := a.limits.Check(); err != nil {
		panic(err)
	}
	if a.asked = holdout.DefaultLimits; service != nil { // without one there is only a document
		a.asked = service.Limits()
	}
	a.bodies = turns.New(math.MaxInt, a.asked.Memory/holdout.BodyShare)
	a.metrics = newMetrics(a.version, service.Working)

	gin.SetMode(gin.ReleaseMode)
	a.router = gin.New()
	a.router.HandleMethodNotAllowed = true
	a.router.RedirectTrailingSlash = false
	a.router.UseRawPath = true // an id with an escaped slash is one segment
	a.router.Use(a.observe, a.recover, a.guard)
	a.router.NoRoute(a.noRoute)
	a.router.NoMethod(a.noMethod)

	a.huma = humagin.New(a.router, a.config())
	a.huma.UseMiddleware(a.authenticate, a.checkParameters)
	a.registerHoldouts()
	a.registerUpload()
	a.registerQueries()
	a.registerReports()
	a.registerPlans()
	a.registerModels()
	a.registerKeys()
	a.registerGrants()
	a.registerReleases()
	a.registerMCP()
	a.registerOperations()
	a.registerSimulations()
	a.registerSessions()
	a.registerPages()
	a.registerDashboard()
	a.finishDocument()
	a.startMCP()
	a.allowWords()
	return a
}

// allowWords makes the closed lists of what spans may say: nothing else leaves in a trace.
func (a *API) allowWords() {
	a.traces.Allow(tracing.Route, "none")
	for _, route := range a.router.Routes() {
		a.traces.Allow(tracing.Route, route.Path)
		a.traces.Allow(tracing.Method, route.Method)
	}
	for _, c := range allClasses() {
		a.traces.Allow(tracing.Problem, c.code)
	}
	a.traces.Allow(tracing.QueryType, queries.Types()...)
	a.traces.Allow(tracing.Mechanism, thresholdout.KindNames()...)
}

// ServeHTTP answers one request. HEAD is GET without its body, which net/http leaves out by itself.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodHead {
		get := *r.WithContext(context.WithValue(r.Context(), headKey{}, true))
		get.Method = http.MethodGet
		r = &get
	}
	a.router.ServeHTTP(w, r)
}

type headKey struct{}

// headOnly reports whether a request asks for the head alone: a reply without an end must end there.
func headOnly(ctx context.Context) bool { return ctx.Value(headKey{}) != nil }

// typed registers an operation whose reply is the JSON of a Go value.
func typed[I, O any](a *API, op huma.Operation, handle func(context.Context, *I) (*O, error)) {
	huma.Register(a.huma, op, func(ctx context.Context, in *I) (*O, error) {
		out, err := handle(ctx, in)
		if err != nil {
			return nil, problemOf(err)
		}
		return out, nil
	})
}

// raw registers an operation that writes its own reply; op documents it.
func (a *API) raw(op huma.Operation, handle func(*gin.Context) error) {
	if _, ok := op.Responses["default"]; !ok && op.Responses != nil {
		op.Responses["default"] = a.problemResponse()
	}
	a.huma.OpenAPI().AddOperation(&op)
	chain := append(append(huma.Middlewares{}, a.huma.Middlewares()...), op.Middlewares...)
	a.huma.Adapter().Handle(&op, chain.Handler(func(ctx huma.Context) {
		c := humagin.Unwrap(ctx)
		if err := handle(c); err != nil {
			problemOf(err).reply(c)
		}
	}))
}
