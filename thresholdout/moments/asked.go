package moments

// WithHalfWidth is the check with one rank whose interval, at this level, lies within guess ± halfWidth: the largest margin with which it
// does. It says nothing of the variance where even so there is room for the planned margin; else it asks for the planned variance,
// which leaves more room. All of it is public, so that nothing is paid for the choice. It is false where no guess can pass.
func (c Check) WithHalfWidth(halfWidth, level float64) (Check, bool) {
	planned := c.Ranks[0]
	steady, loose := c, c
	steady.Ranks = []Rank{planned}
	silent := planned
	silent.Variance = squares
	loose.Ranks = []Rank{silent}
	if away := loose.room(halfWidth, level); away >= planned.Away {
		loose.Ranks[0].Away = away
		return loose, true
	}
	away := steady.room(halfWidth, level)
	if away < 0 {
		return c, false
	}
	steady.Ranks[0].Away = away
	return steady, true
}

// room is the largest margin, in steps, whose interval lies within guess ± halfWidth, an end at 0 or 1 holding without a check; -1 if
// there is none.
func (c Check) room(halfWidth, level float64) int64 {
	r := c.Ranks[0]
	return room(float64(c.Guess)/grid, halfWidth, func(away int64) (low, high float64) {
		r.Away = away
		c.Ranks = []Rank{r}
		return c.Interval(Outcome{Rank: 1}, level)
	})
}

// WithHalfWidth is [Check.WithHalfWidth] of a weighted check: one rank, whose other margins are those of rank 1.
func (c WeightedCheck) WithHalfWidth(halfWidth, level float64) (WeightedCheck, bool) {
	r, one := c.Ranks[0], c
	r.Away = room(float64(c.Guess)/grid, halfWidth, func(away int64) (low, high float64) {
		r.Away = away
		one.Ranks = []WeightedRank{r}
		return one.Interval(WeightedOutcome{Rank: 1}, level)
	})
	one.Ranks = []WeightedRank{r}
	if r.Away < 0 {
		return c, false
	}
	return one, true
}

// room is the largest margin whose interval lies within g ± halfWidth; -1 if there is none. Intervals widen with the margin.
func room(g, halfWidth float64, interval func(away int64) (low, high float64)) int64 {
	holds := func(away int64) bool {
		low, high := interval(away)
		return low >= g-halfWidth && high <= g+halfWidth
	}
	lo, hi := int64(-1), int64(grid+1)
	for hi-lo > 1 {
		if mid := lo + (hi-lo)/2; holds(mid) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}
