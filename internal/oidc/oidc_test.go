package oidc

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/holdoutd/holdoutd/internal/await"
	"github.com/holdoutd/holdoutd/internal/oidc/oidctest"
)

// clock is a test's own.
type clock struct{ at atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.at.Store(time.Now().UnixNano())
	return c
}

func (c *clock) now() time.Time           { return time.Unix(0, c.at.Load()) }
func (c *clock) pass(d time.Duration)     { c.at.Add(int64(d)) }
func (c *clock) in(d time.Duration) int64 { return c.now().Add(d).Unix() }

func open(t *testing.T, from *oidctest.Issuer, c *clock, change ...func(*Options)) *Issuer {
	t.Helper()
	o := Options{Issuer: from.URL, Audience: oidctest.Audience, Transport: from.Client().Transport, Now: c.now}
	for _, f := range change {
		f(&o)
	}
	i, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(i.Close)
	return i
}

// expect checks a token; want is a piece of the refusal, or "" where the token is right.
func expect(t *testing.T, i *Issuer, what, token, want string) {
	t.Helper()
	who, err := i.Identify(t.Context(), token)
	var refused *Error
	switch {
	case want == "" && (err != nil || who.Subject != "ann"):
		t.Errorf("%s: %+v %v", what, who, err)
	case want != "" && (!errors.As(err, &refused) || !strings.Contains(refused.Detail, want) || who != (Identity{})):
		t.Errorf("%s: %+v %v, want %q", what, who, err, want)
	case want != "" && len(token) > 20 && strings.Contains(err.Error(), token[:20]):
		t.Errorf("%s: the error has the token: %v", what, err)
	}
}

// TestTokens: a right token of each kind of key is taken, and none that is wrong in one thing. It notices each check that is left out.
func TestTokens(t *testing.T) {
	from, c := oidctest.New(t), newClock()
	i := open(t, from, c)
	right := func(change func(m map[string]any)) string {
		m := from.Claims("ann", c.now())
		change(m)
		return from.Sign(m)
	}
	set := func(name string, value any) string {
		return right(func(m map[string]any) { m[name] = value })
	}
	without := func(name string) string { return right(func(m map[string]any) { delete(m, name) }) }
	token := from.Token("ann")
	parts := strings.Split(token, ".")
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","kid":"one"}`))
	secret := func(key []byte) string { // signed with what everyone can read
		return oidctest.SignWith(t, jose.SigningKey{Algorithm: jose.HS256, Key: jose.JSONWebKey{Key: key, KeyID: "one"}}, "JWT", from.Claims("ann", c.now()))
	}
	der, err := x509.MarshalPKIXPublicKey(from.Key().Public())
	if err != nil {
		t.Fatal(err)
	}
	by := func(key crypto.Signer, id string) jose.SigningKey {
		return jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: key, KeyID: id}}
	}
	as := func(kind jose.ContentType) string {
		return oidctest.SignWith(t, by(from.Key(), "one"), kind, from.Claims("ann", c.now()))
	}
	text := func(more string) string {
		return oidctest.SignWith(t, by(from.Key(), "one"), "JWT", fmt.Appendf(nil, `{"iss":%q,"aud":%q,"exp":%d,%s}`, from.URL, oidctest.Audience, c.in(time.Hour), more))
	}
	for _, one := range []struct{ what, token, want string }{
		{"right", token, ""},
		{"right, for several", set("aud", []string{"other", "holdoutd"}), ""},
		{"right, of little room", set("exp", c.in(-Leeway+2*time.Second)), ""},
		{"another issuer", set("iss", "https://other.example"), "another issuer"},
		{"no issuer", without("iss"), "another issuer"},
		{"another audience", set("aud", "other"), "another audience"},
		{"no audience", without("aud"), "another audience"},
		{"expired", set("exp", c.in(-Leeway-2*time.Second)), "expired"},
		{"without an end", without("exp"), "no end"},
		{"an end that is a text", set("exp", "7"), "its claims"},
		{"an end that is null", set("exp", nil), "no end"},
		{"issued later", set("iat", c.in(Leeway+5*time.Second)), "begins later"},
		{"begins later", set("nbf", c.in(Leeway+5*time.Second)), "begins later"},
		{"begins soon", set("nbf", c.in(Leeway-5*time.Second)), ""},
		{"no subject", without("sub"), "no claim"},
		{"a number", set("sub", 7), "its claims"},
		{"two subjects", text(`"sub":"bob","sub":"ann"`), "its claims"},
		{"a subject in another spelling", text(`"Sub":"ann"`), "no claim"},
		{"the least", text(`"sub":"ann"`), ""},
		{"an empty subject", set("sub", ""), "is empty"},
		{"a long subject", set("sub", strings.Repeat("a", MaxSubjectBytes+1)), "longer"},
		{"control characters", set("sub", "ann\n"), "control"},
		{"no UTF-8", set("sub", "ann\ufffd"), "UTF-8"},
		{"none", none + "." + parts[1] + ".", "signed by an algorithm"},
		{"none, with the signature", none + "." + parts[1] + "." + parts[2], "signed by an algorithm"},
		{"HS256 by the key set", secret(from.Set()), "signed by an algorithm"},
		{"HS256 by the public key", secret(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})), "signed by an algorithm"},
		{"other claims under the signature", parts[0] + "." + strings.Split(from.Token("bob"), ".")[1] + "." + parts[2], "signature"},
		{"another's key of the same id", oidctest.SignWith(t, by(oidctest.RSA(t), "one"), "JWT", from.Claims("ann", c.now())), "signature"},
		{"a key of another id", oidctest.SignWith(t, by(from.Key(), "two"), "JWT", from.Claims("ann", c.now())), "kid"},
		{"a token of no type", as(""), ""},
		{"a token for access", as("at+JWT"), ""},
		{"a logout token", as("logout+jwt"), "typ"},
		{"no key is named, and there is one", oidctest.SignWith(t, by(from.Key(), ""), "JWT", from.Claims("ann", c.now())), ""},
		{"100 KB", token + strings.Repeat("a", 100<<10), "at most"},
		{"three dots", "a.b.c", "signed by an algorithm"},
		{"nothing", "..", "signed by an algorithm"},
	} {
		expect(t, i, one.what, one.token, one.want)
	}
	from.Add("two", oidctest.RSA(t))
	c.pass(KeysFresh)
	expect(t, i, "no key is named, and there are two", oidctest.SignWith(t, by(from.Key(), ""), "JWT", from.Claims("ann", c.now())), "does not say")
	for _, key := range []crypto.Signer{oidctest.EC(t), oidctest.Ed(t)} {
		from.Rotate(fmt.Sprintf("%T", key), key)
		c.pass(FetchEvery)
		expect(t, i, fmt.Sprintf("signed with %T", key), from.Sign(from.Claims("ann", c.now())), "")
	}
}

