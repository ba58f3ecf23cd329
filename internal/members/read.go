package members

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/holdoutd/holdoutd/internal/nearest"
)

// Read is the JSON of the texts that a member was given, one for each time that it was named. How they are read is said by its schema:
//
//   - a text, a number or a word as it is; of a member that takes a number or a text, what looks like a number is one, and "7" in quotes is
//     a text
//   - a list of numbers with commas between them; of others a text for each item, by naming the member again
//   - an object as NAME=VALUE, by naming it again for each of its members
//   - a list, an object or a query also as JSON, and as @FILE, which has the JSON; @- is standard input
//
// An error says which text is wrong, and what would be right.
func (m Member) Read(texts []string) (json.RawMessage, error) {
	return m.schema.read(texts)
}

var errOnce = errors.New("is given more than once")

func (s *schema) read(texts []string) (json.RawMessage, error) {
	if len(s.OneOf) > 0 {
		return s.readOneOf(texts)
	}
	kind := s.kind()
	if s.Ref != "" {
		kind = "object"
	}
	if kind == "object" || kind == "array" {
		if whole, ok, err := asJSON(texts, kind); ok || err != nil {
			return whole, err
		}
	}
	switch kind {
	case "array":
		return s.readList(texts)
	case "object":
		return s.readObject(texts)
	}
	if len(texts) != 1 {
		return nil, errOnce
	}
	switch kind {
	case "number", "integer":
		return number(texts[0])
	case "boolean":
		if texts[0] != "true" && texts[0] != "false" {
			return nil, fmt.Errorf("must be true or false, not %q", texts[0])
		}
		return json.RawMessage(texts[0]), nil
	}
	return marshal(texts[0]), nil
}

// readOneOf takes the first form that the texts have, from the one that fewest texts have to the one that all have.
func (s *schema) readOneOf(texts []string) (json.RawMessage, error) {
	forms := slices.Clone(s.OneOf)
	slices.SortStableFunc(forms, func(a, b *schema) int { return a.looseness() - b.looseness() })
	var wrong error
	for _, form := range forms {
		if form.kind() == "array" && form.Items.kind() == "string" && len(texts) == 1 && !strings.HasPrefix(texts[0], "[") &&
			slices.ContainsFunc(forms, func(o *schema) bool { return o.kind() == "string" }) {
			continue // a single text is a text, and not a list of one
		}
		if form.kind() == "string" && len(texts) == 1 && isText(texts[0]) {
			return json.RawMessage(texts[0]), nil
		}
		value, err := form.read(texts)
		if err == nil {
			return value, nil
		}
		if wrong == nil || len(texts) == 1 && strings.HasPrefix(texts[0], "@") {
			wrong = err
		}
	}
	return nil, wrong
}

// looseness orders forms by how much they take.
func (s *schema) looseness() int {
	switch s.kind() {
	case "number", "integer":
		return 0
	case "array":
		if s.Items.kind() == "number" {
			return 1
		}
		return 3
	case "object":
		return 2
	}
	return 4
}

// isText says whether it is a text in JSON's quotes.
func isText(text string) bool {
	var s string
	return strings.HasPrefix(text, `"`) && json.Unmarshal([]byte(text), &s) == nil
}

// asJSON is the list or object that a single text is, or names a file of; ok is false where it is neither.
func asJSON(texts []string, kind string) (whole json.RawMessage, ok bool, err error) {
	if len(texts) != 1 {
		return nil, false, nil
	}
	text := strings.TrimSpace(texts[0])
	opens := map[string]string{"array": "[", "object": "{"}[kind]
	if file, isFile := strings.CutPrefix(text, "@"); isFile {
		contents, err := ReadFile(file)
		if err != nil {
			return nil, true, err
		}
		if !strings.HasPrefix(string(contents), opens) {
			return nil, true, fmt.Errorf("must be a JSON %s, which %s is not", kind, file)
		}
		return contents, true, nil
	}
	if !strings.HasPrefix(text, opens) {
		return nil, false, nil
	}
	whole, err = Compact([]byte(text))
	return whole, true, err
}

