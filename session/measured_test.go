package session

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// measured is a query that is to be measured.
func measured(body string) []byte { return []byte(strings.TrimSuffix(body, "}") + `,"measure":true}`) }

// TestMeasuredQuestions: each question that people ask is measured, or refused before a row is read. A measured answer is the holdout's own, within half a cell; it costs what was said of it; it is about as wide as was planned, and no wider
// than 2.8 times a textbook's interval for one question, 4.6 times where tails are heavy. What explains a question says the same of it as the question itself.
func TestMeasuredQuestions(t *testing.T) {
	const n = 12_000
	held, train := newShop(1, n), newShop(2, n)
	schema, holdout := held.source(t)
	_, training := train.source(t)
	p, err := thresholdout.Plan(thresholdout.Spec{Mechanism: thresholdout.GuessAndCheck, N: n, Training: n, Questions: 1000})
	if err != nil {
		t.Fatal(err)
	}
	z := distuv.UnitNormal.Quantile(1 - 0.025)
	all := 0
	for _, b := range textbooks() {
		l := &Local{Session: Session{Guarantee: p, Noise: Seeded(1)}, Schema: schema, Holdout: holdout, Training: training}
		ask := func(body []byte) (Answer, *Question, error) {
			q, err := l.question(t, body)
			if err != nil {
				return Answer{}, nil, err
			}
			a, err := l.Ask(t.Context(), body)
			return a, q, err
		}
		a, q, err := ask(measured(b.body))
		var wrong *WrongError
		if errors.As(err, &wrong) && wrong.Pointer == "/measure" {
			if l.State != (thresholdout.State{}) {
				t.Errorf("%s: refused, and %+v", b.name, l.State)
			}
			t.Logf("%-26s is not measured", b.name)
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", b.name, err)
		}
		all++
		if a.Outcome != thresholdout.Measured || a.ValueFrom != ValueFromHoldout || a.Cost != (Cost{Questions: 25, Tokens: 1}) || l.State.Questions != 25 || l.State.Tokens != 1 {
			t.Errorf("%s: %+v after %+v", b.name, a, l.State)
		}
		half := (*a.Interval.High - *a.Interval.Low) / 2
		ratio := half / (z * b.error(held))
		t.Logf("%-26s %.2f times a textbook's half-width (%s)", b.name, ratio, a.Interval.Bound)
		most := 2.8
		if b.at[0] > 1.2 { // heavy tails pay more for a level
			most = 4.6
		}
		if !(ratio <= most) {
			t.Errorf("%s: %.2f times a textbook's half-width, more than %.2f", b.name, ratio, most)
		}
		said, err := TrainingSums(t.Context(), q.Plan, l.reference())
		if err != nil {
			t.Fatal(err)
		}
		ways, unknown, err := l.Prospects(thresholdout.State{}, q, said)
		if err != nil || len(ways) != 1 || unknown != 0 || ways[0].Outcome != thresholdout.Measured || ways[0].Cost != a.Cost {
			t.Fatalf("%s: foreseen are %+v %v", b.name, ways, err)
		}
		if w := *ways[0].HalfWidth / half; w < 0.8 || w > 1.25 {
			t.Errorf("%s: planned at %v, and it has %v", b.name, *ways[0].HalfWidth, half)
		}
		plain, err := l.question(t, []byte(b.body))
		if err != nil {
			t.Fatal(err)
		}
		form, ok := l.MeasuredForm(plain)
		if !ok || l.Price(form.Plan) != l.Price(q.Plan) {
			t.Fatalf("%s: the form of a check that is measured: %v", b.name, ok)
		}
		if again, _, err := l.Prospects(thresholdout.State{}, form, said); err != nil || *again[0].HalfWidth != *ways[0].HalfWidth || again[0].Cost != ways[0].Cost {
			t.Errorf("%s: explained as %+v, foreseen as %+v: %v", b.name, again, ways, err)
		}
		if _, ok := l.MeasuredForm(q); ok {
			t.Errorf("%s: what is measured can be measured instead", b.name)
		}
	}
	if all < 8 {
		t.Errorf("only %d of the questions are measured", all)
	}
}

