package queries

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/dataset"
)

var flights = dataset.Schema{Fields: []dataset.Field{
	{Name: "delay", Kind: dataset.Number}, {Name: "distance", Kind: dataset.Number}, {Name: "origin", Kind: dataset.Text}, {Name: "late", Kind: dataset.Bool},
}}

// halves is a training part in which every row function has the mean one half.
type halves struct{}

func (halves) Means(_ context.Context, functions []RowFunction) ([]float64, error) {
	return slices.Repeat([]float64{0.5}, len(functions)), nil
}

func (halves) Texts(string) []string { return []string{"JFK", "SFO"} }

func mustParse(t testing.TB, body string) *Query {
	t.Helper()
	q, err := Parse([]byte(body))
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return q
}

// TestIdentity pins canonical forms and IDs: a change of any of them breaks replay from every ledger that exists.
func TestIdentity(t *testing.T) {
	for _, c := range [][3]string{
		{`{"type":"mean","of":"delay","range":[-60,180]}`, `{"of":"delay","range":[-60,180],"type":"mean"}`,
			"sha256:0b5111f85af42d2ecdcb5fa721d3e19c81a4aa44eca243feb751c901761e598f"},
		{`{"where":"'SFO' == origin","type":"mean","of":"(delay)","range":[-6e1,180.0],"null":-60,"weight":"unit","note":"x"}`,
			`{"of":"delay","range":[-60,180],"type":"mean","where":"origin == \"SFO\""}`,
			"sha256:5c17acd3c0446cff1afc2b756f2929ffb246dea4510f4fba1515cbd1a4481ff3"},
		{`{"type":"count","where":"late"}`, `{"type":"count","where":"late"}`,
			"sha256:0af4d27a714f229710653a23b034509084a65387ece7ecd44737508a9f5937cc"},
		{`{"type":"fraction","of":"delay","guess":0.25,"half_width":1e-2,"weight":"row"}`,
			`{"guess":0.25,"half_width":0.01,"of":"delay","type":"fraction","weight":"row"}`, ""},
		{`{"type":"fraction","promise":{"at_least":9.70e-1},"of":"late"}`, `{"of":"late","promise":{"at_least":0.97},"type":"fraction"}`, ""},
		{`{"type":"mean","of":"delay < 1 && origin > '<&>' ? 1 : 0","range":[0,1]}`,
			`{"of":"((delay < 1) && (origin > \"<&>\")) ? 1 : 0","range":[0,1],"type":"mean"}`, ""},
	} {
		q := mustParse(t, c[0])
		if got := string(q.Canonical()); got != c[1] {
			t.Errorf("%s:\n got %s\nwant %s", c[0], got, c[1])
		}
		if c[2] != "" && q.ID() != c[2] {
			t.Errorf("%s: got ID %s, want %s", c[0], q.ID(), c[2])
		}
	}
}

func TestNoteIsKeptApart(t *testing.T) {
	q := mustParse(t, `{"type":"fraction","of":"late","note":"after lunch"}`)
	if q.Note != "after lunch" || q.ID() != mustParse(t, `{"type":"fraction","of":"late"}`).ID() {
		t.Errorf("note %q, ID %s", q.Note, q.ID())
	}
}

func TestGuess(t *testing.T) {
	q := mustParse(t, `{"type":"mean","of":"delay","range":[-60,180],"guess":12.5,"half_width":2}`)
	if g, ok := q.Guess(); !ok || g != 12.5 {
		t.Error(g, ok)
	}
	if h, ok := q.HalfWidth(); !ok || h != 2 {
		t.Error(h, ok)
	}
	for _, body := range []string{`{"type":"mean","of":"delay","range":[-60,180]}`, `{"type":"count","of":"late"}`} {
		q := mustParse(t, body)
		_, guessed := q.Guess()
		if _, wide := q.HalfWidth(); guessed || wide {
			t.Errorf("%s has a guess", body)
		}
	}
}

