package api

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/holdoutd/holdoutd/holdout"
	"github.com/holdoutd/holdoutd/internal/oidc"
	"github.com/holdoutd/holdoutd/internal/oidc/oidctest"
)

// TestTokensOfAnIssuer walks the way of a token over HTTP and as an agent: it gives nothing before an admin has bound its subject, stands for that key then, spends its grant, and gives nothing once the key is revoked.
// It is in no log and in no file.
func TestTokensOfAnIssuer(t *testing.T) {
	from := oidctest.New(t)
	var ahead atomic.Int64 // of the issuer's clock
	issuer, err := oidc.New(oidc.Options{Issuer: from.URL, Audience: oidctest.Audience, Transport: from.Client().Transport, Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(issuer.Close)
	s := startWith(t, t.TempDir(), issuer, Options{})
	path, card := s.upload("name=flights&holdout=0.5&mechanism=guess_and_check&questions=100&tokens=10")
	token, other := from.Token("ann"), from.Token("bob")
	mine, others := "Authorization: Bearer "+token, "Authorization: Bearer "+other
	if r := s.get(path, mine); r.StatusCode != http.StatusUnauthorized || !strings.Contains(string(r.body), "holdoutd key create NAME --oidc-subject") || !strings.Contains(string(r.body), "ann") {
		t.Errorf("a subject that nobody has bound: %d %s", r.StatusCode, r.body)
	}
	bind := func(subject, scope string) (k CreatedKey) {
		t.Helper()
		r := s.post("/v1/keys", `{"name":"Ann","scope":"`+scope+`","oidc_subject":"`+subject+`"}`)
		r.decode(t, &k)
		if r.StatusCode != http.StatusCreated || k.Secret != "" || strings.Contains(string(r.body), "secret") || k.OIDC == nil || *k.OIDC != (holdout.KeySubject{Issuer: from.URL, Claim: "sub", Subject: subject}) {
			t.Fatalf("bound: %d %s", r.StatusCode, r.body)
		}
		return k
	}
	key := bind("ann", "granted")
	if r := s.post("/v1/keys", `{"name":"Ann","scope":"admin","oidc_subject":"ann"}`); r.StatusCode != http.StatusConflict {
		t.Errorf("bound twice: %d %s", r.StatusCode, r.body)
	}
	if r := s.post("/v1/keys", `{"name":"Ann","scope":"admin","oidc_subject":""}`); r.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("no subject: %d %s", r.StatusCode, r.body)
	}
	if r := s.get(path, mine); r.StatusCode != http.StatusNotFound {
		t.Errorf("without a grant: %d %s", r.StatusCode, r.body)
	}
	if r := s.post("/v1/grants", `{"key":"`+key.ID+`","holdout":"`+card.ID+`","questions":2,"tokens":2,"shows":"full"}`); r.StatusCode != http.StatusCreated {
		t.Fatalf("a grant: %d %s", r.StatusCode, r.body)
	}
	if r := s.post(path+"/queries", `{"type":"fraction","of":"delay > 15"}`, mine); r.StatusCode != http.StatusOK {
		t.Errorf("asked: %d %s", r.StatusCode, r.body)
	}
	if sentence, body, refused := s.agent(token).call("budget", `{"holdout":"`+card.ID+`"}`); refused || !strings.Contains(sentence, "1 of 2 questions") {
		t.Errorf("an agent: %s %s", sentence, body)
	}
	if r := s.get(path + "/answers"); !strings.Contains(string(r.body), key.ID) {
		t.Errorf("the history does not name the key: %s", r.body)
	}
	if r := s.get(path, others); r.StatusCode != http.StatusUnauthorized || !strings.Contains(string(r.body), "bob") {
		t.Errorf("another subject: %d %s", r.StatusCode, r.body)
	}
	cookie, _ := s.sign(token)
	if r := s.get(path, noKey, cookie, own); r.StatusCode != http.StatusOK {
		t.Errorf("a browser that signed in with it: %d %s", r.StatusCode, r.body)
	}
	for _, admins := range []string{"/v1/keys", path + "/ledger", path + "/spending"} {
		if r := s.get(admins, mine); r.StatusCode != http.StatusForbidden {
			t.Errorf("%s is for admins: %d %s", admins, r.StatusCode, r.body)
		}
	}
	ahead.Store(int64(time.Hour + 2*oidc.Leeway))
	if r := s.get(path, mine); r.StatusCode != http.StatusUnauthorized || !strings.Contains(string(r.body), "expired") {
		t.Errorf("expired: %d %s", r.StatusCode, r.body)
	}
	ahead.Store(0)
	if r := s.send("DELETE", "/v1/keys/"+key.ID, nil); r.StatusCode != http.StatusNoContent {
		t.Fatalf("revoke: %d %s", r.StatusCode, r.body)
	}
	if r := s.get(path, mine); r.StatusCode != http.StatusUnauthorized || !strings.Contains(string(r.body), "must bind one") {
		t.Errorf("revoked: %d %s", r.StatusCode, r.body)
	}
	if r := s.get(path, noKey, cookie, own); r.StatusCode != http.StatusUnauthorized {
		t.Errorf("a browser that signed in before it was revoked: %d %s", r.StatusCode, r.body)
	}
	if again := bind("ann", "analyst"); again.ID == key.ID {
		t.Error("the revoked key is back")
	}
	if r := s.get(path, "Authorization: Bearer "+from.Token("ann")); r.StatusCode != http.StatusOK {
		t.Errorf("bound again: %d %s", r.StatusCode, r.body)
	}
	s.keepsNothingOf(t, token, other)
}

// keepsNothingOf looks for pieces of tokens in the log and in the files. The first piece of a token, its head, is no secret.
func (s *server) keepsNothingOf(t *testing.T, tokens ...string) {
	t.Helper()
	var pieces []string
	for _, token := range tokens {
		pieces = append(pieces, strings.Split(token, ".")[1:]...)
	}
	look := func(where string, text []byte) {
		for _, piece := range pieces {
			if len(piece) > 8 && bytes.Contains(text, []byte(piece)) {
				t.Errorf("a piece of a token is in %s", where)
			}
		}
	}
	look("the log", []byte(s.log.String()))
	err := filepath.WalkDir(s.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		look(path, text)
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestWrongTokens sends each kind of wrong token to each door: the replies are refusals of one form that hold nothing of the token, nothing is spent, and a stranger is told the same of a subject that is bound and of one that is not.
// It notices a check that is left out on the way from a door to the issuer's keys.
func TestWrongTokens(t *testing.T) {
	from := oidctest.New(t)
	issuer, err := oidc.New(oidc.Options{Issuer: from.URL, Audience: oidctest.Audience, Transport: from.Client().Transport})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(issuer.Close)
	s := startWith(t, t.TempDir(), issuer, Options{})
	path, _ := s.upload("name=flights&holdout=0.5&mechanism=guess_and_check&questions=100&tokens=10")
	for _, subject := range []string{"ann", "root"} {
		scope := map[string]string{"ann": "analyst", "root": "admin"}[subject]
		if r := s.post("/v1/keys", `{"name":"a","scope":"`+scope+`","oidc_subject":"`+subject+`"}`); r.StatusCode != http.StatusCreated {
			t.Fatalf("bound: %d %s", r.StatusCode, r.body)
		}
	}
	claims := func(subject, name string, value any) map[string]any {
		c := from.Claims(subject, time.Now())
		if name != "" {
			c[name] = value
		}
		return c
	}
	by := func(algorithm jose.SignatureAlgorithm, key any, claims any) string {
		return oidctest.SignWith(t, jose.SigningKey{Algorithm: algorithm, Key: jose.JSONWebKey{Key: key, KeyID: "one"}}, "JWT", claims)
	}
	right := from.Token("root")
	forger := oidctest.RSA(t)
	parts := strings.Split(right, ".")
	ago, later := time.Now().Add(-time.Hour).Unix(), time.Now().Add(time.Hour).Unix()
	wrong := []struct{ what, token, says string }{
		{"alg none", base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + parts[1] + ".", "signed by an algorithm"},
		{"HS256 by the public set", by(jose.HS256, from.Set(), claims("root", "", nil)), "signed by an algorithm"},
		{"forged", by(jose.RS256, forger, claims("root", "", nil)), "signature"},
		{"changed", right[:len(right)-8] + "AAAAAAAA", "signature"},
		{"an unknown kid", oidctest.SignWith(t, jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: forger, KeyID: "two"}}, "JWT", claims("root", "", nil)), "kid"},
		{"another issuer", from.Sign(claims("root", "iss", "https://other.example")), "another issuer"},
		{"another audience", from.Sign(claims("root", "aud", "other")), "another audience"},
		{"expired", from.Sign(claims("root", "exp", ago)), "expired"},
		{"not yet", from.Sign(claims("root", "nbf", later)), "begins later"},
		{"nobody's", from.Sign(claims("nobody", "", nil)), "must bind one"},
		{"of a subject in another case", from.Sign(claims("Root", "", nil)), "must bind one"},
		{"huge", right + strings.Repeat("a", 17<<10), "at most 16384 bytes"},
		{"no token", "a.b.c", "signed by an algorithm"},
	}
	doors := []struct{ method, path, body string }{
		{"GET", path, ""}, {"GET", path + "/answers", ""}, {"GET", path + "/answers/events", ""}, {"POST", path + "/queries", `{"type":"fraction","of":"delay > 15"}`}, {"GET", "/v1/keys", ""},
		{"POST", "/v1/session", ""}, {"GET", "/metrics", ""}, {"POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`},
	}
	through := func(door int, token string) result {
		d := doors[door]
		return s.send(d.method, d.path, strings.NewReader(d.body), "Content-Type: application/json", "Accept: application/json, text/event-stream", "Authorization: Bearer "+token)
	}
	for _, one := range wrong {
		for i, door := range doors {
			r := through(i, one.token)
			text := string(r.body)
			if r.StatusCode != http.StatusUnauthorized || !strings.Contains(text, one.says) || !strings.Contains(text, "unauthorized") || r.Header.Get("WWW-Authenticate") == "" || len(r.Cookies()) != 0 {
				t.Errorf("%s, %s %s: %d %v %s", one.what, door.method, door.path, r.StatusCode, r.Header, text)
			}
			for _, piece := range strings.Split(one.token, ".") {
				if len(piece) > 8 && strings.Contains(text, piece) {
					t.Errorf("%s, %s: a piece of the token is in the reply: %s", one.what, door.path, text)
				}
			}
		}
		s.keepsNothingOf(t, one.token)
	}
	if r := s.get(path+"/budget", "Authorization: Bearer "+right); r.StatusCode != http.StatusOK || !strings.Contains(string(r.body), `"left":100`) {
		t.Errorf("what is left after refusals: %d %s", r.StatusCode, r.body)
	}
	// A stranger, who can sign nothing, does not learn who is bound.
	for i, door := range doors {
		var told []string
		for _, subject := range []string{"root", "ann", "zoe"} {
			p := through(i, by(jose.RS256, forger, claims(subject, "", nil)))
			text := strings.ReplaceAll(string(p.body), p.Header.Get("X-Request-Id"), "")
			told = append(told, text)
		}
		if told[0] != told[1] || told[0] != told[2] {
			t.Errorf("%s %s tells a stranger who is bound: %q", door.method, door.path, told)
		}
	}
}

// TestIssuerDown: while the issuer's keys cannot be had a token gets a 503 that says so, and when to come back; keys work.
func TestIssuerDown(t *testing.T) {
	from := oidctest.New(t)
	from.Reply(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	issuer, err := oidc.New(oidc.Options{Issuer: from.URL, Audience: oidctest.Audience, Transport: from.Client().Transport})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(issuer.Close)
	s := startWith(t, t.TempDir(), issuer, Options{})
	r := s.get("/v1/holdouts", "Authorization: Bearer "+from.Token("ann"))
	if after, err := strconv.Atoi(r.Header.Get("Retry-After")); r.StatusCode != http.StatusServiceUnavailable || err != nil || after < 1 || after > 60 || !strings.Contains(string(r.body), "cannot be read now") {
		t.Errorf("a token: %d %v %s", r.StatusCode, r.Header, r.body)
	}
	if r := s.get("/v1/holdouts"); r.StatusCode != http.StatusOK {
		t.Errorf("a key: %d %s", r.StatusCode, r.body)
	}
	if r := s.post("/v1/keys", `{"name":"Ann","scope":"analyst","oidc_subject":"ann"}`); r.StatusCode != http.StatusCreated {
		t.Errorf("a binding: %d %s", r.StatusCode, r.body)
	}
}

// TestStreamOfAnotherKey: a stream that an admin's token opened ends when the admin's key is revoked, also where the subject has another key by then.
func TestStreamOfAnotherKey(t *testing.T) {
	from := oidctest.New(t)
	issuer, err := oidc.New(oidc.Options{Issuer: from.URL, Audience: oidctest.Audience, Transport: from.Client().Transport})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(issuer.Close)
	s := startWith(t, t.TempDir(), issuer, Options{})
	path, _ := s.upload("name=flights&holdout=0.5&mechanism=gaussian&questions=100")
	bind := func(scope string) (k CreatedKey) {
		t.Helper()
		r := s.post("/v1/keys", `{"name":"Ann","scope":"`+scope+`","oidc_subject":"ann"}`)
		r.decode(t, &k)
		return k
	}
	ask := func(minutes int) {
		s.post(path+"/queries", fmt.Sprintf(`{"type":"fraction","of":"delay > %d"}`, minutes))
	}
	first, token := bind("admin"), from.Token("ann")
	stream := s.follow(t, path+"/answers/events", token)
	ask(1)
	if cursor, _ := stream.next(); cursor != "1" {
		t.Fatalf("an admin's stream has %q", cursor)
	}
	if r := s.send("DELETE", "/v1/keys/"+first.ID, nil); r.StatusCode != http.StatusNoContent {
		t.Fatal(r.StatusCode)
	}
	bind("analyst")
	ask(2) // wakes the stream
	if cursor, p := stream.next(); cursor != "" || stream.lines.Err() != nil {
		t.Errorf("the stream of a revoked key has %s %s, and ends with %v", cursor, p.Answer, stream.lines.Err())
	}
	if r := s.get(path, "Authorization: Bearer "+from.Token("ann")); r.StatusCode != http.StatusOK {
		t.Errorf("a new token stands for the other key: %d %s", r.StatusCode, r.body)
	}
}

// TestNoIssuer: a server without one takes no token, and binds nobody.
func TestNoIssuer(t *testing.T) {
	s := start(t, Options{})
	if r := s.get("/v1/holdouts", "Authorization: Bearer "+oidctest.New(t).Token("ann")); r.StatusCode != http.StatusUnauthorized || !strings.Contains(string(r.body), "--oidc-issuer") {
		t.Errorf("a token: %d %s", r.StatusCode, r.body)
	}
	if r := s.post("/v1/keys", `{"name":"Ann","scope":"analyst","oidc_subject":"ann"}`); r.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(string(r.body), "--oidc-issuer") {
		t.Errorf("bound: %d %s", r.StatusCode, r.body)
	}
}
