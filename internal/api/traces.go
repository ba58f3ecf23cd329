package api

import (
	"context"

	"github.com/gin-gonic/gin"

	"github.com/holdoutd/holdoutd/holdout"
)

// Traces makes the spans of requests, for the operator. Nothing of a span is in a reply, and nothing that a client sends chooses one.
type Traces interface {
	// Request begins the span of a request; what the service does for it has the returned context. end ends it.
	Request(ctx context.Context) (within context.Context, end func(Traced))
}

// Traced is what the span of a request says. Its members are those of the request's line in the log, without sizes.
type Traced struct {
	Method, Route string // of closed sets; the route is a pattern
	Status        int
	Problem       string // the problem's code, or ""
	Holdout       string // id, where there is such a resource
	Key           string // id of the key, or ""
}

// beginTrace begins the span of a request.
func (a *API) beginTrace(c *gin.Context) (end func(route string, status int)) {
	if a.traces == nil {
		return func(string, int) {}
	}
	within, done := a.traces.Request(c.Request.Context())
	c.Request = c.Request.WithContext(within)
	return func(route string, status int) {
		t := Traced{Method: knownMethod(c.Request.Method), Route: knownRoute(route), Status: status}
		if id := c.Param("id"); id != "" && status < 400 {
			t.Holdout = id
		}
		if p, ok := c.Get(keyPrincipal); ok {
			t.Key = p.(holdout.Principal).KeyID
		}
		if p, ok := c.Get(keyProblem); ok {
			t.Problem = p.(*Problem).Code
		}
		done(t)
	}
}
