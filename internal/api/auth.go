package api

import (
	"context"
	"math"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humagin"
	"github.com/gin-gonic/gin"
	"golang.org/x/time/rate"

	"github.com/holdoutd/holdoutd/holdout"
)

// The names of the security schemes in the OpenAPI document. An operation that names one needs a key, or a session that a key began: what is
// documented is what is enforced.
const (
	bearer = "key"
	cookie = "session"
)

var needsKey = []map[string][]string{{bearer: {}}, {cookie: {}}}

// authenticate lets requests pass that carry a valid key, where the operation needs one, and that the key's rate
// allows. It runs before a body is read.
func (a *API) authenticate(ctx huma.Context, next func(huma.Context)) {
	c := humagin.Unwrap(ctx)
	if len(ctx.Operation().Security) == 0 {
		next(ctx)
		return
	}
	p, err := a.principal(c)
	if err != nil {
		problemOf(err).reply(c)
		return
	}
	if wait := a.rates.take(p.KeyID, time.Now()); wait > 0 {
		limited := problem(rateLimited, "the key's %v requests a second are used up; ask in batches, or later", a.limits.Rate)
		limited.retryAfter = wait
		limited.reply(c)
		return
	}
	next(ctx)
}

// principal is the owner of the request's key, which stands in its header, or of the key that began its session. A header counts before a cookie.
func (a *API) principal(c *gin.Context) (holdout.Principal, error) {
	p, err := a.owner(c)
	if err != nil {
		return p, err
	}
	c.Set(keyPrincipal, p)
	c.Request = c.Request.WithContext(context.WithValue(c.Request.Context(), principalKey{}, p))
	return p, nil
}

func (a *API) owner(c *gin.Context) (holdout.Principal, error) {
	if len(c.Request.Header.Values("Authorization")) == 0 {
		return a.ofSession(c.Request)
	}
	secret, err := bearerOf(c.Request)
	if err != nil {
		return holdout.Principal{}, err
	}
	return a.service.Authenticate(c.Request.Context(), secret)
}

// bearerOf is the key, or the token, in a request's header.
func bearerOf(r *http.Request) (string, error) {
	header := r.Header.Values("Authorization")
	if len(header) == 0 {
		return "", problem(classes[holdout.Unauthorized], "send the header Authorization: Bearer and a key")
	}
	scheme, secret, _ := strings.Cut(header[0], " ")
	secret = strings.TrimSpace(secret)
	if len(header) > 1 || !strings.EqualFold(scheme, "Bearer") || !plainToken(secret, holdout.MaxBearerBytes) {
		return "", problem(classes[holdout.Unauthorized], "the header Authorization must be Bearer and a key, or a token of at most %d bytes", holdout.MaxBearerBytes)
	}
	return secret, nil
}

type principalKey struct{}

// caller is who sent the request that a handler works on.
func caller(ctx context.Context) holdout.Principal {
	p, _ := ctx.Value(principalKey{}).(holdout.Principal)
	return p
}

// mustBeAdmin refuses other keys before a body is read. The service checks again: it is the one that decides.
func (a *API) mustBeAdmin(ctx huma.Context, next func(huma.Context)) {
	if caller(ctx.Context()).Scope != holdout.Admin {
		problem(classes[holdout.Forbidden], "this needs a key with the scope admin").reply(humagin.Unwrap(ctx))
		return
	}
	next(ctx)
}

// rates holds a token bucket for each key. There are as many as there are keys, which only an admin makes.
type rates struct {
	limit float64
	burst int

	mu      sync.Mutex
	buckets map[string]*rate.Limiter
}

// take uses one request of a key and returns 0, or how long to wait before there is one.
func (r *rates) take(key string, now time.Time) time.Duration {
	if r.limit < 0 {
		return 0
	}
	r.mu.Lock()
	bucket := r.buckets[key]
	if bucket == nil {
		if r.buckets == nil {
			r.buckets = map[string]*rate.Limiter{}
		}
		bucket = rate.NewLimiter(rate.Limit(r.limit), r.burst)
		r.buckets[key] = bucket
	}
	r.mu.Unlock()
	reservation := bucket.ReserveN(now, 1)
	if !reservation.OK() {
		return time.Duration(math.Ceil(1/r.limit)) * time.Second
	}
	wait := reservation.DelayFrom(now)
	if wait > 0 {
		reservation.CancelAt(now)
	}
	return wait
}

// idempotencyKey is the request's Idempotency-Key, or "".
func idempotencyKey(h http.Header) (string, error) {
	values := h.Values("Idempotency-Key")
	if len(values) == 0 {
		return "", nil
	}
	if len(values) > 1 || !plainToken(values[0], 255) {
		return "", invalid("Idempotency-Key", "", "Idempotency-Key must be one value of 1 to 255 visible ASCII characters")
	}
	return values[0], nil
}
