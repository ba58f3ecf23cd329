package oidc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/holdoutd/holdoutd/internal/oidc/oidctest"
)

const audience = "holdout.example"

// clock is a time that tests move.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// trial is an issuer with one key of each kind, and a verifier of its tokens.
type trial struct {
	*testing.T
	issuer   *oidctest.Issuer
	key      oidctest.Key
	verifier *Verifier
	clock    *clock
}

func rules(t testing.TB, texts ...string) (all []Rule) {
	t.Helper()
	for _, text := range texts {
		r, err := ParseRule(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

func try(t *testing.T, key oidctest.Key, others ...oidctest.Key) *trial {
	t.Helper()
	issuer := oidctest.NewIssuer(t, append([]oidctest.Key{key}, others...)...)
	c := &clock{at: time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)}
	v, err := Open(t.Context(), Config{
		Issuer: issuer.URL, Audience: audience, Admin: rules(t, "groups=owners"), Analyst: rules(t, "groups=data"), Granted: rules(t, "groups=guests", "repository=acme/models AND ref=refs/heads/main"), Now: c.now,
	})
	if err != nil {
		t.Fatal(err)
	}
	return &trial{t, issuer, key, v, c}
}

// token is one of ana's with other claims; nil removes one.
func (x *trial) token(other map[string]any) string {
	x.Helper()
	return oidctest.Sign(x, x.key, x.issuer.Claims(audience, x.clock.now(), other))
}

func (x *trial) refused(what, token, because string) {
	x.Helper()
	who, err := x.verifier.Check(x.Context(), token)
	var r *Refusal
	switch {
	case err == nil:
		x.Errorf("%s: it is believed, of %+v", what, who)
	case !errors.As(err, &r):
		x.Errorf("%s: %v", what, err)
	case !strings.Contains(r.Reason, because):
		x.Errorf("%s: refused, because %s; want a reason with %q", what, r.Reason, because)
	}
	for part := range strings.SplitSeq(token, ".") {
		if err != nil && len(part) > 20 && strings.Contains(err.Error(), part) {
			x.Errorf("%s: the error has a part of the token in it: %v", what, err)
		}
	}
}

func (x *trial) believed(what, token string) Identity {
	x.Helper()
	who, err := x.verifier.Check(x.Context(), token)
	if err != nil {
		x.Fatalf("%s: %v", what, err)
	}
	return who
}

// TestTokens: tokens under each algorithm say whom they are of. It notices an algorithm that does not work, a principal that depends on more than
// issuer and subject, and a role that does not follow from the claims.
func TestTokens(t *testing.T) {
	for _, alg := range []jose.SignatureAlgorithm{jose.RS256, jose.PS256, jose.RS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA} {
		x := try(t, oidctest.NewKey(t, "k", alg))
		first := x.believed(string(alg), x.token(nil))
		if first.Role != Analyst || first.Name != "ana" || first.ID != ID(x.issuer.URL, "7a1d") || !first.Expires.Equal(x.clock.now().Add(5*time.Minute)) {
			t.Errorf("%s: %+v", alg, first)
		}
		x.clock.pass(time.Hour)
		later := x.believed("later", x.token(map[string]any{"preferred_username": "Ana B.", "groups": []string{"data", "owners"}, "jti": "2"}))
		if later.ID != first.ID || later.Role != Admin || later.Name != "Ana B." {
			t.Errorf("%s, another token of the same subject: %+v", alg, later)
		}
		if name, ok := x.verifier.NameOf(first.ID); !ok || name != "Ana B." {
			t.Errorf("the name of %s is %q %v", first.ID, name, ok)
		}
		if other := x.believed("another subject", x.token(map[string]any{"sub": "7a1e"})); other.ID == first.ID {
			t.Errorf("%s: two subjects are one principal", alg)
		}
		if none := x.believed("no group", x.token(map[string]any{"groups": []string{"sales"}, "sub": "8"})); none.Role != "" {
			t.Errorf("who no rule is about has the role %q", none.Role)
		} else if _, ok := x.verifier.NameOf(none.ID); ok {
			t.Error("who may do nothing is remembered")
		}
	}
	if ID("https://a.example", "b") == ID("https://b.example", "b") {
		t.Error("the same subject of two issuers is one principal")
	}
	if got, want := ID("https://a.example", "b"), "oidc:"; !strings.HasPrefix(got, want) || len(got) != len(want)+32 {
		t.Errorf("an id is %q", got)
	}
}

// TestTimes: a token counts from its beginning to its end, give or take a minute. It notices one without an end, one that goes on after it, and one
// of the future.
func TestTimes(t *testing.T) {
	x := try(t, oidctest.NewKey(t, "k", jose.ES256))
	at := func(d time.Duration) float64 { return float64(x.clock.now().Add(d).Unix()) }
	x.believed("it ended half a minute ago", x.token(map[string]any{"exp": at(-30 * time.Second)}))
	x.believed("it begins in half a minute", x.token(map[string]any{"nbf": at(30 * time.Second), "iat": at(30 * time.Second)}))
	x.believed("times with fractions", x.token(map[string]any{"exp": at(time.Minute) + .5, "iat": at(-time.Minute) + .25}))
	x.believed("no beginning", x.token(map[string]any{"iat": nil}))
	x.refused("it ended a minute ago", x.token(map[string]any{"exp": at(-time.Minute)}), "ended at 2026-11-23T11:59:00Z")
	x.refused("it ended in 1970", x.token(map[string]any{"exp": 0}), "ended at 1970")
	x.refused("no end", x.token(map[string]any{"exp": nil}), "(exp)")
	x.refused("an end that is a text", x.token(map[string]any{"exp": fmt.Sprint(at(time.Minute))}), "(exp)")
	x.refused("an end that is no time", x.token(map[string]any{"exp": 1e300}), "(exp)")
	x.refused("an end before all time", x.token(map[string]any{"exp": -1}), "(exp)")
	x.refused("an end that is null", oidctest.SignBytes(t, x.key, []byte(`{"iss":"`+x.issuer.URL+`","aud":"`+audience+`","sub":"1","exp":null}`), nil), "(exp)")
	x.refused("it begins in two minutes", x.token(map[string]any{"nbf": at(2 * time.Minute)}), "(nbf)")
	x.refused("it was made in two minutes", x.token(map[string]any{"iat": at(2 * time.Minute)}), "(iat)")
	x.refused("a beginning that is a text", x.token(map[string]any{"nbf": "now"}), "nbf")
	token := x.token(nil)
	x.believed("now", token)
	x.clock.pass(5*time.Minute + skew)
	x.refused("after its end", token, "ended")
}

// TestClaims: whom a token is for. It notices one for another service, of another issuer, without a subject, or with a member twice, of which
// two readers could take different ones.
func TestClaims(t *testing.T) {
	x := try(t, oidctest.NewKey(t, "k", jose.ES256))
	x.believed("several audiences", x.token(map[string]any{"aud": []string{"account", audience}}))
	for what, c := range map[string]struct {
		claims  map[string]any
		because string
	}{
		"another audience":          {map[string]any{"aud": "other.example"}, "(aud)"},
		"a longer audience":         {map[string]any{"aud": audience + ".evil.example"}, "(aud)"},
		"other audiences":           {map[string]any{"aud": []string{"other.example", "account"}}, "(aud)"},
		"no audience":               {map[string]any{"aud": nil}, "(aud)"},
		"audiences that are none":   {map[string]any{"aud": []any{1, nil, map[string]any{audience: audience}}}, "(aud)"},
		"another issuer":            {map[string]any{"iss": "https://evil.example"}, "(iss)"},
		"the issuer with a slash":   {map[string]any{"iss": x.issuer.URL + "/"}, "(iss)"},
		"issuers":                   {map[string]any{"iss": []string{x.issuer.URL}}, "(iss)"},
		"no issuer":                 {map[string]any{"iss": nil}, "(iss)"},
		"no subject":                {map[string]any{"sub": nil}, "(sub)"},
		"an empty subject":          {map[string]any{"sub": ""}, "(sub)"},
		"a subject that is no text": {map[string]any{"sub": 7}, "(sub)"},
		"a long subject":            {map[string]any{"sub": strings.Repeat("s", maxSubject+1)}, "(sub)"},
		"bound to a key":            {map[string]any{"cnf": map[string]any{"jkt": "x"}}, "(cnf)"},
	} {
		x.refused(what, x.token(c.claims), c.because)
	}
	good := `"iss":"` + x.issuer.URL + `","aud":"` + audience + `","exp":` + fmt.Sprint(x.clock.now().Add(time.Minute).Unix())
	x.believed("as text", oidctest.SignBytes(t, x.key, []byte(`{`+good+`,"sub":"1"}`), nil))
	for what, payload := range map[string]string{
		"a member twice":          `{` + good + `,"sub":"1","sub":"2"}`,
		"a member twice, escaped": `{` + good + `,"sub":"1","s\u0075b":"2"}`,
		"a member twice, within":  `{` + good + `,"sub":"1","realm_access":{"roles":["a"],"roles":["owners"]}}`,
		"names in capitals":       `{` + good + `,"SUB":"1"}`,
		"a list":                  `[]`,
		"nothing":                 ``,
		"null":                    `null`,
		"two objects":             `{` + good + `,"sub":"1"}{}`,
		"no UTF-8":                `{` + good + ",\"sub\":\"\xff\"}",
	} {
		x.refused(what, oidctest.SignBytes(t, x.key, []byte(payload), nil), "")
	}
}

// TestNames: a name is one line, and not long.
func TestNames(t *testing.T) {
	for _, c := range []struct {
		claims claims
		want   string
	}{
		{claims{"sub": "repo:acme/models:ref:refs/heads/main"}, "repo:acme/models:ref:refs/heads/main"},
		{claims{"sub": "1", "name": "Ana", "email": "ana@acme.example"}, "ana@acme.example"},
		{claims{"sub": "1", "name": "Ana\n{\"level\":\"error\"}\u202e"}, `Ana{"level":"error"}`},
		{claims{"sub": "1", "preferred_username": strings.Repeat("ä", 300)}, strings.Repeat("ä", maxName)},
		{claims{"sub": "1", "preferred_username": []any{"x"}}, "1"},
		{claims{"sub": "\x00"}, "?"},
	} {
		if got := c.claims.name(); got != c.want {
			t.Errorf("%v is called %q, want %q", c.claims, got, c.want)
		}
	}
}

// TestRules: what follows from claims as issuers write them. It notices an address that nobody verified, a rule of which one half holds, and one that lets
// everyone in.
func TestRules(t *testing.T) {
	keycloak := claims{"sub": "1", "realm_access": map[string]any{"roles": []any{"holdout", "user"}}, "azp": "cli"}
	github := claims{"sub": "repo:acme/models:ref:refs/heads/main", "repository": "acme/models", "ref": "refs/heads/main", "repository_owner": "acme"}
	entra := claims{"groups": []any{"8d1e", "77aa"}, "roles": []any{"Holdout.Admin"}}
	google := claims{"hd": "acme.example", "email": "ana@acme.example", "email_verified": true}
	for _, c := range []struct {
		rule   string
		claims claims
		want   bool
	}{
		{"realm_access.roles=holdout", keycloak, true},
		{"realm_access.roles=hold", keycloak, false},
		{"realm_access=holdout", keycloak, false},
		{"realm_access.roles.holdout=user", keycloak, false},
		{"repository=acme/models", github, true},
		{"repository=acme/models AND ref=refs/heads/main", github, true},
		{"repository=acme/models AND ref=refs/heads/evil", github, false},
		{"ref=refs/heads/main AND repository=acme/other", github, false},
		{"repository=ACME/models", github, false},
		{"sub=repo:acme/models:ref:refs/heads/main", github, true},
		{"groups=8d1e", entra, true},
		{"groups=8d1", entra, false},
		{"roles=Holdout.Admin", entra, true},
		{"hd=acme.example", google, true},
		{"email=ana@acme.example", google, true},
		{"email=ana@acme.example", claims{"email": "ana@acme.example"}, false},
		{"email=ana@acme.example", claims{"email": "ana@acme.example", "email_verified": false}, false},
		{"email=ana@acme.example", claims{"email": "ana@acme.example", "email_verified": "true"}, true},
		{"email_verified=true AND hd=acme.example", google, true},
		{"groups=CN=data,OU=teams", claims{"groups": "CN=data,OU=teams"}, true},
		{"https://acme.example/groups=data", claims{"https://acme.example/groups": []any{"data"}}, true},
		{"a.b=top", claims{"a.b": "top", "a": map[string]any{"b": "within"}}, true},
		{"a.b=within", claims{"a.b": "top", "a": map[string]any{"b": "within"}}, false},
		{"n=1", claims{"n": 1.0}, false},
	} {
		if got := anyHolds(rules(t, c.rule), c.claims); got != c.want {
			t.Errorf("%q of %v: %v", c.rule, c.claims, got)
		}
	}
	if anyHolds(nil, github) || (Rule{}).holds(github) {
		t.Error("no rule holds for somebody")
	}
	for _, text := range []string{"", "groups", "groups=", "=data", "a=b AND ", "a=b AND c", "a b=c", "iss=https://token.actions.githubusercontent.com", "aud=x", "aud=x AND iss=y"} {
		if r, err := ParseRule(text); err == nil {
			t.Errorf("%q is a rule: %v", text, r)
		}
	}
}

// TestRoles: of the rules that hold, the strongest counts. It notices a limit that takes something away from an analyst, one that is dropped, and half a rule that lets somebody in.
func TestRoles(t *testing.T) {
	x := try(t, oidctest.NewKey(t, "k", jose.ES256))
	for _, c := range []struct {
		claims map[string]any
		want   Role
	}{
		{map[string]any{"groups": []string{"guests"}}, Granted},
		{map[string]any{"groups": []string{"guests", "data"}}, Analyst},
		{map[string]any{"groups": []string{"guests", "owners"}}, Admin},
		{map[string]any{"groups": []string{"guests", "data", "owners"}}, Admin},
		{map[string]any{"groups": []string{"data", "owners"}}, Admin},
		{map[string]any{"groups": nil, "repository": "acme/models", "ref": "refs/heads/main"}, Granted},
		{map[string]any{"groups": nil, "repository": "acme/models", "ref": "refs/heads/try"}, ""},
		{map[string]any{"groups": []string{"data"}, "repository": "acme/models", "ref": "refs/heads/main"}, Analyst},
	} {
		if who := x.believed("roles", x.token(c.claims)); who.Role != c.want {
			t.Errorf("%v: the role %q, want %q", c.claims, who.Role, c.want)
		}
	}
	alone := Config{Issuer: x.issuer.URL, Audience: audience, Granted: rules(t, "groups=guests AND ref=a", "groups=data AND ref=b")}
	alone.Admin, alone.Analyst = rules(t, "groups=owners"), rules(t, "groups=data AND ref=a", "ref=a AND hd=b")
	if _, err := Open(t.Context(), alone); err != nil {
		t.Errorf("rules that are each about others: %v", err)
	}
	if alone.Admin, alone.Analyst = nil, nil; alone.check() != nil {
		t.Errorf("a server for those with grants alone: %v", alone.check())
	}
}

// TestOpen: a server that cannot read the issuer's keys does not start, and says why.
func TestOpen(t *testing.T) {
	key := oidctest.NewKey(t, "k", jose.ES256)
	issuer := oidctest.NewIssuer(t, key)
	file := filepath.Join(t.TempDir(), "keys.json")
	if err := os.WriteFile(file, issuer.JWKS(), 0o600); err != nil {
		t.Fatal(err)
	}
	good := Config{Issuer: issuer.URL, Audience: audience, Analyst: rules(t, "groups=data")}
	with := func(f func(*Config)) Config { c := good; f(&c); return c }
	for what, c := range map[string]Config{
		"discovery": good, "an address": with(func(c *Config) { c.Keys = issuer.URL + "/keys" }),
		"a file": with(func(c *Config) { c.Issuer, c.Keys = "https://elsewhere.example", file }),
	} {
		v, err := Open(t.Context(), c)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		token := oidctest.Sign(t, key, issuer.Claims(audience, time.Now(), map[string]any{"iss": c.Issuer}))
		if who, err := v.Check(t.Context(), token); err != nil || who.Role != Analyst {
			t.Errorf("%s: %+v %v", what, who, err)
		}
	}
	gone := oidctest.NewIssuer(t, key)
	for what, c := range map[string]struct {
		config Config
		says   string
	}{
		"no issuer":               {with(func(c *Config) { c.Issuer = "" }), "issuer"},
		"an issuer without TLS":   {with(func(c *Config) { c.Issuer = "http://login.example" }), "https://"},
		"an issuer by a user":     {with(func(c *Config) { c.Issuer = "https://a:b@login.example" }), "https URL"},
		"no audience":             {with(func(c *Config) { c.Audience = "" }), "audience"},
		"nobody may do anything":  {with(func(c *Config) { c.Analyst = nil }), "no token could do anything"},
		"a limit of nobody":       {with(func(c *Config) { c.Granted = rules(t, "groups=guests", "groups=data") }), `"groups=data" limits nobody: oidc-analyst "groups=data"`},
		"a limit of some of them": {with(func(c *Config) { c.Granted = rules(t, "groups=guests AND groups=data") }), `"groups=guests AND groups=data" limits nobody`},
		"a limit of admins":       {with(func(c *Config) { c.Admin, c.Granted = rules(t, "sub=1"), rules(t, "sub=1 AND ref=main") }), `oidc-admin "sub=1"`},
		"keys without TLS":        {with(func(c *Config) { c.Keys = "http://login.example/keys" }), "https://"},
		"no such file":            {with(func(c *Config) { c.Keys = file + ".gone" }), "no such file"},
		"no such document":        {with(func(c *Config) { c.Keys = issuer.URL + "/nothing" }), "404"},
		"nobody answers":          {with(func(c *Config) { c.Issuer = "http://127.0.0.1:1" }), "refused"},
		"another's discovery":     {with(func(c *Config) { c.Issuer = strings.Replace(gone.URL, "127.0.0.1", "localhost", 1) }), "letter by letter"},
	} {
		if _, err := Open(t.Context(), c.config); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want an error with %q", what, err, c.says)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(ended, good); !errors.Is(err, context.Canceled) {
		t.Errorf("a start that was given up: %v", err)
	}
}
