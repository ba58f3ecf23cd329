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
	var ok bool
	if one.Ranks[0].Away, ok = widestMargin(holds); !ok {
		return c, false
	}
	return one, true
}

// widestMargin is the largest margin at which holds is true, where it is so up to some margin and false beyond: intervals widen with the margin. It is false where there is none.
func widestMargin(holds func(away int64) bool) (away int64, ok bool) {
	room, most := int64(-1), int64(grid+1)
	for most-room > 1 {
		if mid := room + (most-room)/2; holds(mid) {
			room = mid
		} else {
			most = mid
		}
	}
	return room, room >= 0
}
