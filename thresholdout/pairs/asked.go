package pairs

// WithHalfWidth is the check with one rank whose interval, at this level, lies within guess ± halfWidth: the largest margin with which it does. It says the planned variances,
// as rank 1 does. All of it is public, so that nothing is paid for the choice. It is false where no guess can pass.
func (c Check) WithHalfWidth(halfWidth, level float64) (Check, bool) {
	one, g := c, float64(c.Guess)/grid
	one.Ranks = []Rank{c.Ranks[0]}
	holds := func(away int64) bool {
		one.Ranks[0].Away = away
		low, high := one.Interval(Outcome{Rank: 1}, level)
		return low >= g-halfWidth && high <= g+halfWidth
	}
	room, most := int64(-1), int64(grid+1) // intervals widen with the margin
	for most-room > 1 {
		if mid := room + (most-room)/2; holds(mid) {
			room = mid
		} else {
			most = mid
		}
	}
	if room < 0 {
		return c, false
	}
	one.Ranks[0].Away = room
	return one, true
}
