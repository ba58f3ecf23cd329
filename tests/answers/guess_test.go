package answers

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/holdoutd/holdoutd/holdout"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// TestAutoChooses: what thresholdout.Plan finds narrowest, by the settings and the sizes of the parts.
func TestAutoChooses(t *testing.T) {
	s := open(t, t.TempDir())
	for i, c := range []struct {
		set  holdout.Settings
		want string
	}{
		{holdout.Settings{Mechanism: "auto", Questions: 100}, "guess_and_check"},
		{holdout.Settings{Mechanism: "auto", Questions: 100, Tokens: 4}, "guess_and_check"},
		{holdout.Settings{Mechanism: "auto", Questions: 100, Holdout: 1}, "gaussian"},
		{holdout.Settings{Mechanism: "auto", Questions: 100, Split: "time:seen"}, "gaussian"},
		{holdout.Settings{Mechanism: "auto", Questions: 100, HalfWidth: 0.9}, "gaussian"},
		{holdout.Settings{Mechanism: "auto", Questions: 100, Bounds: "published"}, "split"},
	} {
		card := create(t, s, c.set, visits(t, 1000, uint64(i)))
		if card.Settings.Mechanism != c.want || string(card.Guarantee.Mechanism) != c.want {
			t.Errorf("%+v: the card says %s, the guarantee %s", c.set, card.Settings.Mechanism, card.Guarantee.Mechanism)
		}
		if (card.Assumes != "") != (c.want == "guess_and_check" || c.want == "split") {
			t.Errorf("%s assumes %q", c.want, card.Assumes)
		}
	}
}

