package holdout

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/session"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// holding holds a question of a holdout, as a server does that dies before its answer comes.
func holding(t *testing.T, s *Service, id, query string) *opened {
	t.Helper()
	h, release, err := s.take(t.Context(), id)
	must(t, err)
	defer release()
	q, err := s.parse(t.Context(), []byte(query), func() string { return "" }, nil)
	must(t, err)
	must(t, s.ledger.Update(t.Context(), id, func(tx *ledger.Tx) error {
		state, holds, err := h.readBooks(tx.State())
		if err != nil || len(holds) != 0 {
			t.Fatalf("before: %v held, %v", holds, err)
		}
		holds[q.ID()] = hold{Query: q.ID(), Questions: 1, Tokens: 1, Most: 1}
		text, err := writeBooks(state, holds)
		if err != nil {
			return err
		}
		if _, err := h.guarantee.ReadState(text); err == nil {
			t.Error("a state with holds is read as one without")
		}
		tx.SetState(text)
		return nil
	}))
	s.accounts.of(id).forget() // as at a start
	return h
}

// TestHeldIsAsked: a table whose holdout has a question that was sent and not answered is not created again, with a new budget and without what is held.
func TestHeldIsAsked(t *testing.T) {
	s := open(t, t.TempDir())
	set, table := Settings{Mechanism: "gaussian", Questions: 4, Holdout: 0.5}, visits(t, 1000, 9)
	first := create(t, s, set, table)
	set.Questions = 5
	second := create(t, s, set, table)
	if second.Replaces != first.ID {
		t.Fatalf("of which nothing was asked: it replaces %q", second.Replaces)
	}
	holding(t, s, second.ID, mean(1))
	if kept := unanswered(recordOf(t, s, second.ID)); kept == nil || *kept != (session.Held{Asked: 1, Questions: 1, Tokens: 1}) {
		t.Errorf("kept: %+v", kept)
	}
	set.Questions = 6
	set.Name = "visits"
	_, _, err := s.Create(t.Context(), admin, set, SingleUpload(bytes.NewReader(parquet(t, table))), "")
	wantKind(t, "created again while a question is held", err, Exists)
	var e *Error
	if !errors.As(err, &e) || e.Members["reason"] != reasonAsked {
		t.Errorf("it says %v", err)
	}
	agent, _ := grant(t, s, NewGrant{Holdout: second.ID, Questions: 5})
	budget := session.Budget{Questions: Meter{Left: 5, Of: 5}, Held: &session.Held{Asked: 1, Questions: 1}}
	if b, err := s.budgetFor(t.Context(), agent, second.ID, right{ShowsFull}, budget); err != nil || b.Questions != (Meter{Left: 4, Of: 5}) || b.Held != nil {
		t.Errorf("to a key with a grant: %+v, %v", b, err)
	}
	ask(t, s, second.ID, mean(1))
	if kept := unanswered(recordOf(t, s, second.ID)); kept != nil {
		t.Errorf("answered: %+v is kept", kept)
	}
}

func recordOf(t *testing.T, s *Service, id string) ledger.Holdout {
	t.Helper()
	record, err := s.ledger.Holdout(t.Context(), id)
	must(t, err)
	return record
}

// TestHeldQuestions: what the ledger holds for a question that was sent is nobody else's, also of a grant and after a restart; who asks that question again
// gets its answer, once, and the hold ends. A program that knows no holds refuses such a state.
func TestHeldQuestions(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	id := create(t, s, Settings{Mechanism: "guess_and_check", Questions: 4, Tokens: 2, Holdout: 0.5}, visits(t, 1000, 8)).ID
	ask(t, s, id, mean(0))
	h := holding(t, s, id, mean(1))
	must(t, s.Close())
	s = open(t, dir)
	_, err := s.AskBatch(t.Context(), analyst, id, batchOf(mean(2), mean(3), mean(4)), false, "")
	wantKind(t, "three questions of three, while one is held", err, BudgetExhausted)
	if err != nil && !strings.Contains(err.Error(), "1 more are kept") {
		t.Errorf("the refusal says %v", err)
	}
	if b, err := s.AskBatch(t.Context(), analyst, id, batchOf(mean(2), mean(1)), false, ""); err != nil || len(b.Answers) != 2 || b.Answers[1].Replayed {
		t.Errorf("with the question that is held: %+v, %v", b, err)
	}
	record, err := s.ledger.Holdout(t.Context(), id)
	must(t, err)
	if state, holds, err := h.readBooks(record.State); err != nil || len(holds) != 0 || state.Questions != 3 || record.Spent[thresholdout.MeterQuestions] != 3 {
		t.Errorf("answered: %v held, state %+v, spent %v, %v", holds, state, record.Spent, err)
	}
	ask(t, s, id, mean(3))
	_, err = s.Ask(t.Context(), analyst, id, []byte(mean(5)), "")
	wantKind(t, "a fifth question of four", err, BudgetExhausted)
}

// TestHeldOfAGrant: what is held counts as spent by the key whose grant pays, as long as nobody asks the question.
func TestHeldOfAGrant(t *testing.T) {
	acc := newAccounts().of("ho_1")
	acc.debited["key"] = ledger.Meters{"questions": 3}
	acc.holds["q1"] = hold{Query: "q1", Questions: 2, Tokens: 1, Most: 4, Payer: "key"}
	acc.holds["q2"] = hold{Query: "q2", Questions: 5, Payer: ""}
	if got := acc.paid()["key"]; got["questions"] != 5 || got["tokens"] != 4 || acc.debited["key"]["questions"] != 3 {
		t.Errorf("%v, and the chain's sum is %v", got, acc.debited["key"])
	}
	if kept := acc.kept(); kept != (session.Held{Asked: 2, Questions: 7, Tokens: 1}) {
		t.Errorf("%+v is kept", kept)
	}
	acc.fly([]string{"q1"})
	if got, questions := acc.paid()["key"], int64(0); got["questions"] != 3 {
		t.Errorf("in flight: %v, %d", got, questions)
	}
	if kept := acc.kept(); kept != (session.Held{Asked: 1, Questions: 5}) {
		t.Errorf("in flight %+v is kept", kept)
	}
}

