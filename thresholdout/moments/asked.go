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
	r, g := c.Ranks[0], float64(c.Guess)/grid
	holds := func(away int64) bool {
		r.Away = away
		c.Ranks = []Rank{r}
		low, high := c.Interval(Outcome{Rank: 1}, level)
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
