package session

import (
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/holdoutd/holdoutd/thresholdout"
)

// chooser asks a holdout of 4,000 customers, with 300 questions and 20 tokens, in a state.
func chooser(t *testing.T, check bool) func(state thresholdout.State, query string) (Answer, thresholdout.State, error) {
	const n = 4000
	schema, holdout := newShop(1, n).source(t)
	_, training := newShop(2, n).source(t)
	p, err := thresholdout.Plan(thresholdout.Spec{Mechanism: thresholdout.GuessAndCheck, N: n, Training: n, Questions: 300, Tokens: 20})
	if err != nil {
		t.Fatal(err)
	}
	return func(state thresholdout.State, query string) (Answer, thresholdout.State, error) {
		l := &Local{Session: Session{Guarantee: p, Noise: Seeded(1)}, Schema: schema, Holdout: holdout, Training: training, State: state}
		l.NoCheckPart = !check
		if check {
			l.Check = training
		}
		a, err := l.Ask(t.Context(), []byte(query))
		return a, l.State, err
	}
}

// TestWidthChooses: a half-width at which a guess is likely to pass is checked; another one that a measured answer has is measured, and says what the same question says with measure, at the same price; one that neither has is
// refused, and nothing is spent. It is checked where the asker brings a guess or says so, and where a measured answer is not paid for; where no guess can pass then it is refused.
func TestWidthChooses(t *testing.T) {
	ask := chooser(t, true)
	of := func(wish float64, more string) string {
		return `{"type":"fraction","of":"right1","half_width":` + strconv.FormatFloat(wish, 'g', -1, 64) + more + `}`
	}
	var narrow *NarrowError
	begun := thresholdout.State{}
	if _, after, err := ask(begun, of(1e-4, "")); !errors.As(err, &narrow) || after != begun {
		t.Fatalf("a wish that nothing has: %v", err)
	}
	room := narrow.Planned - narrow.Least
	check, wish, below := narrow.Least+0.55*room, narrow.Least+0.3*room, 0.93*narrow.Least
	a, after, err := ask(begun, of(check, ""))
	if err != nil || a.Outcome == thresholdout.Measured || after.Questions != 1 {
		t.Errorf("a wish that a check has: %+v %v", a, err)
	}
	a, after, err = ask(begun, of(wish, ""))
	if err != nil || a.Outcome != thresholdout.Measured || a.Cost != (Cost{Questions: 8, Tokens: 1}) || after.Questions != 8 || after.Tokens != 1 {
		t.Fatalf("a wish that a measured answer has: %+v %v", a, err)
	}
	if half := (*a.Interval.High - *a.Interval.Low) / 2; half > 1.03*wish || half < 0.9*wish {
		t.Errorf("it wished for %v and has %v", wish, half)
	}
	said, same, err := ask(begun, of(wish, `,"measure":true`))
	if err != nil || same.Questions != after.Questions || same.Tokens != after.Tokens || said.Cost != a.Cost || *said.Interval.High-*said.Interval.Low > 1.01*(*a.Interval.High-*a.Interval.Low) {
		t.Errorf("measured: %+v %v", said, err)
	}
	if a, after, err = ask(begun, of(below, "")); err != nil || a.Outcome != thresholdout.Measured {
		t.Errorf("a wish that no guess has: %+v %v", a, err)
	}
	for more, state := range map[string]thresholdout.State{`,"measure":false`: begun, `,"guess":0.77`: begun, "": {Questions: 295}} {
		if a, _, err := ask(state, of(wish, more)); err != nil || a.Outcome == thresholdout.Measured {
			t.Errorf("a wish that a guess can have, with %q after %d questions: %+v %v", more, state.Questions, a, err)
		}
	}
	for name, c := range map[string]struct {
		state thresholdout.State
		query string
	}{
		"to be checked":         {begun, of(below, `,"measure":false`)},
		"five questions left":   {thresholdout.State{Questions: 295}, of(below, "")},
		"narrower than it gets": {begun, of(0.2*narrow.Least, "")},
	} {
		if _, after, err := ask(c.state, c.query); !errors.As(err, &narrow) || after != c.state {
			t.Errorf("%s: %v, %+v", name, err, after)
		}
	}
}

// TestTrainingScoresAreMeasured: what is asked about predictions, and would be guessed by their training score, is measured until half of the tokens are spent, and checked afterwards. It is checked where a part is kept for
// such questions, where the asker brings a guess, and where he says so; and so is what is asked about no predictions.
func TestTrainingScoresAreMeasured(t *testing.T) {
	const score = `{"type":"accuracy","label":"churn","prediction":"score > %v"%s}`
	scored, kept := chooser(t, false), chooser(t, true)
	ask := func(state thresholdout.State, query string) (Answer, thresholdout.State, error) {
		return scored(state, query)
	}
	state := thresholdout.State{}
	for i := range 14 {
		a, after, err := ask(state, fmt.Sprintf(score, 0.3+float64(i)/100, ""))
		if err != nil {
			t.Fatal(err)
		}
		if measured := a.Outcome == thresholdout.Measured; measured != (2*state.Tokens < 20) {
			t.Errorf("question %d, after %d tokens: %s", i, state.Tokens, a.Outcome)
		}
		state = after
	}
	if state.Tokens < 10 || state.Questions < 10*8+4 {
		t.Errorf("%+v", state)
	}
	// Nothing else is answered at the same time only while the state decides.
	schema, holdout := newShop(1, 4000).source(t)
	p, err := thresholdout.Plan(thresholdout.Spec{Mechanism: thresholdout.GuessAndCheck, N: 4000, Training: 4000, Questions: 300, Tokens: 20})
	if err != nil {
		t.Fatal(err)
	}
	l := &Local{Session: Session{Guarantee: p, NoCheckPart: true}, Schema: schema, Holdout: holdout, Training: holdout}
	q, err := l.question(t, fmt.Appendf(nil, score, 0.5, ""))
	if err != nil {
		t.Fatal(err)
	}
	for _, tokens := range []int64{0, 9, 10, 20} {
		s := thresholdout.State{Questions: 100, Tokens: tokens}
		if l.Exclusive(s, q) != (tokens < 10) || l.Open(s, q) != (tokens < 10) {
			t.Errorf("after %d tokens: alone %v, open %v", tokens, l.Exclusive(s, q), l.Open(s, q))
		}
	}
	for name, c := range map[string]struct {
		ask   func(thresholdout.State, string) (Answer, thresholdout.State, error)
		query string
	}{
		"a part is kept": {kept, fmt.Sprintf(score, 0.5, "")},
		"a guess":        {ask, fmt.Sprintf(score, 0.5, `,"guess":0.7`)},
		"to be checked":  {ask, fmt.Sprintf(score, 0.5, `,"measure":false`)},
		"two compared":   {ask, `{"type":"compare","a":{"type":"accuracy","label":"churn","prediction":"score > 0.4"},"b":{"type":"accuracy","label":"churn","prediction":"score > 0.5"}}`},
		"no predictions": {ask, `{"type":"fraction","of":"churn"}`},
		"not measured":   {ask, `{"type":"auc","label":"churn","prediction":"score","edges":[0.2,0.5]}`},
	} {
		if a, _, err := c.ask(thresholdout.State{}, c.query); err != nil || a.Outcome == thresholdout.Measured {
			t.Errorf("%s: %+v %v", name, a, err)
		}
	}
}