// landed waits until no reading is under way.
func landed(t *testing.T, i *Issuer) {
	t.Helper()
	await.Until(t, "the reading of the issuer's keys has ended", func() bool {
		i.keys.mu.Lock()
		defer i.keys.mu.Unlock()
		return i.keys.flight == nil
	})
}

// TestKeys: keys are read once, again for an unknown one at most once a minute, and after an hour; those that were read last count for a day while the issuer is down, and no longer.
func TestKeys(t *testing.T) {
	from, c := oidctest.New(t), newClock()
	i := open(t, from, c)
	reads := func(want int64) {
		t.Helper()
		if got := from.Read.Load(); got != want {
			t.Errorf("the keys were read %d times, want %d", got, want)
		}
	}
	fresh := func() string { return from.Sign(from.Claims("ann", c.now())) }
	reads(0)
	for range 3 {
		expect(t, i, "right", fresh(), "")
	}
	reads(1)
	old := fresh()
	from.Rotate("two", oidctest.RSA(t))
	for range 3 {
		expect(t, i, "a new key, at once", fresh(), "kid")
		c.pass(FetchEvery / 4)
	}
	reads(1)
	c.pass(FetchEvery / 4)
	for range 3 {
		expect(t, i, "a new key, after a minute", fresh(), "")
		expect(t, i, "a withdrawn key", old, "kid")
	}
	reads(2)
	from.Rotate("three", oidctest.RSA(t))
	from.Reply(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	c.pass(FetchEvery)
	expect(t, i, "an unknown key while the issuer is down", fresh(), "kid")
	reads(3)
	from.Reply(nil)
	c.pass(FetchEvery)
	expect(t, i, "the issuer is back, and was down a moment ago", fresh(), "kid")
	landed(t, i)
	expect(t, i, "the issuer is back", fresh(), "")
	reads(4)
	c.pass(KeysFresh)
	expect(t, i, "after an hour", fresh(), "")
	reads(5)
	set := string(from.Set())
	for _, one := range []struct {
		what   string
		status int
		text   string
	}{
		{"down", http.StatusBadGateway, set}, {"huge", http.StatusOK, strings.Repeat(" ", 2*maxDocument) + set},
		{"empty", http.StatusOK, `{"keys":[]}`}, {"a page", http.StatusOK, `<html>`},
	} {
		from.Reply(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(one.status)
			io.WriteString(w, one.text)
		})
		c.pass(KeysFresh)
		before := from.Read.Load()
		expect(t, i, one.what, fresh(), "")
		landed(t, i)
		reads(before + 1)
	}
	c.pass(KeysLife)
	expect(t, i, "after a day", fresh(), "cannot be read")
	landed(t, i)
	from.Reply(nil)
	c.pass(FetchEvery)
	expect(t, i, "the issuer is back after a day, and was down a moment ago", fresh(), "cannot be read")
	landed(t, i)
	expect(t, i, "the issuer is back after a day", fresh(), "")
}

