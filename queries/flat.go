package queries

import (
	"encoding/json"
	"slices"
	"strings"
)

// What readers are told that take a schema as a text to read, such as language models: little at first, and all of one type when they ask for it ([Describe]). A schema
// for each type ([JSONSchemas]) is forty times as long.
//
// Their programs read schemas, too, and each in its own way. So these have no references, no alternatives and no bounds, which some refuse, and every object says whether it is
// open: some close an object that does not say so, and then nothing can be sent in it.

// FlatSchema is the JSON schema of a query as one open object: the members of all types, and in the description of "type" what each type needs and may have.
// It accepts every query that Parse accepts, and more: which members go together is left to Parse.
func FlatSchema() json.RawMessage {
	properties := map[string]any{"type": map[string]any{"type": "string", "enum": Types(), "description": Summary()}}
	properties["note"] = map[string]any{"type": "string", "description": hints["note"]}
	for _, f := range gather(kinds) {
		properties[f.name] = f.schema(hints[f.name])
	}
	return mustMarshal(open(properties, "type"))
}

// NestedSchema is the JSON schema of a query of which no more is said than that it has a type: one that stands beside a FlatSchema, or inside of a query.
func NestedSchema() map[string]any {
	return open(map[string]any{"type": map[string]any{"type": "string"}}, "type")
}

func open(properties map[string]any, needed ...string) map[string]any {
	return map[string]any{"type": "object", "properties": properties, "required": needed, "additionalProperties": true}
}

// FlatMembers are the schemas of the members of one type, without "type", and the names of those that it needs: the arguments of a tool that asks nothing else. It panics on
// an unknown type.
func FlatMembers(name string) (properties map[string]any, needed []string) {
	at := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })
	if at < 0 {
		panic("queries: there is no type " + name)
	}
	properties = map[string]any{"note": map[string]any{"type": "string"}}
	for _, f := range gather(kinds[at : at+1]) {
		says := clause(f.doc)
		if usual[f.name] { // what is said of a query holds here
			says = ""
		}
		properties[f.name] = f.schema(says)
		if f.required {
			needed = append(needed, f.name)
		}
	}
	return properties, needed
}

// usual are members that many types have: a summary names them once.
var usual = map[string]bool{"where": true, "null": true, "weight": true, "promise": true, "guess": true, "half_width": true, "measure": true,
	"model": true, "features": true, "prediction": true, "predictions": true}

// Summary is a line for each type: what it needs, what it may have beside the usual members, and what it is.
func Summary() string {
	lines := make([]string, len(kinds))
	for i, k := range kinds {
		lines[i] = k.summary()
	}
	return strings.Join(lines, "\n")
}

func (k kind) summary() string {
	var needs, may []string
	for _, m := range k.make().members() {
		switch {
		case m.required && !m.labels:
			needs = append(needs, m.name)
		case usual[m.name] || m.labels || slices.Contains(k.needsOne, m.name):
		default:
			may = append(may, m.name)
		}
	}
	if len(k.needsOne) > 0 {
		one := strings.Join(k.needsOne, "|")
		if slices.Contains(k.needsOne, "predictions") {
			one = "M"
		}
		needs = append(needs, one)
	}
	s := k.name + "(" + strings.Join(needs, ", ")
	if len(may) > 0 {
		s += "; " + strings.Join(may, ", ")
	}
	return s + "): " + clause(k.doc)
}

// clause is how a text begins: what it says before it goes into detail.
func clause(doc string) string {
	for _, end := range []string{". ", ".\n", ": ", "; "} {
		doc, _, _ = strings.Cut(doc, end)
	}
	doc = strings.NewReplacer(", each value clamped to a range", "", ", clamped to a range,", "", ", clamped to a range", "", ", clamped to ranges", "").Replace(doc)
	return strings.TrimSuffix(strings.TrimPrefix(doc, "The "), ".")
}

