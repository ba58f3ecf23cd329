package thresholdout

import (
	"cmp"
	"math"

	"github.com/holdoutd/holdoutd/thresholdout/bounds"
	"github.com/holdoutd/holdoutd/thresholdout/moments"
)

// The final report: one batch of questions, chosen by all that was seen and before any of its answers, after which a holdout answers nothing more. Its answers are
// exact last ones ([Lasts]): no guess, no margin, no token. The report has all of the probability of error that questions have not spent, and pays for what the
// outcomes before it said (docs/proofs/closing.md).

// Closes is a mechanism whose questions can end in a final report.
type Closes interface {
	Lasts
	// ClosesWithReport says so.
	ClosesWithReport()
}

// Closes reports whether the questions of the guarantee can end in a final report.
func (g Guarantee) Closes() bool { _, ok := g.own.(Closes); return ok }

// Reporting reports whether the state is one of a final report, or of a holdout that was closed by one.
func (s State) Reporting() bool { return s.Closing.Size > 0 }

// Close begins the final report of size questions, at least 1: the answers of the next ones are its own. It is ErrNoQuestions where fewer are left, or where there was a report.
func (g Guarantee) Close(s State, size int64) (State, error) {
	switch {
	case !g.Closes():
		return s, g.cannot("has no final report")
	case size < 1 || s.Reporting() || s.Retired || g.Questions-s.Questions < size:
		return s, ErrNoQuestions
	}
	s.Closing = Closing{Before: s.Questions, Size: size}
	if m, is := g.own.(*guessAndCheck); is {
		s.Closing.Sealed = m.narrowerSealed(s)
	}
	return s, nil
}

// Closed is the state after the report: all that is left is spent.
func (g Guarantee) Closed(s State) State {
	return g.Spend(s, g.Questions-s.Questions, g.Tokens-s.Tokens)
}

// Retired is the state of a holdout that is retired: all is spent, and nothing is asked any more.
func (g Guarantee) Retired(s State) State {
	s.Questions, s.Tokens, s.Rounds, s.InRound, s.Retired = g.Questions, g.Tokens, g.Rounds, 0, true
	return s
}

// ReportedNumbers are those of a final report of which widths are foreseen: a few, as most reports have.
const ReportedNumbers = 5

// ReportWidth is how wide a final report would be from a state on: the half-width of each of [ReportedNumbers] numbers, or of as many as there are questions for, in half-widths of a textbook's interval at the guarantee's
// confidence for one question that was fixed beforehand, by the normal law. It is public. False where there is no report, or no more.
func (g Guarantee) ReportWidth(s State) (textbooks float64, ok bool) {
	m, is := g.own.(*guessAndCheck)
	if !is {
		return 0, false
	}
	closing, err := g.Close(s, min(ReportedNumbers, g.Left(s)))
	if err != nil {
		return 0, false
	}
	fewer := math.Sqrt(float64(m.N) / float64(m.reportUnits(closing)))
	return fewer * bounds.Deviations(m.reportLevel(closing, 1)) / bounds.Deviations(math.Log(2/m.Beta())), true
}

// BoundReport is the bound of a mean in a report of which no more is known than its range.
const BoundReport = "report+chernoff"

// ClosesWithReport implements [Closes].
func (m *guessAndCheck) ClosesWithReport() {}

// Last implements [Lasts].
func (m *guessAndCheck) Last(s State) bool { return s.Reporting() }

// reportSlack is more than the rounding of the logarithms that a level of the report adds.
const reportSlack = 1e-9

// reportLevel is E of a number that has so many questions' shares of the report: ln(2m/(beta s)) + N, s the share of the probability of error that is left, m the report's
// questions for one of these, N what the outcomes before it said. The level of the next check is ln(2/(beta c)) + N, c a check's share.
func (m *guessAndCheck) reportLevel(s State, shares float64) float64 {
	if s.Closing.Sealed {
		return math.Log(2*float64(s.Closing.Size)/(m.Beta()*sealedShare*shares)) + reportSlack
	}
	begun := s.begun()
	return m.level(begun) + math.Log(float64(s.Closing.Size)/(m.sharesLeft(begun)*shares)) + reportSlack
}

// sharesLeft is how many checks' shares of the probability of error are left. Since version 4 a measured answer has twice as much of it as checks for as many questions.
func (m *guessAndCheck) sharesLeft(s State) float64 {
	left := m.Questions - s.Questions
	if m.halves() {
		left += m.Questions - accountOf(s).Measured*m.MeasuredPrice()
	}
	return float64(left)
}

// begun is the state in which the report began.
func (s State) begun() State {
	s.Questions, s.Closing = s.Closing.Before, Closing{}
	return s
}

// told is how much of the level of a report is for what earlier outcomes said.
func (m *guessAndCheck) told(s State) float64 {
	if s.Closing.Sealed {
		return 0
	}
	return m.said(s.begun())
}

func (m *guessAndCheck) reportPlanning(s State, shares float64) LastPlanning {
	return LastPlanning{N: m.reportUnits(s), Questions: m.Questions, Level: m.reportLevel(s, shares), Tails: moments.BestTilts, OneEvent: m.oneEvent(), Chernoff: true}
}

// ReleaseLast implements [Lasts].
func (m *guessAndCheck) ReleaseLast(s State, in LastInput) (Output, error) {
	r, err := in.Holdout.ReadLast(in.Training, m.reportPlanning(s, in.Shares))
	if err != nil {
		return Output{}, err
	}
	return m.reported(s, r, in.Shares), nil
}

// ExpectedLast implements [Lasts].
func (m *guessAndCheck) ExpectedLast(s State, training LastStatistic, shares float64) (Output, error) {
	r, err := training.ExpectLast(m.reportPlanning(s, shares))
	if err != nil {
		return Output{}, err
	}
	return m.reported(s, r, shares), nil
}

func (m *guessAndCheck) reported(s State, r Reading, shares float64) Output {
	out := Output{Value: r.Value, Source: FromHoldout, last: &lastAnswer{r, shares}}
	out.Interval = m.reportInterval(s, out.last)
	return out
}

// reportInterval is that of an answer of the report, with what of its half-width is for what earlier outcomes said.
func (m *guessAndCheck) reportInterval(s State, a *lastAnswer) *Interval {
	level := m.reportLevel(s, a.shares)
	i := &Interval{Bound: cmp.Or(a.Bound, BoundReport)}
	i.Low, i.High = a.Interval(level)
	half := max(i.High-a.Value, a.Value-i.Low)
	adaptivity := 0.0
	if level > 0 {
		adaptivity = half * (1 - math.Sqrt(max(level-m.told(s), 0)/level)) // a half-width is about the root of its level
	}
	i.Parts = map[string]float64{"sampling": half - adaptivity, "adaptivity": adaptivity}
	return i
}

// WidestLast implements [Lasts]: where the sample's own moments decide, or a quantile's counts, nothing is known; else it is Hoeffding's, than which no bound here is wider.
func (m *guessAndCheck) WidestLast(s State, bound string, shares float64) float64 {
	if bound != MethodCounts && bound != BoundReport {
		return math.Inf(1)
	}
	n := float64(m.reportUnits(s))
	return math.Sqrt(m.reportLevel(s, shares)/(2*n)) + 2/n + 2*gridError
}
