package api

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/holdout"
)

// sign signs in and returns the cookie as a browser sends it back.
func (s *server) sign(key string) (cookie string, set *http.Cookie) {
	s.t.Helper()
	r := s.send("POST", "/v1/session", nil, "Authorization: Bearer "+key)
	if cookies := r.Cookies(); r.StatusCode == 200 && len(cookies) == 1 {
		return "Cookie: " + cookies[0].Name + "=" + cookies[0].Value, cookies[0]
	}
	s.t.Fatalf("sign in: %d %v %s", r.StatusCode, r.Header, r.body)
	return "", nil
}

const noKey, own, page = "Authorization: ", "Sec-Fetch-Site: same-origin", "X-Holdoutd: dashboard"

// TestSession signs in and out. It notices a cookie that scripts can read, that other sites' pages send or that holds the key, a session that
// outlives its key, its end or the server, and one that another sign-in leaves behind.
func TestSession(t *testing.T) {
	s := start(t, Options{})
	id, secret := s.newKey("analyst")
	cookie, set := s.sign(secret)
	if !set.HttpOnly || set.SameSite != http.SameSiteStrictMode || set.Path != "/" || set.Secure || set.MaxAge != 0 || !set.Expires.IsZero() || set.Domain != "" {
		t.Errorf("the cookie is %v", set)
	}
	if strings.Contains(set.String(), secret) || strings.Contains(set.String(), strings.TrimPrefix(secret, "hk_")) {
		t.Error("the key is in the cookie")
	}
	var who Session
	s.get("/v1/session", noKey, cookie, own).decode(t, &who)
	if who.Key == nil || who.Key.ID != id || who.Key.Scope != holdout.Analyst {
		t.Errorf("signed in as %+v", who.Key)
	}
	asks := func(cookie string) int { return s.get("/v1/holdouts", noKey, cookie, own).StatusCode }
	if got := asks(cookie); got != 200 {
		t.Errorf("a session is asked for a key: %d", got)
	}
	if r := s.get("/v1/keys", noKey, cookie, own); r.StatusCode != 403 {
		t.Errorf("an analyst's session lists the keys: %d", r.StatusCode)
	}
	if r := s.get("/v1/holdouts", cookie, "Authorization: Bearer hk_nonsense"); r.StatusCode != 401 {
		t.Errorf("a cookie stands in for a wrong header: %d", r.StatusCode)
	}
	if r := s.send("POST", "/v1/session", nil, noKey, cookie, own, page); r.StatusCode != 401 {
		t.Errorf("a session begins another: %d", r.StatusCode)
	}

	second, _ := s.sign(secret)
	r := s.send("DELETE", "/v1/session", nil, noKey, cookie, own, page)
	if gone := r.Cookies(); r.StatusCode != 204 || len(gone) != 1 || gone[0].Name != set.Name || gone[0].MaxAge >= 0 || gone[0].Value != "" {
		t.Errorf("signed out: %d %v", r.StatusCode, r.Header)
	}
	if got := asks(cookie); got != 401 {
		t.Errorf("after signing out: %d", got)
	}
	if r := s.get("/v1/session", noKey, cookie, own); r.StatusCode != 200 || strings.TrimSpace(string(r.body)) != `{"key":null}` {
		t.Errorf("after signing out: %d %s", r.StatusCode, r.body)
	}
	if got := asks(second); got != 200 {
		t.Errorf("signing out in one browser signs out another: %d", got)
	}

	// Another key in the same browser takes the place of the first.
	s.send("POST", "/v1/session", nil, second, own, page)
	if got := asks(second); got != 401 {
		t.Errorf("the session before another sign-in goes on: %d", got)
	}

	third, _ := s.sign(secret)
	if r := s.send("DELETE", "/v1/keys/"+id, nil); r.StatusCode != 204 {
		t.Fatalf("revoke: %d", r.StatusCode)
	}
	if got := asks(third); got != 401 {
		t.Errorf("a session outlives its key: %d", got)
	}
	if r := s.send("POST", "/v1/session", nil, "Authorization: Bearer "+secret); r.StatusCode != 401 || len(r.Cookies()) > 0 {
		t.Errorf("a revoked key signs in: %d %v", r.StatusCode, r.Cookies())
	}
	s.stop()
	for _, told := range []string{secret, s.key, set.Value} {
		if strings.Contains(s.log.String(), told) {
			t.Errorf("%s stands in the log", told)
		}
	}
}

