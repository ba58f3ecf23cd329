package api

import (
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/holdout"
)

// TestBitsTellNoTokens: how many tokens are left says how answers came out, and no free reply says it to the holder of a bit: no refusal to grant parts, no
// explanation of a query that takes as many tokens as one likes, and no half-width that cannot pass any more. It would notice a door that goes on telling.
func TestBitsTellNoTokens(t *testing.T) {
	s := start(t, Options{})
	path, _ := s.upload("name=flights&holdout=0.5&mechanism=guess_and_check&questions=100&tokens=10")
	ana, anaKey := s.newKey("analyst")
	if r := s.post(path+"/grants", `{"holder":"`+ana+`","questions":9,"tokens":3,"shows":"bit","may_grant":true}`); r.StatusCode != 422 {
		t.Errorf("a bit that may be granted on: %d %s", r.StatusCode, r.body)
	}
	full := s.grant(path, `{"holder":"`+ana+`","questions":9,"tokens":3,"may_grant":true}`)
	if r := s.post(path+"/grants", `{"holder":"`+ana+`","questions":1,"shows":"bit","may_grant":true}`, keyHeader(anaKey)); r.StatusCode != 422 {
		t.Errorf("a part that shows a bit and may be granted on: %d %s", r.StatusCode, r.body)
	}
	s.send("DELETE", "/v1/grants/"+full.ID, nil)
	bob, bobKey := s.newKey("analyst")
	s.grant(path, `{"holder":"`+bob+`","questions":9,"tokens":3,"shows":"bit"}`)
	narrow := strings.TrimSuffix(deciding(20), "}") + `,"guess":0,"half_width":0.000001}`
	for what, r := range map[string]result{
		"explain without a verdict":   s.post(path+"/queries/explain", late, keyHeader(bobKey)),
		"explain of a half-width":     s.post(path+"/queries/explain", narrow, keyHeader(bobKey)),
		"a half-width":                s.post(path+"/queries", narrow, keyHeader(bobKey)),
		"a half-width within a batch": s.post(path+"/queries/batch", `{"queries":[`+deciding(30)+`,`+narrow+`]}`, keyHeader(bobKey)),
	} {
		if r.StatusCode != 403 || !strings.Contains(string(r.body), "not-shown") {
			t.Errorf("%s: %d %s", what, r.StatusCode, r.body)
		}
	}
	carol, carolKey := s.newKey("analyst")
	s.grant(path, `{"holder":"`+carol+`","questions":9,"tokens":3,"shows":"value"}`)
	if r := s.post(path+"/queries", narrow, keyHeader(carolKey)); r.StatusCode != 422 || strings.Contains(string(r.body), "least") || !strings.Contains(string(r.body), `"/half_width"`) {
		t.Errorf("the holder of values is told how wide intervals are: %d %s", r.StatusCode, r.body)
	}
	if r := s.post(path+"/queries", narrow); r.StatusCode != 422 || !strings.Contains(string(r.body), `"least"`) {
		t.Errorf("an admin is told %d %s", r.StatusCode, r.body)
	}
}

// TestEndedGrantsShowNoMore: who was shown answers in full and is now shown a bit cannot go on by naming the grant that has ended. It would notice an end that ends
// the spending alone.
func TestEndedGrantsShowNoMore(t *testing.T) {
	s := start(t, Options{})
	path, _ := s.upload("name=flights&holdout=0.5&mechanism=gaussian&questions=100")
	ana, secret := s.newKey("analyst")
	asAna := keyHeader(secret)
	before := s.grant(path, `{"holder":"`+ana+`","questions":5}`)
	s.send("DELETE", "/v1/grants/"+before.ID, nil)
	named := holdout.GrantHeader + ": " + before.ID
	s.post(path+"/queries", deciding(40))
	if r := s.post(path+"/queries", deciding(40), asAna, named); r.StatusCode != 200 || strings.Contains(string(r.body), `"shows":`) {
		t.Errorf("a replay on the only grant that there was: %d %s", r.StatusCode, r.body)
	}
	now := s.grant(path, `{"holder":"`+ana+`","questions":5,"shows":"bit"}`)
	if r := s.post(path+"/queries", deciding(20), asAna); r.StatusCode != 200 {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	for _, live := range []bool{true, false} {
		for what, r := range map[string]result{
			"a replay":    s.post(path+"/queries", deciding(20), asAna, named),
			"the history": s.get(path+"/answers", asAna, named),
		} {
			if r.StatusCode != 200 || !strings.Contains(string(r.body), `"shows":"bit"`) || strings.Contains(string(r.body), `"low"`) {
				t.Errorf("%s, by a grant that has ended beside one of a bit, live %v: %d %s", what, live, r.StatusCode, r.body)
			}
		}
		s.send("DELETE", "/v1/grants/"+now.ID, nil)
	}
}

// TestUnwantedGrants: a holder who may grant gives another key a part of nothing that shows bits. It takes nothing away from that key; the same from an admin does, and
// so does a key's own limit. Notices when a part that another holder made binds, or when NoGrant leads around a grant of an admin or around only_granted.
func TestUnwantedGrants(t *testing.T) {
	s := start(t, Options{})
	path, _ := s.upload("name=flights&holdout=0.5&mechanism=gaussian&questions=100")
	lead, leads := s.newKey("analyst")
	ana, secret := s.newKey("analyst")
	none := holdout.GrantHeader + ": " + holdout.NoGrant
	from := s.grant(path, `{"holder":"`+lead+`","questions":10,"may_grant":true}`)
	if r := s.post(path+"/grants", `{"holder":"`+ana+`","parent":"`+from.ID+`","questions":0,"shows":"bit"}`, keyHeader(leads)); r.StatusCode != 201 {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	if r := s.post(path+"/queries", deciding(20), keyHeader(secret)); r.StatusCode != 403 {
		t.Errorf("on a part of no questions: %d %s", r.StatusCode, r.body)
	}
	if r := s.post(path+"/queries", deciding(20), keyHeader(secret), none); r.StatusCode != 200 || strings.Contains(string(r.body), `"shows":`) {
		t.Errorf("on what is not granted, beside an unwanted part: %d %s", r.StatusCode, r.body)
	}
	if r := s.post(path+"/queries", deciding(30), keyHeader(leads), none); r.StatusCode != 422 {
		t.Errorf("around a grant of an admin: %d %s", r.StatusCode, r.body)
	}
	agent, agents := s.limitedKey(`,"only_granted":true`)
	if r := s.post(path+"/grants", `{"holder":"`+agent+`","parent":"`+from.ID+`","questions":1,"shows":"bit"}`, keyHeader(leads)); r.StatusCode != 201 {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	if r := s.post(path+"/queries", deciding(30), keyHeader(agents), none); r.StatusCode != 422 {
		t.Errorf("around a key's own limit: %d %s", r.StatusCode, r.body)
	}
}
