package api

import (
	"context"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humagin"
	"github.com/gin-gonic/gin"

	"github.com/holdoutd/holdoutd/holdout"
)

// A session stands for a key in the requests of this server's own pages, so that a page need not keep the key. The cookie is a token that the service has
// sealed: every server of the same ledger reads it, and none keeps anything of it but that it was ended (holdout/sessions.go).
const (
	sessionCookie = "holdoutd-session"
	// pageHeader is a header that pages of other sites cannot send: a browser asks this server first whether they may, and it never says so.
	pageHeader = "X-Holdoutd"
)

// SessionKey is whose key a session, or a request, has.
type SessionKey struct {
	ID    string        `json:"id"`
	Name  string        `json:"name" doc:"who uses it, for people"`
	Scope holdout.Scope `json:"scope" enum:"admin,analyst" doc:"what it may do"`
}

// Session is who is signed in.
type Session struct {
	Key *SessionKey `json:"key" doc:"null where nobody is"`
}

type sessionReply struct {
	SetCookie []http.Cookie `header:"Set-Cookie"`
	Body      Session
}

type signedOut struct {
	SetCookie []http.Cookie `header:"Set-Cookie"`
}

func (a *API) registerSessions() {
	const path = "/v1/session"
	tags := []string{"keys"}
	typed(a, huma.Operation{
		OperationID: "sign-in", Method: http.MethodPost, Path: path, Tags: tags, Security: []map[string][]string{{bearer: {}}},
		Summary: "Sign in to the pages of this server", Description: "Begins a session of the key in `Authorization` and sets its cookie. For browsers: programs send the key with each request. It ends after 12 hours without a request, after a week, and when the key is revoked. Every server of the same ledger knows it.",
		Middlewares: huma.Middlewares{a.inTime, withRequest},
	}, a.signIn)
	typed(a, huma.Operation{
		OperationID: "get-session", SkipValidateParams: true, Method: http.MethodGet, Path: path, Tags: tags, Middlewares: huma.Middlewares{a.inTime, a.ifSignedIn, withRequest},
		Summary: "Who is signed in", Description: "By the session's cookie or the key in `Authorization`. Without either, or with one that is not valid any more, `key` is null.",
	}, func(ctx context.Context, _ *struct{}) (*sessionReply, error) {
		return &sessionReply{Body: sessionOf(caller(ctx))}, nil
	})
	typed(a, huma.Operation{
		OperationID: "sign-out", SkipValidateParams: true, Method: http.MethodDelete, Path: path, Tags: tags, DefaultStatus: http.StatusNoContent, Middlewares: huma.Middlewares{a.inTime, withRequest},
		Summary: "Sign out", Description: "Ends the session of the request's cookie, if there is one, and removes the cookie.",
	}, a.signOut)
}

func sessionOf(p holdout.Principal) Session {
	if p.KeyID == "" {
		return Session{}
	}
	return Session{&SessionKey{p.KeyID, p.Name, p.Scope}}
}

type requestKey struct{}

// withRequest lets a handler see the request itself: cookies are made for it.
func withRequest(ctx huma.Context, next func(huma.Context)) {
	c := humagin.Unwrap(ctx)
	c.Request = c.Request.WithContext(context.WithValue(c.Request.Context(), requestKey{}, c.Request))
	next(ctx)
}

func requestOf(ctx context.Context) *http.Request { return ctx.Value(requestKey{}).(*http.Request) }

// ifSignedIn finds out who asks, and refuses nobody for being unknown.
func (a *API) ifSignedIn(ctx huma.Context, next func(huma.Context)) {
	c := humagin.Unwrap(ctx)
	if _, err := a.principal(c); err != nil && problemOf(err).Status != http.StatusUnauthorized {
		problemOf(err).reply(c)
		return
	}
	next(ctx)
}

func (a *API) signIn(ctx context.Context, _ *struct{}) (*sessionReply, error) {
	r := requestOf(ctx)
	secret, err := a.bearerOf(r)
	if err != nil {
		return nil, err
	}
	if a.isToken(secret) { // a session could outlive it, and what its holder may do
		return nil, problem(classes[holdout.Forbidden], "the pages of this server are signed in to with one of its keys, hk_…, and not with a token, which ends within minutes; an admin can make a key")
	}
	if err := a.end(ctx, tokensOf(r)); err != nil { // another key's, from before
		return nil, err
	}
	token, err := a.service.BeginSession(holdout.Remember(secret), time.Now())
	if err != nil {
		return nil, err
	}
	return &sessionReply{SetCookie: []http.Cookie{cookieFor(r, token)}, Body: sessionOf(caller(ctx))}, nil
}