// TestSessionOfForeignPages sends what a page of another site, or of another port of the machine, can make a browser send. It notices a session
// that asks, downloads or deletes for it.
func TestSessionOfForeignPages(t *testing.T) {
	s := start(t, Options{})
	cookie, _ := s.sign(s.key)
	path, _ := s.upload("name=flights&holdout=0.5")
	for _, c := range []struct {
		says    string
		method  string
		headers []string
		allowed bool
	}{
		{"this server's page asks", "POST", []string{own, page}, true},
		{"this server's page asks from a browser that says nothing of sites", "POST", []string{page}, true},
		{"a form of another site", "POST", []string{"Sec-Fetch-Site: cross-site"}, false},
		{"a form of another port", "POST", []string{"Sec-Fetch-Site: same-site"}, false},
		{"a form, from a browser that says nothing of sites", "POST", nil, false},
		{"a form on a page of this server", "POST", []string{own}, false},
		{"a script of another port that may send headers", "POST", []string{"Sec-Fetch-Site: same-site", page}, false},
		{"a script of another site", "POST", []string{"Sec-Fetch-Site: cross-site", page}, false},
		{"a request that nobody's page sent", "POST", []string{"Sec-Fetch-Site: none"}, false},
		{"a download by this server's page", "GET", []string{own}, true},
		{"a bookmark", "GET", []string{"Sec-Fetch-Site: none"}, true},
		{"a link on another site", "GET", []string{"Sec-Fetch-Site: cross-site"}, false},
		{"a picture on a page of another port", "GET", []string{"Sec-Fetch-Site: same-site"}, false},
	} {
		headers := append([]string{noKey, cookie, "Content-Type: text/plain"}, c.headers...)
		to, want, body := path+"/training", 200, ""
		if c.method == "POST" {
			to, body = path+"/queries/explain", late
			headers[2] = "Content-Type: application/json"
		}
		if !c.allowed {
			want = 403
		}
		r := s.send(c.method, to, strings.NewReader(body), headers...)
		if r.StatusCode != want {
			t.Errorf("%s: %d, want %d: %.200s", c.says, r.StatusCode, want, r.body)
		}
		if len(r.Header.Values("Access-Control-Allow-Origin")) > 0 {
			t.Errorf("%s may read the reply", c.says)
		}
	}
	if r := s.send("DELETE", "/v1/session", nil, noKey, cookie, "Sec-Fetch-Site: cross-site"); r.StatusCode != 403 {
		t.Errorf("another site signs out: %d", r.StatusCode)
	}
	if r := s.send("OPTIONS", path+"/queries", nil, noKey, "Origin: https://elsewhere.example", "Access-Control-Request-Headers: x-holdoutd"); r.Header.Get("Access-Control-Allow-Headers") != "" {
		t.Errorf("another site is told that it may send the header: %v", r.Header)
	}
}

// TestSessionCookies: two servers on one machine have one cookie each; over TLS, also that of a proxy, the cookie is for TLS, and one that plain
// HTTP could have set does not count beside it.
func TestSessionCookies(t *testing.T) {
	made := func(host, origin string, encrypted bool, cookies ...string) *http.Request {
		r := httptest.NewRequest("POST", "/v1/session", nil)
		r.Host = host
		r.Header.Set("Origin", origin)
		if encrypted {
			r.TLS = &tls.ConnectionState{}
		}
		for _, c := range cookies {
			r.Header.Add("Cookie", c)
		}
		return r
	}
	for _, c := range []struct {
		r      *http.Request
		name   string
		secure bool
		tokens string
	}{
		{made("127.0.0.1:8080", "http://127.0.0.1:8080", false, "holdoutd-session-8080=a; holdoutd-session-8081=b"), "holdoutd-session-8080", false, "a"},
		{made("holdouts.example", "https://holdouts.example", false, "__Host-holdoutd-session=a; holdoutd-session=b"), "__Host-holdoutd-session", true, "a"},
		{made("holdouts.example", "https://holdouts.example", true, "holdoutd-session=b"), "__Host-holdoutd-session", true, ""},
		{made("[::1]:8080", "http://[::1]:8080", false, "holdoutd-session-8080=a; holdoutd-session-8080=b"), "holdoutd-session-8080", false, "a b"},
	} {
		if got := cookieFor(c.r, "x"); got.Name != c.name || got.Secure != c.secure {
			t.Errorf("%s %s: %v", c.r.Host, c.r.Header.Get("Origin"), got)
		}
		if got := strings.Join(tokensOf(c.r), " "); got != c.tokens {
			t.Errorf("%s: the tokens %q, want %q", c.r.Host, got, c.tokens)
		}
	}
}

// TestSessionsEnd: an unused session ends, a used one too in the end, and one key has so many at most.
func TestSessionsEnd(t *testing.T) {
	var s sessions
	key, now := holdout.RememberKey("hk_a"), time.Now()
	lives := func(token string, at time.Time) bool {
		got, ok := s.find(token, at)
		return ok && got == key
	}
	token := s.begin(key, now)
	at := now
	for at.Sub(now) < sessionLife-sessionIdle {
		if at = at.Add(sessionIdle - time.Second); !lives(token, at) {
			t.Fatalf("over after %v of use", at.Sub(now))
		}
	}
	if lives(token, now.Add(sessionLife+time.Second)) {
		t.Error("a session lasts for ever")
	}
	if token := s.begin(key, now); lives(token, now.Add(sessionIdle+time.Second)) {
		t.Error("an unused session lasts")
	}
	other := s.begin(holdout.RememberKey("hk_b"), now)
	first, second := s.begin(key, now), s.begin(key, now)
	lives(first, now.Add(time.Second))
	for range sessionsOfKey - 1 {
		s.begin(key, now.Add(2*time.Second))
	}
	if !lives(first, now.Add(3*time.Second)) || lives(second, now.Add(3*time.Second)) {
		t.Error("the session that was used longest ago is not the one that ended")
	}
	if _, ok := s.find(other, now); !ok {
		t.Error("many sessions of one key end those of another")
	}
	s.begin(key, now.Add(2*sessionLife))
	if len(s.of) != 1 {
		t.Errorf("%d sessions are kept, want 1", len(s.of))
	}
}
