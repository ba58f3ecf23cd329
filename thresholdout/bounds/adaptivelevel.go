package bounds

import (
	"math"
)

// AdaptiveLevel is the level at which an event must be improbable over a fresh sample, so that it has probability at most e^-level after
// released nats are out: if it has probability at most e^-AdaptiveLevel over n fresh units, for every transcript, then at most e^-level over
// the holdout and the transcript (docs/proofs/adaptive-hoeffding.md, section 3). It is the least over integers 1 <= m < n of
// n/(n-m) level + n/m released, about (sqrt level + sqrt released)^2. It is level where nothing was released, and +Inf for what is no account.
func AdaptiveLevel(n, level, released float64) float64 {
	if !(n >= MinUnits && level >= 0 && released >= 0) {
		return math.Inf(1)
	}
	if released == 0 {
		return level
	}
	// Convex in m, so that the best integer is next to the best real one.
	at := math.Floor(n * math.Sqrt(released) / (math.Sqrt(level) + math.Sqrt(released)))
	best := math.Inf(1)
	for _, m := range []float64{at, at + 1} {
		m = min(max(m, 1), n-1)
		best = min(best, n/(n-m)*level+n/m*released)
	}
	return best
}

// ShareLevel is the level of the tail, over a fresh sample, of an exact answer that has the shares of so many answers among those of a last round: shares may be any
// number above 0, and be chosen on the way. Each of the round's answers has a share of the probability of error that makes the level of a single one
// level; planned is that level where the m of section 4 of docs/proofs/account.md was chosen, which is one for all answers of the round. Where nothing was
// released it is level - ln shares.
func ShareLevel(n, planned, level, released, shares float64) float64 {
	if !(n >= MinUnits && planned >= 0 && level >= 0 && released >= 0 && shares > 0) {
		return math.Inf(1)
	}
	if released == 0 {
		return max(0, level-math.Log(shares))
	}
	if planned <= released {
		return math.Inf(1) // no share of the round says anything
	}
	m := tailM(n, planned, released)
	share := -logAdapted(n, level, released) + math.Log(1/shares)
	return n/(n-m)*max(0, share) + n/m*released
}

// tailM is the m at which the adaptive tail of a level is least: next to the best real one, for it is convex in m.
func tailM(n, level, released float64) (m float64) {
	at := math.Floor(n * math.Sqrt(released/level))
	best := math.Inf(1)
	for _, candidate := range []float64{at, at + 1} {
		candidate = min(max(candidate, 1), n-1)
		if share := (n/candidate-1)*released - (1-candidate/n)*level; share < best {
			m, best = candidate, share
		}
	}
	return m
}
