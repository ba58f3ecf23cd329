// Package analysts is who asks holdouts in the simulations, and of what: analysts of the literature that attack, analysts that mean
// no harm, simulated data in which there is nothing to find, and the oracles that answer: the real mechanisms, through
// [session.Simulated].
package analysts

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/holdoutd/holdoutd/experiments/seeds"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// Analyst asks an oracle as many questions as it answers, on data of its own liking with n units in the holdout. It stops
// with an error only if the oracle does.
type Analyst struct {
	Name string
	Play func(o Oracle, seed uint64, n, training int64) error
	// Each is about how many nanoseconds a unit takes at each question, for those who must say beforehand how long something takes.
	Each float64
}

// Nanoseconds of [Analyst.Each]: of a column's agreement, of a vote of columns, and of a subset of a domain that has four elements for each unit.
const (
	eachColumn = .5
	eachVote   = 4
	eachSubset = 40
)

// All are those of the coverage experiment: the attacks of the literature first, then people who mean no harm.
var All = []Analyst{
	{"single-adaptive", SingleAdaptive(LogOdds), eachColumn},
	{"single-adaptive, sign", SingleAdaptive(sign), eachColumn},
	{"knows training", KnowsTraining(LogOdds), eachColumn},
	{"every 100th", scheduled(func(asked int64) bool { return asked%100 == 99 }), eachColumn},
	{"quadratic", scheduled(isSquare), eachColumn},
	{"boosting", boosting, eachColumn},
	{"score attack", scoreAttack, eachSubset},
	{"greedy selection", greedySelection, eachVote},
	{"random walk", randomWalk, eachVote},
}

// Weighting says what an answer about a column's agreement is worth as the column's weight in the vote; asked is the number of
// questions before.
type Weighting func(answer float64, asked int64) float64

// LogOdds is the strategic analyst of Rogers et al. (AISTATS 2020): the best weights where answers are exact.
func LogOdds(answer float64, _ int64) float64 {
	c := max(-1+1e-15, min(2*answer-1, 1-1e-15))
	return math.Log1p(c) - math.Log1p(-c)
}

// sign is the same analyst with a plain majority vote.
func sign(answer float64, _ int64) float64 {
	switch {
	case answer > 0.5:
		return 1
	case answer < 0.5:
		return -1
	}
	return 0
}

// Discounted are the best weights where answers have noise of known scale: proportional to answer-1/2, discounted by how
// much of an answer's deviation from 1/2 is noise, r = 1/(1+4 n sigma^2).
func Discounted(p thresholdout.Guarantee, sigma func(asked int64) float64) Weighting {
	return func(answer float64, asked int64) float64 {
		s := sigma(asked)
		return (answer - 0.5) / (1 + 4*float64(p.N)*s*s)
	}
}

// SingleAdaptive asks about columns one by one, and last about the vote that the answers suggest.
func SingleAdaptive(weight Weighting) func(Oracle, uint64, int64, int64) error {
	return func(o Oracle, seed uint64, n, training int64) error {
		c := newCoins(seed, n, training)
		for j := 0; o.Remaining() > 1; j++ {
			answer, _, err := o.Ask(c.column(j))
			if err != nil {
				return err
			}
			c.weigh(j, weight(answer, int64(j)))
		}
		_, _, err := o.Ask(c.vote())
		return err
	}
}

// KnowsTraining is the single-adaptive analyst who makes the training part useless: it has those rows, and asks
// functions that are 0 on them and the same elsewhere. So each answer comes from the holdout. (The population is continuous:
// what a function is on finitely many points does not change its mean.)
func KnowsTraining(weight Weighting) func(Oracle, uint64, int64, int64) error {
	far := 0.0
	return func(o Oracle, seed uint64, n, training int64) error {
		c := newCoins(seed, n, 0)
		hide := func(q Question) Question {
			q.Training = func() thresholdout.Mean { return thresholdout.Mean{N: training} }
			q.Guess = &thresholdout.Guess{Value: &far}
			return q
		}
		for j := 0; o.Remaining() > 1; j++ {
			answer, _, err := o.Ask(hide(c.column(j)))
			if err != nil {
				return err
			}
			c.weigh(j, weight(answer, int64(j)))
		}
		_, _, err := o.Ask(hide(c.vote()))
		return err
	}
}

