package thresholdout

import (
	"math"
	"reflect"
	"testing"
)

// TestDefaults: what is left out is what the constants say, and no more tokens than questions.
func TestDefaults(t *testing.T) {
	for _, m := range []Name{Gaussian, GuessAndCheck, Thresholdout, Split} {
		p := must(t, Spec{Mechanism: m, N: 20_000, Training: 20_000})
		if p.Questions != DefaultQuestions {
			t.Errorf("%s: %d questions", m, p.Questions)
		}
		if p.HasTokens() && p.Tokens != DefaultTokens {
			t.Errorf("%s: %d tokens", m, p.Tokens)
		}
		if p = must(t, Spec{Mechanism: m, N: 20_000, Training: 20_000, Questions: 3}); p.HasTokens() && p.Tokens != 3 {
			t.Errorf("%s: %d tokens for 3 questions", m, p.Tokens)
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

// TestMarginsAreWilsons: how far a guess may be away is half the length of Wilson's interval around it, at most that around one half, and
// the same for a guess and its mirror image; each rank is twice as far. The formula is computed anew.
func TestMarginsAreWilsons(t *testing.T) {
	p := must(t, Spec{Mechanism: GuessAndCheck, N: 5000, Training: 8000, Questions: 100})
	const z = deviations
	s := 1/5000.0 + 1/8000.0
	for _, guess := range []int64{0, 1, grid / 1000, grid / 100, grid / 10, grid / 3, grid / 2} {
		g := float64(guess) / float64(grid)
		want := math.Min(z*math.Sqrt(s/4), z*z*s/2+z*math.Sqrt(s*g-s*g*g+z*z*s*s/4))
		for rank := range 4 {
			got, mirror := p.guessAndCheck().margin(guess, rank), p.guessAndCheck().margin(grid-guess, rank)
			if want := min(math.Ldexp(want, rank), 1) * float64(grid); got != mirror || math.Abs(float64(got)-want) > 2 {
				t.Errorf("a guess of %v, rank %d: %d steps, its mirror image %d, Wilson's %v", g, rank, got, mirror, want)
			}
		}
	}
}

// TestReleasesKnowTheGrid: what is released after a failed check is as near to the holdout mean as the release promises and two steps of
// the grid, to which values and their mean are rounded.
func TestReleasesKnowTheGrid(t *testing.T) {
	reasons := map[string]bool{}
	for _, n := range []int64{200, 5000, 1_000_000} {
		for _, tokens := range []int64{1, 20} {
			p := must(t, Spec{Mechanism: GuessAndCheck, N: n, Training: n, Questions: 100, Tokens: tokens})
			out, _, err := Step(p, State{}, Input{Holdout: mean(0.9, n), Training: mean(0.1, n)}, Seeded{})
			if err != nil || out.Tokens != 1 {
				t.Fatalf("%+v, %v", out, err)
			}
			reason := "noise"
			if p.guessAndCheck().Cells > 0 {
				reason = "rounding"
			}
			reasons[reason] = true
			near := p.guessAndCheck().check().ReleaseError() + 2/float64(grid)
			if out.Interval.Parts[reason] != near {
				t.Errorf("n=%d, %d tokens: %v, want %v of %s", n, tokens, out.Interval.Parts, near, reason)
			}
			low, high := p.within(p.guessAndCheck().level(State{}), out.Value-near, out.Value+near)
			if out.Interval.Low != low || out.Interval.High != high {
				t.Errorf("n=%d, %d tokens: %+v, want [%v, %v]", n, tokens, out.Interval, low, high)
			}
		}
	}
	if len(reasons) != 2 {
		t.Errorf("releases of one form only: %v", reasons)
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
// known: all others asked, and as many tokens spent as are said, at most one for each of them.
func TestPromisesAreOfTheLastAnswer(t *testing.T) {
	for _, questions := range []int64{2, 10, 1000} {
		p := must(t, Spec{Mechanism: Gaussian, N: 20_000, Questions: questions})
		promise, ok := p.Promised(0)
		if want := min(p.HalfWidth, math.Sqrt(p.gaussian().releasedAtMost(State{Questions: questions - 1})/40_000)); !ok || promise.Parts["adaptivity"] != want {
			t.Errorf("gaussian, %d questions: %+v, adaptivity %v", questions, promise, want)
		}
		g := must(t, Spec{Mechanism: GuessAndCheck, N: 20_000, Training: 20_000, Questions: questions, Tokens: min(questions, 5)})
		for _, tokens := range []int64{0, 1, 5} {
			last := State{Questions: questions - 1, Tokens: min(tokens, questions-1)}
			if promise, ok := g.Promised(tokens); !ok || promise.HalfWidth != g.guessAndCheck().planned(last, grid/2) {
				t.Errorf("guess_and_check, %d questions, %d tokens: %+v, want ±%v", questions, tokens, promise, g.guessAndCheck().planned(last, grid/2))
			}
		}
	}
}
