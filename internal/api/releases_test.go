package api

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// TestReleases walks the way of a release over HTTP: an admin makes it, it is replayed byte for byte, also in the list, and what is not left is refused, with its members; others get nothing.
func TestReleases(t *testing.T) {
	s := start(t, Options{})
	path, card := s.upload("name=flights&holdout=0.5&mechanism=guess_and_check&questions=100&tokens=10")
	path += "/releases"
	const request = `{"epsilon":1,"release_epsilon":1.5,"columns":[{"name":"delay","low":-60,"high":180,"quantiles":[0.5],"edges":[0,15]},{"name":"origin","texts":["SFO","<b>"]}]}`
	made := s.post(path, request)
	var said PrivateRelease
	if made.decode(t, &said); made.StatusCode != 200 || said.Holdout != card.ID || said.Ledger.Seq != 1 || len(said.Columns) != 2 || len(said.Columns[0].Quantiles) != 1 || len(said.Columns[1].Cells) != 3 || said.Delta != 0 || said.Epsilon != 1 {
		t.Fatalf("made: %d %s", made.StatusCode, made.body)
	}
	if again := s.post(path, strings.Replace(request, `,"release_epsilon":1.5`, "", 1)); !bytes.Equal(again.body, made.body) {
		t.Errorf("again: %d %s, want %s", again.StatusCode, again.body, made.body)
	}
	if r := s.get(path); r.StatusCode != 200 || !bytes.Contains(r.body, made.body) || !strings.HasPrefix(string(r.body), `{"release_epsilon":1.5,"spent":1,"left":0.5,"made":1,"releases":[`) {
		t.Errorf("the list: %d %s", r.StatusCode, r.body)
	}
	var refused struct {
		Code      string
		Remaining float64
		Requested float64
		Limit     float64 `json:"release_epsilon"`
	}
	r := s.post(path, `{"epsilon":0.75}`)
	if err := json.Unmarshal(r.body, &refused); err != nil || r.StatusCode != http.StatusForbidden || refused.Code != "epsilon-exhausted" || refused.Remaining != .5 || refused.Requested != .75 || refused.Limit != 1.5 {
		t.Errorf("more than is left: %d %s", r.StatusCode, r.body)
	}
	if r := s.get(path + "?after=1"); r.StatusCode != 200 || !strings.Contains(string(r.body), `"releases":[]`) {
		t.Errorf("behind the last: %d %s", r.StatusCode, r.body)
	}
	_, secret := s.newKey("analyst")
	for name, r := range map[string]result{"made": s.post(path, request, "Authorization: Bearer "+secret), "listed": s.get(path, "Authorization: Bearer "+secret)} {
		if r.StatusCode != http.StatusForbidden {
			t.Errorf("%s by an analyst: %d %s", name, r.StatusCode, r.body)
		}
	}
	for body, pointer := range map[string]string{
		`{}`: `"epsilon\" is missing`, `{"epsilon":"1"}`: "/epsilon", `{"epsilon":0}`: "/epsilon", `{"epsilon":0.1,"release_epsilon":2}`: "/release_epsilon", `{"epsilon":0.1,"rows_per_unit":1}`: "/rows_per_unit",
		`{"epsilon":0.1,"columns":[{"name":"delay","lo":1}]}`: "/columns", `{"epsilon":0.1,"columns":[{"name":"dely"}]}`: "/columns/0/name", `{"epsilon":0.1,"delta":0}`: "/delta", `{"epsilon":0.1,"columns":[{"name":"delay","low":1}]}`: "/columns/0/low",
		`{"epsilon":0.1,"columns":[{"name":"delay","LOW":1,"low":0,"high":2}]}`: "/columns/0/LOW", `{"epsilon":0.1,"columns":[{"name":"delay","low":0,"high":1,"quantiles":[null]}]}`: "/columns/0/quantiles",
		`{"epsilon":0.1,"columns":[{"name":"delay","low":null,"high":1}]}`: "/columns/0/low", `{"epsilon":0.1,"columns":[{"name":"origin","texts":[null]}]}`: "/columns/0/texts", `{"epsilon":0.1,"columns":[null]}`: "/columns",
		`{"epsilon":0.1,"columns":[7]}`: "/columns/0", `{"epsilon":0.1,"columns":[{"low":0,"high":1}]}`: `"name`, `{"epsilon":0.1,"earlier_releases":"yes"}`: "/earlier_releases", `{"epsilon":0.1,"EPSILON":1}`: "/EPSILON",
	} {
		if r := s.post(path, body); r.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(string(r.body), pointer) {
			t.Errorf("%s: %d %s, want one of %s", body, r.StatusCode, r.body, pointer)
		}
	}
	if r := s.get(path); !strings.Contains(string(r.body), `"spent":1,`) {
		t.Errorf("refusals spent something: %s", r.body)
	}
}
