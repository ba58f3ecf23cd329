package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/holdoutd/holdoutd/holdout"
	"github.com/holdoutd/holdoutd/internal/nearest"
	"github.com/holdoutd/holdoutd/internal/strictjson"
)

// readObject reads one JSON object whose members are among the known, and leaves their values as they came. Keys count
// exactly as they are written, and none may occur twice: encoding/json forgives both.
func readObject(body []byte, known ...string) (map[string]json.RawMessage, error) {
	members, err := readMembers(body)
	if errors.Is(err, errNoObject) {
		return nil, wrongMember("", "must be an object with "+strings.Join(known, ", "))
	}
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(members)) { // the same refusal for the same body
		if !slices.Contains(known, name) {
			p := wrongMember("/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(name), "unknown member; there are "+strings.Join(known, ", "))
			p.Errors[0].Suggestion = nearest.Name(name, known)
			return nil, p
		}
	}
	return members, nil
}

// errNoObject is JSON that is no object.
var errNoObject = errors.New("api: the JSON is no object")

// readMembers reads one JSON object, whatever its members are called.
func readMembers(body []byte) (map[string]json.RawMessage, error) {
	malformed := func(detail string) *Problem { return problem(classes[holdout.Malformed], "%s", detail) }
	switch {
	case len(bytes.TrimSpace(body)) == 0:
		return nil, malformed("the body is empty; send a JSON object")
	case !utf8.Valid(body):
		return nil, malformed("the body is not valid UTF-8")
	case !json.Valid(body):
		return nil, malformed("the body is not JSON")
	case strictjson.LoneSurrogate(body) >= 0:
		return nil, malformed("the body has an escape that is one half of a surrogate pair and no character by itself")
	}
	d := json.NewDecoder(bytes.NewReader(body))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errNoObject
	}
	members := map[string]json.RawMessage{}
	for d.More() {
		t, err := d.Token()
		name, ok := t.(string)
		if err != nil || !ok {
			return nil, malformed("the body is not JSON")
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, malformed("the body is not JSON")
		}
		if _, twice := members[name]; twice {
			return nil, malformed("a key occurs twice in one object")
		}
		members[name] = bytes.TrimSpace(value)
	}
	if _, err := d.Token(); err != nil && err != io.EOF {
		return nil, malformed("the body is not JSON")
	}
	return members, nil
}

// wrongMember is a problem with one place in a body.
func wrongMember(pointer, detail string) *Problem {
	where := pointer
	if where == "" {
		where = "the body"
	}
	p := problem(classes[holdout.Invalid], "%s: %s", where, detail)
	p.Errors = []Violation{{Pointer: pointer, Detail: detail}}
	return p
}