// TestSlowIssuer: a request with a token waits for a slow issuer no longer than a reading may take, nor than it lasts itself; and a key that is known counts then, too.
func TestSlowIssuer(t *testing.T) {
	from, c := oidctest.New(t), newClock()
	asked, over := make(chan struct{}, 8), make(chan struct{})
	slow := func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
		<-over
	}
	defer close(over)
	from.Reply(slow)
	i := open(t, from, c, func(o *Options) { o.FetchTime = 20 * time.Millisecond })
	expect(t, i, "slow", from.Token("ann"), "cannot be read")
	<-asked
	expect(t, i, "slow, within a minute", from.Token("ann"), "cannot be read")
	from.Reply(nil)
	i.keys.within = await.Patience
	c.pass(FetchEvery)
	expect(t, i, "quick again, and slow a moment ago", from.Token("ann"), "cannot be read")
	landed(t, i)
	expect(t, i, "quick again", from.Token("ann"), "")
	i.keys.within = 20 * time.Millisecond
	from.Reply(slow)
	c.pass(KeysFresh)
	expect(t, i, "slow, with a key that is known", from.Sign(from.Claims("ann", c.now())), "")
	<-asked

	patient := open(t, from, c, func(o *Options) { o.FetchTime = await.Patience })
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	if who, err := patient.Identify(ctx, from.Token("ann")); !errors.Is(err, context.Canceled) {
		t.Errorf("a request that ended: %+v %v", who, err)
	}
	if len(asked) != 0 {
		t.Error("the issuer was asked again within a minute")
	}
}

// TestDownIssuer: a request with a token does not wait for an issuer that was down a moment ago: with keys that are known it is served at once, and refused at once without; the issuer is asked by one reading, whose keys count from its end
// on.
func TestDownIssuer(t *testing.T) {
	from, c := oidctest.New(t), newClock()
	i := open(t, from, c, func(o *Options) { o.FetchTime = 20 * time.Second }) // which no request below waits
	fresh := func() string { return from.Sign(from.Claims("ann", c.now())) }
	down := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }
	hanging := func() (over func()) {
		asked, end := make(chan struct{}), make(chan struct{})
		from.Reply(func(w http.ResponseWriter, r *http.Request) {
			close(asked)
			select {
			case <-end:
			case <-r.Context().Done():
			}
			w.WriteHeader(http.StatusBadGateway)
		})
		return func() { // once it was asked: a reading that has only begun would have the next reply
			<-asked
			close(end)
			landed(t, i)
		}
	}
	flying := func(what string) {
		t.Helper()
		i.keys.mu.Lock()
		defer i.keys.mu.Unlock()
		if i.keys.flight == nil {
			t.Errorf("%s: the request has waited for the issuer, or it was not asked", what)
		}
	}
	from.Reply(down)
	expect(t, i, "down", fresh(), "cannot be read")
	over := hanging()
	c.pass(FetchEvery)
	for range 8 {
		expect(t, i, "down a moment ago, and no key is known", fresh(), "cannot be read")
	}
	_, err := i.Identify(t.Context(), fresh())
	var refused *Error
	if !errors.As(err, &refused) || !refused.Unavailable || refused.RetryAfter != retryDown {
		t.Errorf("it is to be sent again: %+v", err)
	}
	flying("no key is known")
	over()
	from.Reply(nil)
	c.pass(FetchEvery)
	expect(t, i, "it is back, and was down a moment ago", fresh(), "cannot be read")
	landed(t, i)
	expect(t, i, "it is back", fresh(), "")
	from.Reply(down)
	c.pass(KeysFresh)
	expect(t, i, "down, with a key that is known", fresh(), "")
	over = hanging()
	c.pass(FetchEvery)
	for range 8 {
		expect(t, i, "down a moment ago, with a key that is known", fresh(), "")
	}
	flying("a key is known")
	over()
	if read := from.Read.Load(); read != 5 {
		t.Errorf("the issuer was asked %d times, want 5", read)
	}
}

