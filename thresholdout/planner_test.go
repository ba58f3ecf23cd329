package thresholdout

import (
	"math"
	"testing"

	"github.com/holdoutd/holdoutd/thresholdout/bounds"
)

// TestPlannerSaysWhatNewPlans: the planner's half-width of guess-and-check is the one on a card, but for the grid.
func TestPlannerSaysWhatNewPlans(t *testing.T) {
	for _, r := range []bounds.Request{
		{N: 10_000, Training: 20_000, Questions: 100, Confidence: 0.95, Tokens: 5},
		{N: 1_000_000, Training: 1_000_000, Questions: 10_000, Confidence: 0.99, Tokens: 20},
		{N: 300, Training: 700, Questions: 20, Confidence: 0.9, Tokens: 20},
	} {
		plan, err := bounds.Plan(r)
		if err != nil {
			t.Fatal(err)
		}
		p := must(t, Params{Mechanism: GuessAndCheck, N: r.N, Training: r.Training, Questions: r.Questions, Confidence: r.Confidence, Tokens: r.Tokens})
		found := false
		for _, m := range plan.Methods {
			if m.Method != bounds.MethodGuessCheck {
				continue
			}
			found = true
			if m.HalfWidth == nil || math.Abs(*m.HalfWidth-p.HalfWidth) > 1e-8 {
				t.Errorf("%+v: the planner says %+v, the card %v", r, m, p.HalfWidth)
			}
		}
		if !found {
			t.Errorf("%+v: the planner does not know guess-and-check", r)
		}
	}
}
