package fairness

import (
	"math"
	"testing"
)

// TestPopulation: the table is the demo's, its rules are about every flight of the subgroup, most first, and there is a gap to be closed. A part counts as one does by hand.
func TestPopulation(t *testing.T) {
	p, err := flights()
	if err != nil {
		t.Fatal(err)
	}
	now := p.truth(false)
	if p.rules() != 155 || p.whole.members != 8296 || p.whole.n != 100000 {
		t.Fatalf("%d rules about %d of %d flights", p.rules(), p.whole.members, p.whole.n)
	}
	none, sum := make([]bool, p.rules()), 0.0
	for rule, about := range now.about {
		if sum += about; rule > 0 && about > now.about[rule-1] {
			t.Errorf("rule %d is about more flights than the one before", rule)
		}
	}
	if gap := now.others - now.turned(none); math.Abs(sum-1) > 1e-12 || math.Abs(gap-0.060274) > 1e-5 {
		t.Errorf("shares add up to %v, the gap is %v", sum, gap)
	}
	turned := make([]bool, p.rules())
	turned[0], turned[7] = true, true
	hits := 0
	for i, rule := range p.rule {
		if rule != elsewhere && p.right[i] != (rule == 0 || rule == 7) {
			hits++
		}
	}
	if got := p.whole.hits(turned); got != int64(hits) || math.Abs(now.turned(turned)-float64(hits)/8296) > 1e-12 {
		t.Errorf("%d hits, accuracy %v; by hand %d", got, now.turned(turned), hits)
	}
	if coins := p.truth(true); math.Abs(coins.turned(turned)-0.5) > 1e-12 || coins.others != now.others {
		t.Errorf("with coins the accuracy is %v", coins.turned(turned))
	}
}

// TestExpect: for two flights and one rule the means are those of the four outcomes, rules that are not tried leave the model as it is, and with coins and many flights the told accuracy is the closed formula's.
func TestExpect(t *testing.T) {
	one := truth{others: 1, about: []float64{1}, accuracy: []float64{0.25}}
	// Wrong twice in 9/16: 2 of 2 are told and the rule is kept; once in 6/16: 1 of 2, and not kept; never in 1/16: 2 of 2.
	if e := one.expect(1, 2); math.Abs(1-e.told-(9+3+1)/16.) > 1e-12 || math.Abs(1-e.left-(9*0.75+7*0.25)/16) > 1e-12 {
		t.Errorf("%+v", e)
	}
	if e := one.expect(0, 2); e.told != 0.75 || e.left != 0.75 {
		t.Errorf("without rules %+v", e)
	}
	p, err := flights()
	if err != nil {
		t.Fatal(err)
	}
	coins, m := p.truth(true), 1e4
	formula := 0.5
	for _, q := range coins.about {
		formula += math.Sqrt(q / (2 * math.Pi * m))
	}
	if e := coins.expect(p.rules(), m); math.Abs(coins.others-e.told-formula) > 2e-3 || math.Abs(e.left-(coins.others-0.5)) > 1e-12 {
		t.Errorf("%+v, the formula says %v", e, coins.others-formula)
	}
}

// TestDraw: of the labels of a subgroup that are coins half are right, of real ones as many as in the population, and others are what they are: within six standard deviations, which one draw in a hundred
// million is not; the seed is fixed.
func TestDraw(t *testing.T) {
	p, err := flights()
	if err != nil {
		t.Fatal(err)
	}
	const n = 100000
	none := make([]bool, p.rules())
	for _, coins := range []bool{false, true} {
		drawn, now := p.draw(3, n, coins), p.truth(coins)
		m := float64(drawn.members)
		for _, c := range []struct {
			what       string
			got, truth float64
			of         float64
		}{{"subgroup", m / n, now.share, n}, {"right", float64(drawn.hits(none)) / m, now.turned(none), m}, {"others right", float64(drawn.othersRight) / (n - m), now.others, n - m}} {
			if far := (c.got - c.truth) / math.Sqrt(c.truth*(1-c.truth)/c.of); math.Abs(far) > 6 {
				t.Errorf("coins %v, %s: %v, truly %v: %.1f standard errors", coins, c.what, c.got, c.truth, far)
			}
		}
	}
}
