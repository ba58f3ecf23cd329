package thresholdout

import (
	"errors"
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/thresholdout/moments"
)

// drawnSums are sums of an equation over so many units, and the values of those with B = 1.
func drawnSums(t *rapid.T, name string, all int64, partial, binary bool) (RootSums, []int64) {
	units := all
	if partial {
		units = rapid.Int64Range(0, all).Draw(t, name+" units")
	}
	middle, spread := rapid.Int64Range(0, grid).Draw(t, name+" middle"), rapid.Int64Range(0, grid/2).Draw(t, name+" spread")
	values := make([]int64, units)
	for i := range values {
		x := rapid.Int64Range(max(0, middle-spread), min(grid, middle+spread)).Draw(t, name)
		if binary {
			x = x / (grid/2 + 1) * grid
		}
		values[i] = x
	}
	return RootSums{All: all, Sums: moments.Of(values), Partial: partial, Binary: binary}, values
}

// TestRootLaws: whether a root is refused depends on no holdout row. An answer is a function of its outcome: holdouts with other sums and the same outcome get the same
// answer and the same next state. The holdout's own ratio is in the interval; a guess that passes at the narrowest margin has the interval that was expected, and one
// that was asked for is kept. One question is spent, a failure spends a token, and what it says is paid for. It would notice an interval that looks at the holdout's own
// moments, the narrow interval printed for a wide pass, and a failure or a wide pass that later levels do not pay for.
func TestRootLaws(t *testing.T) {
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
		partial, binary := rapid.Bool().Draw(t, "partial"), rapid.Bool().Draw(t, "binary")
		var in StatisticInput
		in.Training, _ = drawnSums(t, "training", training, partial, binary)
		holdout, values := drawnSums(t, "holdout", n, partial, binary)
		in.Holdout = holdout
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
			again := in
			again.Guess = &Guess{Value: in.Guess.Value, HalfWidth: width.Least}
			if _, _, err := p.ExpectedStatistic(s, again); err != nil && width.Least <= 1 {
				t.Fatalf("the least width is refused: %v", err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		found := out.found.(rootFinding)
		i, o := out.Interval, found.Outcome
		seen[map[bool]string{true: "failure", false: map[bool]string{true: "wide", false: "pass"}[o.Wide()]}[o.Failed()]]++
		if h := float64(holdout.Sum) / float64(holdout.Units) / float64(grid); holdout.Units > 0 && (h < i.Low-1e-12 || h > i.High+1e-12) {
			t.Fatalf("the holdout's ratio %v is not in %+v", h, i)
		}
		if o == (moments.Outcome{Rank: 1}) && (out.Value != value || !reflect.DeepEqual(i, expected)) {
			t.Fatalf("%v %+v, expected %v %+v", out.Value, i, value, expected)
		}
		if g := in.Guess; g != nil && g.HalfWidth > 0 && out.Tokens == 0 && (i.High > out.Value+g.HalfWidth+1e-12 || i.Low < out.Value-g.HalfWidth-1e-12) {
			t.Fatalf("%+v is wider than %v", i, g.HalfWidth)
		}
		if low, high := found.check.Interval(o, p.guessAndCheck().level(s)); i.Low != low || i.High != high {
			t.Fatalf("%+v is not [%v, %v], the interval of %+v", i, low, high, o)
		}
		want := accountOf(s)
		if o.Wide() {
			want.Wide++
		}
		if o.Failed() {
			want.Paid += found.check.Price(found.Outcome)
		}
		failed := map[bool]int64{true: 1}[o.Failed()]
		if next != (State{Questions: s.Questions + 1, Tokens: s.Tokens + failed, Memory: want}) || out.Tokens != failed {
			t.Fatalf("%+v after %+v and %+v", next, s, o)
		}
		// Other units, the same outcome.
		other := in
		for j, x := range values {
			values[j] = min(max(x+rapid.Int64Range(-grid/64, grid/64).Draw(t, "moved"), 0), grid)
		}
		holdout.Sums = moments.Of(values)
		other.Holdout = holdout
		if same, err := found.check.Outcome(holdout.Sums); err != nil || same != o {
			return
		}
		if again, then, err := StepStatistic(p, s, other); err != nil || !reflect.DeepEqual(again, out) || then != next {
			t.Fatalf("the outcome %+v has the answers %+v %+v and %+v %+v, %v", o, out, out.Interval, again, again.Interval, err)
		}
		seen["again"]++
	})
	for _, outcome := range []string{"pass", "wide", "failure", "again"} {
		if seen[outcome] == 0 {
			t.Errorf("no %s was drawn: %v", outcome, seen)
		}
	}
}

// TestRootsAreNarrow: what 2,000 values of a standard deviation of .05 and a tenth of 0/1 rows under a condition get, against what the training part's spread says is possible: the
// interval of a mean that varies little is several times narrower than that of one that may vary as much as it can, and narrower with the training part's fourth moment than without.
func TestRootsAreNarrow(t *testing.T) {
	p := must(t, Spec{Mechanism: GuessAndCheck, N: 2000, Training: 4000, Questions: 100})
	training := someUnits(4000, 4000, 0.3, grid/20)
	width := func(in RootSums) float64 {
		_, i, err := p.ExpectedStatistic(State{}, StatisticInput{Training: in})
		if err != nil {
			t.Fatal(err)
		}
		return i.High - i.Low
	}
	_, plain, err := p.Expected(State{}, mean(0.3, 4000), nil)
	if err != nil {
		t.Fatal(err)
	}
	without := width(training)
	var third, fourth moments.Wide
	low, high := int64(math.Round(0.25*float64(grid))), int64(math.Round(0.35*float64(grid)))
	for _, x := range []int64{low, high} {
		square := x * x >> 30
		for range 2000 {
			third.AddProduct(x, square)
			fourth.AddProduct(square, square)
		}
	}
	training.Higher = &Higher{third, fourth}
	with := width(training)
	if w := plain.High - plain.Low; !(with < without && without < w/3) {
		t.Errorf("%v with the fourth moment, %v without, %v if it may vary", with, without, w)
	}
	binary := RootSums{All: 4000, Binary: true, Sums: moments.Sums{Units: 4000, Sum: 1200 * grid}}
	binary.Squares.AddSums(1200*grid, grid)
	if exact, w := width(binary), plain.High-plain.Low; !(exact < w) || exact < w*0.9 {
		t.Errorf("by the exact tail %v, by Chernoff %v", exact, w)
	}
}
