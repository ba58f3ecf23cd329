package queries

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/holdoutd/holdoutd/internal/strictjson"
)

const (
	// MaxBody bounds one query in bytes: an ensemble of 100,000 nodes fits. A server takes less (holdoutd serve --query-bytes).
	MaxBody  = 64 << 20
	maxLevel = 32 // levels of JSON; the deepest query has 8
)

// value is a JSON value that keeps the order of its members, which encoding/json does not.
type value struct {
	kind    valueKind
	text    string // of a text; of a number, as it was spelled
	truth   bool
	items   []*value
	members []memberValue
}

type memberValue struct {
	name  string
	value *value
}

type valueKind uint8

const (
	nullValue valueKind = iota
	truthValue
	numberValue
	textValue
	listValue
	objectValue
)

var kindNames = [...]string{"null", "true or false", "a number", "a text", "a list", "an object"}

// readJSON reads one JSON value strictly: UTF-8, no key twice, nothing after it. Its error is an *Error of Kind Malformed.
func readJSON(body []byte) (*value, *Error) {
	if len(body) > MaxBody {
		return nil, malformed(nil, 0, fmt.Sprintf("the body has more than %d bytes", MaxBody))
	}
	if !utf8.Valid(body) {
		return nil, malformed(body, invalidByte(body), "the body is not valid UTF-8")
	}
	var whole json.RawMessage
	if err := json.Unmarshal(body, &whole); err != nil {
		offset := int64(len(body))
		detail := "the body ends too early"
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) && syntax.Error() != "unexpected end of JSON input" {
			offset, detail = max(0, syntax.Offset-1), "the body is not JSON"
		}
		return nil, malformed(body, offset, detail)
	}
	if at := strictjson.LoneSurrogate(body); at >= 0 {
		return nil, malformed(body, int64(at), "this escape is one half of a surrogate pair and no character by itself")
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	r := jsonReader{body: body, tokens: d}
	v := r.value(0)
	if r.err != nil {
		return nil, r.err
	}
	return v, nil
}

func invalidByte(body []byte) int64 {
	for i := 0; i < len(body); {
		r, size := utf8.DecodeRune(body[i:])
		if r == utf8.RuneError && size == 1 {
			return int64(i)
		}
		i += size
	}
	return 0
}

// malformed is the error about a place in the body.
func malformed(body []byte, offset int64, detail string) *Error {
	v := Violation{Detail: detail}
	if body != nil {
		before := body[:min(int(offset), len(body))]
		v.Line = 1 + bytes.Count(before, []byte("\n"))
		v.Column = 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
	}
	return &Error{Kind: Malformed, Violations: []Violation{v}}
}

// jsonReader builds values from the tokens of a body that is known to be valid JSON.
type jsonReader struct {
	body   []byte
	tokens *json.Decoder
	err    *Error
}

func (r *jsonReader) fail(detail string) *value {
	if r.err == nil {
		r.err = malformed(r.body, r.tokens.InputOffset(), detail)
	}
	return &value{}
}

func (r *jsonReader) value(level int) *value {
	if level > maxLevel {
		return r.fail(fmt.Sprintf("the body is nested deeper than %d levels", maxLevel))
	}
	token, err := r.tokens.Token()
	if err != nil {
		return r.fail("the body is not JSON")
	}
	switch t := token.(type) {
	case bool:
		return &value{kind: truthValue, truth: t}
	case json.Number:
		return &value{kind: numberValue, text: string(t)}
	case string:
		return &value{kind: textValue, text: t}
	case json.Delim:
		if t == '[' {
			return r.list(level)
		}
		return r.object(level)
	}
	return &value{kind: nullValue}
}

func (r *jsonReader) list(level int) *value {
	v := &value{kind: listValue}
	for r.err == nil && r.tokens.More() {
		v.items = append(v.items, r.value(level+1))
	}
	if _, err := r.tokens.Token(); err != nil {
		return r.fail("the body is not JSON")
	}
	return v
}

func (r *jsonReader) object(level int) *value {
	v := &value{kind: objectValue}
	seen := map[string]bool{}
	for r.err == nil && r.tokens.More() {
		token, err := r.tokens.Token()
		name, ok := token.(string)
		if err != nil || !ok {
			return r.fail("the body is not JSON")
		}
		if seen[name] {
			return r.fail("a key occurs twice in one object")
		}
		seen[name] = true
		v.members = append(v.members, memberValue{name, r.value(level + 1)})
	}
	if _, err := r.tokens.Token(); err != nil {
		return r.fail("the body is not JSON")
	}
	return v
}

func (v *value) member(name string) *value {
	for _, m := range v.members {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// float is the double that a number spells. It is false for what is no number or has no finite double.
func (v *value) float() (float64, bool) {
	if v.kind != numberValue {
		return 0, false
	}
	x, err := strconv.ParseFloat(v.text, 64)
	return x + 0, err == nil && !math.IsInf(x, 0) // + 0: -0 is 0
}

// escape makes a member name a part of an RFC 6901 pointer.
func escape(name string) string { return escapes.Replace(name) }

var escapes = strings.NewReplacer("~", "~0", "/", "~1")

// mustMarshal writes sorted keys and leaves < > & as they are.
func mustMarshal(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(fmt.Sprintf("queries: a canonical value that JSON cannot hold: %v", err)) // finite numbers and valid text only
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// Arrange is a query's JSON as canonical forms are arranged: members sorted, no space between, no note. Numbers and texts stay as they are spelled. It is nil where the body is no JSON object.
func Arrange(body []byte) []byte {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var members map[string]any
	if d.Decode(&members) != nil || members == nil {
		return nil
	}
	delete(members, "note")
	return mustMarshal(members)
}

// write is the value's JSON, numbers as they were spelled.
func (v *value) write(b *bytes.Buffer) {
	switch v.kind {
	case truthValue:
		b.WriteString(strconv.FormatBool(v.truth))
	case numberValue:
		b.WriteString(v.text)
	case textValue:
		b.Write(quoted(v.text))
	case listValue:
		b.WriteByte('[')
		for i, item := range v.items {
			if i > 0 {
				b.WriteByte(',')
			}
			item.write(b)
		}
		b.WriteByte(']')
	case objectValue:
		b.WriteByte('{')
		for i, m := range v.members {
			if i > 0 {
				b.WriteByte(',')
			}
			b.Write(quoted(m.name))
			b.WriteByte(':')
			m.value.write(b)
		}
		b.WriteByte('}')
	default:
		b.WriteString("null")
	}
}

func quoted(text string) []byte {
	b, err := json.Marshal(text)
	if err != nil {
		panic("queries: a text that JSON cannot hold: " + err.Error()) // it was read from JSON
	}
	return b
}
