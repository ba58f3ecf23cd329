package thresholdout

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/internal/stattest"
	"github.com/holdoutd/holdoutd/thresholdout/moments"
	"github.com/holdoutd/holdoutd/thresholdout/pairs"
)

// drawnStatistic is one kind of question: what a part of so many units says to it, and what it says after its units have moved a little.
type drawnStatistic struct {
	name string
	draw func(t *rapid.T, name string, units int64) []unit
	of   func(units []unit) Statistic

	step       float64 // a guess is taken for the nearest of numbers that are so far apart; 0: of the grid's
	marginless bool    // an answer has no margin of its own
	neverTold  bool    // a null hypothesis makes no difference, with so few units; TestTestsAreTold has differences
	neverWide  bool    // with so few units; TestOutcomesAreAnswers has wide passes
}

// unreachable says that no value of the mean that has most of the error makes the guess, and that the answer is what comes next to it.
func (k drawnStatistic) unreachable(training Statistic, guess, answer float64) bool {
	j, ok := training.(JointSums)
	if !ok {
		return false
	}
	other := float64(j.Means[0].mean()) / float64(grid)
	return guess > 1-other && math.Abs(answer-(1-other)) < 3e-9
}

// said is what a finding says; the plan of a joint one has a function, which is equal to none.
func said(f Finding) any {
	if j, ok := f.(jointFinding); ok {
		return j.JointOutcome
	}
	return f
}

// unit is one unit's values, in steps: of a difference its group and value, of a weighted root A and B.
type unit struct{ group, a, b int64 }

var drawnStatistics = []drawnStatistic{
	{"difference", func(t *rapid.T, name string, units int64) (all []unit) {
		middle, spread := rapid.Int64Range(0, grid).Draw(t, name+" middle"), rapid.Int64Range(0, grid/2).Draw(t, name+" spread")
		for range units {
			all = append(all, unit{group: rapid.Int64Range(0, 2).Draw(t, "group"), a: rapid.Int64Range(max(0, middle-spread), min(grid, middle+spread)).Draw(t, name)})
		}
		return all
	}, func(units []unit) Statistic {
		in := func(group int64) RootSums {
			var values []int64
			for _, u := range units {
				if u.group == group {
					values = append(values, u.a)
				}
			}
			return RootSums{All: int64(len(units)), Sums: moments.Of(values), Partial: true}
		}
		return DifferenceSums{in(1), in(2)}
	}, 0, false, true, false},
	{"weighted", func(t *rapid.T, name string, units int64) (all []unit) {
		low, high := rapid.Int64Range(0, grid).Draw(t, name+" low"), rapid.Int64Range(0, grid).Draw(t, name+" high")
		share := rapid.Int64Range(0, 100).Draw(t, name+" share")
		for range units {
			b := rapid.Int64Range(min(low, high), max(low, high)).Draw(t, name)
			a := min(b, b/100*min(100, share+rapid.Int64Range(0, 20).Draw(t, "value")))
			all = append(all, unit{a: a, b: b})
		}
		return all
	}, func(units []unit) Statistic {
		var w WeightedSums
		for _, u := range units {
			w.Add(u.a, u.b)
		}
		return w
	}, 0, false, true, false},
	{"area", drawnPlaces, func(units []unit) Statistic {
		const bins = 5
		var with, without [bins]int64
		for _, u := range units {
			at := min(u.a*bins/grid, bins-1)
			if u.group == 0 {
				with[at]++
			} else {
				without[at]++
			}
		}
		s, err := pairs.AUC(with[:], without[:])
		if err != nil {
			panic(err)
		}
		return PairSums{All: int64(len(units)), Sums: s, Monotone: true}
	}, 0, false, true, false},
	{"quantile", drawnPlaces, func(units []unit) Statistic {
		q := QuantileSums{All: int64(len(units)), P: 0.4, Exact: true, Units: int64(len(units)) * grid}
		for rung := range int64(drawnRungs + 1) {
			below, upto := int64(0), int64(0)
			for _, u := range units {
				at := u.a * drawnRungs / grid
				if at < rung {
					below += grid
				}
				if at <= rung {
					upto += grid
				}
			}
			q.Below, q.Upto = append(q.Below, below), append(q.Upto, upto)
		}
		return q
	}, 1.0 / drawnRungs, true, true, true},
	{"joint", drawnPlaces, func(units []unit) Statistic {
		var first, second []int64
		for _, u := range units {
			first, second = append(first, u.a), append(second, u.group*grid/8)
		}
		in := func(values []int64) RootSums { return RootSums{All: int64(len(units)), Sums: moments.Of(values)} }
		return JointSums{Means: []RootSums{in(second), in(first)}, Shares: []float64{0.1, 0.9}, Low: 0, High: 1, Make: func(m []Known, _ int64) Known {
			clip := func(x float64) float64 { return min(max(x, 0), 1) }
			return Known{clip(m[1].Value - m[0].Value), clip(m[1].Low - m[0].High), clip(m[1].High - m[0].Low)}
		}}
	}, 0, true, false, false},
}

