package answers

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/holdout"
	"github.com/holdoutd/holdoutd/session"
)

// scores is a table of n rows: x is null in the first nulls of them and the row's number by ten in the others; late is true in every second one; group is 1, 2, 3, 1, … and half holds in half of the rows.
func scores(t *testing.T, from, n, nulls int) *dataset.Table {
	t.Helper()
	id := dataset.Column{Field: dataset.Field{Name: "id", Kind: dataset.Number, Source: "DOUBLE"}}
	x := dataset.Column{Field: dataset.Field{Name: "x", Kind: dataset.Number, Source: "DOUBLE"}}
	group := dataset.Column{Field: dataset.Field{Name: "group", Kind: dataset.Number, Source: "DOUBLE"}}
	late := dataset.Column{Field: dataset.Field{Name: "late", Kind: dataset.Bool, Source: "BOOLEAN"}}
	for i := range n {
		value := float64(i) / 10
		if i < nulls {
			value = math.NaN()
		}
		id.Numbers, x.Numbers, late.Bools = append(id.Numbers, float64(from+i)), append(x.Numbers, value), append(late.Bools, uint8(i%2))
		group.Numbers = append(group.Numbers, float64(1+i%3))
	}
	table, err := dataset.FromColumns(id, x, group, late)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// TestValuesThatCountAsOthers: an answer, and its explanation, say what share of the training part's rows is null or clamped, where it is large, and nothing of the holdout's: of two parts of which one has
// nulls the answer warns where it is the training part. Leaving nulls out ends the warning, and is the same question as the condition. A warning by the holdout's rows, none, or one of other shares
// turns it red.
func TestValuesThatCountAsOthers(t *testing.T) {
	type warned struct {
		Warnings []session.Warning
		Value    float64
	}
	for _, mechanism := range []string{"gaussian", "guess_and_check", "split", "naive"} {
		s := open(t, t.TempDir(), func(o *holdout.Options) { o.AllowNaive = true })
		create := func(name string, training, rest *dataset.Table) string {
			set := holdout.Settings{Name: name, Mechanism: mechanism, Split: "given", Questions: 40}
			if mechanism == "guess_and_check" {
				set.Tokens = 10
			}
			card, _, err := s.Create(t.Context(), admin, set, givenUpload(parquet(t, training), parquet(t, rest)), "")
			if err != nil {
				t.Fatal(err)
			}
			return card.ID
		}
		dirty, clean := create("dirty", scores(t, 0, 1000, 400), scores(t, 5000, 1000, 0)), create("clean", scores(t, 7000, 1000, 0), scores(t, 9000, 1000, 400))
		for _, c := range []struct {
			id, query string
			codes     []string
			says      string
		}{
			{dirty, `{"type":"mean","of":"x","range":[0,100]}`, []string{session.NullValues}, "40% of the training part's rows that are asked about have no value of x; they count as 0. "},
			{clean, `{"type":"mean","of":"x","range":[0,100]}`, nil, ""},
			{dirty, `{"type":"mean","of":"x","range":[0,100],"null":"skip"}`, nil, ""},
			{dirty, `{"type":"mean","of":"x","range":[0,100],"where":"late","null":5}`, []string{session.NullValues}, "40% of the training part's rows that are asked about have no value of x; they count as 5. "},
			{dirty, `{"type":"fraction","of":"x > 50"}`, []string{session.NullValues}, "they count as rows in which it does not hold"},
			{dirty, `{"type":"accuracy","label":"x > 50","prediction":"late"}`, []string{session.NullValues}, "they count as if the label did not hold"},
			{dirty, `{"type":"accuracy","label":"late","model":{"linear":{"weights":{"x":1,"group":2}}}}`, []string{session.NullValues},
				"40% of the training part's rows have no value of x, and the model does not say what that counts as; they count as 0. "},
			{clean, `{"type":"accuracy","label":"late","model":{"linear":{"weights":{"x":1,"group":2}}}}`, nil, ""},
			{dirty, `{"type":"accuracy","label":"late","model":{"linear":{"weights":{"x":3},"impute":{"x":0}}}}`, nil, ""},
			{dirty, `{"type":"accuracy","label":"late","model":{"trees":{"trees":[[["x",50],0,1]]}}}`, nil, ""},
			{dirty, `{"type":"compare","a":{"type":"accuracy","label":"late","prediction":"group > 1"},"b":{"type":"accuracy","label":"late","model":{"mixture":{"models":[{"model":{"linear":{"weights":{"x":1}}}}]}}}}`,
				[]string{session.NullValues}, "have no value of x, and the model"},
			{clean, `{"type":"mean","of":"x","range":[0,10]}`, []string{session.ClampedValues}, "have x below the range [0, 10], and 89.9% above it"},
			{clean, `{"type":"mean","of":"x * 1.0","range":[70,200]}`, []string{session.ClampedValues}, "70% of the training part's rows that are asked about have x * 1 below the range [70, 200], and 0% above it"},
			{clean, `{"type":"mean","of":"x","range":[0,98]}`, nil, ""}, // 2% are above
			{dirty, `{"type":"sum","of":"x","range":[0,90]}`, []string{session.ClampedValues}, "9.9% above it"},
			{clean, `{"type":"compare","a":{"type":"mean","of":"x","range":[0,10]},"b":{"type":"mean","of":"x / 2.0","range":[0,10]}}`, []string{session.ClampedValues, session.ClampedValues}, ""},
		} {
			reply := ask(t, s, c.id, c.query)
			var a warned
			if err := json.Unmarshal(reply.Body, &a); err != nil {
				t.Fatal(err)
			}
			e, err := s.Explain(t.Context(), analyst, c.id, []byte(c.query))
			if err != nil {
				t.Fatal(err)
			}
			for of, warnings := range map[string][]session.Warning{"answer": a.Warnings, "explanation": e.Warnings} {
				var codes []string
				says := ""
				for _, w := range warnings {
					if w.Code == session.NullValues || w.Code == session.ClampedValues {
						codes, says = append(codes, w.Code), says+w.Detail
					}
				}
				if !slices.Equal(codes, c.codes) || !strings.Contains(says, c.says) {
					t.Errorf("%s: the %s to %s warns of %v: %s", mechanism, of, c.query, codes, says)
				}
			}
			if again := ask(t, s, c.id, c.query); !again.Replayed || !bytes.Equal(again.Body, reply.Body) {
				t.Errorf("%s: asked again: %s", c.query, again.Body)
			}
		}
		if r := ask(t, s, dirty, `{"type":"mean","of":"x","range":[0,100],"where":"x != null"}`); !r.Replayed {
			t.Errorf("%s: the question without nulls was paid twice", mechanism)
		}
	}
}

// TestTextsWithoutAWeight: an answer about a model says what share of the training part's rows has a text that the model does not list. Trees list the texts of one side, and nothing is said.
func TestTextsWithoutAWeight(t *testing.T) {
	s := open(t, t.TempDir())
	card := create(t, s, holdout.Settings{Questions: 40, Mechanism: "gaussian"}, visits(t, 2000, 3))
	for model, want := range map[string]string{
		`{"linear":{"weights":{"clinic":{"clinic 0":1,"clinic 1":2,"clinic 2":3}}}}`:                            " of the training part's rows have a text of clinic that the model does not list; they count as 0",
		`{"trees":{"trees":[[["clinic",["clinic 0"]],1,0]]}}`:                                                   "",
		`{"linear":{"weights":{"clinic":{"clinic 0":1,"clinic 1":2,"clinic 2":3,"clinic 3":0,"clinic 4":-1}}}}`: "",
	} {
		e, err := s.Explain(t.Context(), analyst, card.ID, []byte(`{"type":"accuracy","label":"late","model":`+model+`}`))
		if err != nil {
			t.Fatal(err)
		}
		said := ""
		for _, w := range e.Warnings {
			if w.Code == session.UnknownTexts {
				said += w.Detail
			}
		}
		if (said != "") != (want != "") || !strings.Contains(said, want) {
			t.Errorf("%s: %q", model, said)
		}
		if slices.ContainsFunc(e.Values, func(v session.Watched) bool { return v.Of == "clinic" }) {
			t.Errorf("%s: explain counts texts that are not listed among the nulls: %+v", model, e.Values)
		}
	}
}

// TestSuggestedRange: where a range cuts much off, or is much wider than the training part's values, explain says round numbers that hold nearly all of them.
func TestSuggestedRange(t *testing.T) {
	s := open(t, t.TempDir())
	card := create(t, s, holdout.Settings{Questions: 40, Mechanism: "gaussian"}, scores(t, 0, 5000, 100))
	for _, c := range []struct {
		query string
		want  *[2]float64
	}{
		{`{"type":"mean","of":"x","range":[0,10]}`, &[2]float64{10, 500}}, // the hundred rows below 10 are null
		{`{"type":"mean","of":"x","range":[-1e6,1e6]}`, &[2]float64{10, 500}},
		{`{"type":"mean","of":"0.0 - x","range":[0,10]}`, &[2]float64{-500, -10}},
		{`{"type":"mean","of":"x","range":[0,500]}`, nil},
		{`{"type":"mean","of":"x","range":[0,1e3]}`, &[2]float64{10, 500}},
		{`{"type":"median","of":"x","range":[200,300]}`, nil}, // which lies within
		{`{"type":"quantile","p":0.9,"of":"x","range":[200,300]}`, &[2]float64{10, 500}},
	} {
		e, err := s.Explain(t.Context(), analyst, card.ID, []byte(c.query))
		if err != nil || len(e.Values) != 1 {
			t.Fatalf("%s: %+v, %v", c.query, e.Values, err)
		}
		if got := e.Values[0].Suggested; (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: %v, want %v", c.query, got, c.want)
		}
	}
}

// TestGroupsOfNumbers: groups by a column of numbers have the training part's values, by a boolean column true, false and null; each is the mean that where asks for. Values that are the holdout's alone are in
// other, so that the items tell nothing of it.
func TestGroupsOfNumbers(t *testing.T) {
	s := open(t, t.TempDir(), func(o *holdout.Options) { o.AllowNaive = true })
	create := func(name string, from int) string {
		training, rest := scores(t, from, 900, 0), scores(t, from+5000, 900, 0)
		values := rest.Column(2).Numbers
		for i := range 100 {
			values[i] = 77 // a value that the training part does not have
		}
		card, _, err := s.Create(t.Context(), admin, holdout.Settings{Name: name, Mechanism: "naive", Split: "given", Questions: 100}, givenUpload(parquet(t, training), parquet(t, rest)), "")
		if err != nil {
			t.Fatal(err)
		}
		return card.ID
	}
	id := create("groups", 0)
	for _, c := range []struct {
		query, names string
		where        []string
	}{
		{`{"type":"groups","of":"x","range":[0,100],"by":"group"}`, "1|2|3|other|null", []string{"group == 1", "group == 2", "group == 3", "group == 77"}},
		{`{"type":"groups","of":"x","range":[0,100],"by":"late"}`, "true|false|null", []string{"late", "!late"}},
		{`{"type":"groups","of":"x","range":[0,100],"by":"x > 20"}`, "true|false", []string{"x > 20", "x <= 20"}},
		{`{"type":"groups","of":"x","range":[0,100],"by":"x","edges":[10,20,30]}`, "below 10|[10, 20)|[20, 30]|above 30|null", []string{"x < 10", "x >= 10 && x < 20", "x >= 20 && x <= 30", "x > 30"}},
	} {
		var a struct{ Items []session.Item }
		if err := json.Unmarshal(ask(t, s, id, c.query).Body, &a); err != nil {
			t.Fatal(err)
		}
		var names []string
		for i, item := range a.Items {
			names = append(names, item.Of)
			if i >= len(c.where) {
				continue
			}
			want := read(t, ask(t, s, id, `{"type":"mean","of":"x","range":[0,100],"where":"`+c.where[i]+`"}`).Body)
			if item.Value == nil || math.Abs(*item.Value-*want.Value) > 1e-6 {
				t.Errorf("%s: %s is %v, want %v", c.query, item.Of, item.Value, *want.Value)
			}
		}
		if got := strings.Join(names, "|"); got != c.names {
			t.Errorf("%s has the items %s, want %s", c.query, got, c.names)
		}
	}
	if _, err := s.Ask(t.Context(), analyst, id, []byte(`{"type":"groups","of":"late","by":"id","values":[1,2]}`), ""); err != nil {
		t.Error(err)
	}
}