// scheduled asks about columns, and about the vote so far whenever the schedule says so, and last.
func scheduled(adaptive func(asked int64) bool) func(Oracle, uint64, int64, int64) error {
	return func(o Oracle, seed uint64, n, training int64) error {
		c := newCoins(seed, n, training)
		columns := 0
		for asked := int64(0); o.Remaining() > 1; asked++ {
			if adaptive(asked) {
				if _, _, err := o.Ask(c.vote()); err != nil {
					return err
				}
				continue
			}
			answer, _, err := o.Ask(c.column(columns))
			if err != nil {
				return err
			}
			c.weigh(columns, LogOdds(answer, asked))
			columns++
		}
		_, _, err := o.Ask(c.vote())
		return err
	}
}

func isSquare(asked int64) bool {
	root := int64(math.Round(math.Sqrt(float64(asked))))
	return asked > 0 && root*root == asked
}

// boosting is the attack of Blum and Hardt (arXiv 1502.04585) on a leaderboard: random submissions, and last the majority
// of those that were shown with a loss of at most 1/2. A column says here where a submission errs.
func boosting(o Oracle, seed uint64, n, training int64) error {
	c := newCoins(seed, n, training)
	for j := 0; o.Remaining() > 1; j++ {
		loss, _, err := o.Ask(c.column(j))
		if err != nil {
			return err
		}
		if loss <= 0.5 {
			c.weigh(j, 1)
		}
	}
	_, _, err := o.Ask(c.vote())
	return err
}

// scoreAttack keeps a score of each element of a finite domain, which drifts up for those in the holdout, as in the
// attacks by fingerprinting codes (Hardt, Ullman, arXiv 1408.1655; Steinke, Ullman, arXiv 1410.1228), without their encryption: it
// stands for them against mechanisms that do not look at who asks.
func scoreAttack(o Oracle, seed uint64, n, training int64) error {
	d := newDomain(seed, n, training)
	for o.Remaining() > 1 {
		p := d.random.Float64()
		answer, _, err := o.Ask(d.coin(p))
		if err != nil {
			return err
		}
		d.learn(p, answer)
	}
	_, _, err := o.Ask(d.suspects())
	return err
}

// greedySelection asks about every feature, then adds features to a vote, the most promising first, and keeps each that
// makes the vote's answer better.
func greedySelection(o Oracle, seed uint64, n, training int64) error {
	c := newCoins(seed, n, training)
	type feature struct {
		column int
		excess float64
	}
	var features []feature
	half := o.Remaining() / 2
	for j := range int(half) {
		if o.Remaining() <= 1 {
			break
		}
		answer, _, err := o.Ask(c.column(j))
		if err != nil {
			return err
		}
		features = append(features, feature{j, answer - 0.5})
	}
	slices.SortFunc(features, func(a, b feature) int {
		return cmp.Or(cmp.Compare(math.Abs(b.excess), math.Abs(a.excess)), a.column-b.column)
	})
	best := 0.5
	for _, f := range features {
		if o.Remaining() == 0 {
			return nil
		}
		w := sign(f.excess+0.5, 0)
		c.weigh(f.column, w)
		answer, _, err := o.Ask(c.vote())
		if err != nil {
			return err
		}
		if answer > best {
			best = answer
		} else {
			c.weigh(f.column, -w)
		}
	}
	return nil
}

// randomWalk changes a classifier at random and keeps each change that the answer likes.
func randomWalk(o Oracle, seed uint64, n, training int64) error {
	c := newCoins(seed, n, training)
	r := rand.New(rand.NewPCG(seeds.Of(seed, 3), 0))
	best := 0.0
	for j := 0; o.Remaining() > 0; j++ {
		step := r.NormFloat64()
		c.weigh(j, step)
		answer, _, err := o.Ask(c.vote())
		if err != nil {
			return err
		}
		if answer >= best {
			best = answer
		} else {
			c.weigh(j, -step)
		}
	}
	return nil
}

// ScheduledNoise is the standard deviation of an answer's noise under gaussian, by how many questions were asked before.
func ScheduledNoise(p thresholdout.Guarantee) func(asked int64) float64 {
	return func(asked int64) float64 {
		_, sigma, _ := p.FreshNoise(thresholdout.State{}, thresholdout.State{Questions: asked})
		return sigma
	}
}

// ConstantNoise is that of a mechanism whose noise is the same for all answers.
func ConstantNoise(p thresholdout.Guarantee) func(int64) float64 {
	promise, _ := p.Promised(0)
	return func(int64) float64 { return promise.Sigma }
}
