package clientgen

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/internal/api"
)

var update = flag.Bool("update", false, "rewrite the generated files")

const golden = "../../client/types.go"

func document(t *testing.T) []byte {
	t.Helper()
	d, err := api.New(nil, api.Options{}).OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestTypesAreGenerated compares client/types.go with what the server's types say. It notices a member of the server that was renamed,
// added, removed or changed in its type while the client stayed as it was, and every change of the client's file by hand.
func TestTypesAreGenerated(t *testing.T) {
	got, err := Types(document(t))
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("client/types.go is not what the OpenAPI document says; if that is meant: make generate")
	}
}

// TestForms has one member of each form, in a type of its own. It notices a null that has no place in its Go type, an absent struct that looks like one of
// zeros, a name that Go writes otherwise, and a member that is left out.
func TestForms(t *testing.T) {
	for form, want := range map[string]string{
		`"plain_text":{"type":"string","description":"for people"}`:                 "PlainText string `json:\"plain_text\"` // for people",
		`"p_value":{"type":["number","null"],"format":"double"}`:                    "PValue *float64 `json:\"p_value\"`",
		`"key_id":{"type":"integer","format":"int64"}`:                              "KeyID int64 `json:\"key_id\"`",
		`"on":{"type":"boolean"}`:                                                   "On bool `json:\"on\"`",
		`"at":{"type":"string","format":"date-time"}`:                               "At time.Time `json:\"at\"`",
		`"at?":{"type":"string","format":"date-time"}`:                              "At *time.Time `json:\"at,omitempty\"`",
		`"rows":{"$ref":"#/components/schemas/Counts"}`:                             "Rows Counts `json:\"rows\"`",
		`"rows?":{"$ref":"#/components/schemas/Counts"}`:                            "Rows *Counts `json:\"rows,omitempty\"`",
		`"left":{"oneOf":[{"$ref":"#/components/schemas/Meter"},{"type":"null"}]}`:  "Left *Meter `json:\"left\"`",
		`"left?":{"oneOf":[{"$ref":"#/components/schemas/Meter"},{"type":"null"}]}`: "Left *Meter `json:\"left,omitempty\"`",
		`"all?":{"type":"array","items":{"$ref":"#/components/schemas/TextShape"}}`: "All []Dictionary `json:\"all,omitempty\"`",
		`"by?":{"type":"object","additionalProperties":{"type":["number","null"]}}`: "By map[string]*float64 `json:\"by,omitempty\"`",
		`"raw":{}`: "Raw json.RawMessage `json:\"raw\"`",
		`"c?":{"type":"number","default":0.95,"description":"of all"}`:                "C float64 `json:\"c,omitempty\"` // of all; default: 0.95",
		`"says?":{"type":"string","enum":["yes","no"],"description":"of a decision"}`: "Says string `json:\"says,omitempty\"` // of a decision: \"yes\", \"no\"",
	} {
		got, err := skipped(t, form)
		if err != nil {
			t.Errorf("%s: %v", form, err)
			continue
		}
		_, fields, _ := strings.Cut(got, "type Skipped struct {")
		fields, _, _ = strings.Cut(fields, "}\n")
		if fields = strings.Join(strings.Fields(fields), " "); fields != want {
			t.Errorf("%s\n got %s\nwant %s", form, fields, want)
		}
	}
}

// TestRefused: what the generator does not know is an error, never a type that is nearly right.
func TestRefused(t *testing.T) {
	for form, want := range map[string]string{
		`"a":{"$ref":"#/components/schemas/MeanQuery"}`:         "no name here",
		`"a":{"type":["string","number"]}`:                      "unknown here",
		`"a":{"oneOf":[{"type":"string"},{"type":"number"}]}`:   "unknown here",
		`"a":{"type":["array","null"],"items":{"type":"null"}}`: "unknown here",
		`"a":{"type":"object","properties":{"b":{}}}`:           "unknown here",
		`"a":{"type":"tuple"}`:                                  "unknown here",
	} {
		if _, err := skipped(t, form); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", form, err, want)
		}
	}
	whole := string(document(t))
	for _, change := range []struct{ old, new, want string }{
		{`"plain_p_value"`, `"plain_pvalue"`, "no member Answer.plain_p_value"}, // of the table of Go types
		{`"TextShape":`, `"Shape":`, "the component TextShape"},
		{`"revoked":{"type":"boolean"}`, `"revoked":{"type":"string"}`, `another "revoked"`}, // of a new key, and not of a listed one
	} {
		changed := strings.Replace(whole, change.old, change.new, 1)
		if changed == whole {
			t.Errorf("the document has no %s", change.old)
		}
		if _, err := Types([]byte(changed)); err == nil || !strings.Contains(err.Error(), change.want) {
			t.Errorf("%s: %v, want %s", change.new, err, change.want)
		}
	}
}

// skipped generates the types of the document with one member in the component Skipped; a name that ends with ? is not required.
func skipped(t *testing.T, form string) (string, error) {
	t.Helper()
	var d map[string]any
	if err := json.Unmarshal(document(t), &d); err != nil {
		t.Fatal(err)
	}
	member := map[string]any{}
	if err := json.Unmarshal([]byte("{"+form+"}"), &member); err != nil {
		t.Fatal(err)
	}
	required := []string{}
	for _, name := range slices.Collect(maps.Keys(member)) {
		if plain, optional := strings.CutSuffix(name, "?"); optional {
			member[plain] = member[name]
			delete(member, name)
		} else {
			required = append(required, name)
		}
	}
	d["components"].(map[string]any)["schemas"].(map[string]any)["Skipped"] = map[string]any{"type": "object", "description": "one", "properties": member, "required": required}
	changed, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Types(changed)
	return string(got), err
}

const pythonGolden = "../../python/src/holdoutd/_questions.py"

// TestPythonIsGenerated compares the methods of the Python client with what the server's queries are. It notices a query type or a member
// that only one of the two has.
func TestPythonIsGenerated(t *testing.T) {
	got, err := Python(document(t))
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(pythonGolden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(pythonGolden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("the Python client's questions are not what the OpenAPI document says; if that is meant: make generate")
	}
}

// TestTypeScriptIsGenerated compares what the dashboard knows of replies and of queries with what the server's are. It notices a member of a
// reply, or a query type, or a member of one, that only one of the two has.
func TestTypeScriptIsGenerated(t *testing.T) {
	for path, make := range map[string]func([]byte) ([]byte, error){
		"../../web/src/generated/api.ts":     TypeScript,
		"../../web/src/generated/queries.ts": Forms,
	} {
		got, err := make(document(t))
		if err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile(path, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what the OpenAPI document says; if that is meant: make generate", path)
		}
	}
}
