package thresholdout

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/holdoutd/holdoutd/internal/stattest"
)

// guessing attacks guess-and-check on fair coins in every column, whose true means are all 1/2; at each square number of
// questions it asks about the rows' agreement with the answers so far (the quadratic analyst). A malicious analyst makes its
// plain guesses fail on purpose, so that each answer tells of the holdout, until one token is left. It returns whether any interval misses, and
// whether the last answer is farther than naiveWidth from the truth.
func guessing(t *testing.T, p Guarantee, run uint64, malicious bool, naiveWidth float64) (missed, naiveMissed bool) {
	t.Helper()
	r := rand.New(rand.NewPCG(run, 5))
	holdout, training := coins(r, p.N, p.Questions), coins(r, p.Training, p.Questions)
	state, weights, last := State{}, make([]float64, p.Questions), 0.0
	ask := func(in Input) float64 {
		out, next, err := Step(p, state, in, Seeded{Seed: run, Question: state.Questions})
		if err != nil {
			t.Fatal(err)
		}
		state = next
		missed = missed || out.Interval.Low > 0.5 || out.Interval.High < 0.5
		last = out.Value
		return out.Value
	}
	plain := func(j int) Input { return Input{Holdout: column(holdout, j), Training: column(training, j)} }
	for j := range weights {
		root := int(math.Sqrt(float64(state.Questions)))
		if int64(root*root) == state.Questions && root > 1 && state.Tokens < p.Tokens-1 {
			ask(Input{Holdout: agreement(holdout, weights), Training: agreement(training, weights)})
		}
		if state.Questions >= p.Questions-1 || state.Tokens >= p.Tokens-1 {
			break // one of each is kept for the last question
		}
		in := plain(j)
		if malicious {
			in.Guess = &Guess{Value: farFromHalf(t, p, in)}
		}
		weights[j] = ask(in) - 0.5
	}
	in := Input{Holdout: agreement(holdout, weights), Training: agreement(training, weights)}
	ask(in)
	return missed, math.Abs(last-0.5) > naiveWidth
}

// farFromHalf is a guess that fails where the holdout has about a half, and whose failure tells on which side of it: a cell ends there.
func farFromHalf(t *testing.T, p Guarantee, in Input) *float64 {
	t.Helper()
	guess := 0.02
	c, err := p.guessAndCheck().plan(State{}, StatisticInput{Training: in.Training, Guess: &Guess{Value: &guess}})
	if err != nil {
		t.Fatal(err)
	}
	check := c.(rootCheck)
	edge := check.Guess + check.Ranks[len(check.Ranks)-1].Away
	guess = float64(check.Guess+(grid/2-edge)%(grid/check.Cells)) / float64(grid)
	return &guess
}

// TestGuessAndCheckCovers: no more than 5% of runs have a miss (false alarm 1e-6), whoever asks. Widths for one question are
// missed almost always where the analyst makes guesses fail and releases are fine, so that attack works.
func TestGuessAndCheckCovers(t *testing.T) {
	const runs = 120
	for _, c := range []struct {
		name      string
		malicious bool
	}{{"quadratic", false}, {"malicious", true}} {
		p := must(t, Spec{Mechanism: GuessAndCheck, N: 1000, Training: 1000, Questions: 181, Tokens: 181})
		single := math.Sqrt(math.Log(2/0.05) / (2 * float64(p.N)))
		missed, naive := 0, 0
		for run := range uint64(runs) {
			m, n := guessing(t, p, run, c.malicious, single)
			if m {
				missed++
			}
			if n {
				naive++
			}
		}
		if err := stattest.AtMost(missed, runs, 0.05, falseAlarm); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if err := stattest.AtMost(naive, runs, 0.05, falseAlarm); c.malicious && err == nil {
			t.Errorf("%s: widths for one question were missed only %d times of %d", c.name, naive, runs)
		}
		t.Logf("%s: %d of %d missed, naive widths %d", c.name, missed, runs, naive)
	}
}
