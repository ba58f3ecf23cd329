package members

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/queries"
)

// TestAllAreHere: every type with every member, as the schemas have them. It notices a type or a member that a command line could not reach.
func TestAllAreHere(t *testing.T) {
	types := Types()
	if len(types) != len(queries.Types()) {
		t.Errorf("%d types, not %d", len(types), len(queries.Types()))
	}
	for name, text := range queries.JSONSchemas(prefix) {
		var s struct {
			Properties map[string]json.RawMessage
			Required   []string
		}
		if json.Unmarshal(text, &s) != nil || s.Properties == nil {
			continue // Query and Operand
		}
		at := slices.IndexFunc(types, func(of Type) bool { return queries.SchemaName(of.Name) == name })
		if at < 0 {
			t.Errorf("there is no type for %s", name)
			continue
		}
		of := types[at]
		if len(of.Members) != len(s.Properties)-1 {
			t.Errorf("%s has %d members and type, not %d", name, len(of.Members), len(s.Properties))
		}
		for member := range s.Properties {
			m, ok := of.Member(member)
			if member != "type" && (!ok || m.Says == "" || m.Needed != slices.Contains(s.Required, member)) {
				t.Errorf("%s: %s is %+v", name, member, m)
			}
		}
		if of.Says == "" || len(of.Examples) == 0 {
			t.Errorf("%s says %q and has %d examples", name, of.Says, len(of.Examples))
		}
	}
}

// TestPlaces are those of the Python client, whose generated methods have them before the star.
func TestPlaces(t *testing.T) {
	source, err := os.ReadFile("../../python/src/holdoutd/_questions.py")
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range Types() {
		_, method, ok := strings.Cut(string(source), "    def "+of.Name+"(\n        self,\n")
		if !ok {
			t.Errorf("Python has no method %s", of.Name)
			continue
		}
		head, _, _ := strings.Cut(method, "        *,\n")
		var python, here []string
		for line := range strings.Lines(head) {
			name, _, _ := strings.Cut(strings.TrimSpace(line), ":")
			python = append(python, name)
		}
		for _, m := range of.Members {
			if m.Place {
				here = append(here, m.Name)
			}
		}
		if !slices.Equal(python, here) {
			t.Errorf("%s: %v by place, in Python %v", of.Name, here, python)
		}
	}
}

// TestExamplesAsTexts writes every example of the documentation as the texts of a command line, and reads them back. It notices a form of
// a member that no text can say, and a text that is read as something else.
func TestExamplesAsTexts(t *testing.T) {
	count := 0
	for _, of := range Types() {
		for _, example := range of.Examples {
			var want map[string]any
			if err := json.Unmarshal(example, &want); err != nil {
				t.Fatal(err)
			}
			given := map[string]json.RawMessage{}
			for name, value := range want {
				if name == "type" {
					continue
				}
				m, ok := of.Member(name)
				if !ok {
					t.Fatalf("%s has no member %s", of.Name, name)
				}
				text, err := m.Read(textsOf(m.schema, value))
				if err != nil {
					t.Errorf("%s: %s: %v", example, name, err)
				}
				given[name] = text
			}
			var got map[string]any
			if err := json.Unmarshal(of.Query(given), &got); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s\n got %s %v", example, of.Query(given), err)
			}
			if _, err := queries.Parse(of.Query(given)); err != nil && !strings.Contains(err.Error(), "label") {
				t.Errorf("%s: %v", example, err)
			}
			count++
		}
	}
	if count < 60 {
		t.Errorf("%d examples", count)
	}
}

// textsOf are the texts in which a person would write a value.
func textsOf(s *schema, value any) []string {
	plain := func(v any) string {
		if text, ok := v.(string); ok {
			return text
		}
		return string(marshal(v))
	}
	switch v := value.(type) {
	case []any:
		if len(s.OneOf) > 0 && len(v) == 1 { // a single text would be a text
			return []string{string(marshal(v))}
		}
		var texts []string
		for _, item := range v {
			texts = append(texts, plain(item))
		}
		if _, numbers := v[0].(float64); numbers {
			return []string{strings.Join(texts, ",")}
		}
		return texts
	case map[string]any:
		if s.Ref != "" || s.nested() {
			return []string{string(marshal(v))}
		}
		var texts []string
		for name, of := range v {
			if list, ok := of.([]any); ok {
				of = strings.Trim(string(marshal(list)), "[]")
			}
			texts = append(texts, name+"="+plain(of))
		}
		return texts
	}
	return []string{plain(value)}
}

