package holdout

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
)

// kinds is a table with columns whose values are these in turn; "" is null.
func kinds(t *testing.T, n int, columns map[string][]string) *dataset.Table {
	t.Helper()
	late := dataset.Column{Field: dataset.Field{Name: "late", Kind: dataset.Bool, Source: "BOOLEAN"}}
	x := dataset.Column{Field: dataset.Field{Name: "x", Kind: dataset.Number, Source: "DOUBLE"}}
	code := dataset.Column{Field: dataset.Field{Name: "code", Kind: dataset.Number, Source: "DOUBLE"}}
	for i := range n {
		late.Bools = append(late.Bools, uint8(i*i%7%2))
		x.Numbers = append(x.Numbers, float64(i*i%11)/11)
		code.Numbers = append(code.Numbers, float64(i%3))
	}
	all := []dataset.Column{late, x, code}
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for name := range columns {
			if !yield(name) {
				return
			}
		}
	}) {
		values := make([]string, n)
		for i := range values {
			values[i] = columns[name][i%len(columns[name])]
		}
		all = append(all, dataset.NewText(name, values, func(row int) bool { return values[row] == "" }))
	}
	table, err := dataset.FromColumns(all...)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// TestGroupsThatCannotBe: the groups other and null are not asked about where public facts exclude them: the card's number of different texts, which is rounded, where the training part has as many; or all values,
// where features are public. What only the training part says excludes nothing. It would notice a group that is left out because the training part lacks it, or because the held-out rows do though they are secret.
func TestGroupsThatCannotBe(t *testing.T) {
	columns := map[string][]string{"four": {"a", "b", "c", "d"}, "three": {"a", "b", "c"}, "gaps": {"a", "b", "", "d"}}
	late := map[string][]string{"four": columns["four"], "three": {"a", "b", "c", "a", "b", "c", "e"}, "gaps": {"a", "b"}}
	training, heldOut := kinds(t, 900, columns), kinds(t, 805, late)
	groups := func(by string, more ...string) string {
		return `{"type":"groups","of":"x","range":[0,1],"by":"` + by + `"` + strings.Join(more, "") + `}`
	}
	for _, c := range []struct {
		features, by, more string
		asked              int64
	}{
		{"", "four", "", 5}, // the card says four texts, and training has four
		{"", "four", `,"values":["a","b"]`, 4},
		{"", "four", `,"values":["a","b","c","d","e"]`, 6},
		{"", "three", "", 5}, // three or four, as far as the card says
		{"", "gaps", "", 5},
		{"", "code", "", 5},
		{"", "x", `,"edges":[0,0.5,1]`, 5},
		{"", "late", "", 3},
		{"public", "four", "", 4},
		{"public", "four", `,"values":["a","b"]`, 3},
		{"public", "three", "", 3},
		{"public", "gaps", "", 4},
		{"public", "code", "", 3},
		{"public", "code", `,"values":[0,1]`, 3},
		{"public", "x", `,"edges":[0,0.5,1]`, 4},
		{"public", "late", "", 3}, // the label is secret
		{"given", "four", "", 6},
		{"given public", "three", "", 4}, // a held-out row is e
		{"given public", "gaps", "", 4},
	} {
		t.Run(strings.TrimSpace(c.features+" "+c.by+" "+c.more), func(t *testing.T) {
			s := open(t, t.TempDir())
			set := Settings{Name: "kinds", Mechanism: "guess_and_check", Questions: 100, Tokens: 20, Label: "late"}
			if strings.Contains(c.features, "public") {
				set.Features = featuresPublic
			}
			upload := SingleUpload(bytes.NewReader(parquet(t, training)))
			if strings.Contains(c.features, "given") {
				set.Split, upload = splitGiven, givenUpload(parquet(t, training), parquet(t, heldOut))
			}
			card, _, err := s.Create(t.Context(), admin, set, upload, "")
			if err != nil {
				t.Fatal(err)
			}
			e, err := s.Explain(t.Context(), analyst, card.ID, []byte(groups(c.by, c.more)))
			if err != nil {
				t.Fatal(err)
			}
			if e.Cost.Questions != c.asked {
				t.Errorf("it costs %d questions, want %d: %+v", e.Cost.Questions, c.asked, e.Items)
			}
		})
	}
}
