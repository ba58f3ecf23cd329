package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// writtenPage has the table of an upload's parameters behind this heading, which is its last.
const (
	writtenPage      = "../../docs/API.md"
	parameterHeading = "\n## Parameters of an upload\n"
)

// defaultOf finds what a description says of a default, up to the end of its sentence.
var defaultOf = regexp.MustCompile(`[;.] [Dd]efault: (.*?)(?:$|\. )`)

// parameterTable is the section of the upload's parameters, as the OpenAPI document says them.
func parameterTable(document []byte) (string, error) {
	var doc struct {
		Paths map[string]map[string]struct {
			Parameters []struct {
				Name, In, Description string
				Schema                struct {
					Default  any
					Examples []any
				}
			}
		}
	}
	if err := json.Unmarshal(document, &doc); err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(parameterHeading + `
Of ` + "`POST /v1/holdouts`" + `, in the query of its URL unless a header is said. None is required, and none is ignored:
one that the mechanism does not take is refused. The table is made from the OpenAPI document.

| parameter | default | example | meaning |
|---|---|---|---|
`)
	for _, p := range doc.Paths["/v1/holdouts"]["post"].Parameters {
		name, meaning, absent := "`"+p.Name+"`", p.Description, ""
		if p.In != "query" {
			name += " (" + p.In + ")"
		}
		if at := defaultOf.FindStringSubmatchIndex(meaning); at != nil {
			absent = meaning[at[2]:at[3]]
			meaning = strings.TrimSuffix(meaning[:at[0]]+". "+meaning[at[1]:], ". ")
		}
		if p.Schema.Default != nil {
			absent = fmt.Sprintf("`%v`", p.Schema.Default)
		}
		if p.Name == "mechanism" {
			meaning = "how answers are made: one of [MECHANISMS.md](MECHANISMS.md)" // which says what each does
		}
		if absent == "" || meaning == "" || len(p.Schema.Examples) == 0 {
			return "", fmt.Errorf("%s: the default %q, the meaning %q, the examples %v", p.Name, absent, meaning, p.Schema.Examples)
		}
		fmt.Fprintf(&b, "| %s | %s | `%v` | %s |\n", name, absent, p.Schema.Examples[0], strings.ReplaceAll(meaning, "|", `\|`))
	}
	return b.String(), nil
}

// TestDocumentedParameters keeps the table of an upload's parameters in docs/API.md: it would notice a parameter that is not in it, one without a default, and one that the interface explains otherwise.
func TestDocumentedParameters(t *testing.T) {
	document, err := New(nil, Options{}).OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	want, err := parameterTable(document)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range settings {
		if !strings.Contains(want, "| `"+p.name+"` |") {
			t.Errorf("the setting %s is not in the table", p.name)
		}
	}
	page, err := os.ReadFile(writtenPage)
	if err != nil {
		t.Fatal(err)
	}
	text, had, _ := bytes.Cut(page, []byte(parameterHeading))
	if *update {
		if err := os.WriteFile(writtenPage, append(bytes.Clone(text), want...), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if parameterHeading+string(had) != want {
		t.Errorf("docs/API.md has another table of parameters than the interface; if the interface is meant: make generate")
	}
}
