package thresholdout

import (
	"fmt"
	"testing"
)

// TestStepsAreForEver: an answer that is recomputed after a crash must be the one that was about to be recorded, by any
// version of the program. A change of any of these values breaks that.
func TestStepsAreForEver(t *testing.T) {
	from := Keyed{Data: [32]byte{1}, Query: "sha256:q", Index: 1}
	from.Key[0] = 7
	state := State{Questions: 2, Tokens: 1}
	in := Input{Holdout: mean(0.5, 5000), Training: mean(0.9, 7000)}
	got := ""
	for _, p := range []Spec{
		{Mechanism: Gaussian, N: 5000, Questions: 50, Sigma: 0.01},
		{Mechanism: Thresholdout, N: 5000, Training: 7000, Questions: 50, Preset: PresetScience2015},
		{Mechanism: Thresholdout, Form: FormLaplace, N: 5000, Training: 7000, Questions: 50, Preset: PresetScience2015},
		{Mechanism: GuessAndCheck, N: 5000, Training: 7000, Questions: 50, Tokens: 20},
		{Mechanism: GuessAndCheck, N: 5000, Training: 7000, Questions: 50, Tokens: 2},
	} {
		out, _, err := Step(must(t, p), state, in, from)
		if err != nil {
			t.Fatal(err)
		}
		got += fmt.Sprintf("%.0f %d ", out.Value*float64(grid), out.Tokens)
	}
	got += fmt.Sprint(from.Threshold(1).Uint64(), from.Answer("compare", 1, 0.5).Uint64())
	const want = "529802742 0 544173030 1 537707582 1 538426740 1 538426740 1 5104411365992929114 12556700666809497732"
	if got != want {
		t.Errorf("the steps give %s, they gave %s", got, want)
	}
}
