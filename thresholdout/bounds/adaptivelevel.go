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
