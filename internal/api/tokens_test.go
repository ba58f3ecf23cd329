package api

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/holdoutd/holdoutd/holdout"
	"github.com/holdoutd/holdoutd/internal/oidc"
	"github.com/holdoutd/holdoutd/internal/oidc/oidctest"
)

// A realm is a server that believes an issuer.
type realm struct {
	*server
	issuer *oidctest.Issuer
	signs  oidctest.Key
	later  *atomic.Int64 // how far the server's clock is ahead, in nanoseconds, as far as tokens go
}

const realmAudience = "holdout.example"

func startRealm(t *testing.T) *realm {
	t.Helper()
	key := oidctest.NewKey(t, "k", jose.ES256)
	issuer := oidctest.NewIssuer(t, key)
	later := &atomic.Int64{}
	v, err := oidc.Open(t.Context(), oidc.Config{
		Issuer: issuer.URL, Audience: realmAudience,
		Admin: []oidc.Rule{{{Claim: "groups", Value: "owners"}}}, Analyst: []oidc.Rule{{{Claim: "groups", Value: "data"}}},
		Granted: []oidc.Rule{{{Claim: "groups", Value: "guests"}}},
		Now:     func() time.Time { return time.Now().Add(time.Duration(later.Load())) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return &realm{start(t, Options{Tokens: v}), issuer, key, later}
}

// token is the header of a token with other claims.
func (r *realm) token(other map[string]any) string {
	r.t.Helper()
	return "Authorization: Bearer " + oidctest.Sign(r.t, r.signs, r.issuer.Claims(realmAudience, time.Now(), other))
}

// TestTokensInsteadOfKeys: a token opens the doors that a key of its role opens, and its holder is named. It notices a token that may do more or less than its
// claims say, one that is believed somewhere and not elsewhere, a history that is somebody else's, and one that stands in the log.
func TestTokensInsteadOfKeys(t *testing.T) {
	s := startRealm(t)
	owner := map[string]any{"groups": []string{"owners"}, "sub": "owner", "preferred_username": "olga"}
	path, card := s.upload("name=flights&holdout=0.5&mechanism=thresholdout", s.token(owner))
	id := oidc.ID(s.issuer.URL, "7a1d")
	for _, c := range []struct {
		what, method, path, body string
		header                   string
		want                     int
	}{
		{"ana asks", "POST", path + "/queries", late, s.token(nil), 200},
		{"ana asks again, by another token", "POST", path + "/queries", late, s.token(map[string]any{"jti": "2"}), 200},
		{"ana reads the budget", "GET", path + "/budget", "", s.token(nil), 200},
		{"ana lists keys", "GET", "/v1/keys", "", s.token(nil), 403},
		{"ana exports the ledger", "GET", path + "/ledger", "", s.token(nil), 403},
		{"ana deletes the holdout", "DELETE", path, "", s.token(nil), 403},
		{"ana reads all metrics", "GET", "/metrics", "", s.token(nil), 200},
		{"ana, now an owner, lists keys", "GET", "/v1/keys", "", s.token(map[string]any{"groups": []string{"data", "owners"}}), 200},
		{"ana, who has left the group", "GET", path + "/budget", "", s.token(map[string]any{"groups": []string{}}), 403},
		{"somebody of no group", "POST", path + "/queries", late, s.token(map[string]any{"sub": "9", "groups": nil}), 403},
		{"an old token", "POST", path + "/queries", late, s.token(map[string]any{"exp": time.Now().Add(-time.Hour).Unix()}), 401},
		{"a token for another service", "POST", path + "/queries", late, s.token(map[string]any{"aud": "other"}), 401},
		{"no algorithm", "GET", "/v1/holdouts", "", "Authorization: Bearer eyJhbGciOiJub25lIn0.e30.", 401},
		{"a token and more", "GET", "/v1/holdouts", "", s.token(nil) + " x", 401},
		{"a token twice in a header", "GET", "/v1/holdouts", "", s.token(nil) + ", " + strings.TrimPrefix(s.token(nil), "Authorization: "), 401},
		{"an endless token", "GET", "/v1/holdouts", "", "Authorization: Bearer a." + strings.Repeat("a", oidc.MaxTokenBytes) + ".a", 401},
		{"a token by another scheme", "GET", "/v1/holdouts", "", strings.Replace(s.token(nil), "Bearer", "DPoP", 1), 401},
		{"a key", "GET", "/v1/holdouts", "", "Authorization: Bearer " + s.key, 200},
	} {
		headers := []string{c.header}
		if c.body != "" {
			headers = append(headers, "Content-Type: application/json")
		}
		r := s.send(c.method, c.path, strings.NewReader(c.body), headers...)
		if r.StatusCode != c.want {
			t.Errorf("%s: %d, want %d: %.300s", c.what, r.StatusCode, c.want, r.body)
		}
		if r.StatusCode == 401 && r.Header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s: 401 without WWW-Authenticate", c.what)
		}
	}
	request, err := http.NewRequest("GET", s.url+"/v1/holdouts", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header["Authorization"] = []string{"Bearer " + s.key, strings.TrimPrefix(s.token(nil), "Authorization: ")}
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	reply.Body.Close()
	if reply.StatusCode != 401 {
		t.Errorf("two headers: %d", reply.StatusCode)
	}

	// An agent brings a token as it would bring a key.
	agent := s.agent(strings.TrimPrefix(s.token(nil), "Authorization: Bearer "))
	if said, _, failed := agent.call("ask", `{"holdout":"`+card.ID+`","query":{"type":"fraction","of":"delay > 20"}}`); failed {
		t.Errorf("an agent with a token: %s", said)
	}

	mine := s.history(t, path, 10, s.token(nil))
	if len(mine) != 2 {
		t.Fatalf("ana has asked %d questions", len(mine))
	}
	for _, whose := range [][]past{mine, s.history(t, path, 10), s.history(t, path, 10, s.token(owner))} {
		for _, p := range whose {
			if p.AskedBy.ID != id || p.AskedBy.Name == nil || *p.AskedBy.Name != "ana" {
				t.Errorf("asked by %+v", p.AskedBy)
			}
		}
	}
	if others := s.history(t, path, 10, s.token(map[string]any{"sub": "another"})); len(others) != 0 {
		t.Errorf("another person sees %d answers of ana's", len(others))
	}
	s.stop()
	if log := s.log.String(); !strings.Contains(log, `"key":"`+id+`","name":"ana"`) {
		t.Error("the log does not name ana")
	}
	for _, told := range []string{strings.Split(s.token(nil), ".")[0][len("Authorization: Bearer "):], s.key} {
		if strings.Contains(s.log.String(), told) {
			t.Errorf("%s stands in the log", told)
		}
	}
}

// TestTokensOfGrantsAlone: a token that only --oidc-granted is about opens what was granted to its holder, and shows it so. It notices one that asks without a grant, one
// that goes around a grant of a bit by what is not granted, and a stronger rule that undoes somebody's grant. That each door is closed is in TestKeysKeepToTheirHoldouts.
func TestTokensOfGrantsAlone(t *testing.T) {
	s := startRealm(t)
	path, card := s.upload("name=flights&holdout=0.5&mechanism=thresholdout&questions=100&tokens=10")
	guest := func(groups ...string) string { return s.token(map[string]any{"sub": "guest", "groups": groups}) }
	var who Session
	s.get("/v1/session", guest("guests")).decode(t, &who)
	if who.Key == nil || who.Key.ID != oidc.ID(s.issuer.URL, "guest") || who.Key.Scope != holdout.Analyst {
		t.Fatalf("a guest's session is of %+v", who.Key)
	}
	refused := func(when string) {
		t.Helper()
		for _, c := range []struct{ method, path, body string }{
			{"POST", path + "/queries", deciding(20)}, {"POST", path + "/queries/explain", deciding(20)}, {"POST", path + "/queries/batch", `{"queries":[` + deciding(20) + `]}`},
			{"GET", path + "/answers", ""}, {"GET", path + "/answers/events", ""}, {"GET", path + "/budget", ""}, {"GET", path, ""}, {"GET", path + "/training", ""},
		} {
			headers := []string{guest("guests")}
			if c.body != "" {
				headers = append(headers, "Content-Type: application/json")
			}
			if r := s.send(c.method, c.path, strings.NewReader(c.body), headers...); r.StatusCode != 404 {
				t.Errorf("%s, %s %s: %d %.300s", when, c.method, c.path, r.StatusCode, r.body)
			}
		}
		if r := s.get("/v1/holdouts", guest("guests")); strings.Contains(string(r.body), card.ID) {
			t.Errorf("%s, the list: %s", when, r.body)
		}
		agent := s.agent(strings.TrimPrefix(guest("guests"), "Authorization: Bearer "))
		if said, _, failed := agent.call("ask", `{"holdout":"`+card.ID+`","query":`+deciding(20)+`}`); !failed {
			t.Errorf("%s, an agent: %s", when, said)
		}
	}
	refused("without a grant")
	if r := s.post(path+"/queries", deciding(20), s.token(nil)); r.StatusCode != 200 || !strings.Contains(string(r.body), `"low"`) {
		t.Errorf("an analyst without a grant: %d %s", r.StatusCode, r.body)
	}

	g := s.grant(path, `{"holder":"`+who.Key.ID+`","questions":5,"tokens":2,"shows":"bit"}`)
	for _, groups := range [][]string{{"guests"}, {"guests", "data"}, {"data"}} { // whoever has a grant asks on it, also by a stronger rule
		for _, query := range []string{deciding(20), deciding(25)} {
			r := s.post(path+"/queries", query, guest(groups...))
			var reply AskReply
			if r.StatusCode != 200 {
				t.Fatalf("%v with a grant: %d %s", groups, r.StatusCode, r.body)
			}
			r.decode(t, &reply)
			if a := reply.Answer; a.Shows != "bit" || a.Verdict == "" || a.Value != nil || a.Interval != nil || reply.Budget.Grant != g.ID || reply.Budget.Questions.Left != 4 && query != deciding(20) {
				t.Errorf("%v with a grant of a bit is told %s", groups, r.body)
			}
		}
		if r := s.post(path+"/queries", late, guest(groups...)); r.StatusCode != 403 || !strings.Contains(string(r.body), "not-shown") {
			t.Errorf("%v asks for a number: %d %s", groups, r.StatusCode, r.body)
		}
	}
	if past := s.get(path+"/answers", guest("guests")); past.StatusCode != 200 || !strings.Contains(string(past.body), `"shows":"bit"`) || strings.Contains(string(past.body), `"low"`) {
		t.Errorf("the history of a guest: %d %s", past.StatusCode, past.body)
	}
	if r := s.send("DELETE", "/v1/grants/"+g.ID, nil); r.StatusCode != 204 {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	refused("after the grant")
	if r := s.post(path+"/queries", deciding(30), guest("guests", "data")); r.StatusCode != 403 || !strings.Contains(string(r.body), "grant-ended") {
		t.Errorf("an analyst whose grant has ended: %d %s", r.StatusCode, r.body)
	}
}

// TestTokensDoNotSignIn: a session would outlive a token and the rights of its holder. It notices one that begins with a token.
func TestTokensDoNotSignIn(t *testing.T) {
	s := startRealm(t)
	r := s.send("POST", "/v1/session", nil, s.token(nil))
	if r.StatusCode != 403 || len(r.Cookies()) > 0 || !strings.Contains(string(r.body), "hk_") {
		t.Errorf("signed in: %d %v %s", r.StatusCode, r.Cookies(), r.body)
	}
	var who Session
	s.get("/v1/session", s.token(nil)).decode(t, &who)
	if who.Key == nil || who.Key.ID != oidc.ID(s.issuer.URL, "7a1d") || who.Key.Name != "ana" {
		t.Errorf("a token's session is of %+v", who.Key)
	}
	_, key := s.newKey("analyst")
	if cookie, _ := s.sign(key); s.get("/v1/holdouts", noKey, cookie, own).StatusCode != 200 {
		t.Error("a key does not sign in any more")
	}
}

// TestTokensEndStreams: a stream of answers ends with its token, as it ends with its key.
func TestTokensEndStreams(t *testing.T) {
	s := startRealm(t)
	path, _ := s.upload("name=flights&holdout=0.5")
	who := map[string]any{"groups": []string{"owners"}}
	stream := s.follow(t, path+"/answers/events", strings.TrimPrefix(s.token(who), "Authorization: Bearer "))
	ask := func(over string) { s.post(path+"/queries", `{"type":"fraction","of":"delay > `+over+`"}`) }
	ask("15")
	if id, _ := stream.next(); id == "" {
		t.Fatal("the stream ended before its token")
	}
	s.later.Store(int64(10 * time.Minute))
	ask("20") // is still sent, and the token looked at after it
	ask("25")
	for n := range 3 {
		if id, _ := stream.next(); id == "" {
			return
		} else if n == 2 {
			t.Fatal("the stream goes on after its token ended")
		}
	}
}

// TestTokensWithoutIssuer: a server that was told of no issuer believes no token.
func TestTokensWithoutIssuer(t *testing.T) {
	s := start(t, Options{})
	key := oidctest.NewKey(t, "k", jose.ES256)
	issuer := oidctest.NewIssuer(t, key)
	token := oidctest.Sign(t, key, issuer.Claims(realmAudience, time.Now(), nil))
	if r := s.get("/v1/holdouts", "Authorization: Bearer "+token); r.StatusCode != 401 {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	if issuer.Fetches.Load() != 0 {
		t.Error("it asked the issuer that the token names")
	}
}

// TestBucketsAreBounded: an issuer knows any number of people. It notices a bucket that is kept for each for ever, and one that is dropped while
// it says that its key has to wait.
func TestBucketsAreBounded(t *testing.T) {
	r := rates{limit: 1, burst: 2}
	now := time.Now()
	r.take("spent", now)
	r.take("spent", now)
	for i := range 3 * fewBuckets {
		r.take(fmt.Sprint("p", i), now)
	}
	if wait := r.take("spent", now); wait == 0 {
		t.Error("who has used all requests has new ones")
	}
	for i := range 4 * fewBuckets {
		r.take(fmt.Sprint("q", i), now.Add(time.Hour+time.Duration(i)*time.Minute))
	}
	if n := len(r.buckets); n > fewBuckets {
		t.Errorf("%d buckets are kept of people who ask once a minute", n)
	}
}