func TestRefused(t *testing.T) {
	mean := func(more string) string { return `{"type":"mean","of":"delay","range":[-60,180]` + more + `}` }
	for _, c := range []struct {
		body string
		kind Kind
		want string // the violations, each "pointer: … text"
	}{
		{``, Malformed, "1:1: the body ends too early"},
		{`{"type":`, Malformed, "1:9: the body ends too early"},
		{"{\n\"type\": mean}", Malformed, "2:9: the body is not JSON"},
		{mean("") + "x", Malformed, "the body is not JSON"},
		{mean("") + mean(""), Malformed, "the body is not JSON"},
		{`{"type":"mean","type":"mean"}`, Malformed, "a key occurs twice"},
		{`{"type":"mean","t\u0079pe":"mean"}`, Malformed, "a key occurs twice"},
		{`{"a":[{"b":1,"b":2}]}`, Malformed, "a key occurs twice"},
		{"{\"type\":\"\xff\"}", Malformed, "1:10: the body is not valid UTF-8"},
		{strings.Repeat("[", 100) + strings.Repeat("]", 100), Malformed, "nested deeper"},
		{`{"note":"` + strings.Repeat("x", MaxBody) + `"}`, Malformed, fmt.Sprintf("more than %d bytes", MaxBody)},
		{`3`, Invalid, "must be an object"},
		{`null`, Invalid, "must be an object"},
		{`[]`, Invalid, "must be an object: a query, not a list"},
		{`{}`, Invalid, `"type" is missing`},
		{`{"type":"meen"}`, Invalid, "/type: must be one of " + strings.Join(Types(), ", ") + "; did you mean mean?"},
		{`{"type":3}`, Invalid, "/type: must be one of"},
		{`{"type":"mean"}`, Invalid, `"of" is missing: the number to average: a row expression; "range" is missing`},
		{mean(`,"whre":"late"`), Invalid, "/whre: unknown member; a mean has type, of, range, where, null, weight, weights, promise, guess, half_width, measure, note; did you mean where?"},
		{mean(`,"a/b~c":1`), Invalid, "/a~1b~0c: unknown member; a mean has type, of, range, where, null, weight, weights, promise, guess, half_width, measure, note; leave it out"},
		{mean(`,"filter":"late"`), Invalid, "note; did you mean where?"},
		{mean(`,"filter":"late","where":"late"`), Invalid, "note; leave it out"},
		{`{"type":"mean","field":"delay","range":[0,1]}`, Invalid, "note; did you mean of?"},
		{`{"type":"correlation","first":"delay","second":"distance","range_x":[0,1],"range_y":[0,1]}`, Invalid, "half_width, measure, note; /second"}, // x or y: nobody knows
		{`{"type":"screen","columns":["delay","distance"],"label":"late"}`, Invalid, "clip, note; did you mean features?"},
		{`{"type":"compare","a":{"type":"fraction","of":"late","measure":true},"b":{"type":"fraction","of":"late"}}`, Invalid, "/a: a query inside of another has no guess, half_width or measure of its own"},
		{mean(`,"where":3`), Invalid, "/where: must be a text: an expression, not a number"},
		{mean(`,"where":null`), Invalid, "/where: must be a text: an expression, not null"},
		{mean(`,"where":"delay >"`), Invalid, "/where: 1:8: the expression ends too early"},
		{mean(`,"null":"x"`), Invalid, `/null: must be a number or "skip", not a text`},
		{mean(`,"null":1e999`), Invalid, "/null: must be a finite number"},
		{mean(`,"null":181`), Invalid, "/null: must lie in the range"},
		{mean(`,"weight":"rows"`), Invalid, `/weight: must be "unit" or "row"`},
		{mean(`,"promise":{}`), Invalid, "/promise: has 0 members; a promise has one of at_most, at_least, disagreement and variance"},
		{mean(`,"promise":{"at_most":1,"variance":2}`), Invalid, "/promise: has 2 members; a promise has one of at_most, at_least, disagreement and variance"},
		{mean(`,"promise":{"atmost":1}`), Invalid, "/promise/atmost: unknown member; a promise has one of at_most, at_least, disagreement and variance; did you mean at_most?"},
		{mean(`,"promise":{"variance":0}`), Invalid, "/promise/variance: must be more than 0"},
		{mean(`,"promise":0.1`), Invalid, `/promise: must be an object, such as {"at_most": …}, not a number`},
		{mean(`,"guess":200`), Invalid, "/guess: must lie in the range of the answer"},
		{mean(`,"half_width":0`), Invalid, "/half_width: must be more than 0"},
		{mean(`,"half_width":241`), Invalid, "/half_width: must not be more than"},
		{mean(`,"note":3`), Invalid, "/note: must be a text"},
		{mean(`,"note":"` + strings.Repeat("x", MaxNote+1) + `"`), Invalid, "/note: is too long"},
		{`{"type":"fraction","of":"late","guess":1.5}`, Invalid, "/guess: must lie in the range"},
		{`{"type":"count"}`, Invalid, `"of" is missing: the condition to count`},
		{`{"type":"count","of":"late","range":[0,1]}`, Invalid, "/range: unknown member"},
		{`{"type":"mean","of":"","range":[2,1],"x":1}`, Invalid, "/of: 1:1: the expression is empty; expected a column, a number, or an operation on them; /range: the first number must be less than the second; /x: unknown"},
	} {
		_, err := Parse([]byte(c.body))
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%.80s: %v, want an *Error", c.body, err)
		} else if e.Kind != c.kind || !strings.Contains(e.Error(), c.want) || len(e.Violations) == 0 {
			t.Errorf("%.80s: got kind %d\n%s\nwant %s", c.body, e.Kind, e, c.want)
		}
	}
}