// TestSets: of a set the keys count that can check a token, and no others.
func TestSets(t *testing.T) {
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	private, public := oidctest.RSA(t), oidctest.RSA(t).Public()
	text := func(keys ...jose.JSONWebKey) string {
		set, err := json.Marshal(jose.JSONWebKeySet{Keys: keys})
		if err != nil {
			t.Fatal(err)
		}
		return string(set)
	}
	right := jose.JSONWebKey{Key: public, KeyID: "right"}
	wrong := []jose.JSONWebKey{
		{Key: []byte("a secret that signer and reader share"), KeyID: "secret"}, {Key: private, KeyID: "private"}, {Key: small.Public(), KeyID: "small"},
		{Key: public, KeyID: "encrypts", Use: "enc"},
	}
	unknown := `{"keys":[{"kty":"new","kid":"x"},7,` + strings.TrimPrefix(text(right), `{"keys":[`)
	for _, one := range []struct{ what, text, want string }{
		{"one", text(right), ""},
		{"one of several", text(append(wrong, right)...), ""},
		{"one of a kind that is known", unknown, ""},
		{"many", text(slices.Repeat([]jose.JSONWebKey{right}, maxKeys+1)...), "at most 64"},
		{"none", `{}`, "none of its 0 keys"},
		{"no object", `[]`, "no JSON object"},
		{"a secret", text(wrong[0]), "none of its 1 keys"},
		{"a private key", text(wrong[1]), "none of its 1 keys"},
		{"a small key", text(wrong[2]), "none of its 1 keys"},
		{"a key for encryption", text(wrong[3]), "none of its 1 keys"},
	} {
		set, err := parseSet([]byte(one.text))
		if one.want == "" && (err != nil || len(set) != 1 || set[0].KeyID != "right") || one.want != "" && (err == nil || !strings.Contains(err.Error(), one.want)) {
			t.Errorf("%s: %v %v", one.what, set, err)
		}
	}
	for _, one := range []struct {
		key       any
		says      string
		algorithm jose.SignatureAlgorithm
		want      bool
	}{
		{public, "", jose.RS256, true},
		{public, "", jose.PS512, true},
		{public, "RS512", jose.RS512, true},
		{public, "RS512", jose.RS256, false},
		{public, "", jose.ES256, false},
		{public, "", jose.HS256, false},
		{oidctest.EC(t).Public(), "", jose.ES256, true},
		{oidctest.EC(t).Public(), "", jose.RS256, false},
		{oidctest.Ed(t).Public(), "", jose.EdDSA, true},
		{oidctest.Ed(t).Public(), "", jose.ES256, false},
		{[]byte("secret"), "", jose.HS256, false},
	} {
		if got := fits(jose.JSONWebKey{Key: one.key, Algorithm: one.says}, string(one.algorithm)); got != one.want {
			t.Errorf("%T %s by %s: %v", one.key, one.says, one.algorithm, got)
		}
	}
}

// TestPlaces: keys come from a file or a URL too, and from no place that somebody on the way can write.
func TestPlaces(t *testing.T) {
	from, c := oidctest.New(t), newClock()
	path := filepath.Join(t.TempDir(), "keys.json")
	if err := os.WriteFile(path, from.Set(), 0o600); err != nil {
		t.Fatal(err)
	}
	expect(t, open(t, from, c, func(o *Options) { o.Keys = path }), "a file", from.Token("ann"), "")
	if from.Read.Load() != 0 {
		t.Error("the issuer was asked for keys that are in a file")
	}
	expect(t, open(t, from, c, func(o *Options) { o.Keys = from.URL + "/keys" }), "a URL", from.Token("ann"), "")
	email := open(t, from, c, func(o *Options) { o.Claim = "email" })
	for verified, want := range map[any]string{true: "", false: "email_verified", "true": "email_verified", nil: "email_verified"} {
		m := from.Claims("7", c.now())
		m["email"], m["email_verified"] = "ann", verified
		expect(t, email, "an address", from.Sign(m), want)
	}
	silent := from.Claims("7", c.now())
	silent["email"] = "ann"
	delete(silent, "email_verified")
	expect(t, email, "an address of which nothing is said", from.Sign(silent), "email_verified")
	for _, o := range []Options{
		{Issuer: "http://issuer.example", Audience: "a"}, {Issuer: "issuer.example", Audience: "a"}, {Audience: "a"}, {Issuer: from.URL},
		{Issuer: from.URL, Audience: "a", Keys: "http://issuer.example/keys"}, {Issuer: from.URL, Audience: "a", Keys: path + ".no"},
	} {
		if i, err := New(o); err == nil {
			i.Close()
			t.Errorf("%+v is taken", o)
		}
	}
}

