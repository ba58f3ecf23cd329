package thresholdout

import (
	"math"
	"reflect"
	"testing"

	"github.com/holdoutd/holdoutd/thresholdout/moments"
)

// TestDefaults: what is left out is what the constants say, and no more tokens than questions.
func TestDefaults(t *testing.T) {
	for _, m := range []Name{Gaussian, GuessAndCheck, Thresholdout, Split} {
		p := must(t, Spec{Mechanism: m, N: 20_000, Training: 20_000})
		if p.Questions != DefaultQuestions {
			t.Errorf("%s: %d questions", m, p.Questions)
		}
		many := map[bool]int64{true: DefaultTokens, false: DefaultBroken}[p.NeedsTokens()]
		if p.HasTokens() && p.Tokens != many {
			t.Errorf("%s: %d tokens", m, p.Tokens)
		}
		if p = must(t, Spec{Mechanism: m, N: 20_000, Training: 20_000, Questions: 1}); p.HasTokens() && p.Tokens != 1 {
			t.Errorf("%s: %d tokens for a question", m, p.Tokens)
		}
	}
}

// TestGuessesAreRefused: a guess is no input of a mechanism that does not check guesses; it would be counted for nothing.
func TestGuessesAreRefused(t *testing.T) {
	half := 0.5
	for _, m := range []Name{Gaussian, GuessAndCheck, Thresholdout, Split} {
		p := must(t, Spec{Mechanism: m, N: 20_000, Training: 20_000, Questions: 10})
		from, to := p.Slice(State{})
		in := Input{Holdout: mean(0.5, to-from), Training: mean(0.5, p.Training), Guess: &Guess{Value: &half}}
		if _, next, err := Step(p, State{}, in, Seeded{}); (err == nil) != (m == GuessAndCheck) || err != nil && !reflect.DeepEqual(next, State{}) {
			t.Errorf("%s with a guess: %v, %+v", m, err, next)
		}
	}
}

// TestReleasesKnowTheGrid: what is released after a failed check is as near to the holdout mean as its cell, and the interval is that of the cell's ends at the level.
func TestReleasesKnowTheGrid(t *testing.T) {
	for _, n := range []int64{200, 5000, 1_000_000} {
		for _, tokens := range []int64{1, 20} {
			p := must(t, Spec{Mechanism: GuessAndCheck, N: n, Training: n, Questions: 100, Tokens: tokens})
			out, next, err := Step(p, State{}, Input{Holdout: mean(0.9, n), Training: mean(0.1, n)}, Seeded{})
			if err != nil || out.Tokens != 1 {
				t.Fatalf("%+v, %v", out, err)
			}
			near := out.Interval.Parts["rounding"]
			check := out.found.(rootFinding).check
			if accountOf(next).Paid != check.Price(out.found.(rootFinding).Outcome) || math.Abs(out.Value-0.9) > near {
				t.Errorf("n=%d, %d tokens: %v, paid %d", n, tokens, out.Value, accountOf(next).Paid)
			}
			level := p.guessAndCheck().level(State{}) + math.Log(10) // a twentieth of what the question may miss by, for both sides together
			low, high := moments.BestTilts.Overshot(out.Value-near, 1, float64(n), level), moments.BestTilts.OvershotHigh(out.Value+near, 1, float64(n), level)
			if math.Abs(out.Interval.Low-low) > 3*gridError || math.Abs(out.Interval.High-high) > 3*gridError {
				t.Errorf("n=%d, %d tokens: %+v, want [%v, %v]", n, tokens, out.Interval, low, high)
			}
		}
	}
}

// TestPartsOfAWidth: what an interval says that it is made of is not negative, adds up to its half-width, and tells adaptivity where the
// bound does: sqrt(I/(2n)), and the whole width at most.
func TestPartsOfAWidth(t *testing.T) {
	p := must(t, Spec{Mechanism: Gaussian, N: 20_000, Questions: 1000})
	for _, asked := range []int64{0, 1, 10, 500, 999} {
		s := State{Questions: asked}
		adaptivity := math.Sqrt(p.gaussian().releasedAtMost(s) / 40_000)
		for _, width := range []float64{p.HalfWidth, 2 * p.HalfWidth, adaptivity / 2} {
			parts := p.gaussian().parts(s, width)
			if parts["adaptivity"] != min(width, adaptivity) || parts["sampling_and_noise"] < 0 || math.Abs(parts["adaptivity"]+parts["sampling_and_noise"]-width) > 1e-15 {
				t.Errorf("after %d questions, ±%v: %v, adaptivity %v", asked, width, parts, adaptivity)
			}
		}
		if asked > 0 && !(adaptivity > 0) {
			t.Errorf("after %d questions nothing was released", asked)
		}
	}
	published := must(t, Spec{Mechanism: Gaussian, N: 20_000, Questions: 1000, Published: true})
	out, _, err := Step(published, State{Questions: 500}, Input{Holdout: mean(0.5, 20_000)}, Seeded{})
	if err != nil || out.Interval.Parts["adaptivity"] != 0 || out.Interval.Parts["sampling_and_noise"] != published.HalfWidth {
		t.Errorf("a published bound tells parts that it does not know: %+v, %v", out.Interval, err)
	}
}

// TestPromisesAreOfTheLastAnswer: what is promised beforehand is what the last question's answer gets, of which the state before it is
// known: all others asked, and as many tokens spent as are said, at most one for each of them. Of failures it is the dearest, and a sixth wider than others at most.
func TestPromisesAreOfTheLastAnswer(t *testing.T) {
	for _, questions := range []int64{2, 10, 1000} {
		p := must(t, Spec{Mechanism: Gaussian, N: 20_000, Questions: questions})
		promise, ok := p.Promised(0)
		if want := min(p.HalfWidth, math.Sqrt(p.gaussian().releasedAtMost(State{Questions: questions - 1})/40_000)); !ok || promise.Parts["adaptivity"] != want {
			t.Errorf("gaussian, %d questions: %+v, adaptivity %v", questions, promise, want)
		}
		g := must(t, Spec{Mechanism: GuessAndCheck, N: 20_000, Training: 20_000, Questions: questions, Tokens: min(questions, 5)})
		for _, tokens := range []int64{0, 1, 5} {
			state := State{}
			for range questions - 1 { // as many guesses as there are tokens are wrong
				in := Input{Holdout: mean(0.5, g.N), Training: mean(0.5, g.Training)}
				if zero := 0.0; state.Tokens < tokens {
					in.Guess = &Guess{Value: &zero}
				}
				_, next, err := Step(g, state, in, Seeded{})
				if err != nil {
					break // the last token is spent
				}
				state = next
			}
			if state.Questions < questions-1 {
				continue
			}
			_, want, err := g.Expected(state, mean(0.5, g.Training), nil)
			if promise, ok := g.Promised(tokens); err != nil || !ok || promise.HalfWidth < want.High-0.5-1e-9 || promise.HalfWidth > (want.High-0.5)*(1+0.15*float64(min(tokens, 1)))+1e-9 {
				t.Errorf("guess_and_check, %d questions, %d tokens: %+v, want %+v, %v", questions, tokens, promise, want, err)
			}
		}
	}
}
