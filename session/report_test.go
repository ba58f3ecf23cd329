package session

import (
	"context"
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// TestReportNextToTextbooks: the half-width of each number of a final report of five, after 300 questions of a thousand that passed, next to a textbook's for one question that was fixed
// beforehand. The value is the holdout's own, and no token is spent. Red where a number is read at a check's level, or by the range of its values.
func TestReportNextToTextbooks(t *testing.T) {
	const n = 12_000
	held, train := newShop(1, n), newShop(2, n)
	schema, holdout := held.source(t)
	_, training := train.source(t)
	p, err := thresholdout.Plan(thresholdout.Spec{Mechanism: thresholdout.GuessAndCheck, N: n, Training: n, Questions: 1000})
	if err != nil {
		t.Fatal(err)
	}
	z := distuv.UnitNormal.Quantile(1 - 0.025)
	for _, b := range textbooks() {
		l := &Local{Session: Session{Guarantee: p, Noise: Seeded(1)}, Schema: schema, Holdout: holdout, Training: training, State: thresholdout.State{Questions: 300}}
		batch := [][]byte{[]byte(b.body)}
		for _, of := range []string{"score > 0.1", "score > 0.2", "score > 0.3", "score > 0.4"} {
			batch = append(batch, []byte(`{"type":"fraction","of":"`+of+`"}`))
		}
		answers, err := l.Report(t.Context(), batch)
		if err != nil {
			t.Fatalf("%s: %v", b.name, err)
		}
		a := answers[0]
		ratio := (*a.Interval.High - *a.Interval.Low) / 2 / (z * b.error(held))
		t.Logf("%-26s %.2f times a textbook's half-width (%s)", b.name, ratio, a.Interval.Bound)
		// Its level is 6.6 nats, at which a normal quantile is 1.53 times the textbook's; heavy tails pay more for a level than that.
		if most := 1.75 * b.at[0]; !(ratio <= most) {
			t.Errorf("%s: %.3f times a textbook's half-width, more than %.3f", b.name, ratio, most)
		}
		if a.Cost.Tokens != 0 || a.Outcome != thresholdout.Measured || a.ValueFrom != ValueFromHoldout || !strings.Contains(a.Interval.Scope, "report") {
			t.Errorf("%s: %+v, %+v", b.name, a, a.Interval)
		}
		if l.Guarantee.Left(l.State) != 0 || !l.Budget(l.State).Closed {
			t.Errorf("%s: after the report: %+v", b.name, l.State)
		}
	}
}

// TestReportRefusals: what a report does not take is refused before a row is read, and a closed holdout says that it is closed.
func TestReportRefusals(t *testing.T) {
	schema, holdout := newShop(3, 500).source(t)
	_, training := newShop(4, 500).source(t)
	p, err := thresholdout.Plan(thresholdout.Spec{Mechanism: thresholdout.GuessAndCheck, N: 500, Training: 500, Questions: 10, Tokens: 5})
	if err != nil {
		t.Fatal(err)
	}
	const accuracy = `{"type":"fraction","of":"right1"}`
	l := &Local{Session: Session{Guarantee: p, Noise: Seeded(1)}, Schema: schema, Holdout: holdout, Training: training}
	report := func(bodies ...string) error {
		batch := make([][]byte, len(bodies))
		for i, b := range bodies {
			batch[i] = []byte(b)
		}
		_, err := l.Report(context.Background(), batch)
		return err
	}
	var wrong *queries.Error
	for _, member := range []string{`"guess":0.5`, `"half_width":0.1`, `"measure":true`} {
		if err := report(strings.TrimSuffix(accuracy, "}") + "," + member + "}"); !errors.As(err, &wrong) {
			t.Errorf("with %s: %v", member, err)
		}
	}
	var short *ShortError
	many := make([]string, 11)
	for i := range many {
		many[i] = accuracy
	}
	if err := report(many...); !errors.As(err, &short) || short.Reason != QuestionsExhausted {
		t.Errorf("eleven numbers for ten questions: %v", err)
	}
	if l.State != (thresholdout.State{}) {
		t.Errorf("a refused report has changed the state: %+v", l.State)
	}
	if err := report(accuracy); err != nil {
		t.Fatal(err)
	}
	if err := report(accuracy); !errors.As(err, &short) || short.Reason != HoldoutClosed {
		t.Errorf("a second report: %v", err)
	}
	noisy, err := thresholdout.Plan(thresholdout.Spec{Mechanism: thresholdout.Gaussian, N: 500, Questions: 10})
	if err != nil {
		t.Fatal(err)
	}
	other := &Local{Session: Session{Guarantee: noisy, Noise: Seeded(1)}, Schema: schema, Holdout: holdout}
	if _, err := other.Report(t.Context(), [][]byte{[]byte(accuracy)}); err == nil || !strings.Contains(err.Error(), "has no final report") {
		t.Errorf("a report of a mechanism that has none: %v", err)
	}
	if _, err := other.Report(t.Context(), nil); err == nil {
		t.Error("a report of nothing")
	}
	if _, err := l.Ask(t.Context(), []byte(accuracy)); !errors.As(err, &short) || short.Reason != HoldoutClosed {
		t.Errorf("a question after the report: %v", err)
	}
}

// TestReportPValue: a test in a report has the p-value that its interval says: the null hypothesis is outside where it is below the level, and a p-value is larger the more was said before.
func TestReportPValue(t *testing.T) {
	schema, holdout := newShop(3, 2000).source(t)
	_, training := newShop(4, 2000).source(t)
	p, err := thresholdout.Plan(thresholdout.Spec{Mechanism: thresholdout.GuessAndCheck, N: 2000, Training: 2000, Questions: 100})
	if err != nil {
		t.Fatal(err)
	}
	last := 0.0
	for _, asked := range []int64{0, 50, 99} {
		l := &Local{Session: Session{Guarantee: p, Noise: Seeded(1)}, Schema: schema, Holdout: holdout, Training: training, State: thresholdout.State{Questions: asked}}
		share := 0.0
		for _, b := range newShop(3, 2000).churn {
			if b {
				share += 1.0 / 2000
			}
		}
		null := math.Round(1000*(share+0.04)) / 1000
		answers, err := l.Report(t.Context(), [][]byte{[]byte(`{"type":"test","test":"proportion","of":"churn","equals":` + strconv.FormatFloat(null, 'f', -1, 64) + `}`)})
		if err != nil {
			t.Fatal(err)
		}
		a := answers[0]
		if a.PValue == nil || *a.PValue < last {
			t.Fatalf("after %d questions: p-value %v, before %v", asked, a.PValue, last)
		}
		last = *a.PValue
		if outside := null < *a.Interval.Low || null > *a.Interval.High; outside != (last <= 0.05) {
			t.Errorf("after %d questions: %v in [%v, %v], p-value %v", asked, null, *a.Interval.Low, *a.Interval.High, last)
		}
	}
}