// drawnRungs are the steps of a drawn quantile.
const drawnRungs = 20

// drawnPlaces are units with a value around a middle, and a group that is 0, 1 or 2.
func drawnPlaces(t *rapid.T, name string, units int64) (all []unit) {
	middle, spread := rapid.Int64Range(0, grid).Draw(t, name+" middle"), rapid.Int64Range(0, grid/2).Draw(t, name+" spread")
	for range units {
		all = append(all, unit{group: rapid.Int64Range(0, 2).Draw(t, "group"), a: rapid.Int64Range(max(0, middle-spread), min(grid, middle+spread)).Draw(t, name)})
	}
	return all
}

// TestStatisticLaws: of every kind of question that is checked as one, whether it is refused depends on no holdout row. The answer is a function of its outcome: holdouts
// with other sums and the same outcome get the same answer and the same next state. The interval is the finding's at the level of the state, and has the holdout's own value in it; a guess that passes at the
// narrowest margin has the interval that was expected, and one that was asked for is kept. One question is spent, a failure spends a token, and what it says is paid for. It would notice an interval
// that looks at the holdout's own sums, a guess or a half-width that is not the analyst's, a narrower margin by which no null hypothesis is told, the narrow interval printed for a wide pass, and an outcome that later levels do not pay for.
func TestStatisticLaws(t *testing.T) {
	for _, kind := range drawnStatistics {
		seen := map[string]int{}
		check := func(t *rapid.T) {
			n, training := rapid.Int64Range(2, 40).Draw(t, "n"), rapid.Int64Range(1, 60).Draw(t, "training")
			k := rapid.Int64Range(1, 200).Draw(t, "k")
			p, err := Plan(Spec{Mechanism: GuessAndCheck, N: n, Training: training, Questions: k, Confidence: rapid.SampledFrom([]float64{0.1, 0.5, 0.95}).Draw(t, "confidence")})
			if err != nil {
				t.Fatal(err)
			}
			p.guessAndCheck().Deviations = rapid.SampledFrom([]float64{0.1, 0.5, p.guessAndCheck().Deviations}).Draw(t, "z") // margins are a plan: few units leave no room for failures
			s := State{Questions: rapid.Int64Range(0, k-1).Draw(t, "asked")}
			s.Tokens = rapid.Int64Range(0, min(p.Tokens-1, s.Questions)).Draw(t, "failed")
			s.Memory = account{Wide: rapid.Int64Range(0, s.Questions-s.Tokens).Draw(t, "wide"), Paid: moments.Nats(s.Tokens << 20)}
			in := StatisticInput{Training: kind.of(kind.draw(t, "training", training))}
			units := kind.draw(t, "holdout", n)
			in.Holdout = kind.of(units)
			if rapid.Bool().Draw(t, "own") {
				v := rapid.Float64Range(0, 1).Draw(t, "guess")
				in.Guess = &Guess{Value: &v, HalfWidth: rapid.SampledFrom([]float64{0, 0, 0.2, 0.4, 0.8}).Draw(t, "half width")}
			}
			var planned *Interval // as if nothing were tested
			if in.Guess == nil || in.Guess.HalfWidth == 0 {
				if _, i, err := p.ExpectedStatistic(s, in); err == nil {
					planned = i
				}
			}
			if rapid.Bool().Draw(t, "tested") {
				null := rapid.Float64Range(0, 1).Draw(t, "null")
				if in.Guess == nil {
					in.Guess = &Guess{}
				}
				in.Guess.Null = &null
			}
			value, expected, refusal := p.ExpectedStatistic(s, in)
			if g := in.Guess; g != nil && g.Null != nil && planned != nil && refusal == nil && max(math.Abs(planned.Low-expected.Low), math.Abs(planned.High-expected.High)) > 1e-12 { // less is rounding
				seen["told"]++
				if null := *g.Null; null > planned.High || null < planned.Low || null >= expected.Low && null <= expected.High {
					t.Fatalf("%v is told by %+v, without it the interval is %+v", null, expected, planned)
				}
			}
			out, next, err := StepStatistic(p, s, in)
			if refusal != nil {
				var width *WidthError
				if !errors.As(err, &width) || !reflect.DeepEqual(err, refusal) || next != s || width.HalfWidth >= width.Least {
					t.Fatalf("expected %v, the step says %v", refusal, err)
				}
				seen["refused"]++
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			i, level := out.Interval, p.guessAndCheck().level(s)
			want, ok := out.found.Interval(level)
			if !ok || !reflect.DeepEqual(i, want) {
				t.Fatalf("%+v, the outcome's interval is %+v", i, want)
			}
			if !(0 <= i.Low && i.Low <= i.High && i.High <= 1) || math.IsNaN(out.Value) {
				t.Fatalf("value %v, interval %+v", out.Value, i)
			}
			if h, ok := in.Holdout.Value(); ok && (h < i.Low-1e-8 || h > i.High+1e-8) {
				t.Fatalf("the holdout's own value %v is not in %+v", h, i)
			}
			if g := in.Guess; g != nil && g.Value != nil && !out.found.Failed() && math.Abs(out.Value-*g.Value) > max(3e-9, kind.step/2+1e-9) && !kind.unreachable(in.Training, *g.Value, out.Value) {
				t.Fatalf("%v passed as %v", *g.Value, out.Value)
			}
			if h, ok := in.Holdout.Value(); ok && !kind.marginless && !out.found.Failed() && math.Abs(h-out.Value) > out.Margin+1e-8 {
				t.Fatalf("%v passed for %v, farther off than %v", out.Value, h, out.Margin)
			}
			if narrow := !out.found.Failed() && !out.found.Wide(); narrow && (out.Value != value || !reflect.DeepEqual(i, expected)) {
				t.Fatalf("%v %+v, expected %v %+v", out.Value, i, value, expected)
			}
			if g := in.Guess; g != nil && g.HalfWidth > 0 && out.Tokens == 0 && (i.High > out.Value+g.HalfWidth+1e-9 || i.Low < out.Value-g.HalfWidth-1e-9) {
				t.Fatalf("%+v is wider than %v", i, g.HalfWidth)
			}
			c, err := p.guessAndCheck().plan(s, in)
			if err != nil {
				t.Fatal(err)
			}
			books, failed := accountOf(s), int64(0)
			switch {
			case out.found.Failed():
				failed, books.Paid = 1, books.Paid+c.Price(out.found)
				seen["failure"]++
			case out.found.Wide():
				books.Wide++
				seen["wide"]++
			default:
				seen["pass"]++
			}
			if next != (State{Questions: s.Questions + 1, Tokens: s.Tokens + failed, Memory: books}) || out.Tokens != failed {
				t.Fatalf("%+v after %+v", next, s)
			}
			// Other units, the same outcome.
			moved := append([]unit(nil), units...)
			for j := range moved {
				u := &moved[j]
				to := grid
				if u.b > 0 {
					to = u.b
				}
				u.a = min(max(u.a+rapid.Int64Range(-grid/256, grid/256).Draw(t, "moved"), 0), to)
				if u.b > 0 && u.b < u.a {
					u.a = u.b
				}
			}
			other := in
			other.Holdout = kind.of(moved)
			if same, err := c.Find(other.Holdout); err != nil || !reflect.DeepEqual(said(same), said(out.found)) {
				return
			}
			again, then, err := StepStatistic(p, s, other)
			again.found, out.found = nil, nil // which are alike, and may hold a function
			if err != nil || !reflect.DeepEqual(again, out) || then != next {
				t.Fatalf("one outcome has the answers %+v %+v and %+v %+v, %v", out, out.Interval, again, again.Interval, err)
			}
			if !reflect.DeepEqual(moved, units) {
				seen["again"]++
			}
		}
		missing := func() []string {
			return slices.DeleteFunc([]string{"pass", "wide", "failure", "again", "told"}, func(outcome string) bool {
				return seen[outcome] > 0 || kind.neverWide && outcome == "wide" || kind.neverTold && outcome == "told"
			})
		}
		for turn := range 32 { // an outcome is rare in some kinds
			if rapid.Check(t, stattest.Further(turn, check)); len(missing()) == 0 {
				break
			}
		}
		if rare := missing(); len(rare) > 0 {
			t.Fatalf("%s: none was drawn of %v: %v", kind.name, rare, seen)
		}
		t.Logf("%s: %v", kind.name, seen)
	}
}
