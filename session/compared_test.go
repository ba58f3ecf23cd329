package session

import (
	"context"
	"testing"

	"github.com/holdoutd/holdoutd/thresholdout"
)

// TestOneTokenForOneDisagreement: under thresholdout a question that is more than a mean costs one question, and one token where the holdout disagrees with the training part, however many means it is made of; none
// where they agree. Its interval contains what the holdout has. It would notice a plan that is released mean by mean, and a failure that is not paid for.
func TestOneTokenForOneDisagreement(t *testing.T) {
	const rows = 4000
	for name, c := range map[string]struct {
		late   map[string]float64 // of the holdout
		tokens int64
	}{
		"agree":    {someLate, 0},
		"disagree": {map[string]float64{"a": 0.95, "b": 0.9, "c": 0.1}, 1},
	} {
		schema, holdout := grouped(t, 6, rows, false, c.late)
		_, training := grouped(t, 7, rows, false, someLate)
		g, err := thresholdout.Plan(thresholdout.Spec{Mechanism: thresholdout.Thresholdout, N: rows, Training: rows, Questions: 20, Tokens: 10})
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range []struct {
			query string
			truth float64
			means bool // compared with noise
		}{
			{`{"type":"fraction","of":"late","where":"g == 'a'"}`, c.late["a"], false},
			{`{"type":"difference","of":"late ? 1 : 0","range":[0,1],"between":["g == 'a'","g == 'c'"]}`, c.late["a"] - c.late["c"], false},
			{`{"type":"fraction","of":"late"}`, (c.late["a"] + 2*c.late["b"] + 3*c.late["c"]) / 6, true},
			{`{"type":"mean","of":"late ? 0.6 : 0.5","range":[0,1]}`, 0.5 + 0.1*(c.late["a"]+2*c.late["b"]+3*c.late["c"])/6, true},
			{`{"type":"variance","of":"late ? 1 : 0","range":[0,1]}`, 0, false},
		} {
			l := &Local{Session: Session{Guarantee: g, Noise: Seeded(3)}, Schema: schema, Holdout: holdout, Training: training}
			answer, err := l.Ask(context.Background(), []byte(q.query))
			if err != nil {
				t.Fatal(q.query, err)
			}
			if answer.Cost.Questions != 1 || answer.Cost.Tokens != c.tokens || l.State.Tokens != c.tokens {
				t.Errorf("%s, %s: cost %+v, then %+v", name, q.query, answer.Cost, l.State)
			}
			if q.truth > 0 && (q.truth < *answer.Interval.Low || q.truth > *answer.Interval.High) {
				t.Errorf("%s, %s: %v in [%v, %v]", name, q.query, q.truth, *answer.Interval.Low, *answer.Interval.High)
			}
			noisy := answer.Interval.Bound == "thresholdout-forced-runs" || answer.Interval.Bound == "thresholdout-forced-runs-two-moments"
			if noisy != q.means {
				t.Errorf("%s: bound %s", q.query, answer.Interval.Bound)
			}
			if again, err := l.Ask(context.Background(), []byte(q.query)); err != nil || *again.Value != *answer.Value || l.State.Questions != 1 {
				t.Errorf("%s asked again: %+v, %v", q.query, again, err)
			}
		}
	}
}
