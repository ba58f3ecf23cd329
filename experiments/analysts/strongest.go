package analysts

import (
	"math"
	"math/rand/v2"

	"github.com/holdoutd/holdoutd/experiments/seeds"
	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// Against are the analysts who attack a guarantee: first those who know how it answers, then those of [All]. Where questions are asked in rounds, or are submissions
// to a board, only those who ask so.
func Against(g thresholdout.Guarantee) []Analyst {
	switch {
	case g.TakesSubmissions():
		return []Analyst{{"climbs the board", climbBoard, eachVote}, {"climbs the board, small steps", climbBoardBySteps, eachVote}}
	case g.Rounds > 0:
		return []Analyst{{"single-adaptive, in rounds", inRounds(g), eachColumn}}
	}
	var all []Analyst
	if _, sigma, ok := g.FreshNoise(thresholdout.State{}, thresholdout.State{}); ok && sigma > 0 {
		all = append(all, Analyst{"single-adaptive, knows the noise", SingleAdaptive(Discounted(g, ScheduledNoise(g))), eachColumn})
	} else if p, ok := g.Promised(0); ok && p.Sigma > 0 {
		all = append(all, Analyst{"knows training and noise", KnowsTraining(Discounted(g, ConstantNoise(g))), eachColumn})
	}
	if g.TakesGuesses() {
		all = append(all, Analyst{"climbs by guesses", climbByGuesses, eachVote})
	}
	return append(all, All...)
}

// inRounds asks about columns and, from the second round on, about the vote that earlier rounds suggest. Weights follow the noise of a round.
func inRounds(g thresholdout.Guarantee) func(Oracle, uint64, int64, int64) error {
	return func(o Oracle, seed uint64, n, training int64) error {
		c := newCoins(seed, n, training)
		for column, round := 0, int64(0); round < g.Rounds; round++ {
			size := g.RoundSize(round)
			if round > 0 {
				if _, _, err := o.Ask(c.vote()); err != nil {
					return err
				}
				size--
			}
			_, sigma, _ := g.FreshNoise(thresholdout.State{}, thresholdout.State{Rounds: round})
			weight := Discounted(g, func(int64) float64 { return sigma })
			first, answers := column, make([]float64, size)
			for i := range answers {
				var err error
				if answers[i], _, err = o.Ask(c.column(column)); err != nil {
					return err
				}
				column++
			}
			if r, ok := o.(interface{ EndRound() }); ok {
				r.EndRound()
			}
			for i, a := range answers {
				c.weigh(first+i, weight(a, 0))
			}
		}
		return nil
	}
}

// climbByGuesses changes a vote of columns at random, and guesses each time that it became better by a little: a guess that passes says that it did not become much worse,
// at no token, and is the next one to improve on. One that fails says how good the vote is.
func climbByGuesses(o Oracle, seed uint64, n, training int64) error {
	c, r := newCoins(seed, n, training), rand.New(rand.NewPCG(seeds.Of(seed, 4), 0))
	best, step := .5, .5/math.Sqrt(float64(n))
	for j := 0; o.Remaining() > 0; j++ {
		by := r.NormFloat64()
		c.weigh(j, by)
		guess := min(best+step, 1)
		q := c.vote()
		q.Guess = &thresholdout.Guess{Value: &guess}
		answer, _, err := o.Ask(q)
		if err != nil {
			return err
		}
		if answer > best {
			best = answer
		} else {
			c.weigh(j, -by)
		}
	}
	return nil
}

// climbBoard submits votes of columns that are each changed at random from the best one so far.
func climbBoard(o Oracle, seed uint64, n, training int64) error {
	return climb(o, seed, n, func(r *rand.Rand, j int) float64 { return r.NormFloat64() })
}

// climbBoardBySteps does so with changes that get smaller, as those who tune a model make them.
func climbBoardBySteps(o Oracle, seed uint64, n, training int64) error {
	return climb(o, seed, n, func(r *rand.Rand, j int) float64 { return r.NormFloat64() / math.Sqrt(float64(j+1)) })
}

func climb(o Oracle, seed uint64, n int64, change func(r *rand.Rand, j int) float64) error {
	c, r := newCoins(seed, n, 0), rand.New(rand.NewPCG(seeds.Of(seed, 5), 0))
	best := 2.
	for j := 0; o.Remaining() > 0; j++ {
		by := change(r, j)
		c.weigh(j, by)
		shown, _, err := o.Ask(c.vote().loss())
		if err != nil {
			return err
		}
		if shown < best {
			best = shown
		} else {
			c.weigh(j, -by)
		}
	}
	return nil
}

// loss is one minus the question, over the holdout.
func (q Question) loss() Question {
	right := q.Holdout
	q.Truth = 1 - q.Truth
	q.Holdout = func(from, to int64) thresholdout.Mean {
		m := right(from, to)
		m.Sum = m.N*rowfn.One - m.Sum
		return m
	}
	return q
}
