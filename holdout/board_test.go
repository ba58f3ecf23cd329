package holdout

import (
	"encoding/json"
	"math"
	"strconv"
	"sync"
	"testing"
)

// submission is the zero_one loss of guessing that x below a threshold is late; the truth is 0.2.
func submission(threshold float64) string {
	return `{"type":"loss","loss":"zero_one","label":"late","prediction":"x < ` + strconv.FormatFloat(threshold, 'g', -1, 64) + `"}`
}

// standing reads what a submission was told.
func standing(t *testing.T, body json.RawMessage) (loss float64, best bool) {
	t.Helper()
	var a struct {
		Value    float64
		Best     *bool
		Interval *struct{ Low, High float64 }
		Cost     Cost
	}
	if err := json.Unmarshal(body, &a); err != nil || a.Best == nil || a.Interval == nil || a.Cost != (Cost{Questions: 1}) ||
		!(a.Interval.Low <= a.Value && a.Value <= a.Interval.High) {
		t.Fatalf("%v: %s", err, body)
	}
	return a.Value, *a.Best
}

// TestLadderBoard goes the whole way of a leaderboard: it moves for a gain of a whole step only, remembers across a restart which submission
// it shows, replays, and takes nothing but submissions, in their order.
func TestLadderBoard(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	card := create(t, s, Settings{Mechanism: "ladder", Threshold: 0.01}, visits(t, 20_000, 1)) // 6,000 held out
	id := card.ID
	if g := guaranteed(t, card)["threshold"]; g != 0.01 || !(card.Guarantee.HalfWidth > 0.005 && card.Guarantee.HalfWidth < 1) {
		t.Errorf("the step is %v of %+v", g, card.Guarantee)
	}
	submit := func(threshold float64) (float64, bool) {
		t.Helper()
		return standing(t, ask(t, s, id, submission(threshold)).Body)
	}
	first, best := submit(0.5)
	if !best || math.Abs(first-0.3) > 0.03 {
		t.Errorf("the first: %v, %v", first, best)
	}
	if loss, best := submit(0.9); best || loss != first {
		t.Errorf("a worse one: %v, %v", loss, best)
	}
	if loss, best := submit(0.49999); best || loss != first {
		t.Errorf("one that is hardly better: %v, %v", loss, best)
	}
	if again := ask(t, s, id, submission(0.5)); !again.Replayed {
		t.Error("a submission is judged twice")
	}
	second, best := submit(0.3)
	if !best || math.Abs(second-0.1) > 0.02 {
		t.Errorf("a better one: %v, %v", second, best)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	if loss, best := submit(0.4); best || loss != second {
		t.Errorf("after a restart: %v, %v", loss, best)
	}
	if loss, best := submit(0.2); !best || loss != 0 {
		t.Errorf("the truth: %v, %v", loss, best)
	}
	b, err := s.AskBatch(t.Context(), analyst, id, batchOf(submission(0.21), submission(0.22)), false, "")
	if err != nil {
		t.Fatal(err)
	}
	for i, item := range b.Answers {
		if loss, best := standing(t, item.Body); best || loss != 0 {
			t.Errorf("two at once, the %d. after the truth: %v, %v", i+1, loss, best)
		}
	}
	for _, query := range []string{mean(1), `{"type":"loss","loss":"brier","label":"late","prediction":"x < 0.3"}`,
		`{"type":"loss","loss":"zero_one","label":"late","prediction":"x < 0.3","where":"x < 0.5"}`} {
		_, err := s.Ask(t.Context(), analyst, id, []byte(query), "")
		wantKind(t, query, err, Invalid)
	}
	e, err := s.Explain(t.Context(), analyst, id, []byte(submission(0.6)))
	if err != nil || e.Cost != (Cost{Questions: 1}) || e.Training == nil || e.HalfWidth != nil {
		t.Errorf("explained: %+v, %v", e, err)
	}
}

// TestLadderRace: submissions that come at the same time are each compared with the best of those before: the shown losses never rise
// in the order of the ledger, and the best one ends on the board.
func TestLadderRace(t *testing.T) {
	s := open(t, t.TempDir())
	id := create(t, s, Settings{Mechanism: "ladder", Threshold: 0.01}, visits(t, 5000, 2)).ID
	var group sync.WaitGroup
	for i := range 24 {
		group.Go(func() {
			if _, err := s.Ask(t.Context(), analyst, id, []byte(submission(0.2+0.03*float64((i*7)%24))), ""); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	page, err := s.Answers(t.Context(), admin, id, 0, 100)
	if err != nil || len(page.Answers) != 24 {
		t.Fatalf("%d answers, %v", len(page.Answers), err)
	}
	shown := 1.0
	for i, body := range page.Answers {
		loss, best := standing(t, body.Body)
		if loss > shown || best != (loss < shown) {
			t.Errorf("answer %d shows %v after %v, best %v", i, loss, shown, best)
		}
		shown = loss
	}
	if shown != 0 {
		t.Errorf("the truth is not on the board, %v is", shown)
	}
}

// guaranteed is a card's guarantee as they are stored and sent.
func guaranteed(t *testing.T, card Card) (members map[string]any) {
	t.Helper()
	text, err := json.Marshal(card.Guarantee)
	if err == nil {
		err = json.Unmarshal(text, &members)
	}
	if err != nil {
		t.Fatal(err)
	}
	return members
}
