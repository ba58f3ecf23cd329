package client_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/internal/api"
)

// The client's types are written from the OpenAPI document (internal/clientgen). The tests of this file hold against it what is written by
// hand: the parameters, the paths and the bodies of calls.

// A schema is what these tests read of one in the document.
type schema struct {
	Ref        string `json:"$ref"`
	Properties map[string]*schema
}

type document struct {
	Paths map[string]map[string]struct {
		OperationID string
		Parameters  []struct{ Name, In string }
		RequestBody struct {
			Content map[string]struct{ Schema *schema }
		}
	}
	Components struct{ Schemas map[string]*schema }
}

func readDocument(t *testing.T) *document {
	t.Helper()
	body, err := api.New(nil, api.Options{}).OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	d := new(document)
	if err := json.Unmarshal(body, d); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *document) resolve(s *schema) *schema {
	for s.Ref != "" {
		s = d.Components.Schemas[strings.TrimPrefix(s.Ref, "#/components/schemas/")]
	}
	return s
}

// TestSettingsAreParameters fills every field of Settings and looks for each among the parameters that the document has
// for an upload, with the value of its own field.
func TestSettingsAreParameters(t *testing.T) {
	var settings client.Settings
	want := url.Values{}
	v := reflect.ValueOf(&settings).Elem()
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		f := v.Field(i)
		if f.Kind() == reflect.Pointer {
			f.Set(reflect.New(f.Type().Elem()))
			f = f.Elem()
		}
		switch f.Kind() {
		case reflect.String:
			f.SetString("value of " + name)
			want.Set(name, f.String())
		case reflect.Int64:
			f.SetInt(int64(i) + 100)
			want.Set(name, strconv.Itoa(i+100))
		case reflect.Float64:
			f.SetFloat(float64(i) + 0.5)
			want.Set(name, strconv.Itoa(i)+".5")
		default:
			t.Fatalf("%s is a %v: teach this test", name, f.Kind())
		}
	}
	var got url.Values
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.URL.Query()
		w.Write([]byte("{}"))
	}))
	defer server.Close()
	c, err := client.New(server.URL, "hk_test")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.CreateHoldout(t.Context(), strings.NewReader("PAR1"), settings); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("sent %v\nwant %v", got, want)
	}
	var documented []string
	for _, p := range readDocument(t).Paths["/v1/holdouts"]["post"].Parameters {
		if p.In == "query" && p.Name != "dry_run" { // which is a call of its own
			documented = append(documented, p.Name)
		}
	}
	slices.Sort(documented)
	if sent := slices.Sorted(maps.Keys(got)); !slices.Equal(sent, documented) {
		t.Errorf("the client sends %v\nthe document has %v", sent, documented)
	}
}

// TestCallsAreOperations sends every call of the client to a server that only writes down what comes, and looks for each
// in the document: its method and path, and the members of its body.
func TestCallsAreOperations(t *testing.T) {
	d := readDocument(t)
	seen := map[string]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := strings.NewReplacer("/ho_1", "/{id}", "/key_1", "/{id}", "/gr_1", "/{id}", "/"+strings.Repeat("0", 64), "/{sha256}").Replace(r.URL.Path)
		operation, ok := d.Paths[path][strings.ToLower(r.Method)]
		if !ok {
			t.Errorf("%s %s is not in the document", r.Method, r.URL.Path)
		}
		seen[operation.OperationID] = true
		for name := range r.URL.Query() {
			if !slices.ContainsFunc(operation.Parameters, func(p struct{ Name, In string }) bool { return p.Name == name && p.In == "query" }) {
				t.Errorf("%s %s has no parameter %q", r.Method, path, name)
			}
		}
		var body map[string]json.RawMessage
		if s := operation.RequestBody.Content["application/json"].Schema; s != nil && s.Ref != "#/components/schemas/Query" {
			if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
				t.Errorf("%s %s: %v", r.Method, path, err)
			}
			for name := range body {
				if d.resolve(s).Properties[name] == nil {
					t.Errorf("%s %s: the document's body has no member %q", r.Method, path, name)
				}
			}
		}
		w.Write([]byte("{}"))
	}))
	defer server.Close()
	c, err := client.New(server.URL, "hk_test", client.WithRetries(0))
	if err != nil {
		t.Fatal(err)
	}
	ctx, query := t.Context(), map[string]any{"type": "fraction", "of": "delay > 15"}
	c.CreateHoldout(ctx, strings.NewReader("PAR1"), client.Settings{Name: "flights"})
	c.DryRun(ctx, strings.NewReader("PAR1"), client.Settings{Name: "flights"})
	c.CreateGiven(ctx, strings.NewReader("PAR1"), strings.NewReader("PAR1"), client.Settings{Name: "flights"})
	c.Holdouts(ctx)
	c.Holdout(ctx, "ho_1")
	c.Delete(ctx, "ho_1")
	c.Retire(ctx, "ho_1")
	c.VoidHeld(ctx, "ho_1")
	c.Retired(ctx, "ho_1")
	c.Training(ctx, "ho_1")
	c.Features(ctx, "ho_1")
	c.Ask(ctx, "ho_1", query)
	c.AskBatch(ctx, "ho_1", []any{query}, true)
	c.Explain(ctx, "ho_1", query)
	for range c.Answers(ctx, "ho_1") {
	}
	for range c.Follow(ctx, "ho_1", 3) {
	}
	c.PlanReport(ctx, "ho_1", []any{query})
	c.CloseWithReport(ctx, "ho_1", []any{query}, "the end")
	c.Report(ctx, "ho_1")
	c.ReportPage(ctx, "ho_1")
	c.Release(ctx, "ho_1", client.NewRelease{Epsilon: 1, ReleaseEpsilon: 2, RowsPerUnit: 3, Columns: []client.ColumnRequest{{Name: "delay"}}})
	c.Releases(ctx, "ho_1")
	c.Budget(ctx, "ho_1")
	c.Ledger(ctx, "ho_1", new(strings.Builder))
	c.CreateKey(ctx, "ana", "analyst")
	c.Keys(ctx)
	c.RevokeKey(ctx, "key_1")
	c.CreateGrant(ctx, client.NewGrant{Key: "key_1", Holdout: "ho_1", Questions: 1})
	c.Grants(ctx)
	c.RevokeGrant(ctx, "gr_1")
	c.Spending(ctx, "ho_1")
	c.KeepModel(ctx, json.RawMessage(`{"linear":{"weights":{"delay":1}}}`))
	c.FindModel(ctx, strings.Repeat("0", 64))
	c.Plan(ctx, client.PlanRequest{N: 1000, Questions: 10, Confidence: 0.9, HalfWidth: 0.1, Rounds: 1, Training: 1, Tokens: 1, Published: true})
	for path, methods := range d.Paths {
		for _, operation := range methods {
			if path == "/v1/session" || strings.HasPrefix(path, "/v1/simulations/") {
				continue // of a browser, which must not keep a key; a program shows it with each request, and runs holdoutd experiment
			}
			if strings.HasPrefix(path, "/v1/") && !seen[operation.OperationID] {
				t.Errorf("the client has no call for %s, or this test does not make it", operation.OperationID)
			}
		}
	}
}
