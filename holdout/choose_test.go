package holdout

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/session"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// TestChosenForms: a half-width that only a measured answer has is measured, at the price that explain says, which is what the budget loses, and is replayed for nothing. It stays within max_questions and within what the budget has: where a
// measured answer costs more the question is refused, or not asked, and nothing is spent. A batch pays for each form that was chosen.
func TestChosenForms(t *testing.T) {
	s := open(t, t.TempDir())
	id := create(t, s, Settings{Name: "flights", Mechanism: "guess_and_check", Questions: 300, Tokens: 5}, flights(t, 6000, 3)).ID
	of := func(minutes int, wish float64, more string) string {
		return fmt.Sprintf(`{"type":"fraction","of":"delay > %d","half_width":%v%s}`, minutes, wish, more)
	}
	var refused *Error
	_, err := s.Ask(t.Context(), analyst, id, []byte(of(15, 1e-4, "")), "")
	if !errors.As(err, &refused) || refused.Pointer != "/half_width" {
		t.Fatalf("a half-width that nothing has: %v", err)
	}
	wish := 0.95 * refused.Members["least"].(float64)
	if _, err = s.Ask(t.Context(), analyst, id, []byte(of(15, wish, `,"measure":false`)), ""); !errors.As(err, &refused) || !strings.Contains(refused.Detail, `"measure": true`) {
		t.Errorf("to be checked: %v", err)
	}
	if _, err = s.Ask(t.Context(), analyst, id, []byte(of(15, wish, "")), "", MaxQuestions(7)); !errors.As(err, &refused) || refused.Pointer != "/half_width" {
		t.Errorf("for at most 7 questions: %v", err)
	}
	spent := func(questions, tokens int64) {
		t.Helper()
		if q, n := spentOf(t, s, id); q != questions || n != tokens {
			t.Errorf("%d questions and %d tokens are spent, want %d and %d", q, n, questions, tokens)
		}
	}
	spent(0, 0)
	e, err := s.Explain(t.Context(), analyst, id, []byte(of(15, wish, "")))
	must(t, err)
	if e.Cost != (Cost{Questions: 8, Tokens: 1}) || len(e.Outcomes) != 1 || e.Outcomes[0].Outcome != thresholdout.Measured || e.Measured != nil || slices.ContainsFunc(e.Warnings, func(w Warning) bool { return w.Code == session.HalfWidthTooNarrow }) || *e.HalfWidth > 1.02*wish {
		t.Errorf("explained: %+v", e)
	}
	a, err := s.Ask(t.Context(), analyst, id, []byte(of(15, wish, "")), "", MaxQuestions(8))
	must(t, err)
	if said := answerOf(t, a); said.Outcome != thresholdout.Measured || said.Cost != e.Cost || said.ValueFrom != session.ValueFromHoldout {
		t.Errorf("answered: %+v", said)
	}
	spent(8, 1)
	if again, err := s.Ask(t.Context(), analyst, id, []byte(of(15, wish, "")), ""); err != nil || !again.Replayed || string(again.Body) != string(a.Body) {
		t.Errorf("again: %+v %v", again, err)
	}
	e, err = s.Explain(t.Context(), analyst, id, []byte(`{"type":"fraction","of":"delay > 15"}`))
	must(t, err)
	b, err := s.AskBatch(t.Context(), analyst, id, batchOf(of(20, 1.3*wish, ""), `{"type":"fraction","of":"delay > 5"}`, of(25, 1.3*wish, "")), false, "")
	must(t, err)
	cost := Cost{}
	for i, want := range []bool{true, false, true} {
		said := answerOf(t, Answer{Body: b.Answers[i].Body})
		if (said.Outcome == thresholdout.Measured) != want {
			t.Errorf("%d of the batch: %+v", i, said)
		}
		cost.Questions, cost.Tokens = cost.Questions+said.Cost.Questions, cost.Tokens+said.Cost.Tokens
	}
	spent(8+cost.Questions, 1+cost.Tokens)
	if cost.Questions != 17 {
		t.Errorf("the batch cost %+v", cost)
	}
	b, err = s.AskBatch(t.Context(), analyst, id, batchOf(of(14, 1.4*wish, ""), of(16, 1.4*wish, "")), true, "", MaxQuestions(9))
	must(t, err)
	first, second := answerOf(t, Answer{Body: b.Answers[0].Body}), Cost{}
	if b.Answers[1].Body != nil {
		second = answerOf(t, Answer{Body: b.Answers[1].Body}).Cost
	}
	if first.Cost.Questions != 8 || second.Questions > 1 {
		t.Errorf("for at most 9 questions: %+v and %+v", first.Cost, second)
	}
	// Eight questions are left, which pay for one measured answer: it would take the question of the check behind it.
	id = create(t, s, Settings{Name: "small", Mechanism: "guess_and_check", Questions: 300, Tokens: 5}, flights(t, 6000, 4)).ID
	for i := range 73 {
		batch := make([]string, 4)
		for j := range batch {
			batch[j] = fmt.Sprintf(`{"type":"fraction","of":"delay > %d.%d"}`, 10+i, j)
		}
		_, err := s.AskBatch(t.Context(), analyst, id, batchOf(batch...), false, "")
		must(t, err)
	}
	left := Cost{}
	left.Questions, left.Tokens = spentOf(t, s, id)
	b, err = s.AskBatch(t.Context(), analyst, id, batchOf(of(15, wish, ""), `{"type":"fraction","of":"delay > 5"}`), false, "")
	must(t, err)
	if b.Answers[0].NotAsked != HalfWidthTooNarrow || b.Answers[1].NotAsked != "" {
		t.Errorf("eight questions are left: %q, %q", b.Answers[0].NotAsked, b.Answers[1].NotAsked)
	}
	spent(left.Questions+1, left.Tokens)
}

// TestScoresAreMeasured: without a check part what would be guessed by a training score is measured while less than half of the tokens are spent, as explain says; then it is checked, and said to be a training score.
func TestScoresAreMeasured(t *testing.T) {
	s := open(t, t.TempDir())
	id := create(t, s, Settings{Label: "late", Check: new(0.0), Mechanism: "guess_and_check", Questions: 80, Tokens: 4}, visits(t, 4000, 22)).ID
	for i := range 4 {
		query := modelOf(0.25 + float64(i)/100)
		e, err := s.Explain(t.Context(), analyst, id, []byte(query))
		must(t, err)
		said := answerOf(t, ask(t, s, id, query))
		if measured := said.Outcome == thresholdout.Measured; measured != (i < 2) || scoresTraining(e.Warnings) != (i >= 2) || measured && said.Cost != e.Cost {
			t.Errorf("question %d: %+v; explained %+v", i, said, e)
		}
	}
}
