package session

import (
	"testing"

	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// TestCalibrationPrices: a reliability curve of ten bins is thirty questions where each number is checked, its gaps ten, and neither needs more tokens than one to be asked. It would notice gaps that cost what
// the curve does, and a curve that a holdout of the default twenty tokens cannot be asked for.
func TestCalibrationPrices(t *testing.T) {
	for _, c := range []struct {
		mechanism  thresholdout.Name
		form       string
		want, most int64 // questions; tokens at most
	}{
		{thresholdout.GuessAndCheck, "curve", 30, 30}, {thresholdout.GuessAndCheck, "gap", 10, 10},
		{thresholdout.Gaussian, "curve", 5, 0}, {thresholdout.Gaussian, "gap", 4, 0},
	} {
		schema, table := few(t, 1, false, 0)
		_, training := few(t, 2, false, 0)
		p, err := thresholdout.Plan(thresholdout.Spec{Mechanism: c.mechanism, N: table.Units(), Training: training.Units(), Questions: 100, Confidence: 0.95})
		if err != nil {
			t.Fatal(err)
		}
		l := &Local{Session: Session{Guarantee: p, Noise: Seeded(1)}, Schema: schema, Holdout: table, Training: training}
		body := `{"type":"calibration","label":"late","prediction":"x","form":"` + c.form + `"}`
		query, err := queries.Parse([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		plan, err := query.Compile(t.Context(), schema)
		if err != nil {
			t.Fatal(err)
		}
		least := int64(0)
		if c.mechanism == thresholdout.GuessAndCheck {
			least = 1
		}
		if price := l.Price(plan); price.Questions != c.want || price.Tokens != least || l.MostTokens(plan) != c.most {
			t.Errorf("%s under %s costs %+v and at most %d tokens, not %d and %d", c.form, c.mechanism, price, l.MostTokens(plan), c.want, c.most)
		}
		a, err := l.Ask(t.Context(), []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		if a.Cost.Questions != c.want {
			t.Errorf("%s under %s cost %+v", c.form, c.mechanism, a.Cost)
		}
	}
}
