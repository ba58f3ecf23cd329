package thresholdout

import "github.com/holdoutd/holdoutd/thresholdout/bounds"

// cutsShare of what is not plain answers' pays for Chernoff's cuts of plain answers, the rest for vectors and selections. A cut's share is fixed by its place, so that it has
// the m that is best there, and its noise is integrated; then it can have no budget in common with releases that share an M (docs/proofs/account.md, section 4). Where
// no answer of a block bears noise ([gaussian.exact]) all of it shares the block's M and its budget.
const cutsShare = 0.3

// cut narrows the interval of a plain answer to its common part with Chernoff's, which is narrower for means far from one half. Both
// hold at once: Chernoff's is paid for every question, whether it helps or not.
func (m *gaussian) cut(s State, value float64, i *Interval) {
	var low, high float64
	if m.Version == GuaranteeVersion || m.exact(s) {
		var err error
		if low, high, err = m.account(s, 1, 1).MeanInterval(value, m.sigmaOf(s), gridError); err != nil {
			return // a guarantee so wide that the account has no interval
		}
	} else {
		share := cutsShare * m.Capped * m.Beta() / float64(m.Questions) / m.patterns(s, 1)
		low, high = m.cutOf(s).Within(value, gridError, share, i.Low, i.High)
	}
	if low > i.Low || high < i.High {
		i.Low, i.High = max(low, i.Low), min(high, i.High)
		i.Bound += "+chernoff"
	}
}

// cutOf is the cut of a plain answer. Its m is the same at all levels that the answer is read at, so that the intervals are nested; it is the best for usual ones.
func (m *gaussian) cutOf(s State) bounds.Cut {
	const usual = cutsShare * cappedShare * (1 - DefaultConfidence)
	return bounds.NewCut(float64(m.N), usual/float64(m.Questions), m.sigmaOf(s), m.releasedAtMost(s))
}
