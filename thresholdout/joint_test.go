package thresholdout

import (
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/thresholdout/moments"
)

// spreadOfTwo is a + b² moved by the number of units, undefined where a is below a tenth.
func spreadOfTwo(means []Known, units int64) Known {
	a, b := means[0], means[1]
	k := Known{a.Value - b.Value*b.Value + float64(units), a.Low - b.High*b.High + float64(units), a.High - b.Low*b.Low + float64(units)}
	if a.Value < 0.1 {
		k.Value = math.NaN()
	}
	return k
}

// TestJointLaws: an answer about several means is a function of its outcome: holdouts with other sums and the same outcome get the same answer and the same next state. What the
// holdout's own means make is in the interval; a pass at the narrowest margins has the interval that was expected; each mean is read at its share of the level. One question
// is spent, a failure one token, and all that it says is paid for. It would notice an interval that looks at the holdout's own sums, shares that are not taken off, and
// cells of a mean that later levels do not pay for.
func TestJointLaws(t *testing.T) {
	seen := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		n, training := rapid.Int64Range(2, 60).Draw(t, "n"), rapid.Int64Range(1, 60).Draw(t, "training")
		k := rapid.Int64Range(1, 200).Draw(t, "k")
		p, err := Plan(Spec{Mechanism: GuessAndCheck, N: n, Training: training, Questions: k, Confidence: rapid.SampledFrom([]float64{0.5, 0.95}).Draw(t, "confidence")})
		if err != nil {
			t.Fatal(err)
		}
		s := State{Questions: rapid.Int64Range(0, k-1).Draw(t, "asked")}
		s.Tokens = rapid.Int64Range(0, min(p.Tokens-1, s.Questions)).Draw(t, "failed")
		s.Memory = account{Wide: rapid.Int64Range(0, s.Questions-s.Tokens).Draw(t, "wide"), Paid: moments.Nats(s.Tokens << 20)}
		share := rapid.SampledFrom([]float64{0.5, 0.9, 0.1}).Draw(t, "share")
		partial := rapid.Bool().Draw(t, "partial")
		draw := func(name string, all int64) (JointSums, [][]int64) {
			first, values := drawnSums(t, name+" first", all, partial, false)
			other := make([]int64, len(values))
			for i := range other {
				other[i] = rapid.Int64Range(0, grid).Draw(t, name+" second")
			}
			second := first
			second.Sums = moments.Of(other)
			return JointSums{Means: []RootSums{first, second}, Shares: []float64{share, 1 - share}, Make: spreadOfTwo}, [][]int64{values, other}
		}
		var in StatisticInput
		in.Training, _ = draw("training", training)
		holdout, values := draw("holdout", n)
		in.Holdout = holdout
		value, expected, err := p.ExpectedStatistic(s, in)
		if err != nil {
			t.Fatal(err)
		}
		out, next, err := StepStatistic(p, s, in)
		if err != nil {
			t.Fatal(err)
		}
		found := out.found.(jointFinding)
		i, o := out.Interval, found.JointOutcome
		seen[map[bool]string{true: "failure", false: map[bool]string{true: "wide", false: "pass"}[o.Wide()]}[o.Failed()]]++
		exact := make([]Known, 2)
		for j, m := range holdout.Means {
			v, _ := m.Value()
			exact[j] = Known{v, v, v}
		}
		if made := spreadOfTwo(exact, n); len(values[0]) > 0 && (made.Low < i.Low-1e-9 || made.High > i.High+1e-9) {
			t.Fatalf("what the holdout makes, %+v, is not in %+v", made, i)
		}
		if o.Rank == 1 && (!same(out.Value, value) || !reflect.DeepEqual(i, expected)) {
			t.Fatalf("%v %+v, expected %v %+v", out.Value, i, value, expected)
		}
		level := p.guessAndCheck().level(s)
		for j, c := range found.check.Checks {
			shared := []float64{share, 1 - share}[j]
			low, high := c.Interval(o.Of(j, c), level-math.Log(shared))
			exact[j] = Known{c.Value(o.Of(j, c)), low, high}
		}
		if made := spreadOfTwo(exact, n); i.Low != made.Low || i.High != made.High || !same(out.Value, made.Value) {
			t.Fatalf("%v in %+v is not %+v, of the means at their shares", out.Value, i, made)
		}
		want := accountOf(s)
		if o.Wide() {
			want.Wide++
		}
		if o.Failed() {
			things := math.Log(4) // ranks
			for _, c := range found.check.Checks {
				things += math.Log(float64(c.Cells))
			}
			if paid := float64(found.check.Dearest()) / (1 << 20); partial && math.Abs(paid-things) > 1e-4 {
				t.Fatalf("%v nats are paid for what has %v", paid, things)
			}
			want.Paid += found.check.Dearest()
		}
		failed := map[bool]int64{true: 1}[o.Failed()]
		if next != (State{Questions: s.Questions + 1, Tokens: s.Tokens + failed, Memory: want}) || out.Tokens != failed {
			t.Fatalf("%+v after %+v and %+v", next, s, o)
		}
		// Other units, the same outcome.
		moved := holdout
		moved.Means = append([]RootSums(nil), holdout.Means...)
		for j := range values {
			for u, x := range values[j] {
				values[j][u] = min(max(x+rapid.Int64Range(-grid/64, grid/64).Draw(t, "moved"), 0), grid)
			}
			moved.Means[j].Sums = moments.Of(values[j])
		}
		other := in
		other.Holdout = moved
		again, then, err := StepStatistic(p, s, other)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(again.found.(jointFinding).JointOutcome, o) {
			return
		}
		if !same(again.Value, out.Value) || !reflect.DeepEqual(again.Interval, out.Interval) || again.Tokens != out.Tokens || then != next {
			t.Fatalf("the outcome %+v has the answers %+v %+v and %+v %+v", o, out, out.Interval, again, again.Interval)
		}
		seen["again"]++
	})
	for _, outcome := range []string{"pass", "wide", "failure", "again"} {
		if seen[outcome] == 0 {
			t.Errorf("no %s was drawn: %v", outcome, seen)
		}
	}
}