// TestVoidHeld: what is held is debited once, to the key whose grant pays or else to the admin, and nothing is held then; the question costs anew. Nobody but an admin can do it, and where nothing is held nothing is done. The
// chain and the books agree.
func TestVoidHeld(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	id := create(t, s, Settings{Mechanism: "guess_and_check", Questions: 4, Tokens: 2, Holdout: 0.5}, visits(t, 1000, 10)).ID
	ask(t, s, id, mean(0))
	before := recordOf(t, s, id)
	if b, err := s.VoidHeld(t.Context(), admin, id); err != nil || b.Questions.Left != 3 {
		t.Errorf("while nothing is held: %+v, %v", b, err)
	}
	h := holding(t, s, id, mean(1))
	_, err := s.VoidHeld(t.Context(), analyst, id)
	wantKind(t, "by an analyst", err, Forbidden)
	b, err := s.VoidHeld(t.Context(), admin, id)
	if err != nil || b.Questions.Left != 2 || b.Held != nil {
		t.Errorf("void: %+v, %v", b, err)
	}
	after := recordOf(t, s, id)
	state, holds, err := h.readBooks(after.State)
	if err != nil || len(holds) != 0 || state.Questions != 2 || after.Spent[thresholdout.MeterQuestions] != 2 || state.Tokens != before.Spent[thresholdout.MeterTokens]+1 || after.Spent[thresholdout.MeterTokens] != state.Tokens {
		t.Errorf("void: %v held, state %+v, spent %v, %v", holds, state, after.Spent, err)
	}
	if by, err := s.debits(t.Context(), id); err != nil || by[admin.KeyID][thresholdout.MeterQuestions] != 1 {
		t.Errorf("who paid: %v, %v", by, err)
	}
	if again, err := s.Ask(t.Context(), analyst, id, []byte(mean(1)), ""); err != nil && KindOf(err) != BudgetExhausted || err == nil && again.Replayed {
		t.Errorf("the question anew: %+v, %v", again, err)
	}
	must(t, s.Close())
	reports, err := Verify(t.Context(), dir, true)
	if err != nil || len(reports) != 1 || reports[0].Voids != 1 {
		t.Errorf("verified: %+v, %v", reports, err)
	}
}

// TestHeldIsForeseen: explanations, the plan of a report and the report itself count what is held for others as spent, and what is held for their own questions as theirs. Widths are those of the state in which the answer
// will be given.
func TestHeldIsForeseen(t *testing.T) {
	s := open(t, t.TempDir())
	id := create(t, s, Settings{Mechanism: "guess_and_check", Questions: 3, Tokens: 1, Holdout: 0.5}, visits(t, 1000, 11)).ID
	explain := func(query string) Explanation {
		t.Helper()
		e, err := s.Explain(t.Context(), analyst, id, []byte(query))
		must(t, err)
		return e
	}
	ask(t, s, id, mean(0))
	if recordOf(t, s, id).Spent[thresholdout.MeterTokens] != 0 {
		t.Fatal("the first answer took the only token: other rows are needed")
	}
	before := explain(mean(2))
	h := holding(t, s, id, mean(1))
	h.at = &source{}
	if held := s.heldNow(t.Context(), h); held == nil || *held != (session.Held{Asked: 1, Questions: 1, Tokens: 1}) {
		t.Errorf("the budget of a reply: %+v is held", held)
	}
	h.at = nil
	warned := func(e Explanation, code, words string) bool {
		return slices.ContainsFunc(e.Warnings, func(w Warning) bool { return w.Code == code && strings.Contains(w.Detail, words) })
	}
	if e := explain(mean(1)); warned(e, session.TokensExhausted, "") || e.HalfWidth == nil || e.Cost.Tokens != 1 {
		t.Errorf("the question that is held: %+v", e)
	}
	if e := explain(mean(2)); !warned(e, session.TokensExhausted, "needs 1 tokens and 0 are left; of the questions 1 are left. 1 more are kept") {
		t.Errorf("a question beside one that is held with the last token: %+v", e.Warnings)
	}
	plan, err := s.PlanReport(t.Context(), analyst, id, batchOf(mean(2)))
	if err != nil || plan.Closes != 1 {
		t.Errorf("a report of one number: %+v, %v", plan, err)
	}
	two := batchOf(mean(2), mean(3))
	_, err = s.PlanReport(t.Context(), analyst, id, two)
	if wantKind(t, "the plan of a report that would spend what is held", err, BudgetExhausted); !strings.Contains(err.Error(), "2 numbers and 1 questions are left") || !strings.Contains(err.Error(), "1 more are kept") {
		t.Errorf("it says %v", err)
	}
	_, err = s.CloseWithReport(t.Context(), admin, id, two, "", "")
	wantKind(t, "a report that would spend what is held", err, BudgetExhausted)
	if e := explain(mean(2)); before.HalfWidth == nil || e.HalfWidth != nil && *e.HalfWidth != *before.HalfWidth {
		t.Errorf("the width: %v, before it %v", e.HalfWidth, before.HalfWidth)
	}
}