// TestDiscovery: keys are taken of the place that the issuer's own document names, by a way on which nobody can write; a log says why not.
func TestDiscovery(t *testing.T) {
	from := oidctest.New(t)
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(from.Set()) }))
	t.Cleanup(plain.Close)
	_, port, _ := strings.Cut(strings.TrimPrefix(plain.URL, "http://"), ":")
	stranger := "http://stranger.example:" + port // which reaches the same server, by a name that is not of this machine
	transport := from.Client().Transport.(*http.Transport).Clone()
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, strings.Replace(address, "stranger.example", "127.0.0.1", 1))
	}
	document := func(name, keys string) string { return fmt.Sprintf(`{"issuer":%q,"jwks_uri":%q}`, name, keys) }
	for _, one := range []struct {
		what  string
		reply func(w http.ResponseWriter, r *http.Request, issuer string)
		says  string // in the log; "": the token is taken
	}{
		{"right", func(w http.ResponseWriter, _ *http.Request, issuer string) {
			io.WriteString(w, document(issuer, from.URL+"/keys"))
		}, ""},
		{"keys of this machine", func(w http.ResponseWriter, _ *http.Request, issuer string) {
			io.WriteString(w, document(issuer, plain.URL))
		}, ""},
		{"a redirect", func(w http.ResponseWriter, r *http.Request, issuer string) {
			if r.URL.Path != "/moved" {
				http.Redirect(w, r, "/moved", http.StatusFound)
				return
			}
			io.WriteString(w, document(issuer, from.URL+"/keys"))
		}, ""},
		{"another issuer's", func(w http.ResponseWriter, _ *http.Request, issuer string) {
			io.WriteString(w, document(issuer+"/", from.URL+"/keys"))
		}, "another issuer"},
		{"no place", func(w http.ResponseWriter, _ *http.Request, issuer string) {
			io.WriteString(w, document(issuer, ""))
		}, "jwks_uri"},
		{"a plain place", func(w http.ResponseWriter, _ *http.Request, issuer string) {
			io.WriteString(w, document(issuer, stranger))
		}, "must begin with https://"},
		{"a redirect to a plain place", func(w http.ResponseWriter, r *http.Request, issuer string) {
			if r.URL.Path == "/keys" {
				http.Redirect(w, r, stranger, http.StatusFound)
				return
			}
			io.WriteString(w, document(issuer, issuer+"/keys"))
		}, "must begin with https://"},
		{"redirects without an end", func(w http.ResponseWriter, r *http.Request, _ string) {
			http.Redirect(w, r, r.URL.Path+"x", http.StatusFound)
		}, "too often"},
		{"no document", func(w http.ResponseWriter, _ *http.Request, _ string) { w.WriteHeader(http.StatusNotFound) }, "404"},
		{"a page", func(w http.ResponseWriter, _ *http.Request, _ string) { io.WriteString(w, "<html>") }, "no JSON object"},
		{"a large one", func(w http.ResponseWriter, _ *http.Request, issuer string) {
			io.WriteString(w, strings.Repeat(" ", maxDocument)+document(issuer, from.URL+"/keys"))
		}, "more than"},
	} {
		var server *httptest.Server
		server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { one.reply(w, r, server.URL) }))
		t.Cleanup(server.Close)
		var log bytes.Buffer
		i, err := New(Options{Issuer: server.URL, Audience: oidctest.Audience, Transport: transport, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		claims := from.Claims("ann", time.Now())
		claims["iss"] = server.URL
		token := from.Sign(claims)
		want := ""
		if one.says != "" {
			want = "cannot be read"
		}
		expect(t, i, one.what, token, want)
		i.Close()
		if text := log.String(); !strings.Contains(text, one.says) || (one.says == "") != (text == "") || strings.Contains(text, token[:20]) {
			t.Errorf("%s: the log says %s", one.what, text)
		}
	}
}
