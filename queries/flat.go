package queries

import (
	"encoding/json"
	"slices"
	"sort"
	"strings"
)

// FlatSchema is the JSON schema of a query as one object: the members of all types, each described once, and what each type needs and may have
// in the description of "type". It accepts every query that Parse accepts, and more: which members go together is left to Parse. It is for
// readers that take a schema as a text to read, such as language models: a schema for each type ([JSONSchemas]) is ten times as long. It has no references.
func FlatSchema() json.RawMessage { return mustMarshal(flat(kinds, true)) }

// FlatMembers is the same of the members of one type, without "type": the arguments of a tool that asks nothing else. It panics on an
// unknown type.
func FlatMembers(name string) json.RawMessage {
	at := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })
	if at < 0 {
		panic("queries: there is no type " + name)
	}
	return mustMarshal(flat(kinds[at:at+1], false))
}

func flat(of []kind, typed bool) map[string]any {
	properties, needed := map[string]any{}, []string{}
	if typed {
		var names, says []string
		for _, k := range of {
			names, says = append(names, k.name), append(says, k.summary())
		}
		properties["type"] = map[string]any{"type": "string", "enum": names, "description": strings.Join(says, "\n")}
		needed = append(needed, "type")
	}
	properties["note"] = map[string]any{"type": "string", "maxLength": MaxNote, "description": noteDoc}
	for _, f := range gather(of) {
		properties[f.name] = f.schema(len(of) == 1)
		if !typed && f.required {
			needed = append(needed, f.name)
		}
	}
	sort.Strings(needed)
	return map[string]any{"type": "object", "properties": properties, "required": needed, "additionalProperties": false}
}

// summary is a type in a line: what it is, what it needs and what it may have.
func (k kind) summary() string {
	what, _, _ := strings.Cut(k.doc, ". ")
	var needs, may []string
	for _, m := range k.make().members() {
		if m.required && !m.labels {
			needs = append(needs, m.name)
		} else {
			may = append(may, m.name)
		}
	}
	what = k.name + ": " + strings.TrimSuffix(what, ".") + "."
	if len(k.needsOne) > 0 {
		needs = append(needs, "at least one of "+strings.Join(k.needsOne, " and "))
	}
	if len(needs) > 0 {
		what += " Needs " + strings.Join(needs, ", ") + "."
	}
	if len(may) > 0 {
		what += " May have " + strings.Join(may, ", ") + "."
	}
	return what
}

// A flatMember is a member of that name, of one or more types.
type flatMember struct {
	name     string
	required bool
	forms    []map[string]any    // the different schemas, without descriptions
	docs     []string            // the different descriptions, in the order of the types
	types    map[string][]string // by description
}

// gather are the members of the types, in the order in which they come first.
func gather(of []kind) (all []*flatMember) {
	byName := map[string]*flatMember{}
	for _, k := range of {
		for _, m := range k.make().members() {
			f := byName[m.name]
			if f == nil {
				f = &flatMember{name: m.name, required: m.required && !m.labels, types: map[string][]string{}}
				byName[m.name], all = f, append(all, f)
			}
			form := unreferred(m.form.schema())
			if text := string(mustMarshal(form)); !slices.ContainsFunc(f.forms, func(o map[string]any) bool { return string(mustMarshal(o)) == text }) {
				f.forms = append(f.forms, form)
			}
			if f.types[m.doc] == nil {
				f.docs = append(f.docs, m.doc)
			}
			f.types[m.doc] = append(f.types[m.doc], k.name)
		}
	}
	return all
}

func (f *flatMember) schema(alone bool) map[string]any {
	s := f.forms[0]
	if len(f.forms) > 1 {
		s = map[string]any{"anyOf": f.forms}
	}
	if len(f.docs) == 1 {
		s["description"] = f.docs[0]
		if len(f.types[f.docs[0]]) == 1 && !alone {
			s["description"] = f.types[f.docs[0]][0] + ": " + f.docs[0]
		}
		return s
	}
	says := make([]string, len(f.docs))
	for i, doc := range f.docs {
		says[i] = strings.Join(f.types[doc], ", ") + ": " + doc
	}
	s["description"] = strings.Join(says, "\n")
	return s
}

// unreferred is a schema in which a query inside of the query is an object with a type, and no reference.
func unreferred(s map[string]any) map[string]any {
	if _, ok := s["$ref"]; ok {
		return map[string]any{"type": "object", "required": []string{"type"}, "properties": map[string]any{"type": map[string]any{"type": "string", "enum": operandTypes()}}}
	}
	if items, ok := s["items"].(map[string]any); ok {
		s["items"] = unreferred(items)
	}
	return s
}

// operandTypes are the types that can stand inside of another query.
func operandTypes() (names []string) {
	for _, k := range kinds {
		if _, nested := k.make().(interface{ nests() }); !nested {
			names = append(names, k.name)
		}
	}
	return names
}
