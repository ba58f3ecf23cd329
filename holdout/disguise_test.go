package holdout

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
)

// TestDisguises: of columns that tell the label and of such that nearly do, those that are right in more than 99.9% of the rows are found, by each of the ways in which a column can tell it. It would notice a way
// that is gone, a bound that is ten times as large, and an id or the unit that is taken for a disguise.
func TestDisguises(t *testing.T) {
	const n = 20_000
	r := rand.New(rand.NewPCG(1, 2))
	late := make([]bool, n)
	for i := range late {
		late[i] = r.Float64() < 0.1
	}
	number := func(name string, of func(i int) float64) dataset.Column {
		c := dataset.Column{Field: dataset.Field{Name: name, Kind: dataset.Number, Source: "DOUBLE"}}
		for i := range n {
			c.Numbers = append(c.Numbers, of(i))
		}
		return c
	}
	text := func(name string, of func(i int) string) dataset.Column {
		var texts []string
		for i := range n {
			texts = append(texts, of(i))
		}
		return dataset.NewText(name, texts, func(i int) bool { return texts[i] == "" })
	}
	pick := func(yes bool, a, b float64) float64 {
		if yes {
			return a
		}
		return b
	}
	wrong := func(i, every int) bool { return late[i] != (i%every == 0) } // in one of so many rows
	label := dataset.Column{Field: dataset.Field{Name: "late", Kind: dataset.Bool, Source: "BOOLEAN"}}
	for i := range n {
		label.Bools = append(label.Bools, uint8(pick(late[i], 1, 0)))
	}
	columns := []dataset.Column{
		label,
		number("noise", func(int) float64 { return r.NormFloat64() }),
		number("good", func(i int) float64 { return pick(late[i], 1, 0) + 0.5*r.NormFloat64() }),
		number("cut", func(i int) float64 { return pick(late[i], 5+r.Float64(), 5-r.Float64()) }),
		number("wrong seldom", func(i int) float64 { return pick(wrong(i, 2000), 5+r.Float64(), 5-r.Float64()) }),
		number("wrong often", func(i int) float64 { return pick(wrong(i, 500), 5+r.Float64(), 5-r.Float64()) }),
		number("cancelled on", func(i int) float64 { return pick(late[i], float64(i), math.NaN()) }),
		number("grade", func(i int) float64 { return pick(late[i], 2, float64(1+2*r.IntN(2))) }), // no cut tells it
		text("state", func(i int) string { return []string{"paid", "due", "gone"}[int(pick(late[i], 2, float64(r.IntN(2))))] }),
		text("reason", func(i int) string { return strings.Repeat("r", int(pick(late[i], float64(1+r.IntN(40)), 0))) }),
		text("name", func(i int) string {
			return "n" + strings.Repeat("x", i%3) + string(rune('a'+i%26)) + string(rune('a'+i/26%26))
		}),
		number("customer", func(i int) float64 { return pick(late[i], 1, -1) * float64(1+i) }),
	}
	want := []string{"cut", "wrong seldom", "cancelled on", "grade", "state", "reason"}
	if got := disguises(slices.Delete(slices.Clone(columns), 9, 10), "late", "customer"); !slices.Equal(got, want[:5]) {
		t.Errorf("%q", got)
	}
	if got := disguises(slices.Delete(slices.Clone(columns), 3, 5), "late", "customer"); !slices.Equal(got, want[2:]) {
		t.Errorf("%q", got)
	}
	if got := disguises(columns, "late", "customer"); len(got) != maxDisguises {
		t.Errorf("%q", got)
	}
	if got := disguises(columns, "", "customer"); got != nil {
		t.Errorf("without a label: %q", got)
	}

	// The same label as numbers and as a text, and one of three classes with rows that have none.
	for _, label := range []dataset.Column{
		number("late", func(i int) float64 { return pick(late[i], 1, 0) }),
		text("late", func(i int) string { return []string{"no", "yes", ""}[int(pick(i%7 == 0, 2, pick(late[i], 1, 0)))] }),
	} {
		if got := disguises(append([]dataset.Column{label}, columns[1:4]...), "late", ""); !slices.Equal(got, want[:1]) {
			t.Errorf("%s: %q", label.Source, got)
		}
	}
	// A label that is nearly always the same is told by everything.
	rare := number("late", func(i int) float64 { return pick(i%4000 == 0, 1, 0) })
	if got := disguises(append([]dataset.Column{rare}, columns[1:4]...), "late", ""); got != nil {
		t.Errorf("of a rare label: %q", got)
	}
	// A label of many values is no class.
	if got := disguises(append([]dataset.Column{number("late", func(i int) float64 { return float64(i) })}, columns[1:4]...), "late", ""); got != nil {
		t.Errorf("of a number: %q", got)
	}
}