func TestRanges(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`[0,1]`, ""}, {`[-1e150,1e150]`, ""}, {`[0,1e-140]`, ""}, {`[-0.0,1]`, ""}, {`[1e9,1000000001]`, ""},
		{`[1,1]`, "/range: the first number must be less"}, {`[1,0]`, "/range: the first number must be less"},
		{`[0,9e-141]`, "too narrow"}, {`[1e15,1000000000000001]`, "too narrow"}, {`[0,1e151]`, "must lie within"},
		{`[0]`, "/range: must be a list of two numbers"}, {`[0,1,2]`, "list of two"}, {`"0,1"`, "list of two"},
		{`[0,"1"]`, "/range/1: must be a finite number"}, {`[-1e999,1]`, "/range/0: must be a finite number"},
	} {
		_, err := Parse([]byte(`{"type":"mean","of":"delay","range":` + c.in + `}`))
		if got := fmt.Sprint(err); c.want == "" && err != nil || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %s, want %s", c.in, got, c.want)
		}
	}
}

// TestNoEcho: what stands in the place of a number, a name or a setting does not come back in an error's details.
func TestNoEcho(t *testing.T) {
	for _, body := range []string{
		`{"type":"sekret"}`, `{"type":"mean","of":"delay","range":"sekret","null":"sekret","weight":"sekret"}`, `{"type":"mean","x":"sekret"}`,
		`{"sekret`, `"sekret"`, `{"queries":"sekret"}`,
	} {
		_, err := Parse([]byte(body))
		if err == nil || strings.Contains(err.Error(), "sekret") {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestCompileErrors(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{`{"type":"mean","of":"dealy","range":[0,1],"where":"origin"}`, `/of: 1:1: unknown column "dealy"; did you mean delay?; /where: 1:1: the expression is text`},
		{`{"type":"mean","of":"late","range":[0,1]}`, "/of: 1:1: this is a condition; expected a number; did you mean late ? 1 : 0?"},
		{`{"type":"fraction","of":"delay"}`, "/of: 1:1: this is a number; expected a condition; did you mean delay != 0?"},
		{`{"type":"count","where":"delay"}`, "/where: 1:1: this is a number"},
		{`{"type":"count","of":"x > 1","where":"y > 1"}`, `/where: 1:1: unknown column "y"`},
		{`{"type":"sum","of":"delay","range":[1,2],"where":"distance + 1"}`, "/where: 1:10: this is a number"},
		{`{"type":"mean","of":"delay","range":[0,1],"where":"late &&\n origni == 'a'"}`, "/where: 2:2: unknown column"},
	} {
		_, err := mustParse(t, c.body).Compile(context.Background(), flights)
		var e *Error
		if !errors.As(err, &e) || e.Kind != Invalid || !strings.Contains(e.Error(), c.want) {
			t.Errorf("%s:\n got %v\nwant %s", c.body, err, c.want)
		}
	}
	_, err := mustParse(t, `{"type":"fraction","of":"delay"}`).Compile(context.Background(), flights, At("/queries/3"))
	if err == nil || !strings.Contains(err.Error(), "/queries/3/of: ") {
		t.Error(err)
	}
}

// TestSemanticMembersChangeTheID: every member but the note is a part of the identity.
func TestSemanticMembersChangeTheID(t *testing.T) {
	seen := map[string]string{}
	for _, body := range []string{
		`{"type":"mean","of":"delay","range":[-60,180]}`, `{"type":"mean","of":"distance","range":[-60,180]}`, `{"type":"mean","of":"delay","range":[-60,181]}`,
		`{"type":"mean","of":"delay","range":[-61,180]}`, `{"type":"mean","of":"delay","range":[-60,180],"null":0}`, `{"type":"mean","of":"delay","range":[-60,180],"null":1}`,
		`{"type":"mean","of":"delay","range":[-60,180],"where":"late"}`, `{"type":"mean","of":"delay","range":[-60,180],"where":"!late"}`,
		`{"type":"mean","of":"delay","range":[-60,180],"weight":"row"}`, `{"type":"mean","of":"delay","range":[-60,180],"guess":0}`,
		`{"type":"mean","of":"delay","range":[-60,180],"guess":1}`, `{"type":"mean","of":"delay","range":[-60,180],"half_width":1}`,
		`{"type":"sum","of":"delay","range":[-60,180]}`, `{"type":"sum","of":"delay","range":[-60,180],"where":"late"}`,
		`{"type":"fraction","of":"late"}`, `{"type":"count","of":"late"}`, `{"type":"count","where":"late"}`, `{"type":"fraction","of":"late","where":"late"}`,
	} {
		id := mustParse(t, body).ID()
		if other, ok := seen[id]; ok {
			t.Errorf("%s and %s have one ID", body, other)
		}
		seen[id] = body
	}
}

// TestSpellingsKeepTheID: key order, whitespace, number and string spellings and the spelling of expressions do not
// change the ID, and the canonical form parses to itself.
func TestSpellingsKeepTheID(t *testing.T) {
	spellings := map[string][]string{
		"type":   {`"mean"`, `"m\u0065an"`},
		"of":     {`"delay + 1"`, `"1.0+(delay)"`, `" 0x1 +\n delay"`},
		"range":  {`[-60,180]`, `[-6e1, 1.8E2]`, `[ -60.0,180.000 ]`},
		"where":  {`"late && delay > 15"`, `"15 < delay && late"`, `"(late)\u0026\u0026(delay>1.5e1)"`},
		"null":   {`0.5`, `5e-1`, `0.50`},
		"weight": {`"row"`},
		"guess":  {`100`, `1e2`},
		"note":   {`"a"`, `"b"`, `""`},
	}
	names := []string{"type", "of", "range", "where", "null", "weight", "guess", "note"}
	want := mustParse(t, spell(names, func(m string) string { return spellings[m][0] }, "")).ID()
	rapid.Check(t, func(t *rapid.T) {
		order := rapid.Permutation(names).Draw(t, "order")
		space := rapid.SampledFrom([]string{"", " ", "\n\t"}).Draw(t, "space")
		body := spell(order, func(m string) string { return rapid.SampledFrom(spellings[m]).Draw(t, m) }, space)
		q, err := Parse([]byte(body))
		if err != nil || q.ID() != want {
			t.Fatalf("%s: %v, %v", body, q, err)
		}
		again, err := Parse(q.Canonical())
		if err != nil || !bytes.Equal(again.Canonical(), q.Canonical()) {
			t.Fatalf("%s is read as %v, %v", q.Canonical(), again, err)
		}
	})
}

func spell(names []string, value func(string) string, space string) string {
	var b strings.Builder
	for i, m := range names {
		b.WriteString([]string{"{", ","}[min(i, 1)] + space + `"` + m + `"` + space + ":" + space + value(m) + space)
	}
	return b.String() + "}" + space
}

// TestSchema: each type has a schema of its own, which Query refers to, and each of its examples is a query that uses its members
// only. Inside of another query stands what can stand there.
func TestSchema(t *testing.T) {
	type alternatives struct {
		OneOf []struct {
			Ref string `json:"$ref"`
		}
	}
	schemas := JSONSchemas("#/of/")
	read := func(name string, into any) {
		t.Helper()
		if err := json.Unmarshal(schemas[name], into); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	var query, operand alternatives
	read("Query", &query)
	read("Operand", &operand)
	if len(query.OneOf) != len(Types()) || len(schemas) != len(Types())+2 {
		t.Fatalf("%d alternatives in %d schemas for %v", len(query.OneOf), len(schemas), Types())
	}
	var inside []string
	for _, one := range operand.OneOf {
		inside = append(inside, one.Ref)
	}
	for i, one := range query.OneOf {
		var alternative struct {
			Title      string
			Properties map[string]any
			Required   []string
			Examples   []json.RawMessage
			Additional *bool `json:"additionalProperties"`
		}
		name, ok := strings.CutPrefix(one.Ref, "#/of/")
		read(name, &alternative)
		if !ok || alternative.Title != name || len(alternative.Examples) == 0 || alternative.Additional == nil || *alternative.Additional {
			t.Errorf("%s: %+v", one.Ref, alternative)
		}
		body := fmt.Sprintf(`{"type":"argmax","of":[%s,%[1]s]}`, alternative.Examples[0])
		_, err := Parse([]byte(body))
		if nests := err != nil && strings.Contains(err.Error(), "holds queries itself"); nests == slices.Contains(inside, one.Ref) {
			t.Errorf("%s: whether it stands inside of another is %v for the parser and %v in the schema", name, !nests, nests)
		}
		for _, example := range alternative.Examples {
			q := mustParse(t, string(example))
			if q.Type() != Types()[i] {
				t.Errorf("%s is an example of %s", example, alternative.Title)
			}
			if _, err := q.Compile(context.Background(), flights, Training(halves{})); err != nil {
				t.Errorf("%s: %v", example, err)
			}
			var members map[string]any
			if err := json.Unmarshal(example, &members); err != nil {
				t.Fatal(err)
			}
			for m := range members {
				if alternative.Properties[m] == nil {
					t.Errorf("%s: the schema has no %s", example, m)
				}
			}
			for _, m := range alternative.Required { // and Parse insists on what the schema requires
				less := maps.Clone(members)
				delete(less, m)
				body, err := json.Marshal(less)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := Parse(body); err == nil {
					t.Errorf("%s was accepted without %s", body, m)
				}
			}
		}
	}
}

// FuzzParse: no body panics, errors are *Error with a place, and the canonical form is a fixed point with the same ID.
func FuzzParse(f *testing.F) {
	for _, k := range kinds {
		for _, e := range k.examples {
			f.Add([]byte(e))
		}
	}
	for _, body := range []string{`{"type":"mean","of":"delay","range":[1e999,-0]}`, `{"a":{"a":[1,{"a":1,"a":2}]}}`, `[1 2]`, `{"type":"count","where":"a.b in [1,'x']"}`, "\xef\xbb\xbf{}"} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var e *Error
		q, err := Parse(body)
		if err != nil {
			if !errors.As(err, &e) || len(e.Violations) == 0 || e.Kind != Malformed && e.Kind != Invalid {
				t.Fatalf("%#v", err)
			}
			return
		}
		if !json.Valid(body) {
			t.Fatalf("%q is not JSON", body)
		}
		again, err := Parse(q.Canonical())
		if err != nil {
			var e *Error // a form can be longer than its source and so over a limit
			if errors.As(err, &e) && (strings.Contains(e.Error(), "bytes") || strings.Contains(e.Error(), "deeper")) {
				return
			}
			t.Fatalf("%q has the form %q: %v", body, q.Canonical(), err)
		}
		if again.ID() != q.ID() {
			t.Fatalf("%q has the form %q, which has another ID", body, q.Canonical())
		}
		for _, grouped := range []bool{false, true} {
			if p, err := q.Compile(context.Background(), flights, Grouped(grouped)); err == nil && len(p.Functions) == 0 {
				t.Fatalf("%+v", p)
			}
		}
	})
}

// Column implements TrainingPart: nothing is known.
func (halves) Column(string) (ColumnFacts, bool) { return ColumnFacts{}, false }

// Numbers implements TrainingPart.
func (halves) Numbers(string, int) []float64 { return []float64{1, 2} }
