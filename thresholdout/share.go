package thresholdout

import (
	"math"

	"github.com/holdoutd/holdoutd/thresholdout/moments"
)

// widestShare is a mechanism whose first answers can be wider than [Foresees] or [Mixes] says of one of them.
type widestShare interface {
	// WidestShare is that of the guarantee; +Inf where nothing is known.
	WidestShare() float64
}

// WidestShare is how far, at most, an end of the interval of an answer about a share of all units is from its value while nothing is spent, whatever the outcome, the training part and the guess
// are; false where nothing is known. It is from public facts alone, in units of the share. The question is asked by itself, and brings neither a half-width of its own nor a promise about its variance.
// Later answers can be wider: each token that is spent, and under guess_and_check each rough answer, widens what follows.
func (g Guarantee) WidestShare() (float64, bool) {
	widest := math.Inf(1)
	half := ProspectInput{Value: 0.5} // where intervals are widest
	switch m := g.own.(type) {
	case nil:
	case widestShare:
		widest = m.WidestShare()
	case Mixes:
		if w, _, err := m.WidestAfter(State{}, half, Ahead{}); err == nil {
			widest = w
		}
	default:
		if ways, err := g.Prospects(State{}, half); err == nil {
			widest = 0
			for _, way := range ways {
				_, most := way.Planned()
				widest = max(widest, most)
			}
		}
	}
	if !(widest < math.Inf(1)) {
		return 0, false
	}
	return min(widest*(1+shareSlack), 1), true
}

// shareSlack is more than what the difference of an end and a value is rounded by.
const shareSlack = 1e-9

// WidestShare implements [widestShare]: a suggested promise may turn out broken.
func (m *gaussian) WidestShare() float64 {
	if begun := (State{}); m.Last(begun) {
		return m.WidestLast(begun, MethodCounts, lastShares(1, 1))
	}
	return m.widthAt(1) + gridError
}

// WidestShare implements [widestShare]: of a rough answer, or of one that differs. Without tokens spent the level is largest at one of the ends.
func (m *guessAndCheck) WidestShare() float64 {
	level := max(m.level(State{}), m.level(State{Questions: m.Questions - 1}))
	return moments.WidestMean(m.open(), m.Training, m.Deviations, level)
}

// WidestShare implements [widestShare]: the threshold of the question's own is no larger than the guarantee's.
func (m *comparedRuns) WidestShare() float64 {
	return max(m.Threshold+m.runs().ComparisonNoise(), m.runs().ReleaseNoise()) + m.widestSampling(m.level(State{}))
}
