package expr

import (
	"os"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
)

// TestDocumentation checks every example of docs/EXPRESSIONS.md, and that it names every function of the language.
func TestDocumentation(t *testing.T) {
	page, err := os.ReadFile("../../docs/EXPRESSIONS.md")
	if err != nil {
		t.Fatal(err)
	}
	schema := dataset.Schema{Fields: append([]dataset.Field{{Name: "passenger.age", Kind: dataset.Number}}, flights.Fields...)}
	examples := 0
	for i, block := range strings.Split(string(page), "```") {
		code, ok := strings.CutPrefix(block, "cel\n")
		if i%2 == 0 || !ok {
			continue
		}
		for _, src := range strings.Split(strings.TrimSpace(code), "\n") {
			s, err := Parse(src)
			if err != nil {
				t.Errorf("%s: %v", src, err)
				continue
			}
			if _, err := s.Check(schema); err != nil {
				t.Errorf("%s: %v", src, err)
			}
			examples++
		}
	}
	if examples < 10 {
		t.Errorf("only %d examples were found", examples)
	}
	for name, f := range functions {
		if f.style != operator && !strings.Contains(string(page), name+"(") {
			t.Errorf("the page does not name %s", name)
		}
	}
}
