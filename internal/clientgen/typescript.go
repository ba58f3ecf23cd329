package clientgen

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// pages are the components that the dashboard has beside the Go client's: of what programs have no use for.
var pages = []string{"Accuracies", "Round", "Simulation"}

// TypeScript is the file of the dashboard's types of replies, for an OpenAPI 3.1 document: one interface for each component that the Go
// client has, and for those of pages, by the document's own name.
func TypeScript(document []byte) ([]byte, error) {
	components, err := schemasOf(document)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString("// Made by internal/clientgen from api/openapi.json; do not edit. To make it anew: make generate\n")
	drawn := slices.Clone(types)
	for _, name := range pages {
		drawn = append(drawn, struct{ component, name string }{name, name})
	}
	for _, t := range drawn {
		s := new(schema)
		if err := json.Unmarshal(components[t.component], s); err != nil {
			return nil, fmt.Errorf("clientgen: the component %s: %w", t.component, err)
		}
		if len(s.Properties) == 0 {
			return nil, fmt.Errorf("clientgen: %s is no object with members", t.component)
		}
		fmt.Fprintf(&b, "\n/** %s */\nexport interface %s {\n", jsdoc(s.Description), t.component)
		for _, member := range s.members() {
			p := s.Properties[member]
			typ, err := p.typeScript(t.component + "." + member)
			if err != nil {
				return nil, err
			}
			if says := p.says(); says != "" {
				fmt.Fprintf(&b, "  /** %s */\n", jsdoc(says))
			}
			mark := "?"
			if slices.Contains(s.Required, member) {
				mark = ""
			}
			fmt.Fprintf(&b, "  %s%s: %s;\n", member, mark, typ)
		}
		b.WriteString("}\n")
	}
	return b.Bytes(), nil
}

