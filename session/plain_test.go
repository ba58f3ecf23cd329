package session

import (
	"testing"

	"github.com/holdoutd/holdoutd/internal/stattest"
	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// abTests are tests of two groups, and of one with a condition; in newShop no offer has an effect, so that the first three nulls are true.
var abTests = []string{
	`{"type":"test","test":"two-proportions","of":"churn","between":["treated"]}`,
	`{"type":"test","test":"two-sample","of":"revenue","range":[0,1000],"between":["treated","!treated"]}`,
	`{"type":"test","test":"two-proportions","of":"churn","between":["treated"],"alternative":"greater"}`,
}

// ab is a holdout of a shop that is asked these questions, in a batch or of a slice each.
func ab(t testing.TB, seed uint64, n int, mechanism thresholdout.Name, change func(*shop)) *Local {
	t.Helper()
	rows, other := newShop(seed, n), newShop(seed+1_000_000, n)
	if change != nil {
		change(&rows)
		change(&other)
	}
	schema, holdout := rows.source(t)
	_, training := other.source(t)
	spec := thresholdout.Spec{Mechanism: mechanism, N: int64(n), Training: int64(n), Questions: 40}
	if mechanism == thresholdout.Gaussian {
		spec.Rounds = 1
	} else {
		spec.Questions = 4
	}
	g, err := thresholdout.Plan(spec)
	if err != nil {
		t.Fatal(err)
	}
	return &Local{Session: Session{Guarantee: g, Noise: Seeded(seed), RandomSplit: true}, Schema: schema, Holdout: holdout, Training: training, Compile: []queries.Option{queries.Grouped(false)}}
}

// TestABTestByItself: the plain p-value of an A/B test rejects a true null at 5% in at most 5% of runs, at 20% in at most 20% (false alarm 1e-6 each), in a batch and under split, and is at most the one that
// holds for all questions together; of an effect of which a textbook's z is 4.5 it is below 1e-3 in a batch of 40, a tenth of the other. What a p-value is at each level is tested where it is made
// (TestBySample in queries/shape).
func TestABTestByItself(t *testing.T) {
	for _, mechanism := range []thresholdout.Name{thresholdout.Gaussian, thresholdout.Split} {
		for _, body := range abTests {
			const runs = 12
			fifth, twentieth := 0, 0
			for seed := range uint64(runs) {
				a, err := ab(t, seed, 1000, mechanism, nil).Ask(t.Context(), []byte(body))
				if err != nil || a.Plain == nil || a.PValue == nil {
					t.Fatalf("%s: %s: %+v, %v", mechanism, body, a, err)
				}
				if *a.Plain > *a.PValue*1.002 {
					t.Errorf("%s: %s: by itself %v, together %v", mechanism, body, *a.Plain, *a.PValue)
				}
				if *a.Plain <= 0.05 {
					twentieth++
				}
				if *a.Plain <= 0.2 {
					fifth++
				}
			}
			if err := stattest.AtMost(twentieth, runs, 0.05, 1e-6); err != nil {
				t.Errorf("%s: %s: at 5%%: %v", mechanism, body, err)
			}
			if err := stattest.AtMost(fifth, runs, 0.2, 1e-6); err != nil {
				t.Errorf("%s: %s: at 20%%: %v", mechanism, body, err)
			}
			t.Logf("%s: %s: %d of %d at 5%%, %d at 20%%", mechanism, body, twentieth, runs, fifth)
		}
	}
	effect := func(s *shop) { // an eighth of those who would churn stay
		for i := range s.churn {
			if s.treated[i] && s.score[i] > 0.3 && int(s.revenue[i]*1000)%8 == 0 {
				s.churn[i] = false
			}
		}
	}
	a, err := ab(t, 7, 30_000, thresholdout.Gaussian, effect).Ask(t.Context(), []byte(abTests[0]))
	if err != nil || a.Plain == nil {
		t.Fatal(a, err)
	}
	t.Logf("an effect of %.4f: by itself %.2g, together %.2g", *a.Value, *a.Plain, *a.PValue)
	if *a.Plain > 1e-3 || *a.Plain > *a.PValue/10 {
		t.Errorf("an effect of %v has the p-value %v by itself, and %v together", *a.Value, *a.Plain, *a.PValue)
	}
}
