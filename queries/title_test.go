package queries

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestTitles: every example of every type has a title that is more than its type's name alone where the query is about something, and in one line.
func TestTitles(t *testing.T) {
	for canonical, want := range map[string]string{
		`{"type":"accuracy","label":"churned","model":{}}`:                                           "accuracy for churned",
		`{"type":"loss","loss":"log","label":"churned"}`:                                             "log loss for churned",
		`{"type":"mean","of":"delay","where":"origin == 'SFO'"}`:                                     "mean of delay where origin == 'SFO'",
		`{"type":"fraction","of":"delay > 15"}`:                                                      "share of delay > 15",
		`{"type":"compare","a":{"type":"accuracy","label":"y"},"b":{"type":"accuracy","label":"y"}}`: "accuracy for y, second minus first",
		`{"type":"correlation","x":"a","y":"b"}`:                                                     "correlation of a and b",
		`{"type":"test","test":"proportion","of":"churned"}`:                                         "test (proportion) of churned",
		`{}`: "a query",
		`no`: "a query",
	} {
		if got := TitleOf([]byte(canonical)); got != want {
			t.Errorf("%s is called %q, want %q", canonical, got, want)
		}
	}
	for _, schema := range JSONSchemas("") {
		var s struct{ Examples []json.RawMessage }
		if err := json.Unmarshal(schema, &s); err != nil {
			t.Fatal(err)
		}
		for _, example := range s.Examples {
			q, err := Parse(example)
			if err != nil {
				t.Fatal(err)
			}
			if title := TitleOf(q.Canonical()); title == "" || strings.ContainsAny(title, "\n{}") || strings.HasSuffix(title, " ") {
				t.Errorf("%s is called %q", example, title)
			}
		}
	}
}
