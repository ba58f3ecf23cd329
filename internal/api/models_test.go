package api

import (
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/holdout"
)

// TestModels: a model is sent once, however encoded, and questions name it; whoever names one that nobody sent is told where to send it.
func TestModels(t *testing.T) {
	s := start(t, Options{})
	path, _ := s.upload("holdout=0.5")
	r := s.post("/v1/models", `{"trees":{"trees":[[["distance",0.5],0,1]]}}`)
	var k holdout.KeptModel
	r.decode(t, &k)
	if r.StatusCode != 200 || len(k.SHA256) != 64 || k.Bytes == 0 || k.Until.IsZero() {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	if r := s.get("/v1/models/" + k.SHA256); r.StatusCode != 200 || !strings.Contains(string(r.body), k.SHA256) {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	question := func(sha256 string) string {
		return `{"type":"accuracy","label":"delay > 15","model":{"sha256":"` + sha256 + `"}}`
	}
	if r := s.post(path+"/queries", question(k.SHA256)); r.StatusCode != 200 {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	unknown := strings.Repeat("0", 64)
	if r := s.post(path+"/queries", question(unknown)); r.StatusCode != 422 || !strings.Contains(string(r.body), `"/model/sha256"`) || !strings.Contains(string(r.body), "POST /v1/models") {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	if r := s.get("/v1/models/" + unknown); r.StatusCode != 404 {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	for _, body := range []string{`{"linear":{"weights":{"x":"1"}}}`, `{"linear":{"weights":{"x":1}},"threshold":0}`, `{`, `[]`} {
		if r := s.post("/v1/models", body); r.StatusCode/100 != 4 {
			t.Errorf("%s: %d %s", body, r.StatusCode, r.body)
		}
	}
	if r := s.send("POST", "/v1/models", strings.NewReader(`{"linear":{"weights":{"x":1}}}`), "Authorization", "Bearer hk_none"); r.StatusCode != 401 {
		t.Errorf("without a key: %d %s", r.StatusCode, r.body)
	}
}