func schemasOf(document []byte) (map[string]json.RawMessage, error) {
	var d struct {
		Components struct {
			Schemas map[string]json.RawMessage `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(document, &d); err != nil {
		return nil, fmt.Errorf("clientgen: the document: %w", err)
	}
	return d.Components.Schemas, nil
}

// jsdoc is a text that cannot end the comment that it stands in.
func jsdoc(text string) string { return strings.ReplaceAll(text, "*/", "* /") }

// typeScript is the type of a member. What the document gives no type is unknown: it must be looked at before it is used.
func (s *schema) typeScript(at string) (string, error) {
	if s.Ref != "" {
		name := strings.TrimPrefix(s.Ref, "#/components/schemas/")
		if !slices.ContainsFunc(types, func(t struct{ component, name string }) bool { return t.component == name }) && !slices.Contains(pages, name) {
			return "", fmt.Errorf("clientgen: %s is %s, which is not among the types", at, s.Ref)
		}
		return name, nil
	}
	if len(s.OneOf) == 2 && s.OneOf[0].Ref != "" && string(s.OneOf[1].Type) == `"null"` {
		typ, err := s.OneOf[0].typeScript(at)
		return typ + " | null", err
	}
	kind, null, err := s.kind()
	if err != nil || len(s.OneOf) > 0 {
		return "", fmt.Errorf("clientgen: %s has a form that is unknown here (%v)", at, err)
	}
	typ := map[string]string{"": "unknown", "string": "string", "boolean": "boolean", "integer": "number", "number": "number"}[kind]
	switch {
	case len(s.Enum) > 0:
		var values []string
		for _, v := range s.Enum {
			text, err := json.Marshal(v)
			if err != nil {
				return "", err
			}
			values = append(values, string(text))
		}
		typ = strings.Join(values, " | ")
	case kind == "array" && s.Items != nil:
		of, err := s.Items.typeScript(at + "[]")
		if err != nil {
			return "", err
		}
		if typ = of + "[]"; strings.Contains(of, "|") {
			typ = "(" + of + ")[]"
		}
	case kind == "object" && len(s.AdditionalProperties) > 0 && len(s.Properties) == 0:
		values := new(schema)
		if err := json.Unmarshal(s.AdditionalProperties, values); err != nil {
			return "", fmt.Errorf("clientgen: the values of %s: %w", at, err)
		}
		of, err := values.typeScript(at + "{}")
		if err != nil {
			return "", err
		}
		typ = "Record<string, " + of + ">"
	}
	if typ == "" {
		return "", fmt.Errorf("clientgen: %s is of the type %s, which is unknown here", at, s.Type)
	}
	if null {
		typ += " | null"
	}
	return typ, nil
}

// A formMember is what a form on a page needs to know of one member of a query.
type formMember struct {
	Name     string `json:"name"`
	Form     string `json:"form"`
	Required bool   `json:"required,omitempty"`
	Says     string `json:"says"`
	Values   []any  `json:"values,omitempty"` // of a choice
	Default  any    `json:"default,omitempty"`
}

// A formQuery is one query type with its members: those that it needs, then the others by name.
type formQuery struct {
	Type     string            `json:"type"`
	Says     string            `json:"says"`
	Members  []formMember      `json:"members"`
	Examples []json.RawMessage `json:"examples"`
}

const formsHead = `// Made by internal/clientgen from api/openapi.json; do not edit. To make it anew: make generate

/** What a field of a form takes: a row expression or several; a text or several; a number, several, or two as a range; yes or no; one of few values; a query or
 * several; a text or a number; or JSON, for what a form has no field for. */
export type Form =
  | "expression" | "expressions" | "text" | "texts" | "number" | "numbers" | "range" | "flag" | "choice" | "query" | "queries" | "value" | "json";

export interface Member {
  name: string;
  form: Form;
  required?: boolean;
  says: string;
  values?: (string | number)[];
  default?: string | number | boolean;
}

export interface QueryType {
  type: string;
  says: string;
  members: Member[];
  examples: Record<string, unknown>[];
}

`

// Forms is the module of the dashboard with what its form of a question knows of each query type, for an OpenAPI 3.1 document.
func Forms(document []byte) ([]byte, error) {
	components, err := schemasOf(document)
	if err != nil {
		return nil, err
	}
	var all struct {
		OneOf []schema `json:"oneOf"`
	}
	if err := json.Unmarshal(components["Query"], &all); err != nil || len(all.OneOf) == 0 {
		return nil, fmt.Errorf("clientgen: the component Query is no choice of types (%v)", err)
	}
	var b bytes.Buffer
	b.WriteString(formsHead + "export const queryTypes: QueryType[] = [\n")
	for _, s := range all.OneOf {
		component := strings.TrimPrefix(s.Ref, "#/components/schemas/")
		q := new(struct {
			querySchema
			Examples []json.RawMessage `json:"examples"`
		})
		if err := json.Unmarshal(components[component], q); err != nil {
			return nil, fmt.Errorf("clientgen: the component %s: %w", component, err)
		}
		// A form shows one paragraph of what a type is for; the page of all queries has the rest.
		says, _, _ := strings.Cut(q.Description, "\n")
		query := formQuery{Says: says, Examples: q.Examples}
		for _, name := range q.members() {
			p := q.Properties[name]
			if name == "type" {
				query.Type = p.Const
				continue
			}
			form, err := p.form(component + "." + name)
			if err != nil {
				return nil, err
			}
			query.Members = append(query.Members, formMember{Name: name, Form: form, Required: slices.Contains(q.Required, name), Says: p.Description, Values: p.Enum, Default: p.Default})
		}
		line := new(bytes.Buffer)
		encoder := json.NewEncoder(line)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(query); err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "  %s,\n", bytes.TrimSpace(line.Bytes()))
	}
	b.WriteString("];\n")
	return b.Bytes(), nil
}

// form is the kind of field that a member has.
func (s *memberSchema) form(at string) (string, error) {
	if s.Ref == "#/components/schemas/Operand" {
		return "query", nil
	}
	if len(s.OneOf) > 0 {
		for _, one := range s.OneOf {
			if kind, _, err := one.kind(); err != nil || kind != "string" && kind != "number" {
				return "json", nil
			}
		}
		return "value", nil
	}
	kind, _, err := s.kind()
	if err != nil {
		return "", fmt.Errorf("clientgen: %s has a form that is unknown here (%v)", at, err)
	}
	switch {
	case len(s.Enum) > 0:
		return "choice", nil
	case kind == "string" && s.MaxLength == longestSource:
		return "expression", nil
	case kind == "string":
		return "text", nil
	case kind == "number" || kind == "integer":
		return "number", nil
	case kind == "boolean":
		return "flag", nil
	case kind == "object":
		return "json", nil
	case kind == "array" && s.Items != nil:
		of, err := s.Items.form(at + "[]")
		if many := map[string]string{"expression": "expressions", "text": "texts", "number": "numbers", "query": "queries"}[of]; err == nil && many != "" {
			if many == "numbers" && s.MinItems == 2 && s.MaxItems == 2 {
				many = "range"
			}
			return many, nil
		}
	}
	return "", fmt.Errorf("clientgen: %s is of the type %s, which is unknown here", at, s.Type)
}
