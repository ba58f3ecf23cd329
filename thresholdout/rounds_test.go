package thresholdout

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/internal/stattest"
	"github.com/holdoutd/holdoutd/thresholdout/bounds"
)

// roundAttack asks about fair coins in the first round, and in the second about the rows' agreement with those answers; every true
// mean is 1/2. cheating weighs by the second round's own answers instead, as if they had been seen before its last question
// was chosen. It returns whether any interval misses, and whether the last answer, which has no noise, is
// farther than naiveWidth from the truth.
func roundAttack(t *testing.T, p Guarantee, run uint64, cheating bool, naiveWidth float64) (missed, naiveMissed bool) {
	t.Helper()
	r := rand.New(rand.NewPCG(run, 9))
	first, all := p.RoundSize(0), p.Questions-1
	rows := coins(r, p.N, all)
	state, weights := State{}, make([]float64, all)
	ask := func(m Mean) float64 {
		out, next, err := Step(p, state, Input{Holdout: m}, Seeded{Seed: run, Question: state.Questions})
		if err != nil {
			t.Fatal(err)
		}
		state = next
		missed = missed || out.Interval.Low > 0.5 || out.Interval.High < 0.5
		return out.Value
	}
	for j := range int(all) {
		answer := ask(column(rows, j)) - 0.5
		if (int64(j) < first) != cheating {
			weights[j] = answer
		}
		if state.InRound == first && state.Rounds == 0 {
			state = p.EndRound(state)
		}
	}
	last := ask(agreement(rows, weights))
	if _, _, err := Step(p, p.EndRound(state), Input{Holdout: column(rows, 0)}, Seeded{}); !errors.Is(err, ErrNoQuestions) {
		t.Errorf("after the last round: %v", err)
	}
	return missed, math.Abs(last-0.5) > naiveWidth
}

// TestRoundsCover: no more than 5% of runs have a miss (false alarm 1e-6), while the widths of one round, those of a batch
// fixed beforehand, are missed often, and so are the rounds' own where answers of a round are seen before its questions are chosen.
func TestRoundsCover(t *testing.T) {
	const runs = 60
	p := must(t, Spec{Mechanism: Gaussian, N: 1000, Questions: 801, Rounds: 2})
	one := must(t, Spec{Mechanism: Gaussian, N: 1000, Questions: 801, Rounds: 1})
	missed, naive, cheated := 0, 0, 0
	for run := range uint64(runs) {
		m, n := roundAttack(t, p, run, false, one.HalfWidth)
		c, _ := roundAttack(t, p, run, true, 1)
		for _, count := range []struct {
			event bool
			of    *int
		}{{m, &missed}, {n, &naive}, {c, &cheated}} {
			if count.event {
				*count.of++
			}
		}
	}
	t.Logf("of %d runs %d missed; by the last answer at the width of one round, %.4f, %d; at ±%.4f, looking within a round, %d", runs, missed, one.HalfWidth, naive, p.HalfWidth, cheated)
	if err := stattest.AtMost(missed, runs, 0.05, falseAlarm); err != nil {
		t.Error(err)
	}
	if stattest.AtMost(naive, runs, 0.05, falseAlarm) == nil {
		t.Errorf("the width of one round was missed only %d times of %d", naive, runs)
	}
	if stattest.AtMost(cheated, runs, 0.05, falseAlarm) == nil {
		t.Errorf("looking within a round went unnoticed: %d of %d", cheated, runs)
	}
}

// TestRoundLaw: each round has its own noise, the last one none.
func TestRoundLaw(t *testing.T) {
	p := must(t, Spec{Mechanism: Gaussian, N: 50_000, Questions: 120, Rounds: 3})
	law := func(wrongScale float64) error {
		var z []float64
		for run := range uint64(500) {
			state := State{}
			for round, sigma := range p.gaussian().RoundSigma {
				for range p.RoundSize(int64(round)) {
					out, next, err := Step(p, state, Input{Holdout: mean(0.5, p.N)}, Seeded{Seed: run, Question: state.Questions})
					if err != nil {
						return err
					}
					if state = next; sigma > 0 {
						z = append(z, (out.Value-0.5)/(sigma*wrongScale))
					} else if out.Value != 0.5 {
						t.Fatalf("the last round answered %v", out.Value)
					}
				}
				if _, _, err := Step(p, state, Input{Holdout: mean(0.5, p.N)}, Seeded{}); !errors.Is(err, ErrNoQuestions) {
					t.Fatalf("a full round: %v", err)
				}
				state = p.EndRound(state)
			}
		}
		return stattest.Kolmogorov(z, distuv.UnitNormal.CDF, falseAlarm)
	}
	if err := law(1); err != nil {
		t.Error(err)
	}
	if law(1.1) == nil {
		t.Error("noise 10% too narrow went unnoticed")
	}
}

// TestUnaskedIsGone: what a round leaves unasked is not left.
func TestUnaskedIsGone(t *testing.T) {
	p := must(t, Spec{Mechanism: Gaussian, N: 5000, Questions: 10, Rounds: 3}) // 4, 3, 3
	state := State{}
	if p.Left(state) != 10 || p.Affordable(state) != 4 || p.EndRound(state) != state {
		t.Errorf("at first: %d, %d, %+v", p.Left(state), p.Affordable(state), p.EndRound(state))
	}
	_, state, err := Step(p, state, Input{Holdout: mean(0.5, p.N)}, Seeded{})
	if err != nil || p.Left(state) != 9 || p.Affordable(state) != 3 {
		t.Errorf("within a round: %d, %d, %v", p.Left(state), p.Affordable(state), err)
	}
	if state = p.EndRound(state); p.Left(state) != 6 || p.Affordable(state) != 3 || state.Rounds != 1 || state.InRound != 0 {
		t.Errorf("after it: %d, %d, %+v", p.Left(state), p.Affordable(state), state)
	}
	if _, _, err := Step(p, State{Questions: 3, Rounds: 3}, Input{Holdout: mean(0.5, p.N)}, Seeded{}); !errors.Is(err, ErrNoRounds) {
		t.Errorf("after the last: %v", err)
	}
}

