package api

import (
	"context"
	"maps"
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
	"github.com/holdoutd/holdoutd/internal/oidc"
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
	if p.Grant, err = grantOf(c.Request); err != nil {
		return p, err
	}
	c.Set(keyPrincipal, p)
	c.Request = c.Request.WithContext(context.WithValue(c.Request.Context(), principalKey{}, p))
	return p, nil
}

// grantOf is the grant that a request is made on, or "".
func grantOf(r *http.Request) (string, error) {
	values := r.Header.Values(holdout.GrantHeader)
	if len(values) == 0 {
		return "", nil
	}
	if len(values) > 1 || !plainToken(values[0], maxGrantID) {
		return "", invalid(holdout.GrantHeader, "", "%s must be the id of one grant, gr_…", holdout.GrantHeader)
	}
	return values[0], nil
}

// maxGrantID is longer than the id of any grant.
const maxGrantID = 100

func (a *API) owner(c *gin.Context) (holdout.Principal, error) {
	if len(c.Request.Header.Values("Authorization")) == 0 {
		return a.ofSession(c)
	}
	secret, err := a.bearerOf(c.Request)
	if err != nil {
		return holdout.Principal{}, err
	}
	if a.isToken(secret) {
		return a.ofToken(c.Request.Context(), secret)
	}
	return a.service.Authenticate(c.Request.Context(), secret)
}

// maxKeyBytes is the longest key in a header; those of the server are shorter.
const maxKeyBytes = 256

// bearerOf is the key or the token in a request's header.
func (a *API) bearerOf(r *http.Request) (string, error) {
	most := maxKeyBytes
	if a.tokens != nil {
		most = oidc.MaxTokenBytes
	}
	header := r.Header.Values("Authorization")
	if len(header) == 0 {
		return "", problem(classes[holdout.Unauthorized], "send the header Authorization: Bearer and a key")
	}
	scheme, secret, _ := strings.Cut(header[0], " ")
	secret = strings.TrimSpace(secret)
	if len(header) > 1 || !strings.EqualFold(scheme, "Bearer") || !plainToken(secret, most) {
		return "", problem(classes[holdout.Unauthorized], "the header Authorization must be Bearer and a key")
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

// fewBuckets is how many buckets are kept without looking for those that are full again, which say nothing and are dropped.
const fewBuckets = 10_000

// rates holds a token bucket for each key. Only an admin makes keys; tokens can be of as many people as an issuer knows.
type rates struct {
	limit float64
	burst int

	mu      sync.Mutex
	buckets map[string]*rate.Limiter
	most    int // buckets before full ones are looked for
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
		if len(r.buckets) >= max(r.most, fewBuckets) {
			maps.DeleteFunc(r.buckets, func(_ string, b *rate.Limiter) bool { return b.TokensAt(now) >= float64(r.burst) })
			r.most = 2 * len(r.buckets) // so that looking at all is rare, however many are in use
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
