package api

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humagin"
	"github.com/gin-gonic/gin"

	"github.com/holdoutd/holdoutd/holdout"
	"github.com/holdoutd/holdoutd/internal/nearest"
	"github.com/holdoutd/holdoutd/internal/tracing"
	"github.com/holdoutd/holdoutd/internal/turns"
)

// Keys of what a request carries in its gin context.
const (
	keyProblem   = "problem"
	keyPrincipal = "principal"
)

// statusClientGone is logged and counted for a client that did not wait for its reply; it is never sent.
const statusClientGone = 499

// noTiming are the routes whose duration is neither logged nor measured: they look at holdout rows, and a stream lasts while somebody reads it.
var noTiming = map[string]bool{
	mcpPath:                           true,
	"/v1/holdouts/:id/queries":        true,
	"/v1/holdouts/:id/queries/batch":  true,
	"/v1/holdouts/:id/report":         true,
	"/v1/holdouts/:id/retire":         true, // it waits for those that look
	"/v1/holdouts/:id/held":           true, // so does it
	"/v1/holdouts/:id/answers/events": true,
}

// observe gives the request an id, logs it and counts it: method, route, status, size and who asked. Bodies, values and
// parameters are not logged.
func (a *API) observe(c *gin.Context) {
	start := time.Now()
	client := c.Request.Context() // handlers replace it by one that ends with them
	id := c.GetHeader("X-Request-Id")
	if !plainToken(id, 64) {
		id = rand.Text()
	}
	c.Header("X-Request-Id", id)
	ctx, span := a.traces.Begin(client, c.Request.Method, cmp.Or(c.FullPath(), "none"), c.GetHeader("traceparent"), !noTiming[c.FullPath()])
	if span != nil {
		c.Request = c.Request.WithContext(ctx)
	}
	a.metrics.inFlight.Inc()
	defer a.metrics.inFlight.Dec()
	defer func() { // deferred: a reply that was cut off is still counted
		status, route := c.Writer.Status(), c.FullPath()
		if client.Err() != nil {
			status = statusClientGone
		}
		took := time.Since(start)
		a.metrics.count(c.Request.Method, route, status, took)
		attrs := []any{"id", id, "method", c.Request.Method, "route", route, "status", status, "bytes", max(0, c.Writer.Size())}
		if !noTiming[route] {
			attrs = append(attrs, "ms", took.Milliseconds())
		}
		if h := c.Param("id"); h != "" && status < http.StatusBadRequest {
			attrs = append(attrs, "resource", h)
		}
		if p, ok := c.Get(keyPrincipal); ok {
			attrs = append(attrs, "key", p.(holdout.Principal).KeyID)
		}
		span.Set(tracing.Status, status)
		if status >= http.StatusInternalServerError {
			span.Fail()
		}
		defer span.End()
		if v, ok := c.Get(keyProblem); ok {
			p := v.(*Problem)
			span.Say(tracing.Problem, p.Code)
			attrs = append(attrs, "problem", p.Code)
			left := client.Err() != nil && errors.Is(p.cause, context.Canceled) // no fault: nobody waits any more
			if p.Status >= http.StatusInternalServerError && p.cause != nil && !left {
				a.log.Error("request failed", append(attrs, "cause", p.cause.Error())...)
				return
			}
		}
		a.log.Info("request", attrs...)
	}()
	c.Next()
}

// noteProblem leaves the problem that huma replies with where observe finds it, as [Problem.reply] does for the others: the
// log has one line for every request, and that line has the cause. huma hands every reply of a typed operation to it.
func noteProblem(ctx huma.Context, _ string, reply any) (any, error) {
	if p, ok := reply.(*Problem); ok {
		humagin.Unwrap(ctx).Set(keyProblem, p)
	}
	return reply, nil
}

// recover turns a panic into a problem. The stack goes to the log; it holds no values of rows.
func (a *API) recover(c *gin.Context) {
	client := c.Request.Context()
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		if v == http.ErrAbortHandler {
			panic(v)
		}
		if client.Err() != nil {
			c.Abort() // a write to a client that is gone
			return
		}
		// Not the value itself, which may be a cell of a row.
		a.log.Error("panic", "id", c.Writer.Header().Get("X-Request-Id"), "route", c.FullPath(), "panic", fmt.Sprintf("%T", v), "stack", string(debug.Stack()))
		problemOf(fmt.Errorf("panic: %T", v)).reply(c)
	}()
	c.Next()
}

