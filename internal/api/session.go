package api

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humagin"

	"github.com/holdoutd/holdoutd/holdout"
)

// A session stands for a key in the requests of this server's own pages, so that a page need not keep the key. The cookie is a random token. The
// server keeps the token's hash and the key's, in memory: whoever reads either can sign in with neither. A restart ends all sessions.
const (
	sessionCookie = "holdoutd-session"
	// pageHeader is a header that pages of other sites cannot send: a browser asks this server first whether they may, and it never says so.
	pageHeader = "X-Holdoutd"
	// sessionIdle ends a session that nothing used: a page that was left overnight asks for the key again.
	sessionIdle = 12 * time.Hour
	// sessionLife ends every session: an open page uses its own, by following answers.
	sessionLife = 7 * 24 * time.Hour
	// sessionsOfKey is how many browsers may be signed in with one key. The one that was used longest ago is signed out for a new one.
	sessionsOfKey = 64
)

// SessionKey is whose key a session, or a request, has.
type SessionKey struct {
	ID    string        `json:"id"`
	Name  string        `json:"name" doc:"who uses it, for people"`
	Scope holdout.Scope `json:"scope" enum:"admin,analyst,granted" doc:"what it may do"`
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
		Summary: "Sign in to the pages of this server", Description: "Begins a session of the key in `Authorization` and sets its cookie. For browsers: programs send the key with each request. It ends after 12 hours without a request, after a week, when the key is revoked, when a token that it began with ends, and when the server starts again.",
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
	secret, err := bearerOf(r)
	if err != nil {
		return nil, err
	}
	a.signed.end(tokensOf(r)) // another key's, from before
	key, err := a.service.Remember(ctx, secret)
	if err != nil {
		return nil, err
	}
	token := a.signed.begin(key, time.Now())
	return &sessionReply{SetCookie: []http.Cookie{cookieFor(r, token)}, Body: sessionOf(caller(ctx))}, nil
}

func (a *API) signOut(ctx context.Context, _ *struct{}) (*signedOut, error) {
	r := requestOf(ctx)
	tokens := tokensOf(r)
	if len(tokens) > 0 && !fromOwnPage(r) {
		return nil, foreign()
	}
	a.signed.end(tokens)
	gone := cookieFor(r, "")
	gone.MaxAge = -1
	return &signedOut{[]http.Cookie{gone}}, nil
}

// ofSession is the owner of the key that began a request's session.
func (a *API) ofSession(r *http.Request) (holdout.Principal, error) {
	tokens := tokensOf(r)
	if len(tokens) == 0 {
		_, err := bearerOf(r)
		return holdout.Principal{}, err
	}
	if !fromOwnPage(r) {
		return holdout.Principal{}, foreign()
	}
	for _, token := range tokens {
		key, ok := a.signed.find(token, time.Now())
		if !ok {
			continue
		}
		p, err := a.service.Recall(r.Context(), key)
		if holdout.KindOf(err) == holdout.Unauthorized {
			a.signed.end(tokens) // revoked, or a token that has ended
			break
		}
		return p, err
	}
	return holdout.Principal{}, problem(classes[holdout.Unauthorized], "the session is over: sign in again with a key")
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

// signedIn is one session.
type signedIn struct {
	key         holdout.Remembered
	begun, used time.Time
}

func (s signedIn) over(now time.Time) bool {
	return now.Sub(s.used) > sessionIdle || now.Sub(s.begun) > sessionLife
}

// sessions holds those that are under way, by the hash of their token. There are at most sessionsOfKey for a key, and only an admin makes keys.
type sessions struct {
	mu sync.Mutex
	of map[[sha256.Size]byte]signedIn
}

// begin returns the token of a new session.
func (s *sessions) begin(key holdout.Remembered, now time.Time) string {
	token := rand.Text() // 130 random bits
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = map[[sha256.Size]byte]signedIn{}
	}
	var oldest [sha256.Size]byte
	others := 0
	for name, other := range s.of {
		switch {
		case other.over(now):
			delete(s.of, name)
		case other.key.Same(key):
			if others++; others == 1 || other.used.Before(s.of[oldest].used) {
				oldest = name
			}
		}
	}
	if others >= sessionsOfKey {
		delete(s.of, oldest)
	}
	s.of[sha256.Sum256([]byte(token))] = signedIn{key, now, now}
	return token
}

// find returns the key that began a session, and notes that it was used.
func (s *sessions) find(token string, now time.Time) (key holdout.Remembered, ok bool) {
	name := sha256.Sum256([]byte(token))
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.of[name]
	if !ok || found.over(now) {
		delete(s.of, name)
		return key, false
	}
	found.used = now
	s.of[name] = found
	return found.key, true
}

func (s *sessions) end(tokens []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, token := range tokens {
		delete(s.of, sha256.Sum256([]byte(token)))
	}
}
