package attacks

import (
	"math"
	"math/rand/v2"

	"github.com/holdoutd/holdoutd/dp/account"
	"github.com/holdoutd/holdoutd/experiments/seeds"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// Told is one game about whether a row is in the holdout.
type Told struct {
	Score      float64 `json:"score"`      // the logarithm of how much likelier the answers are with the row than without it, but for a constant
	Separation float64 `json:"separation"` // how far apart the scores of both kinds of games are by theory, in their standard deviations
	Answers    int64   `json:"answers"`    // from the holdout that the attacker saw
}

// Tell plays a game of [Membership] once, by an attacker who knows the row, the population's means and no other row: the row is inside or not. The same arguments give the same result.
func Tell(g thresholdout.Guarantee, inside bool, seed uint64) (Told, error) {
	rows := rand.New(rand.NewPCG(seeds.Of(seed, 1), 0))
	score, separation, answers, err := asked{g: g, row: inside, place: rows.Int64N(g.N), rows: rows}.play(seeds.Of(seed, 2))
	return Told{score, math.Sqrt(separation), answers}, err
}

// Allowed is the largest expected share of a secret column that anybody can find, for the noise of the answers that have some: ok where that protects a row.
func Allowed(g thresholdout.Guarantee) (right float64, ok bool, err error) {
	c, _, ok, err := claimOf(g)
	if err != nil || !ok {
		return 1, false, err
	}
	return (1 + account.Advantage(c.curve)) / 2, true, nil
}
