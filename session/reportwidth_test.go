package session

import (
	"math"
	"testing"

	"github.com/holdoutd/holdoutd/thresholdout"
)

// TestReportWidthIsForeseen: what a final report would be after each outcome of each question that people ask is what it is then: after a pass to the letter, after another at least nearly. Nothing is said where there is none.
func TestReportWidthIsForeseen(t *testing.T) {
	const n = 4000
	held, train := newShop(1, n), newShop(2, n)
	schema, holdout := held.source(t)
	_, training := train.source(t)
	p, err := thresholdout.Plan(thresholdout.Spec{Mechanism: thresholdout.GuessAndCheck, N: n, Training: n, Questions: 300})
	if err != nil {
		t.Fatal(err)
	}
	outcomes := map[thresholdout.Outcome]int{}
	for _, b := range textbooks() {
		for _, body := range [][]byte{[]byte(b.body), measured(b.body)} {
			l := &Local{Session: Session{Guarantee: p, Noise: Seeded(1)}, Schema: schema, Holdout: holdout, Training: training, State: thresholdout.State{Questions: 100}}
			now, ok := p.ReportWidth(l.State)
			if !ok {
				t.Fatal("there is no report")
			}
			q, err := l.question(t, body)
			if err != nil { // it is not measured
				continue
			}
			said, err := TrainingSums(t.Context(), q.Plan, l.reference())
			if err != nil {
				t.Fatal(err)
			}
			ways, _, err := l.Prospects(l.State, q, said)
			if err != nil {
				t.Fatal(err)
			}
			a, err := l.Ask(t.Context(), body)
			if err != nil {
				t.Fatal(err)
			}
			after, ok := p.ReportWidth(l.State)
			if !ok || after <= now {
				t.Errorf("%s: a report has %v after %v", body, after, now)
			}
			for _, w := range ways {
				if w.Outcome == Mixed {
					continue
				}
				if w.Report == nil || *w.Report <= now {
					t.Fatalf("%s: after %s: %v", body, w.Outcome, w.Report)
				}
				if w.Outcome != a.Outcome {
					continue
				}
				outcomes[w.Outcome]++
				near := 1e-12
				if a.Cost.Tokens > 0 {
					near = 0.4 // how surprising a failure or a measured answer is, is known afterwards
				}
				if math.Abs(*w.Report/after-1) > near {
					t.Errorf("%s: after %s a report has %v, foreseen was %v", body, w.Outcome, after, *w.Report)
				}
			}
		}
	}
	if outcomes[thresholdout.Close] < 5 || outcomes[thresholdout.Measured] < 3 {
		t.Errorf("too few outcomes were seen: %v", outcomes)
	}
}
