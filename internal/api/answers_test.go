package api

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/queries"
)

// examples are the examples of every query type, as the OpenAPI document has them. They are about the columns of the flights.
func examples(t *testing.T) (all []json.RawMessage) {
	t.Helper()
	for name, schema := range queries.JSONSchemas("") {
		var s struct{ Examples []json.RawMessage }
		if err := json.Unmarshal(schema, &s); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all = append(all, s.Examples...)
	}
	if len(all) < len(queries.Types()) {
		t.Fatalf("%d examples of %d types", len(all), len(queries.Types()))
	}
	slices.SortFunc(all, func(a, b json.RawMessage) int { return bytes.Compare(a, b) })
	return all
}

// TestRecordedAnswersAreDocumented asks the examples of all query types under every mechanism and reads the answers into the
// type that they and the document are made from: no member of the type is never seen, and none is
// beside it. What is read is written again, and nothing is lost.
func TestRecordedAnswersAreDocumented(t *testing.T) {
	seen := map[string]bool{}
	ask := func(s *server, path, query string) {
		t.Helper()
		r := s.post(path+"/queries", query)
		if r.StatusCode == 422 { // a mechanism without this form of answer
			return
		}
		if r.StatusCode != 200 {
			t.Errorf("%s: %d %s", query, r.StatusCode, r.body)
			return
		}
		var reply AskReply
		strict := json.NewDecoder(bytes.NewReader(r.body))
		strict.DisallowUnknownFields()
		if err := strict.Decode(&reply); err != nil {
			t.Errorf("%s: a member of the reply is not in the document: %v\n%s", query, err, r.body)
			return
		}
		again, err := marshal(reply)
		if err != nil {
			t.Fatal(err)
		}
		var sent, written any
		if err := json.Unmarshal(r.body, &sent); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(again, &written); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(sent, written) {
			t.Errorf("%s:\nsent  %s\nafter %s", query, r.body, again)
		}
		for name := range sent.(map[string]any)["answer"].(map[string]any) {
			seen[name] = true
		}
	}
	for _, mechanism := range []string{"gaussian&questions=1000000", "guess_and_check&questions=100000&tokens=50000", "thresholdout&questions=100000&tokens=50000", "split&questions=1000", "ladder"} {
		s := start(t, Options{})
		path, _ := s.upload("name=flights&holdout=0.5&mechanism=" + mechanism)
		for _, e := range examples(t) {
			ask(s, path, string(e))
		}
		ask(s, path, `{"type":"loss","loss":"zero_one","label":"delay > 15","prediction":"distance > 900"}`)
	}
	s := start(t, Options{})
	path, _ := s.upload("name=flights&holdout=0.5&mechanism=gaussian&questions=10&tokens=2")
	ask(s, path, `{"type":"fraction","of":"delay > 15","promise":{"at_most":0.4}}`)
	for _, shows := range []string{"value", "bit"} {
		id, secret := s.newKey("granted")
		if r := s.post("/v1/grants", `{"key":"`+id+`","holdout":"`+strings.TrimPrefix(path, "/v1/holdouts/")+`","questions":2,"shows":"`+shows+`"}`); r.StatusCode != 201 {
			t.Fatalf("grant: %d %s", r.StatusCode, r.body)
		}
		admin := s.key
		s.key = secret
		ask(s, path, `{"type":"passes","of":{"type":"fraction","of":"delay > 15"},"below":0.9}`)
		s.key = admin
	}
	for _, member := range reflect.VisibleFields(reflect.TypeFor[Answer]()) {
		if name, _, _ := strings.Cut(member.Tag.Get("json"), ","); !member.Anonymous && !seen[name] {
			t.Errorf("no answer of this test has %q: is it misspelt?", name)
		}
	}
}
