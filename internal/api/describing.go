package api

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	holdoutd "github.com/holdoutd/holdoutd"
	"github.com/holdoutd/holdoutd/internal/nearest"
	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/queries/model"
)

// What the tool describe says is what the pages say, of one thing at a time: the list of tools has no room for it, and a model needs only what it is about to write.

// describeExpressions is the name of the language of expressions.
const describeExpressions = "expressions"

// describedNames are what can be described.
func describedNames() []string {
	return slices.Concat(queries.Types(), model.Forms, []string{describeExpressions})
}

// ToolDescription is what the tool describe replies: of a type of query its members, of anything else a text.
type ToolDescription struct {
	Name     string            `json:"name"`
	Says     string            `json:"says" doc:"what it is, in Markdown"`
	Members  []ToolMember      `json:"members,omitempty" doc:"of a type of query, beside type and note"`
	OneOf    []string          `json:"one_of,omitempty" doc:"members of which at least one is needed"`
	Examples []json.RawMessage `json:"examples" doc:"each is accepted where the columns are there"`
}

// ToolMember is a member of a type of query.
type ToolMember struct {
	Name   string         `json:"name"`
	Needed bool           `json:"needed"`
	Says   string         `json:"says"`
	Schema map[string]any `json:"schema" doc:"its JSON schema, with bounds"`
}

func (a *API) toolDescribe(_ context.Context, arguments json.RawMessage) (reply, error) {
	members, err := readObject(arguments, "name")
	if err != nil {
		return reply{}, err
	}
	name, err := textArgument(members, "name", true)
	if err != nil {
		return reply{}, err
	}
	if d, ok := queries.Describe(name); ok {
		return describeType(d)
	}
	out := ToolDescription{Name: name}
	switch {
	case slices.Contains(model.Forms, name):
		out.Says = pageSection("docs/MODELS.md", name)
		if name == "trees" {
			out.Says += "\n\n" + pageSection("docs/MODELS.md", "What holds for all")
		}
		for _, example := range jsonExamples(out.Says) {
			out.Examples = append(out.Examples, json.RawMessage(fmt.Sprintf(`{"type":"accuracy","label":"delay > 15","model":%s}`, example)))
		}
	case name == describeExpressions:
		out.Says = pageText("docs/EXPRESSIONS.md")
		out.Examples = []json.RawMessage{json.RawMessage(`{"type":"fraction","of":"delay > 15 && origin in ['SFO','OAK']"}`)}
	default:
		p := wrongMember("/name", "must be one of "+strings.Join(describedNames(), ", "))
		p.Errors[0].Suggestion = nearest.Name(name, describedNames())
		return reply{}, p
	}
	return tell(out, out.Says)
}

func describeType(d queries.TypeDescription) (reply, error) {
	out := ToolDescription{Name: d.Type, Says: d.Says, Members: []ToolMember{}, OneOf: d.OneOf, Examples: d.Examples}
	var words []string
	for _, m := range d.Members {
		out.Members = append(out.Members, ToolMember(m))
		s := m.Name
		if m.Needed {
			s += " (needed)"
		}
		words = append(words, s+": "+m.Says)
	}
	sentence := d.Says + "\nMembers: " + strings.Join(words, ";\n") + "."
	if len(d.OneOf) > 0 {
		sentence += "\nAt least one is needed of " + strings.Join(d.OneOf, ", ") + "."
	}
	for _, e := range d.Examples {
		sentence += "\nExample: " + string(e)
	}
	return tell(out, sentence)
}

// pageText is a page of the documentation.
func pageText(path string) string {
	text, err := holdoutd.Texts.ReadFile(path)
	if err != nil {
		panic("api: the page " + path + ": " + err.Error())
	}
	return string(text)
}

// pageSection is the section of a page with this heading of the second level.
func pageSection(path, heading string) string {
	_, section, ok := strings.Cut(pageText(path), "\n## "+heading+"\n")
	if !ok {
		panic("api: " + path + " has no section " + heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	return strings.TrimSpace(section)
}

var jsonBlock = regexp.MustCompile("(?s)```json\n(.*?)```")

// jsonExamples are the blocks of a text that are JSON.
func jsonExamples(text string) (examples []string) {
	for _, block := range jsonBlock.FindAllStringSubmatch(text, -1) {
		if json.Valid([]byte(block[1])) {
			examples = append(examples, block[1])
		}
	}
	return examples
}
