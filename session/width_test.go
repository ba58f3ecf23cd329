package session

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// TestPaidSelections: an argmax costs as many questions as it says, in its price, its debit and its explanation, for less regret; one that says 1 is the one that says nothing; a mechanism that selects by the means of all refuses it, since it
// would be another question without another answer; so are numbers that are no price. It would notice a price that is shown and not debited.
func TestPaidSelections(t *testing.T) {
	all, source := table(t, 5)
	g, err := thresholdout.Plan(thresholdout.Spec{Mechanism: thresholdout.Gaussian, N: rows, Questions: 40})
	if err != nil {
		t.Fatal(err)
	}
	const candidates = `{"type":"argmax","of":[{"type":"mean","of":"x","range":[0,1]},{"type":"fraction","of":"late"}]`
	last := 2.0
	for questions, member := range map[int64]string{1: `}`, 4: `,"questions":4}`} {
		l := Local{Session: Session{Holdout: "ho_a", Guarantee: g, Noise: Seeded(1)}, Schema: all.Schema(), Holdout: source}
		_, plan := parse(t, all, candidates+member)
		if price := l.Price(plan); price.Questions != questions {
			t.Errorf("%s is said to cost %+v", member, price)
		}
		a, err := l.Ask(context.Background(), []byte(candidates+member))
		if err != nil || a.Cost.Questions != questions || l.State.Questions != questions {
			t.Fatalf("%s costs %+v, %v", member, a.Cost, err)
		}
		if foreseen, _ := g.PreviewSelection(thresholdout.State{}, 2, questions); *a.Regret < foreseen-1e-9 || *a.Regret > foreseen+1e-9 {
			t.Errorf("%s: a regret of %v, foreseen %v", member, *a.Regret, foreseen)
		}
	}
	for _, price := range []int64{1, 2, 4, 8} {
		regret, _ := g.PreviewSelection(thresholdout.State{Questions: 10}, 2, price)
		if !(regret < last) {
			t.Errorf("%d questions: a regret of %v, for fewer %v", price, regret, last)
		}
		last = regret
	}
	plain, _ := parse(t, all, candidates+`}`)
	one, _ := parse(t, all, candidates+`,"questions":1}`)
	if plain.ID() != one.ID() {
		t.Error("one question is another question than none said")
	}
	for _, member := range []string{`,"questions":0}`, `,"questions":2.5}`, `,"questions":1001}`} {
		if _, err := queries.Parse([]byte(candidates + member)); err == nil || !strings.Contains(err.Error(), "questions") {
			t.Errorf("%s: %v", member, err)
		}
	}
	query, plan := parse(t, all, candidates+`,"questions":4}`)
	for name, p := range guarantees(t) {
		s := Session{Guarantee: p}
		_, err := s.Question(query, plan)
		var wrong *WrongError
		if refused := errors.As(err, &wrong) && wrong.Pointer == "/questions"; refused == p.Together() {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestFewSharesAreSingleMeans: under gaussian a vector of two or three shares is released as single means at the same price, foreseen as it is answered, and with the interval of a single mean; one of many shares is a vector. It would notice that
// a question is wider for being asked as one.
func TestFewSharesAreSingleMeans(t *testing.T) {
	all, source := table(t, 6)
	g, err := thresholdout.Plan(thresholdout.Spec{Mechanism: thresholdout.Gaussian, N: rows, Questions: 60})
	if err != nil {
		t.Fatal(err)
	}
	for body, single := range map[string]bool{
		`{"type":"test","test":"goodness-of-fit","cells":["x > 0.9","x < 0.2"],"expected":[0.1,0.2]}`: true,
		`{"type":"frequencies","of":"g","values":["a"]}`:                                              true,
		`{"type":"histogram","of":"x","edges":[0,0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9,1]}`:             false,
	} {
		l := Local{Session: Session{Holdout: "ho_v", Guarantee: g, Noise: Seeded(1)}, Schema: all.Schema(), Holdout: source}
		a, err := l.Ask(context.Background(), []byte(body))
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if vector := strings.Contains(a.Interval.Bound, "capped"); vector == single {
			t.Errorf("%s is bounded by %s", body, a.Interval.Bound)
		}
		for _, item := range a.Items {
			if width := (*item.High - *item.Low) / 2; single && width > g.HalfWidth+1e-6 {
				t.Errorf("%s: %s is ±%v, a single mean ±%v", body, item.Of, width, g.HalfWidth)
			}
		}
	}
}