// TestReleasedAtMost: what the account takes to be released is never less than the sum over the answers given.
func TestReleasedAtMost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := Spec{Mechanism: Gaussian, N: rapid.Int64Range(100, 1_000_000).Draw(t, "n"), Questions: rapid.Int64Range(1, 3000).Draw(t, "k")}
		switch rapid.IntRange(0, 2).Draw(t, "kind") {
		case 1:
			in.Sigma = rapid.Float64Range(0.001, 0.1).Draw(t, "sigma")
		case 2:
			in.Rounds = rapid.Int64Range(1, min(in.Questions, 12)).Draw(t, "rounds")
		}
		p, err := Plan(in)
		if err != nil {
			t.Fatal(err)
		}
		state, sum := State{}, 0.0
		for p.Affordable(state) > 0 {
			if bound := p.gaussian().releasedAtMost(state); p.Rounds == 0 && bound < sum*(1-1e-12) || p.Rounds > 0 && state.InRound == 0 && bound < sum*(1-1e-12) {
				t.Fatalf("%+v: %v nats released before %+v, the account says %v", p, sum, state, bound)
			}
			if sigma := p.gaussian().sigmaOf(state); sigma > 0 {
				sum += bounds.Information(float64(p.N), 0.25, sigma)
			}
			state = p.Spend(state, 1, 0)
			if p.Affordable(state) == 0 {
				state = p.EndRound(state)
			}
		}
	})
}

// TestPublished: under published bounds gaussian has theirs, auto takes the narrower of it and splitting, and nothing of the
// project's own account.
func TestPublished(t *testing.T) {
	few := must(t, Spec{Mechanism: Auto, N: 20_000, Training: 20_000, Questions: 50, Published: true})
	many := must(t, Spec{Mechanism: Auto, N: 20_000, Training: 20_000, Questions: 1000, Published: true})
	b, err := bounds.JLNRSSGDP(20_000, 1000, many.Beta())
	if err != nil || few.Mechanism != Split || many.Mechanism != Gaussian || many.HalfWidth != b.HalfWidth || many.own.(*published).Sigma != b.Sigma || many.Together() {
		t.Errorf("%+v\n%+v\n%+v, %v", few, many, b, err)
	}
	out, _, err := Step(many, State{}, Input{Holdout: mean(0.5, many.N)}, Seeded{})
	if err != nil || out.Interval.Bound != "jlnrss-gdp" {
		t.Errorf("%+v, %v", out.Interval, err)
	}
	within := must(t, Spec{Mechanism: Gaussian, N: 20_000, HalfWidth: 0.1, Published: true})
	if within.Questions != 16 || within.HalfWidth > 0.1 {
		t.Errorf("%d questions within 0.1, ±%v", within.Questions, within.HalfWidth)
	}
}

// TestGaussianRefuses: what is out of range, or does not go together, is refused with its name.
func TestGaussianRefuses(t *testing.T) {
	for field, in := range map[string]Spec{
		"rounds":     {Mechanism: Gaussian, N: 5000, Questions: 100, Rounds: 65},
		"half_width": {Mechanism: Gaussian, N: 5000, Questions: 100, Rounds: 2, HalfWidth: 0.001},
		"sigma":      {Mechanism: Gaussian, N: 5000, Questions: 100, Rounds: 2, Sigma: 0.1},
		"bounds":     {Mechanism: Thresholdout, N: 5000, Training: 5000, Published: true},
		"tokens":     {Mechanism: Auto, N: 5000, Training: 5000, Tokens: 3, Published: true},
	} {
		var wrong *ParamError
		if _, err := Plan(in); !errors.As(err, &wrong) || wrong.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	var wrong *ParamError
	if _, err := Plan(Spec{Mechanism: Split, N: 5000, Questions: 100, Rounds: 2}); !errors.As(err, &wrong) || wrong.Field != "rounds" {
		t.Errorf("split in rounds: %v", err)
	}
	if _, err := Plan(Spec{Mechanism: Gaussian, N: 5000, Questions: 100, Rounds: 2, Published: true}); !errors.As(err, &wrong) || wrong.Field != "rounds" {
		t.Errorf("published rounds: %v", err)
	}
}

// TestNarrowKnowsTheGrid: an exact answer is rounded to the grid, and Chernoff's end moves further than the mean does near 0. The upper end is not below that of
// the mean before it was rounded; adding the grid's error to the end instead is, by several times that error.
func TestNarrowKnowsTheGrid(t *testing.T) {
	p := must(t, Spec{Mechanism: Gaussian, N: 1000, Questions: 5, Rounds: 1})
	for _, rows := range []float64{0.4, 0.5, 1.4, 3} {
		m := Mean{Sum: int64(rows * float64(p.N)), N: p.N} // in steps of the grid, each row's share
		out, _, err := Step(p, State{}, Input{Holdout: m}, Seeded{})
		if err != nil {
			t.Fatal(err)
		}
		exact := float64(m.Sum) / (float64(m.N) * float64(grid))
		_, want, err := p.gaussian().account(State{}, 1, 1).MeanInterval(exact, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		if out.Interval.Bound != "adaptive-hoeffding-rounds+chernoff" || out.Interval.High < want {
			t.Errorf("%v steps: up to %v by %s, want %v", rows, out.Interval.High, out.Interval.Bound, want)
		}
	}
}
