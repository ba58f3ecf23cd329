package agents

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// TestTasks: every data set has the rows it should, and one model of any kind is better than a guess would be on rows that it has not
// seen: the largest class has 63%, 10% and 55% of the rows.
func TestTasks(t *testing.T) {
	problems, err := tasks()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]struct {
		rows, classes int
		least         float64 // of the mean accuracy of all kinds
	}{"flights": {100000, 2, 0.51}, "breast cancer": {569, 2, 0.7}, "digits": {1797, 10, 0.3}}
	for _, p := range problems {
		w := want[p.name]
		if len(p.label) != w.rows || p.classes != w.classes || 3*p.part+p.fresh > len(p.label) {
			t.Errorf("%s: %d rows, %d classes, parts of %d and %d", p.name, len(p.label), p.classes, p.part, p.fresh)
		}
		r := rand.New(rand.NewPCG(5, 0))
		fit, other := []int32{}, []int32{}
		for i, row := range r.Perm(len(p.label))[:2*p.part] {
			if i < p.part {
				fit = append(fit, int32(row))
			} else {
				other = append(other, int32(row))
			}
		}
		part, sum := newEnsemble(p, other), 0.0
		const turns = 5
		for range turns {
			for arm := range p.arms {
				model, err := p.member(fit, arm, r)
				if err != nil {
					t.Fatal(err)
				}
				part.try(model)
				m := part.mean()
				sum += float64(m.Sum) / float64(rowfn.One) / float64(m.N)
			}
		}
		if mean := sum / float64(turns*len(p.arms)); mean < w.least {
			t.Errorf("%s: models are right in %.3f of the rows", p.name, mean)
		}
	}
}

// TestStops: an agent whose tokens are spent asks no more, and claims the best that it was told.
func TestStops(t *testing.T) {
	problems, err := tasks()
	if err != nil {
		t.Fatal(err)
	}
	digits := problems[2]
	// The least threshold and much noise: validation and holdout disagree again and again.
	p, err := thresholdout.Plan(thresholdout.Spec{Mechanism: thresholdout.Thresholdout, N: int64(digits.part), Training: int64(digits.part),
		Questions: 100, Tokens: 3, Threshold: 0.001, Sigma: 0.01})
	if err != nil {
		t.Fatal(err)
	}
	r, err := tune(digits, p, 1, 100)
	if err != nil {
		t.Fatal(err)
	}
	if r.Tokens != 3 || r.Asked >= 100 || len(r.Claimed) != 7 || last(r.Claimed) != r.Claimed[5] {
		t.Errorf("%d tokens, %d asked, claimed %v", r.Tokens, r.Asked, r.Claimed)
	}
}

// TestClaimsAreDrawn: the figure has a mark for every claim, those whose plain interval has no width at the end of what others reach. It would notice a claim of 100% that takes the figure, and with it the
// report, away.
func TestClaimsAreDrawn(t *testing.T) {
	c := &cell{problem: &task{name: "digits", fresh: 100}, configurations: 5}
	for claim, fresh := range map[float64]float64{0.9: 0.8, 1: 0.9} {
		half := 0.3 * (1 - claim)
		c.runs = append(c.runs, outcome{Claimed: []float64{claim}, Fresh: []float64{fresh}, Low: claim - half, High: claim + half})
	}
	c.runs = append(c.runs, outcome{Claimed: []float64{1}, Fresh: []float64{1}, Low: 1, High: 1})
	p, err := drawClaims([]*cell{c})
	if err != nil {
		t.Fatal(err)
	}
	if math.IsInf(p.X.Max, 0) || p.X.Max < 3.4 { // the claim of 0.9 is 10/3 half-widths too good
		t.Errorf("the axis goes to %v", p.X.Max)
	}
}
