package compare

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/thresholdout"
)

// TestNotesAreTrue: the figures in the sentences are those of the report, and of what a holdout would get.
func TestNotesAreTrue(t *testing.T) {
	// A width of half the range or more promises nothing; the note says so exactly then.
	said := map[bool]int{}
	for _, n := range []int64{4, 8, 16, 40} {
		for _, k := range []int64{1, 3} {
			report := planned(t, Request{N: n, Questions: k, Confidence: 0.95})
			best := 1.0
			for _, m := range report.Methods {
				if m.Method == report.Recommended {
					best = *m.HalfWidth
				}
			}
			nothing := strings.Contains(strings.Join(report.Notes, " "), "Nothing can be promised")
			if nothing != (best >= 0.5) {
				t.Errorf("%d questions of %d units, ±%v: %v", k, n, best, report.Notes)
			}
			if best < 1 {
				said[nothing]++
			}
		}
	}
	if said[true] == 0 || said[false] == 0 {
		t.Errorf("widths on one side of 1/2 only: %v", said)
	}
	// The literature's best bound is the one of the most questions.
	compared := 0
	for _, n := range []int64{100_000, 10_000_000} {
		for _, width := range []float64{0.02, 0.1} {
			report := planned(t, Request{N: n, HalfWidth: width, Confidence: 0.95, Training: n})
			most := int64(0)
			for _, m := range report.Methods {
				if m.Published && m.Method != MethodSplitting && m.Method != MethodNonAdaptive {
					most = max(most, *m.QuestionsWithin)
				}
			}
			notes := strings.Join(report.Notes, " ")
			at := strings.Index(notes, "the literature's best bound for noisy answers (")
			if at < 0 {
				continue
			}
			compared++
			if _, rest, _ := strings.Cut(notes[at:], ") "); !strings.HasPrefix(rest, thousands(most)+".") {
				t.Errorf("%d units, ±%v: %s; the most is %s", n, width, notes, thousands(most))
			}
		}
	}
	if compared == 0 {
		t.Error("nothing was compared with the literature")
	}
}

// TestSpentTokensWiden: how wide intervals are at the end, when all tokens are spent, is what the created holdout says.
func TestSpentTokensWiden(t *testing.T) {
	for m, mechanism := range map[string]thresholdout.Name{MethodGuessCheck: thresholdout.GuessAndCheck} {
		report := planned(t, Request{N: 5000, Questions: 500, Confidence: 0.95, Training: 5000, Tokens: 40})
		p, err := thresholdout.Plan(thresholdout.Spec{Mechanism: mechanism, N: 5000, Training: 5000, Questions: 500, Confidence: 0.95, Tokens: 40})
		if err != nil {
			t.Fatal(err)
		}
		first, _ := p.Promised(0)
		last, _ := p.Promised(40)
		for _, method := range report.Methods {
			if method.Method != m {
				continue
			}
			if want := fmt.Sprintf("±%.3g", last.HalfWidth); last.HalfWidth <= first.HalfWidth || *method.HalfWidth != first.HalfWidth || !strings.HasSuffix(method.Assumes, want) {
				t.Errorf("%s: ±%v, %s; at first ±%v, at the end %s", m, *method.HalfWidth, method.Assumes, first.HalfWidth, want)
			}
		}
	}
}

// TestRoundsAtTheirLimit: the most rounds that a holdout can have are planned, and one more is refused where it stands in the request.
func TestRoundsAtTheirLimit(t *testing.T) {
	r := Request{N: 10_000, Questions: 10 * thresholdout.MaxRounds, Confidence: 0.95, Rounds: thresholdout.MaxRounds}
	if _, err := HalfWidthOf(MethodRounds, r, r.Questions); err != nil {
		t.Errorf("%d rounds: %v", r.Rounds, err)
	}
	r.Rounds++
	var wrong *RequestError
	if _, err := HalfWidthOf(MethodRounds, r, r.Questions); !errors.As(err, &wrong) || wrong.Field != "rounds" || !strings.Contains(wrong.Detail, fmt.Sprint("at most ", thresholdout.MaxRounds)) {
		t.Errorf("%d rounds: %v", r.Rounds, err)
	}
}
