package moments

import "math"

// A mechanism may compare a mean in a way of its own, such as with noise. Of a check it then takes what its first rank says of the variance, which is asked exactly.

// Steady says whether the sums' variance is at most that of the first rank. It looks at the holdout.
func (c Check) Steady(s Sums) (bool, error) {
	if err := c.Valid(); err != nil {
		return false, err
	}
	if err := c.fits(s); err != nil {
		return false, err
	}
	return s.steady(c.Ranks[0].Variance), nil
}

// Between is the interval of a mean over all units, at the level E, of which is known that the holdout's lies between from and to and, if steady, that the variance is at most that of the first rank. What is steady and what is not
// are a chain each on either side, whatever from and to are, and share e^-E as passes and failures do; of a check that says nothing of the variance there is one chain, of 0/1 values with the exact tail.
func (c Check) Between(from, to float64, steady bool, level float64) (low, high float64) {
	n := float64(c.N)
	switch {
	case c.Partial || !(level >= 0):
		return 0, 1
	case c.Binary:
		low, high = fractionLow(c.N, from, level), 1-fractionLow(c.N, 1-to, level)
	case c.OneChain():
		low, high = c.Tails.Overshot(from, 1, n, level), c.Tails.OvershotHigh(to, 1, n, level)
	case steady:
		variance := float64(c.Ranks[0].Variance) / squares
		low, high = c.Tails.Overshot(from, variance, n, level+passLevel), c.Tails.OvershotHigh(to, variance, n, level+passLevel)
	default:
		low, high = c.Tails.Overshot(from, 1, n, level+failedLevel), c.Tails.OvershotHigh(to, 1, n, level+failedLevel)
	}
	return max(0, low-gridError), min(1, high+gridError)
}

// PriceOfSteady is what is paid where a failure says whether it is steady; 0 where the check says nothing of the variance.
func (c Check) PriceOfSteady() Nats {
	if c.OneChain() {
		return 0
	}
	return nats(math.Ln2)
}
