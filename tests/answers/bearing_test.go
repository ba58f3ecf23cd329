package answers

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/holdoutd/holdoutd/holdout"
)

// bearer is a holdout of gaussian with tokens for broken promises, half of 4,000 visits.
func bearer(t *testing.T, s *holdout.Service, tokens int64) string {
	t.Helper()
	return create(t, s, holdout.Settings{Mechanism: "gaussian", Holdout: 0.5, Questions: 50, Tokens: tokens}, visits(t, 4000, 12)).ID
}

// TestPromisesInABatch: the promises of a batch are checked in the order in which it has them, each with what the ones before it have broken. Each broken one is debited with its answer; the plain
// answers that follow have the half-width after it, and when the tokens are spent what is behind is still answered, unchecked. A start anew finds the same. It would notice a check that is made out of order, a
// state that is not carried from answer to answer, and a batch that ends where its tokens do.
func TestPromisesInABatch(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	id := bearer(t, s, 2)
	queries := []string{
		`{"type":"fraction","of":"x > 0.5"}`,
		`{"type":"fraction","of":"x > 0.4","promise":{"at_most":0.1}}`, // broken
		`{"type":"fraction","of":"x > 0.51"}`,
		`{"type":"mean","of":"x","range":[0,1],"promise":{"variance":0.2}}`, // held
		`{"type":"fraction","of":"x > 0.3","promise":{"at_most":0.2}}`,      // broken
		`{"type":"fraction","of":"x > 0.49"}`,
		`{"type":"fraction","of":"x > 0.2","promise":{"at_most":0.2}}`, // no token is left
	}
	reply, err := s.AskBatch(t.Context(), analyst, id, batchOf(queries...), false, "")
	if err != nil {
		t.Fatal(err)
	}
	card, err := s.Card(t.Context(), analyst, id)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(card.Guarantee)
	if err != nil {
		t.Fatal(err)
	}
	var widths struct {
		HalfWidth float64   `json:"half_width"`
		Widths    []float64 `json:"widths"`
	}
	if err := json.Unmarshal(text, &widths); err != nil {
		t.Fatal(err)
	}
	want := append([]float64{widths.HalfWidth}, widths.Widths...)
	broken, tokens := []int{0, 1, 1, 1, 2, 2, 2}, []int64{0, 1, 0, 0, 1, 0, 0}
	for i, item := range reply.Answers {
		a := read(t, item.Body)
		if a.Cost.Questions != 1 || a.Cost.Tokens != tokens[i] {
			t.Errorf("%s costs %+v", queries[i], a.Cost)
		}
		if half := (a.Interval.High - a.Interval.Low) / 2; i != 3 && *a.Value > 0.4 && *a.Value < 0.6 && math.Abs(half-want[broken[i]]) > 1e-6 {
			t.Errorf("%s: ±%v after %d broken promises, not ±%v", queries[i], half, broken[i], want[broken[i]])
		}
		var said struct {
			Promise *struct {
				Held *bool `json:"held"`
			} `json:"promise"`
		}
		if err := json.Unmarshal(item.Body, &said); err != nil {
			t.Fatal(err)
		}
		got := "none"
		if said.Promise != nil {
			got = "unchecked"
			if said.Promise.Held != nil {
				got = fmt.Sprint(*said.Promise.Held)
			}
		}
		if got != []string{"none", "false", "none", "true", "false", "none", "unchecked"}[i] {
			t.Errorf("%s: %s: %s", queries[i], got, item.Body)
		}
	}
	if b, err := s.Budget(t.Context(), analyst, id); err != nil || b.Questions.Left != 43 || b.Tokens.Left != 0 {
		t.Errorf("%+v, %v", b, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	again, err := s.AskBatch(t.Context(), analyst, id, batchOf(queries...), false, "")
	if err != nil {
		t.Fatal(err)
	}
	for i := range again.Answers {
		if !again.Answers[i].Replayed || !slices.Equal(again.Answers[i].Body, reply.Answers[i].Body) {
			t.Errorf("%s after a start anew:\n%s\n%s", queries[i], reply.Answers[i].Body, again.Answers[i].Body)
		}
	}
	if _, err := s.Ask(t.Context(), analyst, id, []byte(`{"type":"fraction","of":"x > 0.1","promise":{"at_least":0.8}}`), ""); holdout.KindOf(err) != holdout.BudgetExhausted {
		t.Errorf("a promise without tokens: %v", err)
	}
	if a := read(t, ask(t, s, id, `{"type":"fraction","of":"x > 0.1"}`).Body); a.Cost.Tokens != 0 {
		t.Errorf("a question without tokens: %+v", a.Cost)
	}
}

// TestExplainPromises: explain says what a promise is worth, and whether it would be checked; the training part's own is only suggested where it may have been fitted. It costs nothing, and says the same of a promise that
// the holdout keeps and of one that it breaks.
func TestExplainPromises(t *testing.T) {
	s := open(t, t.TempDir())
	id := bearer(t, s, 2)
	explain := func(query string) holdout.Explanation {
		t.Helper()
		e, err := s.Explain(t.Context(), analyst, id, []byte(query))
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	e := explain(`{"type":"fraction","of":"x > 0.97"}`)
	if p := e.Promise; p == nil || p.From != "training" || !p.Used || p.AtMost == nil || *p.With >= 0.8**p.Without || *e.HalfWidth != *p.With || e.Cost != (holdout.Cost{Questions: 1, Tokens: 1}) {
		t.Errorf("%+v %+v", e.Promise, e)
	}
	e = explain(`{"type":"accuracy","label":"x > 0.97","prediction":"x > 0.96"}`)
	if p := e.Promise; p == nil || p.From != "training" || p.Used || p.AtLeast == nil || *e.HalfWidth != *p.Without || e.Cost != (holdout.Cost{Questions: 1}) {
		t.Errorf("%+v %+v", e.Promise, e)
	}
	of := func(bound string) holdout.Explanation {
		e := explain(`{"type":"fraction","of":"x > 0.97","promise":{"at_most":` + bound + `}}`)
		if e.Promise == nil || !e.Promise.Used || e.Promise.From != "question" {
			t.Errorf("at most %s: %+v", bound, e.Promise)
		}
		return e
	}
	// Of about .03: one is kept, one is not. All that differs is what was promised, and the width that follows from it.
	kept, broken := of("0.05"), of("0.02")
	if *kept.Promise.With <= *broken.Promise.With || *kept.Promise.Without != *broken.Promise.Without || kept.Cost != broken.Cost || len(kept.Warnings) != len(broken.Warnings) {
		t.Errorf("%+v\n%+v", kept.Promise, broken.Promise)
	}
	if b, err := s.Budget(t.Context(), analyst, id); err != nil || b.Questions.Left != 50 || b.Tokens.Left != 2 {
		t.Errorf("explaining cost something: %+v, %v", b, err)
	}
}
