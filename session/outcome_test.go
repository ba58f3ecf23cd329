package session

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/holdoutd/holdoutd/thresholdout"
)

// TestOutcomesAreThoseOfTheAccount: an answer that says differs spent a token, one that says rough is counted as a wide pass, one that says close is neither;
// and all three come. An outcome that is said of another margin, or of the source alone, turns it red.
func TestOutcomesAreThoseOfTheAccount(t *testing.T) {
	p, err := thresholdout.Plan(thresholdout.Spec{Mechanism: thresholdout.GuessAndCheck, N: rootRows, Training: rootRows, Questions: 200, Tokens: 60, Confidence: 0.95})
	if err != nil {
		t.Fatal(err)
	}
	schema, holdout := rareTable(t, 1)
	_, training := rareTable(t, 2)
	l := &Local{Session: Session{Guarantee: p, Noise: Seeded(1)}, Schema: schema, Holdout: holdout, Training: training}
	wide := func() int64 {
		var memory struct{ Wide int64 }
		text, err := json.Marshal(l.State.Memory)
		if err != nil || json.Unmarshal(text, &memory) != nil {
			t.Fatal(err)
		}
		return memory.Wide
	}
	seen := map[thresholdout.Outcome]int{}
	for i := range 120 {
		tokens, passes := l.State.Tokens, wide()
		a, err := l.Ask(context.Background(), fmt.Appendf(nil, `{"type":"mean","of":"x%d","range":[0,1],"guess":%v}`, i%rootColumns, 0.02+0.002*float64(i)))
		if err != nil {
			t.Fatal(err)
		}
		want := thresholdout.Close
		switch {
		case l.State.Tokens > tokens:
			want = thresholdout.Differs
		case wide() > passes:
			want = thresholdout.Rough
		}
		if a.Outcome != want || (a.Outcome == thresholdout.Differs) != (a.Source == thresholdout.FromHoldout) {
			t.Errorf("question %d: %s from %s, the account says %s", i, a.Outcome, a.Source, want)
		}
		seen[a.Outcome]++
		if l.State.Tokens == p.Tokens {
			break
		}
	}
	for _, o := range []thresholdout.Outcome{thresholdout.Close, thresholdout.Rough, thresholdout.Differs} {
		if seen[o] == 0 {
			t.Errorf("no answer of this test is %s: %v", o, seen)
		}
	}
}