// TestGuessAndCheck goes the whole way of each outcome: the training mean, one's own guess, a wrong guess for a token, a
// half-width that cannot pass, tokens spent, and a replay after that.
func TestGuessAndCheck(t *testing.T) {
	s := open(t, t.TempDir())
	card := create(t, s, holdout.Settings{Mechanism: "guess_and_check", Questions: 100, Tokens: 3}, visits(t, 20_000, 1))
	id := card.ID
	query := func(guess string) string { return `{"type":"mean","of":"x","range":[-1,3]` + guess + `}` }

	plain := read(t, ask(t, s, id, query("")).Body)
	if plain.Source != "training" || plain.Cost != (holdout.Cost{Questions: 1}) || plain.Interval.Bound != "guess-and-check-two-moments" ||
		plain.Interval.Low > 0.5 || plain.Interval.High < 0.5 || plain.Interval.High-plain.Interval.Low > 3*card.Guarantee.HalfWidth { // x is uniform on a quarter of the range
		t.Errorf("a guess from training: %+v, %+v", plain, plain.Interval)
	}
	own := read(t, ask(t, s, id, query(`,"guess":0.5,"half_width":0.4`)).Body)
	if own.Source != "guess" || *own.Value != 0.5 || own.Cost.Tokens != 0 || own.Interval.Low < 0.1-1e-9 || own.Interval.High > 0.9+1e-9 {
		t.Errorf("one's own guess: %+v, %+v", own, own.Interval)
	}
	e, err := s.Explain(t.Context(), analyst, id, []byte(query(`,"guess":0.5,"half_width":0.401`)))
	if err != nil || e.HalfWidth == nil || *e.HalfWidth > 0.401+1e-9 || e.Bound == "" || e.Cost != (holdout.Cost{Questions: 1, Tokens: 1}) {
		t.Errorf("explained: %+v, %v", e, err)
	}
	// A mean under a condition is one question, and takes guesses.
	late := read(t, ask(t, s, id, `{"type":"fraction","of":"late","where":"x < 0.5"}`).Body)
	if late.Cost.Questions != 1 || late.Interval.Low > 0.4 || late.Interval.High < 0.4 {
		t.Errorf("a mean under a condition: %+v, %+v", late, late.Interval)
	}
	before, err := s.Budget(t.Context(), analyst, id)
	if err != nil || before.Questions.Left != 97 || before.Tokens == nil || *before.Tokens != (holdout.Meter{Left: 3, Of: 3}) {
		t.Fatalf("%+v, %v", before, err)
	}

	// What cannot pass or cannot be checked costs nothing and says what could.
	_, err = s.Ask(t.Context(), analyst, id, []byte(query(`,"half_width":0.01`)), "")
	wantKind(t, "a half-width that cannot pass", err, holdout.Invalid)
	var ours *holdout.Error
	var width *thresholdout.WidthError
	if !errors.As(err, &ours) || !errors.As(err, &width) || ours.Pointer != "/half_width" {
		t.Fatalf("%v", err)
	}
	if least, ok := ours.Members["least"].(float64); !ok || !(least > 0.01 && least < 0.4) {
		t.Errorf("least: %v", ours.Members)
	}
	if e, err = s.Explain(t.Context(), analyst, id, []byte(query(`,"half_width":0.01`))); err != nil || e.HalfWidth != nil ||
		len(e.Warnings) != 1 || e.Warnings[0].Code != holdout.HalfWidthTooNarrow {
		t.Errorf("explained: %+v, %v", e, err)
	}
	weighted := read(t, ask(t, s, id, `{"type":"mean","of":"x","range":[0,1],"weights":{"of":"x","range":[0,1]},"guess":0.65,"half_width":0.1}`).Body)
	if weighted.Source != "guess" || math.Abs(*weighted.Value-0.65) > 1e-8 || weighted.Cost != (holdout.Cost{Questions: 1}) || weighted.Interval.Low < 0.55-1e-9 || weighted.Interval.High > 0.75+1e-9 {
		t.Errorf("a guess of a weighted mean: %+v, %+v", weighted, weighted.Interval)
	}
	under := read(t, ask(t, s, id, `{"type":"fraction","of":"late","where":"x < 0.5","guess":0.39,"half_width":0.1}`).Body)
	if under.Source != "guess" || math.Abs(*under.Value-0.39) > 1e-8 || under.Cost != (holdout.Cost{Questions: 1}) || under.Interval.Low < 0.29-1e-9 || under.Interval.High > 0.49+1e-9 {
		t.Errorf("a guess under a condition: %+v, %+v", under, under.Interval)
	}
	b, err := s.AskBatch(t.Context(), analyst, id, batchOf(query(`,"half_width":0.01`), mean(1)), false, "")
	if err != nil || b.Answers[0].NotAsked != holdout.HalfWidthTooNarrow || b.Answers[1].Body == nil || b.Budget.Questions.Left != 94 {
		t.Errorf("in a batch: %+v, %v", b, err)
	}

	for i := range 3 {
		wrong := read(t, ask(t, s, id, query(fmt.Sprintf(`,"guess":%v`, 2.5+float64(i)/10))).Body)
		if wrong.Source != "holdout" || wrong.Cost != (holdout.Cost{Questions: 1, Tokens: 1}) || wrong.Interval.Low > 0.5 || wrong.Interval.High < 0.5 {
			t.Errorf("a wrong guess: %+v, %+v", wrong, wrong.Interval)
		}
	}
	_, err = s.Ask(t.Context(), analyst, id, []byte(mean(2)), "")
	wantKind(t, "no tokens", err, holdout.BudgetExhausted)
	if again, err := s.Ask(t.Context(), rival, id, []byte(query("")), ""); err != nil || !again.Replayed {
		t.Errorf("a replay: %+v, %v", again, err)
	}
	after, err := s.Budget(t.Context(), analyst, id)
	if err != nil || after.Questions.Left != 91 || after.Tokens.Left != 0 {
		t.Errorf("%+v, %v", after, err)
	}
}

// TestGuessAndCheckRestarts: answers and state survive; a wider pass before makes later intervals wider than at first.
func TestGuessAndCheckRestarts(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	id := create(t, s, holdout.Settings{Mechanism: "guess_and_check", Questions: 100}, visits(t, 3000, 1)).ID
	first := read(t, ask(t, s, id, `{"type":"mean","of":"x","range":[0,1],"guess":0.5}`).Body)
	failed := read(t, ask(t, s, id, `{"type":"mean","of":"x","range":[0,1],"guess":0.9}`).Body)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	same := read(t, ask(t, s, id, `{"type":"mean","of":"x","range":[0,1],"guess":0.9}`).Body)
	if *same.Value != *failed.Value || same.Ledger != failed.Ledger {
		t.Errorf("%+v, before the restart %+v", same, failed)
	}
	later := read(t, ask(t, s, id, `{"type":"mean","of":"x","range":[0,1],"guess":0.5000001}`).Body)
	if first.Cost.Tokens != 0 || failed.Cost.Tokens != 1 || later.Interval.High-later.Interval.Low <= first.Interval.High-first.Interval.Low {
		t.Errorf("the failure did not widen what came after: %+v, then %+v", first.Interval, later.Interval)
	}
}
