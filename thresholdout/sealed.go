package thresholdout

import "math"

// Sealed units: a part of the holdout that no check and no measured answer reads. What was answered says nothing of them, so that a final report that is read by these alone pays for nothing that was said: it is as wide after ten wrong
// guesses as after none. They are paid for by every other answer, which is read by fewer units and has less of the probability of error (docs/proofs/closing.md, section 3).

// sealedShare is the share of the probability of error that a report by sealed units has. It is fixed before the first answer: a share that depends on what was answered would not be true (it misses 1.4 times as often as is promised).
// A quarter costs the other answers .29 nats.
const sealedShare = 0.25

// mostSealed leaves some units to questions: with less nothing can be searched for.
const mostSealed = 0.9

// sealed is how many units of the holdout a spec seals.
func (s *Spec) sealed() int64 { return int64(math.Round(s.Sealed * float64(s.N))) }

// Sealed is how many units of the holdout are sealed: the last ones.
func (g Guarantee) Sealed() int64 {
	if m, ok := g.own.(*guessAndCheck); ok {
		return m.Sealed
	}
	return 0
}

// open is how many units questions read before the report.
func (m *guessAndCheck) open() int64 { return m.N - m.Sealed }

// openBeta is the probability of error of all that is read by other than the sealed units alone.
func (m *guessAndCheck) openBeta() float64 {
	if m.Sealed > 0 {
		return m.Beta() * (1 - sealedShare)
	}
	return m.Beta()
}

// reads is the range of units that the next answer reads.
func (m *guessAndCheck) reads(s State) (from, to int64) {
	switch {
	case s.Closing.Sealed:
		return m.open(), m.N
	case s.Reporting():
		return 0, m.N
	}
	return 0, m.open()
}

// reportUnits is how many units a report reads.
func (m *guessAndCheck) reportUnits(s State) int64 {
	from, to := m.reads(s)
	return to - from
}

// narrowerSealed reports whether a report in this state is narrower by the sealed units alone than by all: a half-width is about the root of the level by the units. It depends on what was answered and on nothing else.
func (m *guessAndCheck) narrowerSealed(s State) bool {
	if m.Sealed == 0 {
		return false
	}
	alone := s
	s.Closing.Sealed, alone.Closing.Sealed = false, true
	return m.reportLevel(alone, 1)*float64(m.N) < m.reportLevel(s, 1)*float64(m.Sealed)
}
