package api

import (
	"context"
	"net/http"
	"runtime"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gin-gonic/gin"

	"github.com/holdoutd/holdoutd/holdout"
)

type statusReply struct{ Body Status }

// Status says that the server lives, or that it can answer.
type Status struct {
	Status string `json:"status" example:"ok"`
}

type versionReply struct{ Body Version }

// Version is what runs.
type Version struct {
	Name    string `json:"name" example:"holdoutd"`
	Version string `json:"version"`
	Go      string `json:"go"`
}

func (a *API) registerOperations() {
	tags := []string{"operations"}
	typed(a, huma.Operation{
		OperationID: "health", SkipValidateParams: true, Method: http.MethodGet, Path: "/healthz", Tags: tags, Summary: "Whether the process lives",
	}, func(context.Context, *struct{}) (*statusReply, error) { return &statusReply{Status{"ok"}}, nil })
	typed(a, huma.Operation{
		OperationID: "ready", SkipValidateParams: true, Method: http.MethodGet, Path: "/readyz", Tags: tags, Middlewares: huma.Middlewares{a.inTime},
		Summary: "Whether answers can be given", Description: "503 while the ledger cannot write.",
	}, func(ctx context.Context, _ *struct{}) (*statusReply, error) {
		return &statusReply{Status{"ok"}}, a.service.Ready(ctx)
	})
	typed(a, huma.Operation{
		OperationID: "version", SkipValidateParams: true, Method: http.MethodGet, Path: "/version", Tags: tags, Summary: "What runs",
	}, func(context.Context, *struct{}) (*versionReply, error) {
		return &versionReply{Version{"holdoutd", a.version, runtime.Version()}}, nil
	})
	a.raw(huma.Operation{
		OperationID: "metrics", Method: http.MethodGet, Path: "/metrics", Tags: tags, Summary: "Metrics for Prometheus",
		Description: "Counts of answered requests are open by default; everything else (durations, what is in flight, the process) needs an admin key, or the token that serve --metrics-token names. The server can be told to ask for one of them for all of it, or to have no metrics.",
		Responses:   map[string]*huma.Response{"200": {Description: "The text format of Prometheus", Content: map[string]*huma.MediaType{"text/plain": {Schema: &huma.Schema{Type: "string"}}}}},
	}, a.serveMetrics)
}

func (a *API) serveMetrics(c *gin.Context) error {
	if a.access == MetricsOff {
		return problem(classes[holdout.NotFound], "this server has no metrics")
	}
	handler := a.metrics.open
	if a.scraper.sentIn(c.Request) {
		handler = a.metrics.all
	} else if a.access == MetricsAdmin || c.GetHeader("Authorization") != "" {
		p, err := a.principal(c)
		switch {
		case err != nil:
			return err
		case p.Scope == holdout.Admin:
			handler = a.metrics.all
		case a.access == MetricsAdmin:
			return problem(classes[holdout.Forbidden], "this needs a key with the scope admin")
		}
	}
	handler.ServeHTTP(c.Writer, c.Request)
	return nil
}
