package thresholdout

import (
	"math"
	"reflect"
	"testing"

	"github.com/holdoutd/holdoutd/thresholdout/moments"
)

// TestInheritedLevel: a holdout that goes on from others promises what one run with all their questions would promise, and refuses where nothing is proved or nothing would be left. It
// would notice a count that is not added: intervals would then be too narrow.
func TestInheritedLevel(t *testing.T) {
	plan := func(name Name, questions, tokens int64) Guarantee {
		g, err := Plan(Spec{Mechanism: name, N: 1000, Training: 2000, Questions: questions, Tokens: tokens})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	g, other := plan(GuessAndCheck, 100, 10), plan(GuessAndCheck, 40, 4)
	price := moments.Nats(5 << 20)
	a := State{Questions: 20, Tokens: 2, Memory: account{Wide: 3, Paid: 2 * price}}
	b := State{Questions: 15, Tokens: 1, Memory: account{Wide: 1, Paid: price}}
	one := State{Questions: 35, Tokens: 3, Memory: account{Wide: 4, Paid: 3 * price}}
	got, err := g.Inherit([]Guarantee{g, other}, []State{a, b})
	if err != nil {
		t.Fatal(err)
	}
	more := accountOf(got).Paid - 3*price
	if counts := (State{Questions: got.Questions, Tokens: got.Tokens, Memory: one.Memory}); more < 0 || more > 3<<20 || !reflect.DeepEqual(counts, one) || accountOf(got).Wide != 4 {
		t.Fatalf("%+v, want %+v and a little more", got, one)
	}
	one.Memory = account{Wide: 4, Paid: 3*price + more}
	if s, err := g.Inherit([]Guarantee{g}, []State{a}); err != nil || !reflect.DeepEqual(s, a) {
		t.Errorf("of as many questions: %+v %v, want %+v", s, err, a)
	}
	fresh := g.own.Preview(State{}, 0.5)
	if i, want := g.own.Preview(got, 0.5), g.own.Preview(one, 0.5); i.Low != want.Low || i.High != want.High || i.High-i.Low <= fresh.High-fresh.Low {
		t.Errorf("the interval %v, of one run %v, of a fresh holdout %v", i, want, fresh)
	}
	if s, err := g.Inherit([]Guarantee{g}, []State{{}}); err != nil || !reflect.DeepEqual(s, State{}) {
		t.Errorf("nothing inherited: %+v %v", s, err)
	}
	for name, c := range map[string]struct {
		heir   Guarantee
		others []Guarantee
		states []State
	}{
		"no question left":      {other, []Guarantee{g, g}, []State{a, a}},
		"no token left":         {other, []Guarantee{g}, []State{{Questions: 10, Tokens: 4}}},
		"from gaussian":         {g, []Guarantee{plan(Gaussian, 100, 0)}, []State{{Questions: 3}}},
		"under gaussian":        {plan(Gaussian, 100, 0), []Guarantee{plan(Gaussian, 100, 0)}, []State{{Questions: 3}}},
		"under thresholdout":    {plan(Thresholdout, 100, 5), []Guarantee{plan(Thresholdout, 100, 5)}, []State{{Questions: 3}}},
		"under split":           {plan(Split, 10, 0), []Guarantee{plan(Split, 10, 0)}, []State{{Questions: 3}}},
		"a state that is none":  {g, []Guarantee{other}, []State{{Questions: 41}}},
		"of a newer version":    {g, []Guarantee{func() Guarantee { o := g; o.Version++; return o }()}, []State{a}},
		"counts that overflow":  {g, []Guarantee{g, g}, []State{{Questions: 100}, {Questions: 100}}},
		"a negative of anybody": {g, []Guarantee{g}, []State{{Questions: -1}}},
	} {
		if s, err := c.heir.Inherit(c.others, c.states); err == nil {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// TestHeirsAreChosenKnowingAnswers: whoever makes an heir knows the answers, and may choose by them how many questions it has. Over all strings of outcomes, with the best choice for
// each, the probabilities that levels pay with add up to no more than 1. It would notice an heir whose urn makes what was told likelier than the urn that told it: the sum is 1.6 then.
func TestHeirsAreChosenKnowingAnswers(t *testing.T) {
	plan := func(questions int64) Guarantee {
		g, err := Plan(Spec{Mechanism: GuessAndCheck, N: 1000, Training: 2000, Questions: questions, Tokens: 20})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	const asked = 20
	choose := func(n, k int64) float64 {
		a, _ := math.Lgamma(float64(n + 1))
		b, _ := math.Lgamma(float64(k + 1))
		c, _ := math.Lgamma(float64(n - k + 1))
		return a - b - c
	}
	for _, of := range []int64{20, 40, 1000} {
		first, all := plan(of), 0.0
		var heirs []Guarantee
		for _, k := range []int64{21, 30, 60, 100, 300, 1000, 100_000} {
			heirs = append(heirs, plan(k))
		}
		for failed := int64(0); failed < asked; failed++ {
			for wide := int64(0); wide+failed <= asked; wide++ {
				best := math.Inf(-1)
				for _, heir := range heirs {
					s, err := heir.Inherit([]Guarantee{first}, []State{{Questions: asked, Tokens: failed, Memory: account{Wide: wide}}})
					if err != nil {
						t.Fatal(err)
					}
					m := heir.own.(*guessAndCheck)
					best = max(best, math.Log(2*float64(m.Questions)/m.Beta())-m.level(s))
				}
				all += math.Exp(best + choose(asked, failed) + choose(asked-failed, wide))
			}
		}
		if all > 1+1e-6 {
			t.Errorf("heirs of %d questions: probabilities add up to %v", of, all)
		}
	}
}
