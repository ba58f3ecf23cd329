package queries

import (
	"encoding/json"
	"slices"
	"sort"
	"strings"

	"github.com/holdoutd/holdoutd/internal/nearest"
	"github.com/holdoutd/holdoutd/queries/expr"
)

// A kind is one type of query. Parsing, canonical form, JSON schema and documentation are all made from this table and
// from the members that its body lists; a new type is a file with a body and one line here.
type kind struct {
	name     string
	doc      string
	price    price
	examples []string // bodies that Parse accepts
	needsOne []string // members of which at least one is needed; what rules checks, for the schema
	make     func() body
}

// price is what a query of a type costs, in questions: a number, perhaps with what it is a number of, and what changes it. Mechanisms that check a guess read a statistic as one question; gaussian releases means.
type price struct{ gaussian, checked string }

// says is what a query of a type is, and costs.
func (k kind) says() string {
	cost := k.price.checked
	if k.price.gaussian != cost {
		cost += "; under gaussian " + k.price.gaussian
	}
	return k.doc + "\n\nPrice in questions: " + cost + "."
}

// body is the content of a query of one type.
type body interface {
	// members are the members in the order of the documentation, bound to the fields of the body.
	members() []member
	// rules adds what is wrong between members that were read each by itself.
	rules(v *violations, pointer string)
	// compile builds the plan. It adds to the compiler's violations instead of returning an error.
	compile(c *compiler) *Plan
}

var kinds = []kind{meanKind, fractionKind, countKind, sumKind, screenKind,
	varianceKind, stddevKind, covarianceKind, correlationKind, kendallKind, quantileKind, medianKind, histogramKind, frequenciesKind, groupsKind,
	compareKind, argmaxKind, passesKind, differenceKind, testKind,
	accuracyKind, balancedKind, precisionKind, recallKind, f1Kind, lossKind, rmseKind, r2Kind, aucKind, calibrationKind, confusionKind, gradientKind}

// Types are the names of the query types.
func Types() []string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.name
	}
	return names
}

// MaxNote is the largest note in bytes.
const MaxNote = 1000

const noteDoc = "a remark of your own; it is kept in your history and does not change the query"

// readQuery reads one query. It returns nil where it added a violation.
func readQuery(v *violations, pointer string, in *value) *Query {
	before := len(v.list)
	if in.kind != objectValue {
		v.wrongType(pointer, "an object: a query", in)
		return nil
	}
	k := readKind(v, pointer, in.member("type"))
	if k == nil {
		return nil
	}
	q := &Query{kind: k, body: k.make()}
	members := q.body.members()
	byName := map[string]member{}
	for _, m := range members {
		byName[m.name] = m
		if !m.required || in.member(m.name) != nil {
			continue
		}
		if label := v.defaultLabel(); m.labels && label != "" {
			m.form.read(v, pointer+"/"+m.name, &value{kind: textValue, text: expr.Column(label)})
			continue
		}
		v.add(pointer, `"`+m.name+`" is missing: `+m.doc)
	}
	for _, m := range in.members {
		at := pointer + "/" + escape(m.name)
		known, ok := byName[m.name]
		switch {
		case m.name == "type":
		case m.name == "note":
			q.Note = readNote(v, at, m.value)
		case m.name == reportedName && pointer == "":
			if q.reported = m.value.kind == truthValue && m.value.truth; !q.reported {
				v.add(at, "must be true, or left out: it marks a question of a final report")
			}
		case !ok:
			v.put(k.unknown(v, at, m, in, members))
		default:
			known.form.read(v, at, m.value)
		}
	}
	q.body.rules(v, pointer)
	if len(v.list) > before {
		return nil
	}
	return q
}

func readKind(v *violations, pointer string, in *value) *kind {
	if in == nil {
		v.add(pointer, `"type" is missing: one of `+strings.Join(Types(), ", "))
		return nil
	}
	for i := range kinds {
		if in.kind == textValue && in.text == kinds[i].name {
			return &kinds[i]
		}
	}
	v.put(Violation{Pointer: pointer + "/type", Detail: "must be one of " + strings.Join(Types(), ", "), Suggestion: nearest.Name(in.text, Types())})
	return nil
}

func readNote(v *violations, pointer string, in *value) string {
	if in.kind != textValue {
		v.wrongType(pointer, "a text", in)
	} else if len(in.text) > MaxNote {
		v.add(pointer, "is too long")
	}
	return in.text
}

