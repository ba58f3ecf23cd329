package bounds

import (
	"math"
)

// LadderSteps is the account of a leaderboard with a fixed step (docs/proofs/ladder.md): it shows multiples of the step and moves
// only downwards, by at least a step, so that its runs are known by where it moved and to which multiples.
type LadderSteps struct {
	N    int64   // units of the holdout
	Step int64   // eta N, the step in units
	Beta float64 // 1-confidence
}

// values is how many numbers the board can show: multiples of the step from 0 to 1, rounded.
func (l LadderSteps) values() int64 { return (l.N+l.Step/2)/l.Step + 1 }

// Level is E: the loss of the place-th submission on the holdout is so far below (or above) its loss p in the population that n kl
// exceeds E, in any run in which the board had moved so many times before, with a probability that together with all other
// places, runs and the other side is at most beta.
//
// The weights: 1/(t(t+1)) for the place t, 1/(j(j+1)) for the number of moves j before it, shared among the C(t-2, j-1) places of the moves,
// of which the first is the first submission, and the C(values, j) sets of multiples that they went to.
func (l LadderSteps) Level(place, moves int64) float64 {
	t, j := float64(place), float64(moves)
	level := math.Log(2 * t * (t + 1) / l.Beta)
	if moves > 0 {
		level += math.Log(j*(j+1)) + logBinomial(place-2, moves-1) + logBinomial(l.values(), moves)
	}
	return level
}

// Widest is the half-width of the widest interval after so many submissions, by Hoeffding's inequality: half a step, and the
// tolerance at the most expensive number of moves, at most 1.
func (l LadderSteps) Widest(submissions int64) float64 {
	lo, hi := int64(0), min(l.values(), submissions-1) // the level is concave in the number of moves, but for rounding
	for hi-lo > 8 {
		if mid := lo + (hi-lo)/2; l.Level(submissions, mid) < l.Level(submissions, mid+1) {
			lo = mid
		} else {
			hi = mid + 1
		}
	}
	level := 0.0
	for j := max(0, lo-8); j <= min(hi+8, l.values(), submissions-1); j++ {
		level = max(level, l.Level(submissions, j))
	}
	return min(1, float64(l.Step)/float64(2*l.N)+math.Sqrt(level/(2*float64(l.N))))
}

// LadderStep is the step in units that a ladder of so many submissions is planned with: half of the one at which the widest interval is
// narrowest. The widest becomes about a ninth wider by it, and the board twice as fine; a board that moves a few times only has intervals far
// narrower than the widest, of which half a step is the larger part.
func LadderStep(n, submissions int64, beta float64) int64 {
	best, least := n, math.Inf(1)
	for values := 1.0; values <= min(float64(n), ladderValues); values = math.Ceil(values * 1.05) {
		step := max(1, int64(float64(n)/values))
		if w := (LadderSteps{N: n, Step: step, Beta: beta}).Widest(submissions); w < least {
			best, least = step, w
		}
	}
	return max(1, best/2)
}

// ladderValues is more than the best number of values for any holdout: it grows like the cube root of n, to 600 at 2^31.
const ladderValues = 1 << 12
