package thresholdout

import (
	"errors"
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/thresholdout/moments"
)

// drawnStatistic is one kind of question: what a part of so many units says to it, and what it says after its units have moved a little.
type drawnStatistic struct {
	name string
	draw func(t *rapid.T, name string, units int64) []unit
	of   func(units []unit) Statistic
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
	}},
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
	}},
}

// TestStatisticLaws: of every kind of question that is checked as one, whether it is refused depends on no holdout row. The answer is a function of its outcome: holdouts
// with other sums and the same outcome get the same answer and the same next state. The interval is the finding's at the level of the state, and has the holdout's own value in it; a guess that passes at the
// narrowest margin has the interval that was expected, and one that was asked for is kept. One question is spent, a failure spends a token, and what it says is paid for. It would notice an interval
// that looks at the holdout's own sums, the narrow interval printed for a wide pass, and an outcome that later levels do not pay for.
func TestStatisticLaws(t *testing.T) {
	for _, kind := range drawnStatistics {
		seen := map[string]int{}
		rapid.Check(t, func(t *rapid.T) {
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
			value, expected, refusal := p.ExpectedStatistic(s, in)
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
			if g := in.Guess; g != nil && !out.found.Failed() && math.Abs(out.Value-*g.Value) > 3e-9 {
				t.Fatalf("%v passed as %v", *g.Value, out.Value)
			}
			if h, ok := in.Holdout.Value(); ok && !out.found.Failed() && math.Abs(h-out.Value) > out.Margin+1e-8 {
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
				failed, books.Paid = 1, books.Paid+c.Price()
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
			if same, err := c.Find(other.Holdout); err != nil || !reflect.DeepEqual(same, out.found) {
				return
			}
			if again, then, err := StepStatistic(p, s, other); err != nil || !reflect.DeepEqual(again, out) || then != next {
				t.Fatalf("one outcome has the answers %+v %+v and %+v %+v, %v", out, out.Interval, again, again.Interval, err)
			}
			if !reflect.DeepEqual(moved, units) {
				seen["again"]++
			}
		})
		for _, outcome := range []string{"pass", "wide", "failure", "again"} {
			if seen[outcome] == 0 {
				t.Errorf("%s: no %s was drawn: %v", kind.name, outcome, seen)
			}
		}
		t.Logf("%s: %v", kind.name, seen)
	}
}