// question compiles one.
func (l *Local) question(t *testing.T, body []byte) (*Question, error) {
	t.Helper()
	parsed, err := queries.Parse(body)
	if err != nil {
		return nil, err
	}
	plan, err := parsed.Compile(t.Context(), l.Schema, queries.AsOne(l.Guarantee.ChecksStatistics()))
	if err != nil {
		return nil, err
	}
	return l.Question(parsed, plan)
}

// TestMeasuredWidths: a wish for a half-width is kept where the holdout is as was guessed, costs later answers the less the wider it is, and is refused with the least that can be.
func TestMeasuredWidths(t *testing.T) {
	const n = 4000
	schema, holdout := newShop(1, n).source(t)
	_, training := newShop(2, n).source(t)
	p, err := thresholdout.Plan(thresholdout.Spec{Mechanism: thresholdout.GuessAndCheck, N: n, Training: n, Questions: 300})
	if err != nil {
		t.Fatal(err)
	}
	l := &Local{Session: Session{Guarantee: p, Noise: Seeded(1)}, Schema: schema, Holdout: holdout, Training: training}
	wide, err := l.Ask(t.Context(), []byte(`{"type":"fraction","of":"right1","measure":true,"half_width":0.08}`))
	if err != nil {
		t.Fatal(err)
	}
	if half := (*wide.Interval.High - *wide.Interval.Low) / 2; half > 0.083 || half < 0.06 {
		t.Errorf("a wish of 0.08 has %v", half)
	}
	var narrow *NarrowError
	_, err = l.Ask(t.Context(), []byte(`{"type":"fraction","of":"right1","measure":true,"half_width":0.001}`))
	if !errors.As(err, &narrow) || !(narrow.Least > 0.01 && narrow.Least < narrow.Planned) || !strings.Contains(err.Error(), "measured") {
		t.Fatalf("a wish that cannot be: %v", err)
	}
	least, err := l.Ask(t.Context(), []byte(`{"type":"fraction","of":"right1","measure":true,"half_width":`+strconv.FormatFloat(narrow.Least, 'g', -1, 64)+`}`))
	if err != nil || math.Abs(*least.Value-*wide.Value) > 0.09 {
		t.Errorf("the least width: %+v %v", least, err)
	}
}

// TestNarrowNamesMeasuring: who wishes for a half-width that no guess can have, and wants it checked, is told whether a measured answer has it, and for how much; it then has it. Nothing is said where none has.
func TestNarrowNamesMeasuring(t *testing.T) {
	asked := chooser(t, true)
	ask := func(state thresholdout.State, wish float64, measure string) (Answer, *NarrowError) {
		t.Helper()
		a, _, err := asked(state, `{"type":"fraction","of":"right1","half_width":`+strconv.FormatFloat(wish, 'g', -1, 64)+`,"measure":`+measure+`}`)
		var narrow *NarrowError
		if err != nil && !errors.As(err, &narrow) {
			t.Fatal(err)
		}
		return a, narrow
	}
	_, narrow := ask(thresholdout.State{}, 1e-4, "false")
	if narrow == nil || narrow.Price != 0 || strings.Contains(narrow.Error(), "measure") {
		t.Fatalf("a wish that nothing has: %v", narrow)
	}
	wish := 0.97 * narrow.Least
	_, narrow = ask(thresholdout.State{}, wish, "false")
	if narrow == nil || narrow.Price != 8 || !strings.Contains(narrow.Error(), `with "measure": true the answer has this half-width, whatever was guessed, for 8 questions and a token`) {
		t.Fatalf("a wish that a measured answer has: %v", narrow)
	}
	a, refused := ask(thresholdout.State{}, wish, "true")
	if refused != nil || a.Outcome != thresholdout.Measured {
		t.Fatalf("%+v %v", a, refused)
	}
	if _, narrow = ask(thresholdout.State{Questions: 295}, wish, "false"); narrow == nil || narrow.Price != 0 {
		t.Errorf("with five questions left: %v", narrow)
	}
}
