package holdout

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/session"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// TestMeasured: explain says of a check what measuring it would cost and tell; the answer costs that, is the holdout's own within half a cell, is replayed, before and after a restart, and is another question than the check. Checks and the
// report go on from it. A mechanism that checks no guesses refuses it, and a type that is not measured, at no cost.
func TestMeasured(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	id := create(t, s, Settings{Name: "flights", Mechanism: "guess_and_check", Questions: 300, Tokens: 3}, flights(t, 6000, 3)).ID
	const check = `{"type":"fraction","of":"delay > 15"}`
	const measured = `{"type":"fraction","of":"delay > 15","measure":true}`
	e, err := s.Explain(t.Context(), analyst, id, []byte(check))
	must(t, err)
	if e.Measured == nil || e.Measured.Cost != (Cost{Questions: 8, Tokens: 1}) || e.Measured.Outcome != thresholdout.Measured || !(*e.Measured.HalfWidth < *e.HalfWidth*0.7) {
		t.Fatalf("measured instead: %+v, a check has %v", e.Measured, *e.HalfWidth)
	}
	own, err := s.Explain(t.Context(), analyst, id, []byte(measured))
	must(t, err)
	if own.Measured != nil || own.Cost != e.Measured.Cost || len(own.Outcomes) != 1 || *own.HalfWidth != *e.Measured.HalfWidth || own.Query == e.Query {
		t.Errorf("explained: %+v, said of the check: %+v", own, e.Measured)
	}
	a, err := s.Ask(t.Context(), analyst, id, []byte(measured), "")
	must(t, err)
	said := answerOf(t, a)
	right := 0.0
	values := stored(t, s, id, "delay")
	for _, x := range values {
		if x > 15 {
			right++
		}
	}
	if math.Abs(*said.Value-right/float64(len(values))) > *e.Measured.HalfWidth || said.Outcome != thresholdout.Measured || said.ValueFrom != session.ValueFromHoldout || said.Cost != e.Measured.Cost {
		t.Errorf("the answer is %+v, the holdout has %v", said, right/float64(len(values)))
	}
	if questions, tokens := spentOf(t, s, id); questions != 8 || tokens != 1 {
		t.Errorf("it spent %d questions and %d tokens", questions, tokens)
	}
	for range 2 {
		again, err := s.Ask(t.Context(), analyst, id, []byte(measured), "")
		if must(t, err); string(again.Body) != string(a.Body) || !again.Replayed {
			t.Errorf("asked again: %s", again.Body)
		}
		must(t, s.Close())
		s = open(t, dir)
	}
	if checked := answerOf(t, ask(t, s, id, check)); checked.Outcome == thresholdout.Measured || checked.Cost.Questions != 1 {
		t.Errorf("the check afterwards: %+v", checked)
	}
	var refused *Error
	if _, err := s.Ask(t.Context(), analyst, id, []byte(`{"type":"median","of":"delay","range":[-60,180],"measure":true}`), ""); !errors.As(err, &refused) || refused.Pointer != "/measure" {
		t.Errorf("a median is measured: %v", err)
	}
	if questions, tokens := spentOf(t, s, id); questions != 9 || tokens > 2 {
		t.Errorf("%d questions and %d tokens are spent", questions, tokens)
	}
	if _, err := s.CloseWithReport(t.Context(), admin, id, []json.RawMessage{json.RawMessage(measured)}, "", ""); !errors.As(err, &refused) || !strings.Contains(refused.Detail+refused.Error(), "measure") {
		t.Errorf("a report that measures: %v", err)
	}
	if _, err := s.CloseWithReport(t.Context(), admin, id, []json.RawMessage{json.RawMessage(check)}, "", ""); err != nil {
		t.Error(err)
	}
	noisy := create(t, s, Settings{Name: "noisy", Mechanism: "gaussian"}, flights(t, 700, 4)).ID
	if _, err := s.Ask(t.Context(), analyst, noisy, []byte(measured), ""); !errors.As(err, &refused) || refused.Pointer != "/measure" {
		t.Errorf("gaussian measures: %v", err)
	}
}

// TestMeasuredOffers: what explain offers to measure can be asked so. A condition that next to no training row satisfies is not offered; it is measured for the questions and the tokens that explain says, and says nothing. Nor is a test.
func TestMeasuredOffers(t *testing.T) {
	s := open(t, t.TempDir())
	id := create(t, s, Settings{Name: "flights", Mechanism: "guess_and_check", Questions: 300, Tokens: 3}, flights(t, 6000, 3)).ID
	for _, c := range []struct {
		query   string
		offered bool
	}{
		{`{"type":"fraction","of":"delay > 15","where":"delay > 178"`, false},
		{`{"type":"test","test":"mean","of":"delay","range":[-60,180],"equals":3`, false},
		{`{"type":"fraction","of":"delay > 15","where":"delay > 0"`, true},
		{`{"type":"mean","of":"delay","range":[-60,180],"guess":10,"null":"skip"`, true},
	} {
		query, offered := c.query, c.offered
		plain, err := s.Explain(t.Context(), analyst, id, []byte(query+"}"))
		must(t, err)
		if (plain.Measured != nil) != offered {
			t.Errorf("%s: offered is %+v", query, plain.Measured)
		}
		e, err := s.Explain(t.Context(), analyst, id, []byte(query+`,"measure":true}`))
		if err != nil {
			if offered {
				t.Errorf("%s: offered, and refused: %v", query, err)
			}
			continue
		}
		a := answerOf(t, ask(t, s, id, query+`,"measure":true}`))
		if a.Cost != e.Cost || a.Cost != e.Outcomes[0].Cost || (a.Cost.Tokens > 0) != offered {
			t.Errorf("%s: it cost %+v, explained were %+v and %+v", query, a.Cost, e.Cost, e.Outcomes[0].Cost)
		}
		if !offered && (a.Outcome != thresholdout.Unknown || a.Value != nil) {
			t.Errorf("%s: %+v", query, a)
		}
	}
}

// answerOf is an answer with all its members.
func answerOf(t *testing.T, a Answer) (said session.Answer) {
	t.Helper()
	must(t, json.Unmarshal(a.Body, &said))
	return said
}
