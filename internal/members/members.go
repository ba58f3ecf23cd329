// Package members makes queries of texts, such as a command line has them: it knows the types and members of queries from the schemas that
// the server publishes, so there is no second list of them to keep in step. What a text is read as follows from its member's schema;
// whether the query is right is the server's to say.
package members

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/holdoutd/holdoutd/queries"
)

// places are the members that a question is about, in the order in which they are given without their names: those that a type needs, or
// the first that it has. The Python client takes them by place in the same order.
var places = []string{"test", "a", "b", "x", "y", "of", "label"}

// prefix is where schemas refer to each other.
const prefix = "#/components/schemas/"

// A Type is one type of query.
type Type struct {
	Name     string
	Says     string            // its description: a sentence, and more
	Examples []json.RawMessage // whole queries
	Members  []Member          // without type: those given by place, then those that are needed, then the others by name
}

// A Member is one member of a type.
type Member struct {
	Name   string
	Says   string
	Needed bool // a query without it is refused
	Place  bool // it may be given without its name
	schema *schema
}

// A schema is what is read of one.
type schema struct {
	Ref        string             `json:"$ref"`
	Kind       json.RawMessage    `json:"type"` // a name, or a list of it and "null"
	Says       string             `json:"description"`
	Enum       []any              `json:"enum"`
	Items      *schema            `json:"items"`
	MinItems   int                `json:"minItems"`
	MaxItems   int                `json:"maxItems"`
	Properties map[string]*schema `json:"properties"`
	Others     json.RawMessage    `json:"additionalProperties"` // a schema or a truth value
	OneOf      []*schema          `json:"oneOf"`
	Required   []string           `json:"required"`
	Examples   []json.RawMessage  `json:"examples"`
}

// Types are all types of queries, in the order of the documentation. They are shared: change none.
func Types() []Type { return all() }

var all = sync.OnceValue(func() []Type {
	schemas := queries.JSONSchemas(prefix)
	var types []Type
	for _, name := range queries.Types() {
		s := new(schema)
		if err := json.Unmarshal(schemas[queries.SchemaName(name)], s); err != nil {
			panic(fmt.Sprintf("members: the schema of %s: %v", name, err)) // it is made by this program
		}
		types = append(types, typeOf(name, s))
	}
	return types
})

// Of is the type with a name, and false where there is none.
func Of(types []Type, name string) (Type, bool) {
	i := slices.IndexFunc(types, func(t Type) bool { return t.Name == name })
	if i < 0 {
		return Type{}, false
	}
	return types[i], true
}

func typeOf(name string, s *schema) Type {
	t := Type{Name: name, Says: s.Says, Examples: s.Examples}
	byPlace := slices.DeleteFunc(slices.Clone(places), func(m string) bool { return !slices.Contains(s.Required, m) })
	if len(byPlace) == 0 { // the server has a default for it
		if i := slices.IndexFunc(places, func(m string) bool { return s.Properties[m] != nil }); i >= 0 {
			byPlace = places[i : i+1]
		}
	}
	rank := func(m Member) int {
		switch {
		case m.Place:
			return slices.Index(byPlace, m.Name)
		case m.Needed:
			return len(byPlace)
		}
		return len(byPlace) + 1
	}
	for _, m := range slices.Sorted(maps.Keys(s.Properties)) {
		if m != "type" {
			t.Members = append(t.Members, Member{Name: m, Says: s.Properties[m].Says, Needed: slices.Contains(s.Required, m), Place: slices.Contains(byPlace, m), schema: s.Properties[m]})
		}
	}
	slices.SortStableFunc(t.Members, func(a, b Member) int { return cmp.Compare(rank(a), rank(b)) })
	return t
}

// Member is the member with a name, and false where the type has none.
func (t Type) Member(name string) (Member, bool) {
	i := slices.IndexFunc(t.Members, func(m Member) bool { return m.Name == name })
	if i < 0 {
		return Member{}, false
	}
	return t.Members[i], true
}

// Flag is the member's name on a command line: half_width is --half-width.
func (m Member) Flag() string { return strings.ReplaceAll(m.Name, "_", "-") }

// Form says in a word how a text of the member looks.
func (m Member) Form() string { return m.schema.form() }

// Switch says whether the member is on where it is named, and needs no text.
func (m Member) Switch() bool { return m.schema.kind() == "boolean" }

// Choices are the texts that the member takes, where they are few.
func (m Member) Choices() (words []string) {
	for _, s := range append([]*schema{m.schema}, m.schema.OneOf...) {
		for _, v := range s.Enum {
			words = append(words, fmt.Sprint(v))
		}
	}
	return words
}

// Expression says whether the member is read as an expression over columns, so that names of columns stand in it.
func (m Member) Expression() bool {
	return m.schema.text() || m.schema.kind() == "array" && m.schema.Items.text()
}

// Kinds are the names of an object of which exactly one is given, such as of the forms of a model.
func (m Member) Kinds() []string { return slices.Sorted(maps.Keys(m.schema.Properties)) }

// Query is the query of a type with members as JSON, in the order of the type's own.
func (t Type) Query(given map[string]json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"type":%q`, t.Name)
	for _, m := range t.Members {
		if value, ok := given[m.Name]; ok {
			fmt.Fprintf(&b, ",%q:%s", m.Name, value)
		}
	}
	b.WriteString("}")
	return b.Bytes()
}

// kind is the name of a schema's type; where it can be null, too, that of the other.
func (s *schema) kind() string {
	var name string
	if json.Unmarshal(s.Kind, &name) != nil {
		var both []string
		if json.Unmarshal(s.Kind, &both) == nil && len(both) > 0 {
			name = both[0]
		}
	}
	return name
}

// text says whether any text is right, and not only some words.
func (s *schema) text() bool { return s.kind() == "string" && len(s.Enum) == 0 }

func (s *schema) form() string {
	switch {
	case s.Ref != "":
		return "QUERY"
	case len(s.OneOf) > 0:
		var forms []string
		for _, one := range s.OneOf {
			if f := one.form(); !slices.Contains(forms, f) {
				forms = append(forms, f)
			}
		}
		if len(forms) > 2 {
			return "JSON"
		}
		return strings.Join(forms, "|")
	case len(s.Enum) > 0:
		var words []string
		for _, v := range s.Enum {
			words = append(words, fmt.Sprint(v))
		}
		return strings.Join(words, "|")
	}
	switch s.kind() {
	case "string":
		return "TEXT"
	case "number", "integer":
		return "NUMBER"
	case "boolean":
		return ""
	case "array":
		of := s.Items.form()
		if of == "NUMBER" && s.MinItems == 2 && s.MaxItems == 2 {
			return "LOW,HIGH"
		}
		if of == "NUMBER" {
			return "NUMBER,..."
		}
		return of + "..."
	}
	if s.nested() {
		return "JSON"
	}
	return "NAME=VALUE..."
}

// nested says whether the values of an object are objects themselves, which nobody writes as NAME=VALUE.
func (s *schema) nested() bool {
	for _, p := range s.Properties {
		if p.kind() == "object" {
			return true
		}
	}
	return false
}
