package clientgen

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// subjects are the members that a question is about, in the order in which Python's methods take them by place: those that it needs, or
// the first that it may have. All others are named in a call.
var subjects = []string{"test", "a", "b", "x", "y", "of", "label"}

const (
	pythonWidth   = 120   // characters of a line
	longestSource = 16384 // characters of a row expression, by which it is known from other texts
)

// A querySchema has what is read of the schema of a query type beside its forms.
type querySchema struct {
	schema
	Properties map[string]*memberSchema `json:"properties"`
}

type memberSchema struct {
	schema
	Const     string          `json:"const"`
	MaxLength int             `json:"maxLength"`
	MinItems  int             `json:"minItems"`
	MaxItems  int             `json:"maxItems"`
	Items     *memberSchema   `json:"items"`
	OneOf     []*memberSchema `json:"oneOf"`
}

// Python is the module of the Python client with one method for each query type, for an OpenAPI 3.1 document.
func Python(document []byte) ([]byte, error) {
	var d struct {
		Components struct {
			Schemas map[string]json.RawMessage `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(document, &d); err != nil {
		return nil, fmt.Errorf("clientgen: the document: %w", err)
	}
	var all struct {
		OneOf []schema `json:"oneOf"`
	}
	if err := json.Unmarshal(d.Components.Schemas["Query"], &all); err != nil || len(all.OneOf) == 0 {
		return nil, fmt.Errorf("clientgen: the component Query is no choice of types (%v)", err)
	}
	var methods, names bytes.Buffer
	for _, s := range all.OneOf {
		component := strings.TrimPrefix(s.Ref, "#/components/schemas/")
		q := new(querySchema)
		if err := json.Unmarshal(d.Components.Schemas[component], q); err != nil {
			return nil, fmt.Errorf("clientgen: the component %s: %w", component, err)
		}
		if err := method(&methods, component, q); err != nil {
			return nil, err
		}
		fmt.Fprintf(&names, "    %q,\n", q.Properties["type"].Const)
	}
	var b bytes.Buffer
	b.WriteString(pythonHead)
	fmt.Fprintf(&b, "TYPES = (\n%s)\n", names.Bytes())
	b.WriteString(pythonClass)
	b.Write(methods.Bytes())
	return b.Bytes(), nil
}

const pythonHead = `"""One method for each query type of the server. Made by internal/clientgen from api/openapi.json; do not edit.

To make it anew: make generate
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Generic, Literal, TypeVar, Union

from .expressions import Expression

Expr = Union[str, Expression]
"""A row expression: CEL as text, or made with the operators of ` + "`ds.c`" + `."""

Query = Mapping[str, Any]
"""One query, as ` + "`holdoutd.q`" + ` makes it, or a plain dict as docs/QUERIES.md has it."""

Model = Any
"""A fitted estimator, which is exported, or the JSON object of a model, as holdoutd.models.export makes it."""

R = TypeVar("R", covariant=True)

`

const pythonClass = `

class Questions(ABC, Generic[R]):
    """The questions that a holdout answers. What a call gives is the subclass's to say."""

    @abstractmethod
    def _ask(self, query: dict[str, Any]) -> R: ...
`

// method writes the method of one query type.
func method(b *bytes.Buffer, component string, q *querySchema) error {
	var places, named []string
	for _, m := range subjects {
		if slices.Contains(q.Required, m) {
			places = append(places, m)
		}
	}
	if len(places) == 0 { // the server has a default for it
		if i := slices.IndexFunc(subjects, func(m string) bool { return q.Properties[m] != nil }); i >= 0 {
			places = subjects[i : i+1]
		}
	}
	for _, m := range q.members() { // those that are required come first
		if m != "type" && !slices.Contains(places, m) {
			named = append(named, m)
		}
	}
	of := q.Properties["type"]
	if of == nil || of.Const == "" {
		return fmt.Errorf("clientgen: %s has no type of its own", component)
	}
	fmt.Fprintf(b, "\n    def %s(\n        self,\n", of.Const)
	for i, m := range slices.Concat(places, named) {
		if i == len(places) {
			b.WriteString("        *,\n")
		}
		typ, err := q.Properties[m].python(component + "." + m)
		if err != nil {
			return err
		}
		if slices.Contains(q.Required, m) {
			fmt.Fprintf(b, "        %s: %s,\n", m, typ)
		} else {
			fmt.Fprintf(b, "        %s: %s | None = None,\n", m, typ)
		}
	}
	b.WriteString("    ) -> R:\n")
	b.WriteString(wrapped(`r"""`+q.Description, "        ", "        ") + "\n")
	b.WriteString("        Args:\n")
	for _, m := range slices.Concat(places, named) {
		b.WriteString(wrapped(m+": "+q.Properties[m].says(), "            ", "                "))
	}
	b.WriteString("        \"\"\"\n        return self._ask(\n            {\n")
	fmt.Fprintf(b, "                \"type\": %q,\n", of.Const)
	for _, m := range slices.Concat(places, named) {
		fmt.Fprintf(b, "                %q: %s,\n", m, m)
	}
	b.WriteString("            }\n        )\n")
	return nil
}

// members are the names of the query's members: those that it needs, then the others by name.
func (q *querySchema) members() []string {
	s := schema{Required: q.Required, Properties: map[string]*schema{}}
	for name := range q.Properties {
		s.Properties[name] = nil
	}
	return s.members()
}

// python is the type of a member's values. None stands for a member that is left out.
func (s *memberSchema) python(at string) (string, error) {
	if s.Ref == "#/components/schemas/Operand" {
		return "Query", nil
	}
	if len(s.OneOf) > 0 {
		var of []string
		for _, one := range s.OneOf {
			typ, err := one.python(at)
			if err != nil {
				return "", err
			}
			of = append(of, typ)
		}
		return strings.Join(of, " | "), nil
	}
	kind, null, err := s.kind()
	if err != nil {
		return "", fmt.Errorf("clientgen: %s has a form that is unknown here (%v)", at, err)
	}
	typ := map[string]string{"string": "str", "boolean": "bool", "integer": "int", "number": "float", "object": "Mapping[str, Any]"}[kind]
	switch {
	case strings.HasSuffix(at, ".model"):
		typ = "Model"
	case len(s.Enum) > 0:
		var values []string
		for _, v := range s.Enum {
			text, err := json.Marshal(v)
			if err != nil {
				return "", err
			}
			values = append(values, string(text))
		}
		typ = "Literal[" + strings.Join(values, ", ") + "]"
	case kind == "string" && s.MaxLength == longestSource:
		typ = "Expr"
	case kind == "object" && len(s.AdditionalProperties) > 0 && len(s.schema.Properties) == 0:
		values := new(memberSchema)
		if json.Unmarshal(s.AdditionalProperties, values) == nil {
			of, err := values.python(at + "{}")
			if err != nil {
				return "", err
			}
			typ = "Mapping[str, " + of + "]"
		}
	case kind == "array" && s.Items != nil:
		of, err := s.Items.python(at + "[]")
		if err != nil {
			return "", err
		}
		typ = "Sequence[" + of + "]"
		if s.MinItems == 2 && s.MaxItems == 2 && of == "float" {
			typ = "tuple[float, float] | Sequence[float]"
		}
	}
	if typ == "" {
		return "", fmt.Errorf("clientgen: %s is of the type %q, which is unknown here", at, s.Type)
	}
	if null {
		typ += " | None"
	}
	return typ, nil
}

// wrapped breaks a text into lines. Lines of the text that are rows of a table, or empty, stay as they are.
func wrapped(text, first, later string) string {
	var b strings.Builder
	indent := first
	for paragraph := range strings.SplitSeq(text, "\n") {
		if strings.TrimSpace(paragraph) == "" {
			b.WriteString("\n")
			continue
		}
		if strings.HasPrefix(paragraph, "|") {
			b.WriteString(indent + paragraph + "\n")
			continue
		}
		line := indent
		for word := range strings.FieldsSeq(paragraph) {
			if len([]rune(line))+1+len([]rune(word)) > pythonWidth && strings.TrimSpace(line) != "" {
				b.WriteString(line + "\n")
				line = later
			}
			if strings.TrimSpace(line) != "" {
				line += " "
			}
			line += word
		}
		b.WriteString(line + "\n")
		indent = later
	}
	return b.String()
}
