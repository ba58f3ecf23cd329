package thresholdout

// Answers read at other levels. What was released does not depend on the confidence of its interval: the same values, noise and
// passes have, for every probability of error u, intervals that hold together with probability 1-u, and that get narrower as u
// grows. A p-value is the least u whose intervals exclude the null. Among all the true nulls that are ever tested, however each was
// chosen, some p-value is at most u with probability at most u: at that u, an interval of the family has missed
// (docs/proofs/p-values.md).
//
// A mechanism that reads its answers at other levels makes itself anew with another confidence, everything that releases depend on as it
// is, and intervals at the other level. It has none where its bound plans the noise with the level.

// MinLevel is the least level that answers are read at; smaller probabilities are not computed faithfully (MaxConfidence).
const MinLevel = 1e-9

// at is the head at another level; false for levels that nothing is read at.
func (h *Head) at(level float64) (Head, bool) {
	other := *h
	other.Confidence = 1 - level
	return other, level >= MinLevel && level < 1
}

// Level is the probability that any interval of the guarantee misses, 1-Confidence.
func (g Guarantee) Level() float64 { return g.Beta() }

// IntervalAt is the interval of an answer of Step if those of all answers missed with probability at most level; s is the state
// before the step. At the level of the guarantee it is the answer's own. It is false for answers without an interval, under
// published bounds, and for levels not between MinLevel and 1.
func (g Guarantee) IntervalAt(s State, o Output, level float64) (low, high float64, ok bool) {
	m, is := g.own.(Levels)
	if !is || o.Interval == nil {
		return 0, 0, false
	}
	return m.At(s, o, level)
}

// VectorIntervalAt is IntervalAt for one answer of StepVector of count means with this variance.
func (g Guarantee) VectorIntervalAt(s State, o Output, count int, variance, level float64) (low, high float64, ok bool) {
	m, is := g.own.(Vectors)
	if !is || o.Interval == nil {
		return 0, 0, false
	}
	return m.VectorAt(s, o, count, variance, level)
}

// ends are those of an interval.
func (i *Interval) ends() (low, high float64, ok bool) { return i.Low, i.High, true }