func (a *API) signOut(ctx context.Context, _ *struct{}) (*signedOut, error) {
	r := requestOf(ctx)
	tokens := tokensOf(r)
	if len(tokens) > 0 && !fromOwnPage(r) {
		return nil, foreign()
	}
	if err := a.end(ctx, tokens); err != nil {
		return nil, err
	}
	gone := cookieFor(r, "")
	gone.MaxAge = -1
	return &signedOut{[]http.Cookie{gone}}, nil
}

// end ends sessions.
func (a *API) end(ctx context.Context, tokens []string) error {
	for _, token := range tokens {
		if err := a.service.EndSession(ctx, token, time.Now()); err != nil {
			return err
		}
	}
	return nil
}

// ofSession is the owner of the key that began a request's session. The reply renews the cookie now and then.
func (a *API) ofSession(c *gin.Context) (p holdout.Principal, err error) {
	r := c.Request
	tokens := tokensOf(r)
	if len(tokens) == 0 {
		_, err := a.bearerOf(r)
		return p, err
	}
	if !fromOwnPage(r) {
		return p, foreign()
	}
	for _, token := range tokens {
		var renewed string
		if p, renewed, err = a.service.Session(r.Context(), token, time.Now()); err == nil && renewed != "" {
			next := cookieFor(r, renewed)
			if len(r.CookiesNamed(securePrefix+cookieName(r))) > 0 { // a request that reads does not say that a proxy speaks TLS
				next.Name, next.Secure = securePrefix+cookieName(r), true
			}
			http.SetCookie(c.Writer, &next)
		}
		if holdout.KindOf(err) != holdout.Unauthorized {
			return p, err
		}
	}
	return p, err
}

// fromOwnPage reports whether a request with a cookie comes from a page of this server: a browser sends cookies with what any page makes it send.
// SameSite keeps those of other sites away; another port of the same machine is the same site. So the request must not say that it comes from elsewhere,
// and where it changes something, it must carry a header that only own pages can send.
func fromOwnPage(r *http.Request) bool {
	reads := r.Method == http.MethodGet
	switch r.Header.Get("Sec-Fetch-Site") {
	case "same-origin", "": // old browsers, and all of them over plain HTTP to another machine, do not say
	case "none": // typed, or a bookmark
		return reads
	default:
		return false
	}
	return reads || r.Header.Get(pageHeader) != ""
}

func foreign() *Problem {
	return problem(classes[holdout.Forbidden], "a session's cookie counts only in requests of this server's own pages, which carry the header %s; send Authorization: Bearer and a key", pageHeader)
}

// cookieName has the port in it where the address has one: cookies are shared among the ports of a machine, and two servers on it are two.
func cookieName(r *http.Request) string {
	if _, port, err := net.SplitHostPort(r.Host); err == nil {
		return sessionCookie + "-" + port
	}
	return sessionCookie
}

// securePrefix makes browsers take a cookie over TLS only, and from this host alone.
const securePrefix = "__Host-"

func cookieFor(r *http.Request, token string) http.Cookie {
	c := http.Cookie{Name: cookieName(r), Value: token, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode}
	// A proxy that speaks TLS for this server is seen by the page's own address, which browsers send with what changes something.
	if r.TLS != nil || strings.HasPrefix(r.Header.Get("Origin"), "https://") {
		c.Name, c.Secure = securePrefix+c.Name, true
	}
	return c
}

// tokensOf are the sessions that a request names. Where there is a cookie that only TLS can have set, no other counts.
func tokensOf(r *http.Request) (tokens []string) {
	name := cookieName(r)
	cookies := r.CookiesNamed(securePrefix + name)
	if len(cookies) == 0 && r.TLS == nil {
		cookies = r.CookiesNamed(name)
	}
	for _, c := range cookies {
		tokens = append(tokens, c.Value)
	}
	return tokens
}
