package thresholdout

import (
	"encoding/json"
	"testing"
)

// Notices a meter that is left out of the sums, of the names or of the JSON, and a round that is paid twice or never.
func TestAmounts(t *testing.T) {
	a, b := Amounts{Questions: 5, Tokens: 3, Rounds: 2}, Amounts{Questions: 1, Tokens: 2, Rounds: 2}
	if a.Plus(b) != (Amounts{6, 5, 4}) || a.Minus(b) != (Amounts{4, 1, 0}) || AmountsOf(a.Of) != a || a.Of("votes") != 0 {
		t.Error(a.Plus(b), a.Minus(b), AmountsOf(a.Of))
	}
	for want, amounts := range map[string]Amounts{`{"questions":5,"tokens":3,"rounds":2}`: a, `{"questions":1,"tokens":0}`: {Questions: 1}} {
		if text, err := json.Marshal(amounts); err != nil || string(text) != want {
			t.Errorf("%s, want %s: %v", text, want, err)
		}
	}
	p := must(t, Spec{Mechanism: Gaussian, N: 1000, Questions: 4, Rounds: 2})
	if m := p.Meters(); len(m) != 2 || m[0] != (Meter{MeterQuestions, 4}) || m[1] != (Meter{MeterRounds, 2}) {
		t.Error(m)
	}
	s := State{}
	for i, rounds := range []int64{1, 1, 2} { // questions 1 and 2 are the first round
		before := s.Spent()
		if s = p.Spend(s, 1, 0); s.Spent().Rounds != rounds || s.Spent().Minus(before).Questions != 1 {
			t.Errorf("after question %d: %+v", i+1, s.Spent())
		}
		if i == 1 {
			s = p.EndRound(s)
		}
	}
}