// unknown is the violation of a member that a type does not have: with the member that was probably meant, or that it is to be left out.
func (k *kind) unknown(v *violations, pointer string, given memberValue, in *value, members []member) Violation {
	w := Violation{Pointer: pointer, Detail: "unknown member; " + article(k.name) + " has " + list(members), Suggestion: suggest(given.name, members)}
	has := func(name string) bool {
		return slices.ContainsFunc(members, func(m member) bool { return m.name == name })
	}
	lacks, fits := 0, ""
	for _, m := range k.make().members() { // to read the value into
		if !m.required || in.member(m.name) != nil || m.labels && v.defaultLabel() != "" {
			continue
		}
		lacks++
		trial := violations{label: v.label}
		if m.form.read(&trial, "", given.value); len(trial.list) > 0 {
			continue
		}
		if fits != "" {
			return w
		}
		fits = m.name
	}
	switch meant := elsewhere[strings.ToLower(given.name)]; {
	case has(meant) && in.member(meant) == nil:
		w.Suggestion = meant
	case w.Suggestion != "":
	case fits != "": // it is lacking, and nothing else that is lacking can be so written
		w.Suggestion = fits
	case lacks == 0:
		w.Detail += "; leave it out"
	}
	return w
}

// elsewhere is what other languages call a member.
var elsewhere = map[string]string{
	"filter": "where", "condition": "where", "subset": "where", "target": "label", "truth": "label", "y_true": "label", "column": "of", "variable": "of", "expression": "of", "group_by": "by", "groupby": "by",
}

// article is a name with its article.
func article(name string) string {
	if strings.ContainsRune("aeiou", rune(name[0])) || name == "rmse" || name == "r2" || name == "f1" {
		return "an " + name
	}
	return "a " + name
}

func list(members []member) string {
	names := []string{"type"}
	for _, m := range members {
		names = append(names, m.name)
	}
	return strings.Join(append(names, "note"), ", ")
}

func suggest(name string, members []member) string {
	names := []string{"note", "type"}
	for _, m := range members {
		names = append(names, m.name)
	}
	return nearest.Name(name, names)
}

// Names of the schemas that are not about one type.
const (
	schemaQuery   = "Query"
	schemaOperand = "Operand"
)

// JSONSchemas are the JSON schemas (2020-12) of queries by name: Query is any of them, Operand one that can stand inside of
// another, and each type has its own, MeanQuery for mean, with examples. They refer to each other by prefix and name, such as
// "#/components/schemas/MeanQuery". A schema of its own for each type, instead of one large one, is what generators of clients
// make types of.
func JSONSchemas(prefix string) map[string]json.RawMessage {
	all := map[string]json.RawMessage{}
	var any, operands []kind
	for _, k := range kinds {
		all[k.schemaName()] = mustMarshal(k.schema(prefix))
		any = append(any, k)
		if _, nested := k.make().(interface{ nests() }); !nested {
			operands = append(operands, k)
		}
	}
	all[schemaQuery] = mustMarshal(alternatives(prefix, schemaQuery, any,
		"A statistical question about the holdout. Expressions are CEL over the table's columns."))
	all[schemaOperand] = mustMarshal(alternatives(prefix, schemaOperand, operands,
		"A query inside of another. It has no guess, half_width or measure of its own, and holds no queries itself."))
	return all
}

func alternatives(prefix, title string, of []kind, doc string) map[string]any {
	refs, mapping := make([]any, len(of)), map[string]string{}
	for i, k := range of {
		mapping[k.name] = prefix + k.schemaName()
		refs[i] = map[string]any{"$ref": mapping[k.name]}
	}
	return map[string]any{
		"title": title, "description": doc, "oneOf": refs, "discriminator": map[string]any{"propertyName": "type", "mapping": mapping},
	}
}

func (k kind) schemaName() string { return SchemaName(k.name) }

// SchemaName is the name of the schema of a type of queries, as JSONSchemas has it: MeanQuery, BalancedAccuracyQuery.
func SchemaName(kind string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(kind, "_") {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String() + schemaQuery
}

func (k kind) schema(prefix string) map[string]any {
	properties := map[string]any{
		"type": map[string]any{"const": k.name, "type": "string"},
		"note": map[string]any{"type": "string", "maxLength": MaxNote, "description": noteDoc},
	}
	needed := []string{"type"}
	for _, m := range k.make().members() {
		s := m.form.schema()
		s["description"] = m.doc
		properties[m.name] = refer(s, prefix)
		if m.required && !m.labels {
			needed = append(needed, m.name)
		}
	}
	sort.Strings(needed)
	examples := make([]json.RawMessage, len(k.examples))
	for i, e := range k.examples {
		examples[i] = json.RawMessage(e)
	}
	s := map[string]any{
		"title": k.schemaName(), "type": "object", "description": k.says(), "properties": properties, "required": needed,
		"additionalProperties": false, "examples": examples,
	}
	if len(k.needsOne) > 0 {
		// At least one of them: it is not so that each, if it is there, is what nothing can be. An anyOf would say it more plainly,
		// but generators of clients make a union of it that has lost the members.
		nothing, all := map[string]any{"not": map[string]any{}}, map[string]any{}
		for _, name := range k.needsOne {
			all[name] = nothing
		}
		s["not"] = map[string]any{"properties": all}
	}
	return s
}
