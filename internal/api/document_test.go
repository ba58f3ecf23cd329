package api

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/holdoutd/holdoutd/holdout"
)

var update = flag.Bool("update", false, "rewrite api/openapi.json, the parameters in docs/API.md and testdata/mcp-tools.json")

const golden = "../../api/openapi.json"

// TestDocument keeps api/openapi.json: a change of the interface must be seen in a diff.
func TestDocument(t *testing.T) {
	got, err := New(nil, Options{}).OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, got, "", "  "); err != nil {
		t.Fatal(err)
	}
	pretty.WriteByte('\n')
	if *update {
		if err := os.WriteFile(golden, pretty.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(pretty.Bytes(), want) {
		t.Errorf("the interface is not what api/openapi.json says; if that is meant: go test ./internal/api -run TestDocument -update")
	}
}

// TestServersAreMadeAtOnce: a process makes several servers at the same time. Under the race detector it would notice a parameter or a
// schema that two documents have in common, for huma writes to what it is given.
func TestServersAreMadeAtOnce(t *testing.T) {
	var made sync.WaitGroup
	for range 4 {
		made.Go(func() { New(&holdout.Service{}, Options{}) })
	}
	made.Wait()
}

// TestDocumentIsWhole checks that references resolve, that operations are described, and that what needs a key says so.
func TestDocumentIsWhole(t *testing.T) {
	body, err := New(nil, Options{}).OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		OpenAPI string
		Paths   map[string]map[string]struct {
			OperationID, Summary string
			Security             []map[string][]string
			Responses            map[string]json.RawMessage
		}
		Components struct{ Schemas map[string]json.RawMessage }
	}
	if err := json.Unmarshal(body, &doc); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(doc.OpenAPI, "3.1") {
		t.Errorf("OpenAPI %q, want 3.1", doc.OpenAPI)
	}
	for _, ref := range strings.Split(string(body), `"$ref":"`)[1:] {
		name, _, _ := strings.Cut(strings.TrimPrefix(ref, "#/components/schemas/"), `"`)
		if doc.Components.Schemas[name] == nil {
			t.Errorf("nothing is called %q", name)
		}
	}
	for name := range components {
		if doc.Components.Schemas[name] == nil {
			t.Errorf("%s is described, and the document has no such component", name)
		}
	}
	seen := map[string]bool{}
	for path, methods := range doc.Paths {
		for method, op := range methods {
			if op.OperationID == "" || op.Summary == "" || seen[op.OperationID] {
				t.Errorf("%s %s: operation %q, summary %q", method, path, op.OperationID, op.Summary)
			}
			seen[op.OperationID] = true
			open := op.OperationID == "get-session" || op.OperationID == "sign-out" // they say nothing to a stranger
			if needs := len(op.Security) > 0; needs != (strings.HasPrefix(path, "/v1/") && !open || path == mcpPath) {
				t.Errorf("%s %s: needs a key: %v", method, path, needs)
			}
			if op.Responses["default"] == nil {
				t.Errorf("%s %s does not say what its errors are", method, path)
			}
		}
	}
	if len(seen) < 18 {
		t.Errorf("%d operations; DESIGN has more", len(seen))
	}
	if strings.Contains(string(body), "$schema") {
		t.Error("the document mentions $schema, which replies must not have")
	}
}

// TestParametersAreExplained: each parameter has an example of its own kind, and says what holds where it is absent: a default, or words that begin
// with one. A parameter that nobody described turns it red; so does a sample of a parameter that is gone.
func TestParametersAreExplained(t *testing.T) {
	body, err := New(nil, Options{}).OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Paths map[string]map[string]struct {
			OperationID string
			Parameters  []struct {
				Name, In, Description string
				Required              bool
				Schema                struct {
					Type     string
					Default  any
					Examples []any
				}
			}
		}
	}
	if err := json.Unmarshal(body, &doc); err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for path, methods := range doc.Paths {
		for _, op := range methods {
			for _, p := range op.Parameters {
				used[p.Name], used[op.OperationID+" "+p.Name] = true, true
				where := path + ": the parameter " + p.Name
				if p.Description == "" {
					t.Errorf("%s is not described", where)
				}
				if len(p.Schema.Examples) == 0 {
					t.Errorf("%s has no example: add it to samples", where)
					continue
				}
				_, isText := p.Schema.Examples[0].(string)
				if isText != (p.Schema.Type == "string") {
					t.Errorf("%s is a %s, and its example is %v", where, p.Schema.Type, p.Schema.Examples[0])
				}
				if !p.Required && p.Schema.Default == nil && !strings.Contains(strings.ToLower(p.Description), "default") {
					t.Errorf("%s does not say what holds without it", where)
				}
			}
		}
	}
	for name := range samples {
		if !used[name] {
			t.Errorf("there is a sample of %q, and no such parameter", name)
		}
	}
}

// TestSamplesAreTaken: the values that the document shows, and the default values, are read as they stand.
func TestSamplesAreTaken(t *testing.T) {
	for _, p := range settings {
		s := samples[p.name]
		for _, v := range []any{s.example, s.value} {
			if v == nil {
				continue
			}
			if _, err := readSettings(url.Values{p.name: {fmt.Sprint(v)}}.Encode()); err != nil {
				t.Errorf("%s=%v: %v", p.name, v, err)
			}
		}
	}
}
