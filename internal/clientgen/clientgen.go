// Package clientgen writes the Go client's types from the OpenAPI document, which is made from the server's types. So there is no second
// list of members to keep in step. It reads the few forms of schemas that the document has, and refuses others.
package clientgen

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"go/format"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// types are the components that the client has, in the order of its file, and their names there. Those in lower case are read by one call
// and not handed on. Of components with the same name the first is written; the others are it without some members.
var types = []struct{ component, name string }{
	{"Settings", "Settings"},
	{"Card", "Card"}, {"Counts", "Counts"}, {"Column", "Column"}, {"TextShape", "Dictionary"}, {"Skipped", "Skipped"}, {"Warning", "Warning"}, {"Overlap", "Overlap"},
	{"Guarantee", "Guarantee"}, {"Budget", "Budget"}, {"Meter", "Meter"}, {"Held", "Held"}, {"Holdouts", "holdoutList"},
	{"AskReply", "Reply"}, {"Answer", "Answer"}, {"AnswerItem", "AnswerItem"}, {"Interval", "Interval"}, {"AnswerPart", "Part"}, {"Cost", "Cost"},
	{"LedgerPlace", "LedgerPlace"}, {"BatchReply", "BatchReply"}, {"BatchItem", "Item"}, {"AnswerPage", "answerPage"},
	{"PastAnswer", "PastAnswer"}, {"Asker", "Asker"}, {"Measure", "Measure"}, {"Reference", "Reference"}, {"ReferenceItem", "ReferenceItem"}, {"Explanation", "Explanation"}, {"Promised", "Promised"}, {"Foreseen", "Foreseen"}, {"ForeseenOutcome", "ForeseenOutcome"}, {"Watched", "Watched"},
	{"FinalReport", "FinalReport"}, {"ReportAnswer", "ReportAnswer"}, {"ReportAsker", "ReportAsker"}, {"Spent", "Spent"}, {"ReportPlan", "ReportPlan"}, {"PlannedReport", "PlannedReport"},
	{"KeptModel", "KeptModel"}, {"PlanRequest", "PlanRequest"}, {"Plan", "Plan"}, {"MethodPlan", "MethodPlan"}, {"Workload", "Workload"}, {"WorkloadItem", "WorkloadItem"}, {"WorkloadPlan", "WorkloadPlan"}, {"WorkloadPrice", "WorkloadPrice"},
	{"CreatedKey", "Key"}, {"KeyInfo", "Key"}, {"KeySubject", "KeySubject"}, {"Keys", "keyList"}, {"NewKey", "newKey"}, {"GrantInfo", "Grant"}, {"GrantMeter", "GrantMeter"}, {"Grants", "grantList"}, {"NewGrant", "NewGrant"}, {"Spender", "Spender"}, {"Spending", "spending"},
	{"NewRelease", "NewRelease"}, {"ColumnRequest", "ColumnRequest"}, {"PrivateRelease", "PrivateRelease"}, {"PrivateReleases", "PrivateReleases"}, {"Statistic", "Statistic"}, {"ColumnStatistics", "ColumnStatistics"}, {"Cell", "Cell"}, {"Quantile", "Quantile"},
	{"Problem", "Problem"}, {"Violation", "Violation"},
}

// own are the members whose Go type is not the one that the rules of [generator.typeOf] give: a pointer where an absent number is another thing
// than zero, an int where the number is small.
var own = map[string]string{
	"Settings.check": "*float64", "Column.min": "*float64", "Column.max": "*float64", "Column.nulls": "*int64", "Answer.regret": "*float64", "Answer.p_value": "*float64", "Answer.plain_p_value": "*float64",
	"Interval.low": "*float64", "Interval.high": "*float64", "Answer.best": "*bool", "Answer.passed": "*bool", "NewGrant.tokens": "*int64", "ColumnRequest.low": "*float64", "ColumnRequest.high": "*float64", "Cell.from": "*float64", "Cell.to": "*float64", "Cell.bool": "*bool", "Cell.text": "*string", "Explanation.regret": "*float64", "MethodPlan.questions_within": "*int64",
	"Answer.version": "int", "Guarantee.version": "int", "Problem.status": "int", "Violation.line": "int", "Violation.column": "int",
}

// beside are the fields that the client fills in by itself.
var beside = map[string]string{
	"Answer": `
	// Raw is the answer as the ledger has it, byte for byte.
	Raw json.RawMessage ` + "`json:\"-\"`\n",
	"Problem": `
	// Members are all members of the problem, those of its code too, such as requested and remaining.
	Members map[string]json.RawMessage ` + "`json:\"-\"`" + `
	// RetryAfter is how long the server asks to wait; 0 where it does not.
	RetryAfter time.Duration ` + "`json:\"-\"`" + `
	// RequestID is what the server's log calls the request.
	RequestID string ` + "`json:\"-\"`\n",
}