// guard sets the headers that every reply has and bounds the time that a client may take to send its body and to read
// the reply.
func (a *API) guard(c *gin.Context) {
	h := c.Writer.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	control := http.NewResponseController(c.Writer)
	if c.Request.Body != nil && c.Request.Body != http.NoBody {
		// Also for bodies that nobody wants: net/http reads some of them before it sends the reply.
		control.SetReadDeadline(time.Now().Add(a.limits.ReadBody))
	}
	c.Writer = &patientWriter{ResponseWriter: c.Writer, control: control, patience: a.limits.Write}
	c.Next()
}

// A patientWriter gives each piece of a reply its own deadline: a large download may last while it is read.
type patientWriter struct {
	gin.ResponseWriter
	control  *http.ResponseController
	patience time.Duration
}

func (w *patientWriter) Write(b []byte) (int, error) {
	w.control.SetWriteDeadline(time.Now().Add(w.patience))
	return w.ResponseWriter.Write(b)
}

func (w *patientWriter) WriteString(s string) (int, error) { return w.Write([]byte(s)) }

// Unwrap lets http.ResponseController reach the connection.
func (w *patientWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (a *API) noRoute(c *gin.Context) {
	if wantsPage(c.Request) {
		sendPageAs(c, http.StatusNotFound, pagePolicy, htmlType, missingPage())
		return
	}
	problem(classes[holdout.NotFound], "there is nothing at this path; GET /docs lists what there is").reply(c)
}

// noMethod answers 405, and OPTIONS, which no route has for itself. gin has set Allow to what the path has.
func (a *API) noMethod(c *gin.Context) {
	allowed := strings.Split(c.Writer.Header().Get("Allow"), ", ")
	if slices.Contains(allowed, http.MethodGet) {
		allowed = append(allowed, http.MethodHead)
	}
	allowed = append(allowed, http.MethodOptions)
	slices.Sort(allowed)
	c.Header("Allow", strings.Join(allowed, ", "))
	if c.Request.Method == http.MethodOptions {
		c.AbortWithStatus(http.StatusNoContent)
		c.Writer.WriteHeaderNow()
		return
	}
	problem(methodNotAllowed, "this path has %s only", strings.Join(allowed, ", ")).reply(c)
}

// smallBody is a body for which no memory is reserved: as many as there can be connections take little together.
const smallBody = 64 << 10

// room reserves the memory of a body that is going to be read, so that many large ones at once wait for each other. One key has at most
// half of what there is.
func (a *API) room(c *gin.Context, limit int64) (release func(), err error) {
	size := c.Request.ContentLength
	if size < 0 || encodingOf(c.Request) != "" {
		size = limit // it is not known
	}
	if size = min(size, limit); size <= smallBody {
		return func() {}, nil
	}
	patience := a.asked.Wait
	wait, cancel := context.WithTimeout(c.Request.Context(), patience)
	defer cancel()
	place, err := a.bodies.Acquire(wait, caller(c.Request.Context()).KeyID, turns.Load{Bytes: size, Cost: float64(size)})
	if err != nil {
		return nil, &holdout.Error{Kind: holdout.Busy, RetryAfter: patience, Detail: "too many large requests are being received"}
	}
	return place.Release, nil
}

// checkParameters refuses a parameter after the ? that the operation does not have, that is given twice, or that is empty:
// huma takes an empty one for one that is absent. The settings of an upload are read by readSettings, which says more; and
// a health check may carry what a balancer adds.
func (a *API) checkParameters(ctx huma.Context, next func(huma.Context)) {
	op := ctx.Operation()
	if len(op.Security) == 0 || op.OperationID == createHoldout {
		next(ctx)
		return
	}
	c := humagin.Unwrap(ctx)
	given, err := url.ParseQuery(c.Request.URL.RawQuery)
	if err != nil {
		problem(classes[holdout.Malformed], "the parameters after ? are badly escaped").reply(c)
		return
	}
	var known []string
	for _, p := range op.Parameters {
		if p.In == "query" {
			known = append(known, p.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		var p *Problem
		switch values := given[name]; {
		case !slices.Contains(known, name):
			p = invalid(name, nearest.Name(name, known), "%s is no parameter of this operation", name)
		case len(values) > 1:
			p = invalid(name, "", "%s is given more than once", name)
		case values[0] == "":
			p = invalid(name, "", "%s is empty; leave it out for the default", name)
		default:
			continue
		}
		p.reply(c)
		return
	}
	next(ctx)
}

// withBody reads the whole body of an operation before its handler runs: at most limit bytes, within ReadBody, as JSON.
func (a *API) withBody(limit int64) func(huma.Context, func(huma.Context)) {
	limit = min(limit, a.bodies.ShareBytes())
	return func(ctx huma.Context, next func(huma.Context)) {
		c := humagin.Unwrap(ctx)
		if p := acceptsJSON(c.Request); p != nil {
			p.reply(c)
			return
		}
		release, err := a.room(c, limit)
		if err != nil {
			problemOf(err).reply(c)
			return
		}
		defer release()
		body, err := a.readBody(c, limit)
		if err != nil {
			problemOf(err).reply(c)
			return
		}
		c.Request = c.Request.WithContext(context.WithValue(c.Request.Context(), bodyKey{}, body))
		c.Request.Body = io.NopCloser(bytes.NewReader(body)) // huma reads it to see that there is one
		next(ctx)
	}
}

type bodyKey struct{}

// bodyOf is the body that withBody read.
func bodyOf(ctx context.Context) []byte {
	body, _ := ctx.Value(bodyKey{}).([]byte)
	return body
}

// bodyAtOnce is how long a body may take to come before the key that came with its head is looked up once more: it may have been revoked since. An honest body of a question is here at once.
const bodyAtOnce = 100 * time.Millisecond

func (a *API) readBody(c *gin.Context, limit int64) ([]byte, error) {
	if c.Request.ContentLength > limit {
		drain(c.Request)
		return nil, bodyProblem(&http.MaxBytesError{Limit: limit})
	}
	began := time.Now()
	body, err := readDecoded(encodingOf(c.Request), http.MaxBytesReader(c.Writer, c.Request.Body, limit), limit)
	if err != nil {
		drain(c.Request)
		return nil, bodyProblem(err)
	}
	if p, ok := c.Get(keyPrincipal); ok && time.Since(began) > bodyAtOnce {
		if err := a.service.StillValid(c.Request.Context(), p.(holdout.Principal)); err != nil {
			return nil, err
		}
	}
	// The server goes on reading, to see whether the client is still there: no longer with the deadline of guard.
	http.NewResponseController(c.Writer).SetReadDeadline(time.Time{})
	return body, nil
}

// mostDrained is how much of a body that is refused is read and thrown away: several times the largest query, so that whoever sends a model that is somewhat too large reads why. What
// is larger by far is cut off.
const mostDrained = 64 << 20

// drain reads what is left of a body that is refused, within the deadline of guard. Many clients read nothing before they have sent all, and a connection that is closed meanwhile
// takes the reply with it. Whoever waits to be told to go on sends nothing.
func drain(r *http.Request) {
	if r.Header.Get("Expect") == "" {
		io.CopyN(io.Discard, r.Body, mostDrained)
	}
}

// bodyProblem says why a body could not be read to its end.
func bodyProblem(err error) *Problem {
	var large *http.MaxBytesError
	var network net.Error
	var encoded *encodingError
	switch {
	case errors.As(err, &encoded):
		return problem(classes[holdout.Malformed], "the body is not %s, which Content-Encoding says, or it is cut off", encoded.encoding)
	case errors.As(err, &large):
		p := problem(classes[holdout.TooLarge], "the body is larger than %d bytes", large.Limit)
		p.members = map[string]any{"limit": large.Limit}
		return p
	case errors.As(err, &network) && network.Timeout():
		return problem(requestTimeout, "the body did not arrive in time")
	}
	return problem(classes[holdout.Malformed], "the body ended early or is badly framed")
}

// acceptsJSON refuses bodies that say they are something else. What curl -d says by itself is let through: a body that
// is no JSON will be found out.
func acceptsJSON(r *http.Request) *Problem {
	if encoding := encodingOf(r); encoding != "" && !slices.Contains(encodings, encoding) {
		return problem(unsupportedMedia, "the body is encoded as %q; it may be %s, or not encoded", encoding, strings.Join(encodings, " or "))
	}
	t := r.Header.Get("Content-Type")
	if t == "" {
		return nil
	}
	media, _, err := mime.ParseMediaType(t)
	if err == nil && (media == "application/json" || strings.HasSuffix(media, "+json") || media == "application/x-www-form-urlencoded") {
		return nil
	}
	return problem(unsupportedMedia, "the body must be application/json")
}

// inTime bounds the work on a request.
func (a *API) inTime(ctx huma.Context, next func(huma.Context)) {
	c := humagin.Unwrap(ctx)
	within, cancel := context.WithTimeout(c.Request.Context(), a.limits.Handle)
	defer cancel()
	c.Request = c.Request.WithContext(within)
	next(ctx)
}

// plainToken reports whether s is 1 to most visible ASCII characters.
func plainToken(s string, most int) bool {
	if s == "" || len(s) > most {
		return false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
