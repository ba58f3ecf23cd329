package api

import (
	"net/http"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/holdout"
)

// TestGrants walks the way of a grant over HTTP: an admin makes it, the key spends it and is shown what it shows, also as an agent and in the stream of answers; others see nothing of it, and it ends at once.
func TestGrants(t *testing.T) {
	s := start(t, Options{})
	path, card := s.upload("name=flights&holdout=0.5&mechanism=guess_and_check&questions=100&tokens=10")
	id, secret := s.newKey("granted")
	mine := "Authorization: Bearer " + secret
	if r := s.get(path, mine); r.StatusCode != http.StatusNotFound {
		t.Errorf("without a grant: %d %s", r.StatusCode, r.body)
	}
	made := s.post("/v1/grants", `{"key":"`+id+`","holdout":"`+card.ID+`","questions":2,"tokens":2,"shows":"bit","expires":"2099-01-01T00:00:00Z"}`)
	var grant holdout.GrantInfo
	made.decode(t, &grant)
	if made.StatusCode != http.StatusCreated || made.Header.Get("Location") != "/v1/grants/"+grant.ID || grant.State != "valid" {
		t.Fatalf("made: %d %s", made.StatusCode, made.body)
	}
	const query = `{"type":"passes","of":{"type":"fraction","of":"delay > 15"},"below":0.9}`
	asked := s.post(path+"/queries", query, mine)
	if asked.StatusCode != 200 || !strings.Contains(string(asked.body), `"passed":true`) || strings.Contains(string(asked.body), `"low":`) || !strings.Contains(string(asked.body), `"head":""`) {
		t.Errorf("asked: %d %s", asked.StatusCode, asked.body)
	}
	if r := s.get(path+"/answers", mine); r.StatusCode != 200 || !strings.Contains(string(r.body), `"passed":true`) || strings.Contains(string(r.body), `"low":`) {
		t.Errorf("history: %d %s", r.StatusCode, r.body)
	}
	agent := s.agent(secret)
	sentence, body, refused := agent.call("ask", `{"holdout":"`+card.ID+`","query":`+query+`}`)
	if refused || !strings.Contains(sentence, "It passes") || strings.Contains(sentence, "interval") || !strings.Contains(body, `"passed":true`) {
		t.Errorf("an agent: %s %s", sentence, body)
	}
	if sentence, body, refused = agent.call("budget", `{"holdout":"`+card.ID+`"}`); refused || !strings.Contains(sentence, "1 of 2 questions") || strings.Contains(sentence, "token") || !strings.Contains(body, `"tokens":null`) {
		t.Errorf("an agent's budget: %s %s", sentence, body)
	}
	if r := s.post(path+"/queries", `{"type":"mean","of":"delay","range":[-60,180]}`, mine); r.StatusCode != http.StatusForbidden || !strings.Contains(string(r.body), `"not-shown"`) {
		t.Errorf("a question without a verdict: %d %s", r.StatusCode, r.body)
	}
	for i, want := range []int{200, 403} {
		q := strings.Replace(query, "0.9", "0."+strings.Repeat("8", i+1), 1)
		if r := s.post(path+"/queries", q, mine); r.StatusCode != want || want == 403 && !strings.Contains(string(r.body), `"grant-exhausted"`) {
			t.Errorf("question %d: %d %s", i+2, r.StatusCode, r.body)
		}
	}
	if r := s.post(path+"/queries", strings.Replace(query, "0.9", "0.88", 1)); r.StatusCode != 200 {
		t.Errorf("the holdout's own budget: %d %s", r.StatusCode, r.body)
	}
	var all Grants
	s.get("/v1/grants").decode(t, &all)
	if len(all.Grants) != 1 || all.Grants[0].Questions.Spent != 2 || all.Grants[0].Questions.Left != 0 || all.Grants[0].Tokens == nil {
		t.Errorf("the admin's list: %+v", all)
	}
	all = Grants{}
	s.get("/v1/grants", mine).decode(t, &all)
	if len(all.Grants) != 1 || all.Grants[0].Tokens != nil {
		t.Errorf("the key's list: %+v", all)
	}
	var spending Spending
	s.get(path+"/spending").decode(t, &spending)
	if len(spending.Spenders) != 2 || spending.Spenders[0].Key.ID != id || spending.Spenders[0].Questions != 2 {
		t.Errorf("spending: %+v", spending)
	}
	for _, r := range []result{s.get(path+"/spending", mine), s.post("/v1/grants", "{}", mine), s.send(http.MethodDelete, "/v1/grants/"+grant.ID, nil, mine)} {
		if r.StatusCode != http.StatusForbidden {
			t.Errorf("not an admin: %d %s", r.StatusCode, r.body)
		}
	}
	for body, where := range map[string]string{
		`{"holdout":"ho_1","questions":1}`: `is missing`, `{"key":1,"holdout":"ho_1","questions":1}`: `"pointer":"/key"`, `{"key":"k","holdout":"ho_1","questions":"1"}`: `"pointer":"/questions"`,
		`{"key":"k","holdout":"ho_1","questions":1,"expires":"soon"}`: `"pointer":"/expires"`, `{"key":"k","holdout":"` + card.ID + `","questions":1,"shows":"half"}`: `"pointer":"/shows"`, `{"key":"k","holdot":"ho_1"}`: `"suggestion":"holdout"`,
	} {
		if r := s.post("/v1/grants", body); r.StatusCode != 422 || !strings.Contains(string(r.body), where) {
			t.Errorf("%s: %d %s", body, r.StatusCode, r.body)
		}
	}
	if r := s.send(http.MethodDelete, "/v1/grants/"+grant.ID, nil); r.StatusCode != http.StatusNoContent {
		t.Errorf("revoke: %d %s", r.StatusCode, r.body)
	}
	if r := s.post(path+"/queries", query, mine); r.StatusCode != http.StatusForbidden || !strings.Contains(string(r.body), `"grant-ended"`) || !strings.Contains(string(r.body), `"reason":"revoked"`) {
		t.Errorf("a replay after the end: %d %s", r.StatusCode, r.body)
	}
}