// initials are the words of JSON names that Go writes in capitals.
var initials = map[string]string{"id": "ID", "oidc": "OIDC", "url": "URL", "sha256": "SHA256"}

const (
	lineComment = 90  // characters: a longer comment stands above its field
	lineWidth   = 118 // characters of such a comment, with its indent
	mostValues  = 6   // that a comment lists; more are read in the document
)

// A schema is what is read of one. Its other members say which values are right, which a Go type does not.
type schema struct {
	Ref                  string             `json:"$ref"`
	Type                 json.RawMessage    `json:"type"` // a name, or a list of it and "null"
	Format               string             `json:"format"`
	Description          string             `json:"description"`
	Default              any                `json:"default"`
	Enum                 []any              `json:"enum"`
	Properties           map[string]*schema `json:"properties"`
	Required             []string           `json:"required"`
	Items                *schema            `json:"items"`
	AdditionalProperties json.RawMessage    `json:"additionalProperties"` // a schema or a truth value
	OneOf                []*schema          `json:"oneOf"`
}

type generator struct {
	schemas map[string]*schema
	names   map[string]string // Go's, by component
	used    map[string]bool   // of own
}

// Types is the Go file of the client's types, formatted, for an OpenAPI 3.1 document. An error says which component the document lacks, or
// which of its forms is unknown here.
func Types(document []byte) ([]byte, error) {
	var d struct {
		Components struct {
			Schemas map[string]json.RawMessage `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(document, &d); err != nil {
		return nil, fmt.Errorf("clientgen: the document: %w", err)
	}
	g := &generator{schemas: map[string]*schema{}, names: map[string]string{}, used: map[string]bool{}}
	for _, t := range types {
		g.names[t.component] = t.name
		s := new(schema)
		if err := json.Unmarshal(d.Components.Schemas[t.component], s); err != nil {
			return nil, fmt.Errorf("clientgen: the component %s: %w", t.component, err)
		}
		g.schemas[t.component] = s
	}
	return g.file()
}

func (g *generator) file() ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("// Code generated by internal/clientgen from api/openapi.json; DO NOT EDIT.\n// To make it anew: make generate\n" +
		"//\n// A member that is absent or null is nil, or the zero of a type that has no nil. Comments that start in lower case are the document's.\n\n")
	b.WriteString("package client\n\nimport (\n\t\"encoding/json\"\n\t\"time\"\n)\n")
	written := map[string]*schema{}
	for _, t := range types {
		s := g.schemas[t.component]
		if first := written[t.name]; first != nil {
			if err := within(s, first); err != nil {
				return nil, fmt.Errorf("clientgen: %s is read into %s, %w", t.component, t.name, err)
			}
			continue
		}
		written[t.name] = s
		if err := g.declare(&b, t.component, t.name); err != nil {
			return nil, err
		}
	}
	for member := range own {
		if !g.used[member] {
			return nil, fmt.Errorf("clientgen: the document has no member %s, whose Go type is fixed here", member)
		}
	}
	return format.Source(bytes.ReplaceAll(b.Bytes(), []byte("\n\n}"), []byte("\n}")))
}

// within says which member of part is not the same in whole.
func within(part, whole *schema) error {
	for name, s := range part.Properties {
		a, errA := json.Marshal(s)
		b, errB := json.Marshal(whole.Properties[name])
		if err := cmp.Or(errA, errB); err != nil {
			return err
		}
		if !bytes.Equal(a, b) {
			return fmt.Errorf("which has another %q", name)
		}
	}
	return nil
}

// declare writes one struct.
func (g *generator) declare(b *bytes.Buffer, component, name string) error {
	s := g.schemas[component]
	if kind, null, err := s.kind(); err != nil || kind != "object" || null || len(s.Properties) == 0 {
		return fmt.Errorf("clientgen: %s is no object with members", component)
	}
	is := "is"
	if strings.HasSuffix(name, "s") {
		is = "are"
	}
	fmt.Fprintf(b, "\n%stype %s struct {\n", comment(fmt.Sprintf("%s %s %s.", name, is, s.Description), ""), name)
	for i, member := range s.members() {
		p := s.Properties[member]
		required := slices.Contains(s.Required, member)
		typ, err := g.member(component+"."+member, p, required)
		if err != nil {
			return err
		}
		tag := member
		if !required {
			tag += ",omitempty"
		}
		field := fmt.Sprintf("\t%s %s `json:%q`", fieldName(member), typ, tag)
		switch says := p.says(); {
		case says == "":
			fmt.Fprintf(b, "%s\n", field)
		case len([]rune(says)) <= lineComment:
			fmt.Fprintf(b, "%s // %s\n", field, says)
		default:
			if i > 0 {
				b.WriteString("\n")
			}
			fmt.Fprintf(b, "%s%s\n\n", comment(says, "\t"), field)
		}
	}
	fmt.Fprintf(b, "%s}\n", beside[name])
	return nil
}

// member is the Go type of a member at Component.name.
func (g *generator) member(at string, s *schema, required bool) (string, error) {
	typ, err := g.typeOf(at, s)
	if err != nil {
		return "", err
	}
	if fixed := own[at]; fixed != "" {
		if fixed != "*"+typ && (fixed != "int" || typ != "int64") {
			return "", fmt.Errorf("clientgen: %s is %s, which is no %s", at, typ, fixed)
		}
		g.used[at] = true
		return fixed, nil
	}
	if absent := s.Ref != "" || s.Format == "date-time"; absent && !required && !strings.HasPrefix(typ, "*") {
		return "*" + typ, nil // a struct has no zero that says that it is absent
	}
	return typ, nil
}

// typeOf is the Go type of a schema: a pointer where it can be null.
func (g *generator) typeOf(at string, s *schema) (string, error) {
	if s.Ref != "" {
		name := g.names[strings.TrimPrefix(s.Ref, "#/components/schemas/")]
		if name == "" {
			return "", fmt.Errorf("clientgen: %s is %s, for which there is no name here", at, s.Ref)
		}
		return name, nil
	}
	if len(s.OneOf) == 2 && s.OneOf[0].Ref != "" && string(s.OneOf[1].Type) == `"null"` {
		typ, err := g.typeOf(at, s.OneOf[0])
		return "*" + typ, err
	}
	kind, null, err := s.kind()
	if err != nil || len(s.OneOf) > 0 {
		return "", fmt.Errorf("clientgen: %s has a form that is unknown here (%v)", at, err)
	}
	typ := map[string]string{"": "json.RawMessage", "string": "string", "boolean": "bool", "integer": "int64", "number": "float64"}[kind]
	switch {
	case kind == "string" && s.Format == "date-time":
		typ = "time.Time"
	case kind == "array" && s.Items != nil && !null:
		of, err := g.typeOf(at+"[]", s.Items)
		return "[]" + of, err
	case kind == "object" && len(s.AdditionalProperties) > 0 && len(s.Properties) == 0 && !null:
		values := new(schema)
		if err := json.Unmarshal(s.AdditionalProperties, values); err != nil {
			return "", fmt.Errorf("clientgen: the values of %s: %w", at, err)
		}
		of, err := g.typeOf(at+"{}", values)
		return "map[string]" + of, err
	}
	if typ == "" {
		return "", fmt.Errorf("clientgen: %s is of the type %s, which is unknown here", at, s.Type)
	}
	if null {
		typ = "*" + typ
	}
	return typ, nil
}

// kind is the name of the type, empty where any is right, and whether it can be null.
func (s *schema) kind() (name string, null bool, err error) {
	if len(s.Type) == 0 {
		return "", false, nil
	}
	if json.Unmarshal(s.Type, &name) == nil {
		return name, false, nil
	}
	var both []string
	if err := json.Unmarshal(s.Type, &both); err != nil || len(both) != 2 || both[1] != "null" {
		return "", false, fmt.Errorf("the type %s", s.Type)
	}
	return both[0], true, nil
}

// members are the names of an object's members: those that are always there as the document lists them, then the others by name.
func (s *schema) members() []string {
	names := slices.Clone(s.Required)
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if !slices.Contains(s.Required, name) {
			names = append(names, name)
		}
	}
	return names
}

// says is the comment of a member: its description, its values where they are few, and its default.
func (s *schema) says() string {
	says := s.Description
	if n := len(s.Enum); 0 < n && n <= mostValues {
		var values []string
		for _, v := range s.Enum {
			if text, ok := v.(string); ok {
				v = strconv.Quote(text)
			}
			values = append(values, fmt.Sprint(v))
		}
		says = strings.TrimPrefix(says+": ", ": ") + strings.Join(values, ", ")
	}
	if s.Default != nil {
		says = strings.TrimPrefix(fmt.Sprintf("%s; default: %v", says, s.Default), "; ")
	}
	return says
}

// fieldName is p_value as PValue, holdout_id as HoldoutID.
func fieldName(member string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(member, "_") {
		if word != "" {
			b.WriteString(cmp.Or(initials[word], strings.ToUpper(word[:1])+word[1:]))
		}
	}
	return b.String()
}

// comment breaks a text into the lines of a comment.
func comment(text, indent string) string {
	var b strings.Builder
	line := indent + "//"
	for word := range strings.FieldsSeq(text) {
		if len([]rune(line))+1+len([]rune(word)) > lineWidth && line != indent+"//" {
			b.WriteString(line + "\n")
			line = indent + "//"
		}
		line += " " + word
	}
	return b.String() + line + "\n"
}
