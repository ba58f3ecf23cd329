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
	"time"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/internal/api"
)

// The tests of this file hold the client's types against the OpenAPI document, which is made from the server's, in both
// directions. They notice a member that one side has and the other has not, a name that is spelt in two ways, and a type
// that cannot hold what is sent, such as a number for what may be null.

// A schema is what these tests read of one in the document.
type schema struct {
	Ref                  string `json:"$ref"`
	Type                 any
	Format               string
	Properties           map[string]*schema
	Required             []string
	Items                *schema
	AdditionalProperties any
	OneOf                []*schema
}

type document struct {
	Paths map[string]map[string]struct {
		OperationID string
		Parameters  []struct{ Name, In string }
		Responses   map[string]struct {
			Content map[string]struct{ Schema *schema }
		}
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

// nullable takes the null out of a schema.
func (d *document) nullable(s *schema) (rest *schema, null bool) {
	s = d.resolve(s)
	for i, one := range s.OneOf {
		if len(s.OneOf) == 2 && one.Type == "null" {
			return d.resolve(s.OneOf[1-i]), true
		}
	}
	if types, ok := s.Type.([]any); ok && len(types) == 2 && slices.Contains(types, any("null")) {
		plain := *s
		plain.Type = types[0]
		if plain.Type == "null" {
			plain.Type = types[1]
		}
		return &plain, true
	}
	return s, false
}

// compare reports where a Go type and a schema differ. at names the place.
func (d *document) compare(t *testing.T, at string, typ reflect.Type, s *schema) {
	t.Helper()
	s, null := d.nullable(s)
	if typ == reflect.TypeFor[json.RawMessage]() {
		if s.Type != nil {
			t.Errorf("%s: the client leaves undecoded what the document says is %v", at, s.Type)
		}
		return
	}
	if null && typ.Kind() != reflect.Pointer {
		t.Errorf("%s may be null, and %v cannot be", at, typ)
	}
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	wants := map[string][]reflect.Kind{
		"string": {reflect.String}, "boolean": {reflect.Bool}, "integer": {reflect.Int64, reflect.Int}, "number": {reflect.Float64}, "array": {reflect.Slice},
		"object": {reflect.Struct, reflect.Map},
	}
	switch kind, _ := s.Type.(string); {
	case s.Format == "date-time":
		if typ != reflect.TypeFor[time.Time]() {
			t.Errorf("%s is a time; the client has %v", at, typ)
		}
	case !slices.Contains(wants[kind], typ.Kind()):
		t.Errorf("%s is %v; the client has %v", at, s.Type, typ)
	case kind == "array":
		d.compare(t, at+"[]", typ.Elem(), s.Items)
	case typ.Kind() == reflect.Map:
		of, err := json.Marshal(s.AdditionalProperties)
		values := new(schema)
		if err != nil || json.Unmarshal(of, values) != nil || len(s.Properties) > 0 {
			t.Errorf("%s is no map in the document", at)
			return
		}
		d.compare(t, at+"{}", typ.Elem(), values)
	case kind == "object":
		d.compareMembers(t, at, typ, s)
	}
}

func (d *document) compareMembers(t *testing.T, at string, typ reflect.Type, s *schema) {
	t.Helper()
	fields := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(typ) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || f.Anonymous:
		case name == "":
			t.Errorf("%s: the field %s has no JSON name", at, f.Name)
		default:
			fields[name] = f.Type
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if typ, ok := fields[name]; ok {
			d.compare(t, at+"."+name, typ, s.Properties[name])
		} else {
			t.Errorf("%s: the client's %v has no %q, which the server sends", at, typ, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if s.Properties[name] == nil {
			t.Errorf("%s: the client's %v has %q, which the server does not know", at, typ, name)
		}
	}
}

// TestTypesAreTheDocuments compares each type of the client with the component of the document that it stands for.
func TestTypesAreTheDocuments(t *testing.T) {
	d := readDocument(t)
	for name, typ := range map[string]reflect.Type{
		"Card": reflect.TypeFor[client.Card](), "AskReply": reflect.TypeFor[client.Reply](), "BatchReply": reflect.TypeFor[client.BatchReply](),
		"Explanation": reflect.TypeFor[client.Explanation](), "Budget": reflect.TypeFor[client.Budget](), "CreatedKey": reflect.TypeFor[client.Key](),
		"PlanRequest": reflect.TypeFor[client.PlanRequest](), "Plan": reflect.TypeFor[client.Plan](), "Problem": reflect.TypeFor[client.Problem](),
	} {
		if d.Components.Schemas[name] == nil {
			t.Errorf("the document has no component %s", name)
			continue
		}
		d.compare(t, name, typ, d.Components.Schemas[name])
	}
	// What the client reads into a type of the call alone: lists, and pages.
	for name, item := range map[string]struct {
		member string
		of     string
		more   []string
	}{
		"Holdouts": {member: "holdouts", of: "Card"}, "AnswerPage": {member: "answers", of: "Answer", more: []string{"next"}}, "Keys": {member: "keys", of: "KeyInfo"},
	} {
		s := d.Components.Schemas[name]
		members := slices.Sorted(maps.Keys(s.Properties))
		if want := append([]string{item.member}, item.more...); !slices.Equal(members, want) {
			t.Errorf("%s has the members %v, want %v", name, members, want)
		} else if ref := s.Properties[item.member].Items.Ref; ref != "#/components/schemas/"+item.of {
			t.Errorf("%s lists %q, want %s", name, ref, item.of)
		}
	}
	// A listed key is a made one without its secret.
	key := maps.Clone(d.Components.Schemas["CreatedKey"].Properties)
	delete(key, "secret")
	if !slices.Equal(slices.Sorted(maps.Keys(key)), slices.Sorted(maps.Keys(d.Components.Schemas["KeyInfo"].Properties))) {
		t.Error("a listed key has other members than a new one")
	}
}

// TestSettingsAreParameters fills every field of Settings and looks for each among the parameters that the document has
// for an upload, with the value of its own field.
func TestSettingsAreParameters(t *testing.T) {
	var settings client.Settings
	want := url.Values{}
	v := reflect.ValueOf(&settings).Elem()
	for i := range v.NumField() {
		name := v.Type().Field(i).Tag.Get("json")
		switch f := v.Field(i); f.Kind() {
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
		if p.In == "query" {
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
		path := strings.NewReplacer("/ho_1", "/{id}", "/key_1", "/{id}").Replace(r.URL.Path)
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
	c.CreateGiven(ctx, strings.NewReader("PAR1"), strings.NewReader("PAR1"), client.Settings{Name: "flights"})
	c.Holdouts(ctx)
	c.Holdout(ctx, "ho_1")
	c.Delete(ctx, "ho_1")
	c.Training(ctx, "ho_1")
	c.Features(ctx, "ho_1")
	c.Ask(ctx, "ho_1", query)
	c.AskBatch(ctx, "ho_1", []any{query}, true)
	c.Explain(ctx, "ho_1", query)
	for range c.Answers(ctx, "ho_1") {
	}
	c.Budget(ctx, "ho_1")
	c.Ledger(ctx, "ho_1", new(strings.Builder))
	c.CreateKey(ctx, "ana", "analyst")
	c.Keys(ctx)
	c.RevokeKey(ctx, "key_1")
	c.Plan(ctx, client.PlanRequest{N: 1000, Questions: 10, Confidence: 0.9, HalfWidth: 0.1, Rounds: 1, Training: 1, Tokens: 1, Published: true})
	for path, methods := range d.Paths {
		for _, operation := range methods {
			if strings.HasPrefix(path, "/v1/") && !seen[operation.OperationID] {
				t.Errorf("the client has no call for %s, or this test does not make it", operation.OperationID)
			}
		}
	}
}
