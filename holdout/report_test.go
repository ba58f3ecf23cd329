package holdout

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/session"
)

// reported are queries of every type, as a report asks them, and those questions that come before it.
func reported(t *testing.T) (batch []json.RawMessage, before [][]string) {
	t.Helper()
	for _, one := range everyType(t) {
		batch = append(batch, json.RawMessage(one[0]))
	}
	return batch, few(`{"type":"mean","of":"delay","range":[-60,181],"guess":120}`)
}

// TestReport: a report of every query type is one commit of answers and closing. Its answers are the holdout's, none takes a token, and none is wider than the same question asked by itself
// and at the same time. The holdout is closed, before and after a restart: what was answered is replayed, the same report is the recorded one, and nothing else is answered.
func TestReport(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	id := create(t, s, Settings{Name: "flights", Mechanism: "guess_and_check", Questions: 400, Tokens: 40}, flights(t, 900, 3)).ID
	batch, before := reported(t)
	for _, questions := range before {
		for _, q := range questions {
			if _, err := s.Ask(t.Context(), analyst, id, []byte(q), ""); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := s.Report(t.Context(), analyst, id); KindOf(err) != NotFound {
		t.Errorf("a report before there is one: %v", err)
	}
	asked, spent := spentOf(t, s, id)
	plan, err := s.PlanReport(t.Context(), analyst, id, batch)
	if err != nil {
		t.Fatal(err)
	}
	if again, tokens := spentOf(t, s, id); again != asked || tokens != spent {
		t.Errorf("planning a report has spent %d questions and %d tokens", again-asked, tokens-spent)
	}
	for _, a := range plan.Answers {
		if a.Warnings == nil {
			t.Errorf("the warnings of %s are null in JSON, and no list", a.Query)
		}
	}
	if plan.Closes != 400-asked || plan.Before != (Spent{asked, spent}) || len(plan.Answers) != len(batch) {
		t.Errorf("the plan says %+v", plan)
	}
	if _, err := s.CloseWithReport(t.Context(), analyst, id, batch, "", ""); KindOf(err) != Forbidden {
		t.Errorf("an analyst closes the holdout: %v", err)
	}
	report, err := s.CloseWithReport(t.Context(), admin, id, batch, "the end", "once")
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Answers) != len(batch) || report.Before != plan.Before || report.Title != "the end" || report.Units != 300 && report.Units < 1 {
		t.Fatalf("%d answers: %+v", len(report.Answers), report)
	}
	if len(report.AskedBy) != 1 || report.AskedBy[0].ID != analyst.KeyID || report.AskedBy[0].Answers != int64(len(slices.Concat(before...))) {
		t.Errorf("asked by %+v", report.AskedBy)
	}
	for i, a := range report.Answers {
		var said session.Answer
		if err := json.Unmarshal(a.Body, &said); err != nil {
			t.Fatal(err)
		}
		if said.Query != plan.Answers[i].Query || said.Cost.Tokens != 0 || said.Cost.Questions != plan.Answers[i].Questions || said.Source != "holdout" {
			t.Errorf("%s: %+v, planned %+v", batch[i], said, plan.Answers[i])
		}
		if !bytes.Contains(a.Canonical, []byte(`"report":true`)) {
			t.Errorf("%s is recorded as %s", batch[i], a.Canonical)
		}
	}
	if q, tokens := spentOf(t, s, id); q != 400 || tokens != 40 {
		t.Errorf("%d questions and %d tokens are spent after the report", q, tokens)
	}
	for range 2 {
		card, err := s.Card(t.Context(), analyst, id)
		if err != nil || !card.Closed || !card.Budget.Closed || card.Budget.Questions.Left != 0 || card.State != "" {
			t.Fatalf("the card of a closed holdout: %v, %+v, %v", card.Closed, card.Budget, err)
		}
		if err := s.Ready(t.Context()); err != nil {
			t.Errorf("a closed holdout makes the server unready: %v", err)
		}
		for _, q := range slices.Concat(before...) {
			if a, err := s.Ask(t.Context(), analyst, id, []byte(q), ""); err != nil || !a.Replayed {
				t.Errorf("%s is not replayed: %v", q, err)
			}
		}
		var closed *Error
		if _, err := s.Ask(t.Context(), analyst, id, []byte(nextQuery), ""); !errors.As(err, &closed) || closed.Kind != BudgetExhausted || !strings.Contains(closed.Detail, "final report") {
			t.Errorf("a question after the report: %v", err)
		}
		if e, err := s.Explain(t.Context(), analyst, id, []byte(nextQuery)); err != nil || !slices.ContainsFunc(e.Warnings, func(w Warning) bool { return w.Code == HoldoutClosed }) {
			t.Errorf("an explanation after the report: %v %+v", err, e.Warnings)
		}
		if a, err := s.Ask(t.Context(), analyst, id, report.Answers[0].Canonical, ""); err != nil || !bytes.Equal(a.Body, report.Answers[0].Body) {
			t.Errorf("an answer of the report is not replayed: %v", err)
		}
		for _, key := range []string{"", "once"} {
			again, err := s.CloseWithReport(t.Context(), admin, id, batch, "the end", key)
			if err != nil || !equalJSON(t, again, report) {
				t.Errorf("the same report under %q is another: %v", key, err)
			}
		}
		if _, err := s.CloseWithReport(t.Context(), admin, id, batch[:1], "", ""); err != nil {
			t.Errorf("a part of the same report: %v", err)
		}
		other := []json.RawMessage{json.RawMessage(`{"type":"fraction","of":"delay > 3"}`)}
		if _, err := s.CloseWithReport(t.Context(), admin, id, other, "", ""); !errors.As(err, &closed) || closed.Kind != BudgetExhausted {
			t.Errorf("another report: %v", err)
		}
		if _, err := s.PlanReport(t.Context(), admin, id, other); !errors.As(err, &closed) || closed.Kind != BudgetExhausted {
			t.Errorf("a plan after the report: %v", err)
		}
		if _, err := s.Report(t.Context(), analyst, id); err != nil {
			t.Errorf("an analyst reads the report: %v", err)
		}
		if read, err := s.Report(t.Context(), admin, id); err != nil || !equalJSON(t, read, report) {
			t.Errorf("the report is read otherwise: %v", err)
		}
		page, err := s.Answers(t.Context(), admin, id, 0, 100)
		if err != nil || len(page.Answers) != len(batch)+len(slices.Concat(before...)) {
			t.Errorf("the history has %d answers: %v", len(page.Answers), err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = open(t, dir)
	}
	var export bytes.Buffer
	if err := s.Export(t.Context(), admin, id, &export); err != nil {
		t.Fatal(err)
	}
	verified, err := ledger.VerifyExport(&export)
	if err != nil || !verified.Closed {
		t.Errorf("the export: %+v %v", verified, err)
	}
}

func equalJSON(t *testing.T, a, b any) bool {
	t.Helper()
	one, err := json.Marshal(a)
	must(t, err)
	other, err := json.Marshal(b)
	must(t, err)
	return bytes.Equal(one, other)
}

// TestReportOfOtherHoldouts: a report of every query type is answered, as it was planned, where units have several rows, where they are known to differ, where features are public and where there is a
// check part. A value lies in its interval.
func TestReportOfOtherHoldouts(t *testing.T) {
	for name, set := range map[string]Settings{
		"units":    {Unit: "plane", Label: "delay"},
		"strata":   {Stratify: "origin"},
		"public":   {Label: "delay", Features: "public"},
		"no check": {Label: "delay", Check: new(0.0)},
	} {
		t.Run(name, func(t *testing.T) {
			set.Mechanism, set.Questions, set.Tokens = "guess_and_check", 2000, 40
			s := open(t, t.TempDir())
			id := create(t, s, set, flights(t, 900, 3)).ID
			var batch []json.RawMessage
			for _, one := range everyType(t) {
				query := json.RawMessage(one[0])
				if _, err := s.PlanReport(t.Context(), analyst, id, []json.RawMessage{query}); err == nil {
					batch = append(batch, query)
				} else if KindOf(err) != Invalid || !bytes.Contains(query, []byte("kendall")) {
					t.Errorf("%s: %v", query, err)
				}
			}
			batch = append(batch, batch[0]) // the same question again is the same number
			plan, err := s.PlanReport(t.Context(), analyst, id, batch)
			must(t, err)
			report, err := s.CloseWithReport(t.Context(), admin, id, batch, "", "")
			must(t, err)
			if len(report.Answers) != len(batch)-1 {
				t.Fatalf("%d answers of %d queries", len(report.Answers), len(batch))
			}
			for i, a := range report.Answers {
				var said session.Answer
				must(t, json.Unmarshal(a.Body, &said))
				if said.Query != plan.Answers[i].Query || said.Interval == nil || said.Cost.Tokens != 0 {
					t.Errorf("%s: %s", batch[i], a.Body)
					continue
				}
				if v, in := said.Value, said.Interval; v != nil && in.Low != nil && (*v < *in.Low || *v > *in.High) {
					t.Errorf("%s: %v is not in [%v, %v]", batch[i], *v, *in.Low, *in.High)
				}
				if plan.Answers[i].Bound != "" && !strings.Contains(said.Interval.Bound, plan.Answers[i].Bound) {
					t.Errorf("%s: by %s, planned by %s", batch[i], said.Interval.Bound, plan.Answers[i].Bound)
				}
			}
		})
	}
}

// TestReportNeedsNoToken: a report of a holdout whose tokens are spent is answered.
func TestReportNeedsNoToken(t *testing.T) {
	s := open(t, t.TempDir())
	id := create(t, s, Settings{Mechanism: "guess_and_check", Questions: 20, Tokens: 1}, flights(t, 900, 3)).ID
	wrong := `{"type":"mean","of":"delay","range":[-60,180],"guess":179}`
	if _, err := s.Ask(t.Context(), analyst, id, []byte(wrong), ""); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Ask(t.Context(), analyst, id, []byte(nextQuery), ""); KindOf(err) != BudgetExhausted {
		t.Fatalf("a question without a token: %v", err)
	}
	report, err := s.CloseWithReport(t.Context(), admin, id, []json.RawMessage{json.RawMessage(nextQuery)}, "", "")
	if err != nil || report.Before.Tokens != 1 {
		t.Errorf("%+v %v", report.Before, err)
	}
}

// TestReportThatFails: a report whose rows cannot be read is debited without an answer, and closes nothing: another one can be made of what is left.
func TestReportThatFails(t *testing.T) {
	s := open(t, t.TempDir())
	id := create(t, s, Settings{Mechanism: "guess_and_check", Questions: 20, Tokens: 5}, flights(t, 900, 3)).ID
	rows := count(t, s, id)
	broken := errors.New("planted")
	rows.before = func() error { return broken }
	batch := []json.RawMessage{json.RawMessage(nextQuery), json.RawMessage(median)}
	if _, err := s.CloseWithReport(t.Context(), admin, id, batch, "", ""); KindOf(err) != Internal {
		t.Fatalf("a report whose rows cannot be read: %v", err)
	}
	if questions, tokens := spentOf(t, s, id); questions != 2 || tokens != 0 {
		t.Errorf("it has spent %d questions and %d tokens", questions, tokens)
	}
	rows.before = nil
	report, err := s.CloseWithReport(t.Context(), admin, id, batch, "", "")
	if err != nil || len(report.Answers) != 2 || report.Before.Questions != 2 {
		t.Errorf("%+v %v", report, err)
	}
}

// TestReportRefused: what is no report is refused before a row is read, and costs nothing.
func TestReportRefused(t *testing.T) {
	s := open(t, t.TempDir())
	guessing := create(t, s, Settings{Mechanism: "guess_and_check", Questions: 3, Tokens: 2}, flights(t, 900, 3)).ID
	noisy := create(t, s, Settings{Mechanism: "gaussian", Questions: 30}, flights(t, 900, 4)).ID
	rows := count(t, s, guessing)
	many := make([]json.RawMessage, MaxReport+1)
	for i := range many {
		many[i] = json.RawMessage(nextQuery)
	}
	of := func(bodies ...string) (batch []json.RawMessage) {
		for _, b := range bodies {
			batch = append(batch, json.RawMessage(b))
		}
		return batch
	}
	for _, c := range []struct {
		id      string
		batch   []json.RawMessage
		title   string
		kind    Kind
		pointer string
	}{
		{guessing, nil, "", Invalid, "/queries"},
		{guessing, many, "", TooLarge, "/queries"},
		{guessing, of(nextQuery), strings.Repeat("x", MaxTitle+1), Invalid, "/title"},
		{guessing, of(nextQuery, guessed(0.5)), "", Invalid, "/queries/1/guess"},
		{guessing, of(nextQuery, `{"type":"mean","of":"nothing","range":[0,1]}`), "", Invalid, "/queries/1/of"},
		{guessing, of(few()[2]...), "", BudgetExhausted, ""},
		{noisy, of(nextQuery), "", Invalid, ""},
	} {
		if c.kind == BudgetExhausted {
			c.batch = append(c.batch, of(median, nextQuery)...)
		}
		_, err := s.CloseWithReport(t.Context(), admin, c.id, c.batch, c.title, "")
		var refused *Error
		if !errors.As(err, &refused) || refused.Kind != c.kind {
			t.Errorf("%s: %v", c.batch, err)
			continue
		}
		if c.kind == Invalid && c.pointer != "" && refused.Pointer != c.pointer && !strings.Contains(pointers(err), c.pointer) {
			t.Errorf("%s is wrong at %q (%s), not %q", c.batch, refused.Pointer, pointers(err), c.pointer)
		}
		if _, err := s.PlanReport(t.Context(), admin, c.id, c.batch); c.title == "" && KindOf(err) != c.kind {
			t.Errorf("the plan of %s: %v", c.batch, err)
		}
	}
	marked := `{"type":"mean","of":"distance","range":[0,3000],"report":true}`
	if _, err := s.Ask(t.Context(), analyst, guessing, []byte(marked), ""); KindOf(err) != Invalid {
		t.Errorf("a report's question by itself: %v", err)
	}
	if _, err := s.Explain(t.Context(), analyst, guessing, []byte(marked)); KindOf(err) != Invalid {
		t.Errorf("a report's question, explained by itself: %v", err)
	}
	if questions, tokens := spentOf(t, s, guessing); questions != 0 || tokens != 0 || rows.functions.Load() != 0 {
		t.Errorf("refusals have spent %d questions and %d tokens, and read %d functions", questions, tokens, rows.functions.Load())
	}
}

// pointers are where the query language says that something is wrong.
func pointers(err error) string {
	var e *queries.Error
	var all []string
	if errors.As(err, &e) {
		for _, v := range e.Violations {
			all = append(all, v.Pointer)
		}
	}
	return strings.Join(all, " ")
}