// ReadFile is the JSON of a file without white space; - is standard input.
func ReadFile(file string) (json.RawMessage, error) {
	var contents []byte
	var err error
	if file == "-" {
		contents, err = io.ReadAll(os.Stdin)
	} else {
		contents, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	whole, err := Compact(contents)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return whole, nil
}

// ReadArgument is the JSON of an argument: @FILE is read from that file, - from standard input, and anything else is JSON itself.
func ReadArgument(text string) (json.RawMessage, error) {
	if file, isFile := strings.CutPrefix(text, "@"); isFile || text == "-" {
		return ReadFile(file)
	}
	return Compact([]byte(text))
}

// Compact is one JSON value without white space. An error says where it is none.
func Compact(text []byte) (json.RawMessage, error) {
	var b bytes.Buffer
	if err := json.Compact(&b, text); err != nil {
		var at *json.SyntaxError
		if errors.As(err, &at) && at.Offset > 0 {
			return nil, fmt.Errorf("is no JSON: %w, at byte %d", err, at.Offset)
		}
		return nil, fmt.Errorf("is no JSON: %w", err)
	}
	return b.Bytes(), nil
}

func (s *schema) readList(texts []string) (json.RawMessage, error) {
	if s.Items.kind() == "number" {
		var each []string
		for _, t := range texts {
			each = append(each, strings.Split(t, ",")...)
		}
		texts = each
	}
	items := make([]json.RawMessage, len(texts))
	for i, t := range texts {
		var err error
		if items[i], err = s.Items.read([]string{strings.TrimSpace(t)}); err != nil {
			return nil, err
		}
	}
	if s.MinItems == 2 && s.MaxItems == 2 && len(items) != 2 {
		return nil, fmt.Errorf("must be two numbers, as -60,180, not %q", strings.Join(texts, ","))
	}
	return marshal(items), nil
}

func (s *schema) readObject(texts []string) (json.RawMessage, error) {
	if s.Ref != "" || s.nested() {
		return nil, fmt.Errorf("must be a JSON object, or @FILE, which has one, not %q", texts[0])
	}
	others := new(schema)
	open := len(s.Others) > 0 && json.Unmarshal(s.Others, others) == nil
	values := map[string][]string{}
	var names []string
	for _, t := range texts {
		at := strings.LastIndex(t, "=") // a name can have one: a category, or a bin
		if !open {
			at = strings.Index(t, "=") // a value can have one: an expression
		} else if others.kind() == "string" {
			at = strings.Index(t, "=")
		}
		if at <= 0 {
			return nil, fmt.Errorf("must be NAME=VALUE, or a JSON object, not %q", t)
		}
		name := t[:at]
		if values[name] == nil {
			names = append(names, name)
		}
		values[name] = append(values[name], t[at+1:])
	}
	var b bytes.Buffer
	for i, name := range names {
		of, known := s.Properties[name]
		if !known && !open {
			all := s.sorted()
			text := fmt.Sprintf("has no %q; there are %s", name, strings.Join(all, ", "))
			if near := nearest.Name(name, all); near != "" {
				text = fmt.Sprintf("has no %q; did you mean %s?", name, near)
			}
			return nil, errors.New(text)
		}
		if !known {
			of = others
		}
		value, err := of.read(values[name])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(marshal(name))
		b.WriteByte(':')
		b.Write(value)
	}
	return json.RawMessage("{" + b.String() + "}"), nil
}

func (s *schema) sorted() (names []string) {
	for name := range s.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// number is a decimal number as JSON: in its own digits where JSON has them.
func number(text string) (json.RawMessage, error) {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(x, 0) || math.IsNaN(x) || strings.ContainsAny(text, "xXpP_") {
		return nil, fmt.Errorf("must be a number, not %q", text)
	}
	if json.Valid([]byte(text)) {
		return json.RawMessage(text), nil
	}
	return json.RawMessage(strconv.FormatFloat(x, 'g', -1, 64)), nil // such as .5 and +1
}

// marshal writes what can always be written, without the escapes that only HTML needs.
func marshal(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(fmt.Sprintf("members: %v", err))
	}
	return bytes.TrimSpace(b.Bytes())
}