// hints are of members that types share, and whose names do not say what to write.
var hints = map[string]string{
	"of":          "what it is about: an expression, such as delay or delay > 15; of argmax a list of queries; of passes a query",
	"range":       "[low, high] of the number: values are clamped to it. A condition has none",
	"where":       "a condition: only rows for which it holds count",
	"label":       "an expression: the truth, such as delay > 15; default: the holdout's label",
	"model":       `a fitted model: {"linear": {"intercept": -1.5, "weights": {"distance": 0.002}, "link": "logit"}}, or softmax, trees, network, kernel, neighbors, mixture (see describe). Default link: identity`,
	"prediction":  "an expression in place of a model: a condition, or a column of predictions",
	"predictions": "a list in place of a model: a number for each row, in the order of row_id, for holdouts with features=public",
	"features":    "of screen: a list of columns, or a pattern with *; of a model: expressions by name",
	"by":          "of groups: a text column, a number or a condition; of compare: how much better b must be",
	"values":      "a list: the categories, or values of by",
	"edges":       "a list of rising numbers",
	"between":     "one or two conditions: the two groups",
	"null":        `a number: what a null counts as; or "skip"`,
	"guess":       "your guess of the answer, a number; of an answer with items an object by their names",
	"threshold":   "the prediction above which a classifier says yes; default: 0.5, or the model's own",
	"positive":    "the class that counts, of a model with several",
	"query":       "of the test value: a query",
	"cells":       "conditions",
	"note":        "a remark of your own",
}

// A flatMember is a member of that name, of one or more types.
type flatMember struct {
	name     string
	required bool
	doc      string           // of the first type that has it
	forms    []map[string]any // the different schemas, as they are told
}

// gather are the members of the types, in the order in which they come first.
func gather(of []kind) (all []*flatMember) {
	byName := map[string]*flatMember{}
	for _, k := range of {
		for _, m := range k.make().members() {
			f := byName[m.name]
			if f == nil {
				f = &flatMember{name: m.name, required: m.required && !m.labels, doc: m.doc}
				byName[m.name], all = f, append(all, f)
			}
			form := told(m.form.schema())
			if text := string(mustMarshal(form)); !slices.ContainsFunc(f.forms, func(o map[string]any) bool { return string(mustMarshal(o)) == text }) {
				f.forms = append(f.forms, form)
			}
		}
	}
	return all
}

// schema is the member's, if all types have the same; one that says nothing otherwise.
func (f *flatMember) schema(says string) map[string]any {
	s := map[string]any{}
	if len(f.forms) == 1 {
		s = f.forms[0]
	}
	if says != "" {
		s["description"] = says
	}
	return s
}

// told is a schema as it is told to readers whose programs read little of it: its type, and of a list its items.
func told(s map[string]any) map[string]any {
	_, query := s["$ref"]
	switch {
	case query:
		return map[string]any{"type": "object", "additionalProperties": true}
	case s["type"] == "object":
		return map[string]any{"type": "object", "additionalProperties": true}
	case s["type"] == "array":
		items, _ := s["items"].(map[string]any)
		return map[string]any{"type": "array", "items": told(items)}
	case s["type"] == nil: // alternatives
		return map[string]any{}
	}
	t := map[string]any{"type": s["type"]}
	if words, ok := s["enum"]; ok && s["type"] == "string" { // some know no others
		t["enum"] = words
	}
	return t
}

// TypeDescription is all that there is to know of one type of query.
type TypeDescription struct {
	Type     string
	Says     string // what it is, and costs
	Price    Price
	Members  []MemberDescription
	OneOf    []string          // members of which at least one is needed
	Examples []json.RawMessage // queries that Parse accepts
}

// Price is what a query of a type costs, in questions, under a mechanism: "2, with where 3".
type Price struct {
	Gaussian string
	Checked  string // under guess_and_check, thresholdout and split
}

// MemberDescription is all that there is to know of a member.
type MemberDescription struct {
	Name   string
	Needed bool // always; label only where the holdout has none
	Says   string
	Schema map[string]any // with its bounds; of a query inside of a query {"$ref": "Operand"}
}

// Describe says what a type of query is; ok is false for an unknown one.
func Describe(name string) (d TypeDescription, ok bool) {
	at := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })
	if at < 0 {
		return d, false
	}
	k := kinds[at]
	d = TypeDescription{Type: k.name, Says: k.says(), Price: Price{k.price.gaussian, k.price.checked}, OneOf: k.needsOne}
	for _, m := range k.make().members() {
		d.Members = append(d.Members, MemberDescription{m.name, m.required && !m.labels, m.doc, m.form.schema()})
	}
	for _, e := range k.examples {
		d.Examples = append(d.Examples, json.RawMessage(e))
	}
	return d, true
}
