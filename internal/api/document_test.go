package api

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite api/openapi.json")

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
			if needs := len(op.Security) > 0; needs != strings.HasPrefix(path, "/v1/") {
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