// TestReadsLabel: an answer about a model that reads what tells its label warns of it, and the card names the column.
func TestReadsLabel(t *testing.T) {
	s := open(t, t.TempDir())
	id := create(t, s, Settings{Questions: 50, Label: "late"}, visits(t, 3000, 1)).ID // late is x < 0.2
	warned := func(q string) (columns []string) {
		t.Helper()
		e, err := s.Explain(t.Context(), analyst, id, []byte(q))
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range e.Warnings {
			if w.Code == "reads-label" {
				columns = append(columns, w.Column)
			}
		}
		return columns
	}
	for q, want := range map[string][]string{
		`{"type":"accuracy","prediction":"late"}`:                                                                             {"late"},
		`{"type":"accuracy","prediction":"score > 50"}`:                                                                       nil,
		`{"type":"accuracy","prediction":"score > 50 && x < 0.3"}`:                                                            {"x"},
		`{"type":"accuracy","label":"score > 50","prediction":"score"}`:                                                       {"score"},
		`{"type":"accuracy","label":"score > 50","prediction":"x"}`:                                                           nil,
		`{"type":"auc","label":"score > 50","model":{"linear":{"weights":{"score":1}}},"edges":[9,50]}`:                       {"score"},
		`{"type":"accuracy","label":"score > 50","model":{"linear":{"weights":{"y":1}}},"features":{"y":"score * 2"}}`:        {"score"},
		`{"type":"compare","a":{"type":"accuracy","prediction":"score > 50"},"b":{"type":"accuracy","prediction":"x < 0.2"}}`: {"x"},
	} {
		if got := warned(q); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", q, got, want)
		}
	}
	card, err := s.Card(t.Context(), analyst, id)
	if err != nil {
		t.Fatal(err)
	}
	if got := card.disguises(); !slices.Equal(got, []string{"x"}) {
		t.Errorf("the card names %q", got)
	}
	answer, err := s.Ask(t.Context(), analyst, id, []byte(`{"type":"accuracy","prediction":"x < 0.2"}`), "")
	if err != nil || !strings.Contains(string(answer.Body), `"reads-label"`) {
		t.Errorf("%s: %v", answer.Body, err)
	}
}

// TestPer: what an answer says has one vote each is what its query averages over, with the question, the batch, the explanation and the history; nothing where units are rows.
func TestPer(t *testing.T) {
	s := open(t, t.TempDir())
	share := `{"type":"fraction","of":"late"}`
	byRow := `{"type":"fraction","of":"late","weight":"row"}`
	for unit, per := range map[string]string{"chart": "chart", "day(seen)": "day(seen)", "row": ""} {
		id := create(t, s, Settings{Name: unit, Questions: 50, Unit: unit}, visits(t, 3000, uint64(len(unit)))).ID
		rows := "row"
		if per == "" {
			rows = ""
		}
		want := map[string]string{
			share: per, byRow: rows, `{"type":"count","of":"late"}`: "", `{"type":"sum","of":"score","range":[0,100]}`: "",
			`{"type":"passes","of":` + byRow + `,"above":0.1}`: rows, `{"type":"passes","of":` + share + `,"above":0.1}`: per,
			`{"type":"argmax","of":[` + share + `,` + share + `]}`: per, `{"type":"test","test":"value","query":` + byRow + `,"equals":0.2}`: rows,
		}
		for q, w := range want {
			e, err := s.Explain(t.Context(), analyst, id, []byte(q))
			if err != nil || e.Per != w {
				t.Errorf("unit=%s: %s is explained per %q, want %q: %v", unit, q, e.Per, w, err)
			}
		}
		if a, err := s.Ask(t.Context(), analyst, id, []byte(share), ""); err != nil || a.Per != per {
			t.Errorf("unit=%s: answered per %q: %v", unit, a.Per, err)
		}
		b, err := s.AskBatch(t.Context(), analyst, id, batchOf(share, byRow), false, "")
		if err != nil || b.Answers[0].Per != per || b.Answers[1].Per != rows {
			t.Errorf("unit=%s: %+v, %v", unit, b.Answers, err)
		}
		page, err := s.Answers(t.Context(), admin, id, 0, 0)
		if err != nil || len(page.Answers) != 2 || page.Answers[0].Per != per || page.Answers[1].Per != rows {
			t.Errorf("unit=%s: the history says %+v, %v", unit, page.Answers, err)
		}
	}
}
