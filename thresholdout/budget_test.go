package thresholdout

import (
	"strings"
	"testing"
)

// TestDefaultBudget: who names no questions gets the largest usual number whose intervals are of use, and the least of them where none is; who names anything that is a plan of his own gets what Plan gives.
// More rows never give fewer questions. It would notice a rule that some mechanism does not follow, that forgets the tokens, or that has a useful budget where a larger one is useful too.
func TestDefaultBudget(t *testing.T) {
	for _, c := range []struct {
		spec              Spec
		questions, tokens int64
	}{
		{Spec{Mechanism: Auto, N: 500, Training: 1166}, 100, 10},
		{Spec{Mechanism: Auto, N: 1700, Training: 3966}, 200, 20},
		{Spec{Mechanism: Auto, N: 1850, Training: 4316}, 500, 20},
		{Spec{Mechanism: Auto, N: 3000, Training: 7000}, 1000, 20},
		{Spec{Mechanism: Auto, N: 2550, Training: 1700}, 500, 20}, // with a check part
		{Spec{Mechanism: Gaussian, N: 3000}, 100, 0},
		{Spec{Mechanism: Gaussian, N: 9000}, 500, 0},
		{Spec{Mechanism: Gaussian, N: 9000, Confidence: 1 - 1e-6}, 200, 0},
		{Spec{Mechanism: Gaussian, N: 500, Rounds: 1}, 200, 0},
		{Spec{Mechanism: Gaussian, N: 600, Rounds: 5}, 100, 0},
		{Spec{Mechanism: Split, N: 60}, 0, 0}, // more slices than units
		{Spec{Mechanism: Split, N: 1 << 20}, 1000, 0},
		{Spec{Mechanism: Thresholdout, N: 1000, Training: 2000}, 100, 10},
		{Spec{Mechanism: Ladder, N: 100}, 0, 0},
		{Spec{Mechanism: Naive, N: 100}, 0, 0},
		{Spec{Mechanism: Auto, N: 500, Training: 1166, Questions: 7}, 7, 0},
		{Spec{Mechanism: Auto, N: 500, Training: 1166, Tokens: 30}, 0, 30},
		{Spec{Mechanism: Gaussian, N: 500, HalfWidth: 0.2}, 0, 0},
		{Spec{Mechanism: Gaussian, N: 500, Sigma: 0.1}, 0, 0},
		{Spec{Mechanism: Thresholdout, N: 500, Training: 500, Preset: "science2015"}, 0, 0},
		{Spec{Mechanism: "none", N: 500}, 0, 0},
		{Spec{Mechanism: Auto, N: 1}, 0, 0},
	} {
		got := c.spec.WithBudget()
		if got.Questions != c.questions || got.Tokens != c.tokens {
			t.Errorf("%+v: %d questions and %d tokens, want %d and %d", c.spec, got.Questions, got.Tokens, c.questions, c.tokens)
		}
		g, err := Plan(got)
		if err != nil {
			continue
		}
		says := g.SayBudget()
		if quiet := c.spec.Mechanism == Ladder || c.spec.Mechanism == Naive; quiet != (says == "") {
			t.Errorf("%+v: %q", c.spec, says)
		}
		if !c.spec.LeavesBudget() || c.questions == 0 {
			continue
		}
		more := got
		more.Questions = map[int64]int64{100: 200, 200: 500, 500: 1000}[got.Questions]
		if next, err := Plan(more); more.Questions > 0 && (err != nil || next.width() <= UsefulWidth) {
			t.Errorf("%+v: %d questions, but %d have ±%v (%v)", c.spec, got.Questions, more.Questions, next.width(), err)
		}
		if useful := g.width() <= UsefulWidth; !useful && got.Questions != 100 && c.spec.Rounds == 0 || strings.Contains(says, "fewest") == (useful || got.Questions == 1000) {
			t.Errorf("%+v: ±%v, %q", c.spec, g.width(), says)
		}
	}
	if says := (Guarantee{}).SayBudget(); says != "" {
		t.Errorf("of no guarantee: %q", says)
	}
	last := int64(0)
	for n := int64(100); n < 20_000; n += n / 3 {
		got := Spec{Mechanism: Auto, N: n, Training: 2 * n}.WithBudget().Questions
		if got < last {
			t.Fatalf("%d units get %d questions, fewer ones %d", n, got, last)
		}
		last = got
	}
}
