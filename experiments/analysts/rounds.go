package analysts

// InRounds is the single-adaptive analyst under a guarantee with rounds: each begins with the vote that the answers of earlier rounds
// suggest, and goes on with columns. No question of a round depends on an answer of the same round.
func InRounds(weight Weighting) func(Oracle, uint64, int64, int64) error {
	return func(o Oracle, seed uint64, n, training int64) error {
		c := newCoins(seed, n, training)
		column := 0
		for o.Remaining() > 0 {
			if _, _, err := o.Ask(c.vote()); err != nil {
				return err
			}
			weights := map[int]float64{}
			for left := o.LeftInRound(); left > 0; left-- {
				answer, _, err := o.Ask(c.column(column))
				if err != nil {
					return err
				}
				weights[column] = weight(answer, int64(column))
				column++
			}
			for j := column - len(weights); j < column; j++ {
				c.weigh(j, weights[j])
			}
		}
		return nil
	}
}
