package answers

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/holdout"
)

// TestRounds goes the way of a guarantee in rounds: a request is a round whatever it asks, what a round leaves unasked is gone, replays
// take none, the last round is exact, and nothing is asked after it, also across a restart.
func TestRounds(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	card := create(t, s, holdout.Settings{Questions: 10, Rounds: 3}, visits(t, 20_000, 1)) // 4, 3 and 3
	id := card.ID
	if card.Guarantee.Mechanism != "gaussian" || len(guaranteed(t, card)["round_sigma"].([]any)) != 3 || card.Budget == nil || *card.Budget.Rounds != (holdout.Meter{Left: 3, Of: 3}) {
		t.Fatalf("%+v, %+v", card.Guarantee, card.Budget)
	}
	e, err := s.Explain(t.Context(), analyst, id, []byte(mean(0)))
	if err != nil || e.Cost != (holdout.Cost{Questions: 1, Rounds: 1}) || len(e.Warnings) != 1 || e.Warnings[0].Code != holdout.RoundNotFull || !strings.Contains(e.Warnings[0].Detail, "3 are lost") {
		t.Errorf("explained: %+v, %+v, %v", e.Cost, e.Warnings, err)
	}
	_, err = s.AskBatch(t.Context(), analyst, id, batchOf(mean(0), mean(1), mean(2), mean(3), mean(4)), false, "")
	wantExhausted(t, "more than a round has", err, 5, 4, 4)
	first := ask(t, s, id, mean(0))
	if a := read(t, first.Body); a.Cost != (holdout.Cost{Questions: 1, Rounds: 1}) || *first.Budget.Rounds != (holdout.Meter{Left: 2, Of: 3}) || first.Budget.Questions != (holdout.Meter{Left: 6, Of: 10}) {
		t.Errorf("the first round: %+v, %+v", a.Cost, first.Budget)
	}
	if first.Budget.NextRound != 3 || first.Budget.Lost != 3 || len(first.Warnings) != 1 || first.Warnings[0].Code != holdout.RoundNotFull || !strings.Contains(first.Warnings[0].Detail, "closes round 1 of 3 with 1 of its 4 questions, and 3 are lost") {
		t.Errorf("what the first round lost: %+v, %+v", first.Budget, first.Warnings)
	}
	if again := ask(t, s, id, mean(0)); !again.Replayed || again.Warnings != nil || *again.Budget.Rounds != (holdout.Meter{Left: 2, Of: 3}) {
		t.Errorf("a replay: %+v", again.Budget)
	}
	b, err := s.AskBatch(t.Context(), analyst, id, batchOf(mean(0), mean(1), mean(2), mean(3), mean(4)), true, "")
	if err != nil || b.Answers[3].Body == nil || b.Answers[4].NotAsked != holdout.QuestionsExhausted || *b.Budget.Rounds != (holdout.Meter{Left: 1, Of: 3}) || b.Budget.Questions.Left != 3 || b.Warnings != nil {
		t.Fatalf("in part: %+v, %v", b, err)
	}
	for i, want := range []holdout.Cost{{Questions: 1, Rounds: 1}, {Questions: 1}, {Questions: 1}} {
		if a := read(t, b.Answers[i+1].Body); a.Cost != want {
			t.Errorf("question %d of the second round costs %+v", i, a.Cost)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	b, err = s.AskBatch(t.Context(), analyst, id, batchOf(`{"type":"fraction","of":"late"}`, `{"type":"fraction","of":"!late"}`), false, "")
	if err != nil {
		t.Fatal(err)
	}
	yes, no := read(t, b.Answers[0].Body), read(t, b.Answers[1].Body)
	if sum := *yes.Value + *no.Value; sum < 1-1e-8 || sum > 1+1e-8 {
		t.Errorf("the last round is exact, but %v and %v", *yes.Value, *no.Value)
	}
	_, err = s.Ask(t.Context(), analyst, id, []byte(mean(9)), "")
	wantExhausted(t, "after the last round", err, 1, 0, 0)
	var ours *holdout.Error
	if !errors.As(err, &ours) || ours.Members["meter"] != "rounds" || !strings.Contains(ours.Detail, "round") {
		t.Errorf("%v", err)
	}
	if again, err := s.Ask(t.Context(), rival, id, []byte(mean(3)), ""); err != nil || !again.Replayed {
		t.Errorf("a replay after the last round: %v", err)
	}
	if budget, err := s.Budget(t.Context(), analyst, id); err != nil || budget.Questions != (holdout.Meter{Left: 0, Of: 10}) || *budget.Rounds != (holdout.Meter{Left: 0, Of: 3}) {
		t.Errorf("%+v, %v", budget, err)
	}
}

// TestPublishedBounds: with bounds=published an interval names a bound of the literature.
func TestPublishedBounds(t *testing.T) {
	s := open(t, t.TempDir())
	for want, set := range map[string]holdout.Settings{
		"splitting+chernoff": {Mechanism: "auto", Bounds: "published", Questions: 5},
		"jlnrss-gdp":         {Mechanism: "auto", Bounds: "published", Questions: 1000},
	} {
		id := create(t, s, set, visits(t, 20_000, uint64(len(want)))).ID
		if a := read(t, ask(t, s, id, mean(1)).Body); a.Interval.Bound != want || a.Interval.Low > 0.5 || a.Interval.High < 0.5 {
			t.Errorf("%+v: %+v", set, a.Interval)
		}
	}
	for _, set := range []holdout.Settings{{Bounds: "published", Mechanism: "guess_and_check"}, {Bounds: "published", Rounds: 2}, {Mechanism: "split", Rounds: 2}} {
		set.Name = "visits"
		_, _, err := s.Create(t.Context(), admin, set, holdout.SingleUpload(bytes.NewReader(parquet(t, visits(t, 1000, 77)))), "")
		wantKind(t, "settings that do not go together", err, holdout.Invalid)
	}
}