// TestRead: what each form makes of a text.
func TestRead(t *testing.T) {
	types := Types()
	file := filepath.Join(t.TempDir(), "model.json")
	if err := os.WriteFile(file, []byte(" {\"linear\": {\"weights\": {\"distance\": 1}}} \n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		member string // type.member
		texts  []string
		want   string // or, from a bang on, a part of the error
	}{
		{"mean.of", []string{"delay > 15 && a < b"}, `"delay > 15 && a < b"`},
		{"mean.of", []string{"a", "b"}, "!more than once"},
		{"mean.range", []string{"-60,180"}, `[-60,180]`},
		{"mean.range", []string{"[-60, 180]"}, `[-60,180]`},
		{"mean.range", []string{"-60", "180"}, `[-60,180]`},
		{"mean.range", []string{"-60"}, "!two numbers, as -60,180"},
		{"mean.range", []string{"-60,x"}, `!must be a number, not "x"`},
		{"mean.guess", []string{".5"}, `0.5`},
		{"mean.guess", []string{"1e-3"}, `1e-3`},
		{"mean.guess", []string{"NaN"}, "!must be a number"},
		{"mean.guess", []string{"0x10"}, "!must be a number"},
		{"mean.guess", []string{"Inf"}, "!must be a number"},
		{"mean.null", []string{"skip"}, `"skip"`},
		{"mean.null", []string{"5"}, `5`},
		{"mean.weights", []string{"of=a == 1 ? 2.0 : 3.0", "range=0,3"}, `{"of":"a == 1 ? 2.0 : 3.0","range":[0,3]}`},
		{"mean.weights", []string{"off=a"}, "!did you mean of?"},
		{"mean.promise", []string{"at_most=0.02"}, `{"at_most":0.02}`},
		{"mean.promise", []string{"0.02"}, "!must be NAME=VALUE"},
		{"variance.ddof", []string{"1"}, `1`},
		{"compare.least", []string{"true"}, `true`},
		{"compare.least", []string{"yes"}, "!true or false"},
		{"compare.a", []string{`{"type": "mean"}`}, `{"type":"mean"}`},
		{"compare.a", []string{"mean"}, "!must be a JSON object, or @FILE"},
		{"compare.a", []string{`{"type":`}, "!is no JSON: unexpected end of JSON input"},
		{"argmax.of", []string{`{"type":"mean"}`, `{"type":"fraction"}`}, `[{"type":"mean"},{"type":"fraction"}]`},
		{"accuracy.model", []string{"@" + file}, `{"linear":{"weights":{"distance":1}}}`},
		{"accuracy.model", []string{"@" + file + "x"}, "!cannot be read: open"},
		{"accuracy.features", []string{"hour=date.getHours()", "late=a == 1"}, `{"hour":"date.getHours()","late":"a == 1"}`},
		{"accuracy.predictions", []string{"0.5,0.25"}, `[0.5,0.25]`},
		{"accuracy.predictions", []string{`{"f32":"AAAA"}`}, `{"f32":"AAAA"}`},
		{"accuracy.predictions", []string{"@" + file + "x"}, "!cannot be read: open"},
		{"precision.positive", []string{"7"}, `7`},
		{"precision.positive", []string{`"7"`}, `"7"`},
		{"precision.positive", []string{"SFO"}, `"SFO"`},
		{"groups.values", []string{"SFO", "OAK"}, `["SFO","OAK"]`},
		{"groups.values", []string{"1,2", "3"}, `[1,2,3]`},
		{"groups.guess", []string{"a=b=0.25"}, `{"a=b":0.25}`},
		{"frequencies.values", []string{"A,B", "C"}, `["A,B","C"]`},
		{"screen.features", []string{"x*"}, `"x*"`},
		{"screen.features", []string{"a", "b"}, `["a","b"]`},
		{"screen.features", []string{`["a"]`}, `["a"]`},
		{"test.between", []string{"a == 1", "a == 2"}, `["a == 1","a == 2"]`},
	} {
		name, member, _ := strings.Cut(c.member, ".")
		of, _ := Of(types, name)
		m, ok := of.Member(member)
		if !ok {
			t.Fatal(c.member)
		}
		got, err := m.Read(c.texts)
		if part, wrong := strings.CutPrefix(c.want, "!"); wrong {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s %q: %s %v, not an error with %q", c.member, c.texts, got, err, part)
			}
			continue
		}
		if string(got) != c.want || err != nil {
			t.Errorf("%s %q: %s %v, not %s", c.member, c.texts, got, err, c.want)
		}
	}
}

// FuzzRead: whatever a member is given, what is read is JSON, and so is the query that it stands in.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{"delay > 15", "-60,180", "[1,2", `{"a":1}`, "of=a", "a=b=1", `"7"`, "@", "=", ",", "skip", "\xff", "1e999", "[]", "{}", " "} {
		f.Add(seed, "")
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, one, two string) {
		texts := []string{one}
		if two != "" {
			texts = append(texts, two)
		}
		for _, text := range texts {
			if strings.HasPrefix(strings.TrimSpace(text), "@") {
				return // a file
			}
		}
		for _, of := range Types() {
			for _, m := range of.Members {
				value, err := m.Read(texts)
				if (err == nil) != (value != nil) {
					t.Fatalf("%s.%s %q: %s %v", of.Name, m.Name, texts, value, err)
				}
				if err == nil && !json.Valid(of.Query(map[string]json.RawMessage{m.Name: value})) {
					t.Fatalf("%s.%s %q: %s", of.Name, m.Name, texts, value)
				}
			}
		}
	})
}
