package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/holdout"
)

// limitedKey makes an analyst's key with these members beside name and scope.
func (s *server) limitedKey(members string) (id, secret string) {
	s.t.Helper()
	var k CreatedKey
	r := s.post("/v1/keys", `{"name":"limited","scope":"analyst"`+members+`}`)
	if r.StatusCode != 201 {
		s.t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	r.decode(s.t, &k)
	return k.ID, k.Secret
}

// grant grants, and must succeed.
func (s *server) grant(path, body string, headers ...string) (g holdout.GrantInfo) {
	s.t.Helper()
	r := s.post(path+"/grants", body, headers...)
	if r.StatusCode != 201 {
		s.t.Fatalf("grant %s: %d %s", body, r.StatusCode, r.body)
	}
	r.decode(s.t, &g)
	return g
}

func keyHeader(secret string) string { return "Authorization: Bearer " + secret }

// deciding is a query with a verdict, and late one without.
func deciding(over int) string {
	return fmt.Sprintf(`{"type":"compare","a":{"type":"fraction","of":"delay > %d"},"b":{"type":"fraction","of":"delay > 15"}}`, over)
}

// TestGrantsOverHTTP: a grant pays for its holder and shows what it shows, at every door, and the admin sees who has spent what. It would notice a door that shows more, a
// budget that is somebody else's, and recorded bytes that a lesser grant changes.
func TestGrantsOverHTTP(t *testing.T) {
	s := start(t, Options{})
	path, card := s.upload("name=flights&holdout=0.5&mechanism=thresholdout&questions=100&tokens=10")
	ana, anaKey := s.newKey("analyst")
	bob, bobKey := s.newKey("analyst")
	_, carolKey := s.newKey("analyst")
	bit := s.grant(path, `{"holder":"`+ana+`","questions":10,"tokens":3,"shows":"bit","name":"a run"}`, "Idempotency-Key: once")
	value := s.grant(path, `{"holder":"`+bob+`","questions":20,"shows":"value","may_grant":true}`)
	if bit.Questions.Left != 10 || bit.Tokens.Left != 3 || value.Tokens.Of != 2 || value.Parent != nil || !value.Live || *value.Holder.Name == "" {
		t.Errorf("granted %+v and %+v", bit, value)
	}
	again := s.post(path+"/grants", `{"holder":"`+ana+`","questions":10,"tokens":3,"shows":"bit","name":"a run"}`, "Idempotency-Key: once")
	if !strings.Contains(string(again.body), bit.ID) || again.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("granted again: %v %s", again.Header, again.body)
	}
	if r := s.post(path+"/grants", `{"holder":"`+ana+`","questions":11}`, "Idempotency-Key: once"); r.StatusCode != 422 {
		t.Errorf("another request under the same Idempotency-Key: %d", r.StatusCode)
	}

	// The same question by the three, each paid once and shown as granted.
	full := s.post(path+"/queries", deciding(20), keyHeader(carolKey))
	mine := s.post(path+"/queries", deciding(20), keyHeader(anaKey))
	his := s.post(path+"/queries", deciding(20), keyHeader(bobKey))
	var heard [3]AskReply
	for i, r := range []result{full, mine, his} {
		if r.StatusCode != 200 {
			t.Fatalf("%d: %d %s", i, r.StatusCode, r.body)
		}
		r.decode(t, &heard[i])
	}
	if a := heard[0].Answer; a.Interval == nil || a.Shows != "" || a.Ledger.Head == "" || heard[0].Budget.Grant != "" || heard[0].Budget.Questions.Left != 100-30-1 || heard[0].Budget.Granted != 30 {
		t.Errorf("who has no grant is told %s", full.body)
	}
	if a := heard[1].Answer; !heard[1].Replayed || a.Verdict != heard[0].Answer.Verdict || a.Value != nil || a.Interval != nil || a.Shows != "bit" || a.Ledger.Head != "" || a.Outcome != "" ||
		a.PValue != nil || a.Warnings != nil || heard[1].Budget.Grant != bit.ID || heard[1].Budget.Tokens != nil || heard[1].Budget.Questions.Left != 10 {
		t.Errorf("the holder of a bit is told %s", mine.body)
	}
	if a := heard[2].Answer; a.Value == nil || *a.Value != *heard[0].Answer.Value || a.Interval != nil || a.Ledger.Head != "" || a.Outcome != "" || a.Functions != nil ||
		heard[2].Budget.Grant != value.ID || heard[2].Budget.Tokens == nil {
		t.Errorf("the holder of values is told %s", his.body)
	}
	if r := s.post(path+"/queries", deciding(20), keyHeader(carolKey)); !bytes.Equal(answerBytes(t, r), answerBytes(t, full)) {
		t.Errorf("a replay in full is %s, not %s", r.body, full.body)
	}
	for i := range 3 {
		if r := s.post(path+"/queries", deciding(30+i), keyHeader(anaKey)); r.StatusCode != 200 {
			t.Errorf("a question on the grant: %d %s", r.StatusCode, r.body)
		}
	}
	// What a bit's holder hears at the other doors.
	for what, r := range map[string]result{
		"history": s.get(path+"/answers", keyHeader(anaKey)),
		"explain": s.post(path+"/queries/explain", deciding(31), keyHeader(anaKey)),
		"budget":  s.get(path+"/budget", keyHeader(anaKey)),
		"card":    s.get(path, keyHeader(anaKey)),
		"grant":   s.get("/v1/grants/"+bit.ID, keyHeader(anaKey)),
		"grants":  s.get(path+"/grants", keyHeader(anaKey)),
		"batch":   s.post(path+"/queries/batch", `{"queries":[`+deciding(30)+`]}`, keyHeader(anaKey)),
	} {
		if r.StatusCode != 200 {
			t.Errorf("%s: %d %s", what, r.StatusCode, r.body)
		}
		for _, told := range []string{`"low"`, `"outcome":"`, `"p_value":0`, `"head":"sha256`, `"tokens":{`, `"bound":"`, `"promise"`} {
			if what == "card" && told != `"tokens":{` && told != `"head":"sha256` {
				continue // of the guarantee
			}
			if strings.Contains(string(r.body), told) {
				t.Errorf("%s tells the holder of a bit %s: %s", what, told, r.body)
			}
		}
	}
	agent := s.agent(anaKey)
	if said, _, failed := agent.call("compare", `{"holdout":"`+card.ID+`","a":{"type":"fraction","of":"delay > 30"},"b":{"type":"fraction","of":"delay > 15"}}`); failed || strings.Contains(said, "[") || !strings.Contains(said, "verdict") {
		t.Errorf("an agent with a bit is told %s", said)
	}
	stream := s.follow(t, path+"/answers/events", anaKey)
	if _, p := stream.next(); !strings.Contains(string(p.Answer), `"shows":"bit"`) || strings.Contains(string(p.Answer), `"head":"sha256`) || p.Outcome != nil {
		t.Errorf("the stream tells the holder of a bit %s", p.Answer)
	}
	if r := s.post(path+"/queries", late, keyHeader(anaKey)); r.StatusCode != 403 || !strings.Contains(string(r.body), "not-shown") {
		t.Errorf("a question without a verdict: %d %s", r.StatusCode, r.body)
	}

	// A part of a grant, by its holder.
	part := s.grant(path, `{"holder":"`+ana+`","questions":5}`, keyHeader(bobKey))
	if part.Parent == nil || *part.Parent != value.ID || part.Shows != holdout.ShowsValue {
		t.Errorf("a part of a grant: %+v", part)
	}
	for body, want := range map[string]int{
		`{"holder":"` + ana + `","questions":5,"shows":"full"}`:                   422,
		`{"holder":"` + ana + `","questions":16}`:                                 403,
		`{"holder":"` + ana + `","questions":-1}`:                                 422,
		`{"holder":"` + ana + `","questions":1.5}`:                                422,
		`{"holder":"` + ana + `","questions":9223372036854775807}`:                403,
		`{"holder":"` + ana + `","questions":9223372036854775808}`:                422,
		`{"holder":"key_x","questions":1}`:                                        422,
		`{"questions":1}`:                                                         422,
		`{"holder":"` + ana + `","questions":1,"expires":"tomorrow"}`:             422,
		`{"holder":"` + ana + `","questions":1,"expires":"2001-01-01T00:00:00Z"}`: 422,
		`{"holder":"` + ana + `","questions":1,"parent":"` + bit.ID + `"}`:        422, // not his
		`{"holder":"` + ana + `","questions":1,"rounds":1}`:                       422,
		`{"holder":"` + ana + `","questions":1,"shows":"all"}`:                    422,
		`{"holder":"` + ana + `","questions":1,"who":1}`:                          422,
		`{"holder":"` + ana + `","questions":1,"parent":"gr_unknown"}`:            422,
	} {
		if r := s.post(path+"/grants", body, keyHeader(bobKey)); r.StatusCode != want {
			t.Errorf("%s: %d %s, want %d", body, r.StatusCode, r.body, want)
		}
	}
	if r := s.post(path+"/grants", `{"holder":"`+bob+`","questions":1}`, keyHeader(carolKey)); r.StatusCode != 403 {
		t.Errorf("who has nothing to grant: %d", r.StatusCode)
	}
	// Two grants: a question must say which.
	r := s.post(path+"/queries", deciding(40), keyHeader(anaKey))
	if r.StatusCode != 422 || !strings.Contains(string(r.body), bit.ID) || !strings.Contains(string(r.body), part.ID) {
		t.Errorf("two grants and none named: %d %s", r.StatusCode, r.body)
	}
	named := s.post(path+"/queries", deciding(40), keyHeader(anaKey), holdout.GrantHeader+": "+part.ID)
	if named.StatusCode != 200 || !strings.Contains(string(named.body), `"shows":"value"`) {
		t.Errorf("on a named grant: %d %s", named.StatusCode, named.body)
	}
	if r := s.post(path+"/queries", deciding(40), keyHeader(anaKey), holdout.GrantHeader+": "+value.ID); r.StatusCode != 422 {
		t.Errorf("on somebody else's grant: %d %s", r.StatusCode, r.body)
	}

	var spending holdout.Spending
	s.get(path+"/spending").decode(t, &spending)
	by := map[string]int64{}
	for _, each := range spending.Spenders {
		grant := ""
		if each.Grant != nil {
			grant = *each.Grant
		}
		by[each.Who.ID+" "+grant] = each.Spent.Questions
	}
	if by[ana+" "+bit.ID] != 3 || by[ana+" "+part.ID] != 1 || spending.Spent.Questions != 5 || spending.Granted.Questions != 10-3+20-1 || spending.Free.Questions != 100-30-1 {
		t.Errorf("spending %+v", spending)
	}
	if r := s.get(path+"/spending", keyHeader(bobKey)); r.StatusCode != 403 {
		t.Errorf("an analyst reads who spent what: %d", r.StatusCode)
	}
	var list Grants
	s.get(path+"/grants", keyHeader(bobKey)).decode(t, &list)
	if len(list.Grants) != 2 || list.Grants[0].ID != value.ID || list.Grants[0].Questions.Spent != 1 || list.Grants[0].Questions.Granted != 4 {
		t.Errorf("bob's grants and their parts: %+v", list)
	}

	// The end of a grant, and of its parts; and of those of a key.
	if r := s.send("DELETE", "/v1/grants/"+bit.ID, nil, keyHeader(bobKey)); r.StatusCode != 404 {
		t.Errorf("somebody else's grant is ended: %d", r.StatusCode)
	}
	if r := s.send("DELETE", "/v1/grants/"+value.ID, nil); r.StatusCode != 204 {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	for _, secret := range []string{bobKey, anaKey} {
		headers := []string{keyHeader(secret)}
		if secret == anaKey {
			headers = append(headers, holdout.GrantHeader+": "+part.ID)
		}
		r := s.post(path+"/queries", deciding(50), headers...)
		if r.StatusCode != 403 || !strings.Contains(string(r.body), "grant-ended") {
			t.Errorf("after its end: %d %s", r.StatusCode, r.body)
		}
		shows := holdout.ShowsValue
		if secret == anaKey { // she has the bit still
			shows = holdout.ShowsBit
		}
		if r := s.post(path+"/queries", deciding(40), headers...); r.StatusCode != 200 || !strings.Contains(string(r.body), `"shows":"`+string(shows)+`"`) {
			t.Errorf("a replay after its end: %d %s", r.StatusCode, r.body)
		}
	}
	if r := s.send("DELETE", "/v1/keys/"+ana+"?grants=end", nil); r.StatusCode != 204 {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	s.get(path+"/spending").decode(t, &spending)
	if spending.Granted.Questions != 0 || spending.Free.Questions != 95 {
		t.Errorf("after all grants ended %+v", spending)
	}
}

// answerBytes are the recorded bytes of an answer in a reply.
func answerBytes(t *testing.T, r result) json.RawMessage {
	t.Helper()
	var reply struct{ Answer json.RawMessage }
	r.decode(t, &reply)
	return reply.Answer
}

// sayNothing are the operations that are about no holdout.
var sayNothing = []string{"create-key", "list-keys", "revoke-key", "create-holdout", "plan", "health", "ready", "version", "metrics", "simulate-feature-selection", "list-sources", "list-registrations", "get-registration", "cancel-registration", "sign-in", "get-session", "sign-out"}

// TestKeysKeepToTheirHoldouts asks every operation of the document about a holdout that a key is not limited to, that it has no grant of, and about one that there is
// not: the replies are the same. An operation that is not in its tables fails it, so that a new door cannot forget.
func TestKeysKeepToTheirHoldouts(t *testing.T) {
	s := startRealm(t)
	path, card := s.upload("name=hidden&holdout=0.5")
	claims := newClaims(rand.New(rand.NewPCG(3, 5)), 400)
	open := struct{ ID string }{s.parts("name=other&label=answer", map[string]*dataset.Table{"training": claimTable(t, claims[:200]), "holdout": claimTable(t, claims[200:])})}
	s.post(path+"/queries", late)
	holder, _ := s.newKey("analyst")
	theirs := s.grant(path, `{"holder":"`+holder+`","questions":1}`)
	_, limited := s.limitedKey(`,"holdouts":["` + open.ID + `"]`)
	_, granted := s.limitedKey(`,"only_granted":true`)
	guest := strings.TrimPrefix(s.token(map[string]any{"sub": "guest", "groups": []string{"guests"}}), "Authorization: Bearer ")
	bodies := map[string]string{"retire-holdout": "", "ask": late, "ask-batch": `{"queries":[` + late + `]}`, "explain": late, "create-grant": `{"holder":"` + holder + `","questions":1}`}
	const unknown = "ho_00000000-0000-4000-8000-000000000000"
	document, err := New(nil, Options{}).OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Paths map[string]map[string]struct{ OperationID string }
	}
	if err := json.Unmarshal(document, &doc); err != nil {
		t.Fatal(err)
	}
	asked := 0
	for p, operations := range doc.Paths {
		for method, op := range operations {
			method = strings.ToUpper(method)
			for who, secret := range map[string]string{"a key of another holdout": limited, "a key without a grant": granted, "a token without a grant": guest} {
				about := func(id, grant string) result {
					url := strings.ReplaceAll(p, "{id}", id)
					if strings.HasPrefix(p, "/v1/grants/") {
						url = strings.ReplaceAll(p, "{id}", grant)
					}
					headers := []string{keyHeader(secret)}
					if bodies[op.OperationID] != "" {
						headers = append(headers, "Content-Type: application/json")
					}
					return s.send(method, url, strings.NewReader(bodies[op.OperationID]), headers...)
				}
				switch {
				case strings.HasPrefix(p, "/v1/holdouts/{id}") || strings.HasPrefix(p, "/v1/grants/{id}"):
					if _, known := bodies[op.OperationID]; method == http.MethodPost && !known {
						t.Fatalf("%s: say in this test what is sent to it", op.OperationID)
					}
					hidden, none := about(card.ID, theirs.ID), about(unknown, "gr_unknown")
					if hidden.StatusCode != none.StatusCode || hidden.StatusCode != 404 && hidden.StatusCode != 403 || !bytes.Equal(hidden.body, none.body) {
						t.Errorf("%s, %s: %d %s; of a holdout that is not there %d %s", op.OperationID, who, hidden.StatusCode, hidden.body, none.StatusCode, none.body)
					}
					asked++
				case op.OperationID == "list-holdouts":
					if r := about("", ""); strings.Contains(string(r.body), card.ID) || strings.Contains(string(r.body), open.ID) != (secret == limited) {
						t.Errorf("the list of %s: %s", who, r.body)
					}
				case op.OperationID == "mcp":
					agent := s.agent(secret)
					for _, tool := range tools {
						arguments := `{"holdout":"` + card.ID + `","query":` + late + `}`
						switch tool.name {
						case "holdouts", "plan":
							arguments = `{}`
						case "columns", "budget":
							arguments = `{"holdout":"` + card.ID + `"}`
						case "compare":
							arguments = `{"holdout":"` + card.ID + `",` + strings.TrimPrefix(deciding(20), `{"type":"compare",`)
						}
						if said, _, failed := agent.call(tool.name, arguments); strings.Contains(said, "hidden") || tool.name == "holdouts" && strings.Contains(said, card.ID) || !failed && tool.name != "holdouts" {
							t.Errorf("the tool %s, %s: %s", tool.name, who, said)
						}
					}
				case !slices.Contains(sayNothing, op.OperationID):
					t.Errorf("%s: say in this test whether it is about a holdout", op.OperationID)
				}
			}
		}
	}
	if asked < 3*12 {
		t.Errorf("%d operations about a holdout were asked", asked/3)
	}
	if r := s.get("/v1/holdouts/"+open.ID, keyHeader(limited)); r.StatusCode != 200 {
		t.Errorf("its own holdout: %d %s", r.StatusCode, r.body)
	}
	id, secret := s.limitedKey(`,"only_granted":true`)
	g := s.grant(path, `{"holder":"`+id+`","questions":1,"expires":"`+time.Now().Add(time.Hour).UTC().Format(time.RFC3339)+`"}`)
	if r := s.get(path, keyHeader(secret)); r.StatusCode != 200 {
		t.Errorf("a holdout that it has a grant of: %d %s", r.StatusCode, r.body)
	}
	s.send("DELETE", "/v1/grants/"+g.ID, nil)
	if r := s.get(path, keyHeader(secret)); r.StatusCode != 404 {
		t.Errorf("a holdout that it has a grant of no more: %d", r.StatusCode)
	}
	for _, body := range []string{`{"name":"x","scope":"admin","only_granted":true}`, `{"name":"x","scope":"analyst","holdouts":[]}`, `{"name":"x","scope":"analyst","holdouts":["ho_x"]}`, `{"name":"x","scope":"analyst","holdouts":"all"}`} {
		if r := s.post("/v1/keys", body); r.StatusCode != 422 {
			t.Errorf("%s: %d %s", body, r.StatusCode, r.body)
		}
	}
}
