package session

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/thresholdout"
)

// TestMeters: a budget has the meters that its guarantee knows, and no others.
func TestMeters(t *testing.T) {
	for name, p := range guarantees(t) {
		s := Session{Guarantee: p}
		b := s.Budget(thresholdout.State{})
		if (b.Rounds != nil) != (p.Rounds > 0) || (b.Tokens != nil) != p.HasTokens() || b.Questions != (Meter{p.Left(thresholdout.State{}), p.Questions}) {
			t.Errorf("%s: %+v", name, b)
		}
		if p.Rounds > 0 && *b.Rounds != (Meter{p.Rounds, p.Rounds}) || p.HasTokens() && *b.Tokens != (Meter{p.Tokens, p.Tokens}) {
			t.Errorf("%s: %+v %+v", name, b.Rounds, b.Tokens)
		}
	}
}

// TestTheSelectedNameIsSized: an answer that selects the candidate of the longest name is no longer than its bound, wherever that stands.
func TestTheSelectedNameIsSized(t *testing.T) {
	data, source := table(t, 1)
	long := strings.Repeat("p", 20_000)
	for _, name := range []string{"gaussian", "naive"} {
		s := Session{Guarantee: guarantees(t)[name], Noise: Seeded(7)}
		for _, names := range [][2]string{{long, "q"}, {"q", long}} {
			// The longer name's candidate is by far the larger one.
			of := map[bool]string{true: `{"type":"mean","of":"x < 2.0 ? 0.0 : 1.0","range":[0,1]}`, false: `{"type":"mean","of":"x < 2.0 ? 1.0 : 0.0","range":[0,1]}`}
			body := fmt.Sprintf(`{"type":"argmax","of":[%s,%s],"names":["%s","%s"]}`, of[names[0] == "q"], of[names[1] == "q"], names[0], names[1])
			q, plan := parse(t, data, body)
			asked, err := s.Question(q, plan)
			if err != nil {
				t.Fatal(err)
			}
			bound, err := s.AnswerBytes(asked)
			if err != nil {
				t.Fatal(err)
			}
			sums, err := s.Scan(context.Background(), thresholdout.State{}, []*Question{asked}, source, Reference{Training: source})
			if err != nil {
				t.Fatal(err)
			}
			a, _, err := s.Ask(thresholdout.State{}, thresholdout.State{}, asked, sums[0])
			if err != nil {
				t.Fatal(err)
			}
			got, err := a.JSON()
			if err != nil || len(got) > bound || a.Selected != long {
				t.Errorf("%s: %d bytes, the bound is %d, a name of %d is selected: %v", name, len(got), bound, len(a.Selected), err)
			}
		}
	}
}