// same is equality of numbers that may be none.
func same(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }

// TestJointRefused: sums of other units, of another question, or without a share for each are refused, and spend nothing.
func TestJointRefused(t *testing.T) {
	p := must(t, Spec{Mechanism: GuessAndCheck, N: 100, Training: 100, Questions: 10})
	two := func(units int64, shares ...float64) JointSums {
		m := someUnits(units, units, 0.3, grid/20)
		return JointSums{Means: []RootSums{m, m}, Shares: shares, Make: spreadOfTwo}
	}
	good := two(100, 0.5, 0.5)
	for name, in := range map[string]StatisticInput{
		"another's units":    {Training: good, Holdout: two(99, 0.5, 0.5)},
		"another's training": {Training: two(99, 0.5, 0.5), Holdout: good},
		"a share less":       {Training: two(100, 0.5), Holdout: good},
		"too much":           {Training: two(100, 0.5, 0.6), Holdout: good},
		"another question":   {Training: good, Holdout: good.Means[0]},
	} {
		if _, next, err := StepStatistic(p, State{}, in); err == nil || next != (State{}) {
			t.Errorf("%s: %v, %+v", name, err, next)
		}
	}
	if v, ok := two(100, 0.5, 0.5).Value(); !ok || math.Abs(v-100.21) > 1e-6 {
		t.Errorf("the training part makes %v", v)
	}
	none := two(100, 0.5, 0.5)
	for i := range none.Means {
		none.Means[i].Partial, none.Means[i].Sums = true, moments.Sums{}
	}
	if v, ok := none.Value(); ok {
		t.Errorf("no unit makes %v", v)
	}
}
