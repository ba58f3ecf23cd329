package api

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/holdoutd/holdoutd/holdout"
)

// readObject reads one JSON object whose members are among the known, and leaves their values as they came. Keys count
// exactly as they are written, and none may occur twice: encoding/json forgives both.
func readObject(body []byte, known ...string) (map[string]json.RawMessage, error) {
	malformed := func(detail string) *Problem { return problem(classes[holdout.Malformed], "%s", detail) }
	switch {
	case len(bytes.TrimSpace(body)) == 0:
		return nil, malformed("the body is empty; send a JSON object")
	case !utf8.Valid(body):
		return nil, malformed("the body is not valid UTF-8")
	case !json.Valid(body):
		return nil, malformed("the body is not JSON")
	}
	d := json.NewDecoder(bytes.NewReader(body))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, wrongMember("", "must be an object with "+strings.Join(known, ", "))
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
	for name := range members {
		if !slices.Contains(known, name) {
			p := wrongMember("/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(name), "unknown member; there are "+strings.Join(known, ", "))
			p.Errors[0].Suggestion = nearest(name, known)
			return nil, p
		}
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

// nearest is the known name that differs in the fewest letters, or "" where none is near.
func nearest(name string, known []string) string {
	if len(name) > 64 {
		return ""
	}
	best, least := "", max(1, len(name)/3)+1
	for _, k := range known {
		if d := distance(strings.ToLower(name), k); d < least {
			best, least = k, d
		}
	}
	return best
}

// distance is Levenshtein's, in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			corner, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, corner+cost)
		}
	}
	return row[len(b)]
}
