package thresholdout

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/holdoutd/holdoutd/thresholdout/bounds"
	"github.com/holdoutd/holdoutd/thresholdout/moments"
)

// Guess is an analyst's own guess of what is released, a row function's mean or a statistic, for a mechanism that takes guesses. It is in [0,1]; of a statistic with units of its own, as
// [JointSums] has, in these.
type Guess struct {
	Value     *float64 // nil is the training part's
	HalfWidth float64  // to be checked at; 0 is the planned widths
	Measure   bool     // the answer says where the holdout's mean is, whatever the guess ([Measures]); HalfWidth is then that of its interval where the guess is right
	Null      *float64 // the null hypothesis, of a test: what the answer is to be told from, if it can; nil is none
}

// WidthError refuses a half-width at which no guess can pass: the tolerance for adaptive questions alone is wider. It
// depends on the state and on public facts only.
type WidthError struct {
	HalfWidth float64 // that was asked for
	Least     float64 // the least that can pass now
	Planned   float64 // what the question is checked at without a width of its own
}

func (e *WidthError) Error() string {
	return fmt.Sprintf("thresholdout: half_width: no guess passes at %.4g; the least now is %.4g, and %.4g leaves room for a good guess", e.HalfWidth, e.Least, e.Planned)
}

// MethodGuessCheck is the name of its method, and of the bound of answers that say how large a mean is and no more. BoundTwoMoments is that
// of answers that say how much its values vary, or how many units satisfy a condition, beside.
const (
	MethodGuessCheck = "guess-and-check"
	BoundTwoMoments  = "guess-and-check-two-moments"
)

// Versions of its stored form. The first had planned cells or noise for failures, and no memory of what failures had said; it was
// never released, and is refused. Since the third its intervals are read by [moments.BestTilts]. Since the fourth checks have half of the probability of error, and the rest is
// for what is measured and reported; passes are read as what misses on one side, and failures are priced by how far off they are. Since the fifth the matchings of units of several rows
// are read as chains, of which that is proved.
const (
	guessAndCheckOldest  = 2
	guessAndCheckTilts   = 3
	guessAndCheckHalves  = 4
	guessAndCheckVersion = 5
)

// halves reports whether checks have half of the probability of error.
func (m *guessAndCheck) halves() bool { return m.Version >= guessAndCheckHalves }

// oneEvent reports whether the matchings of units of several rows are read as one event.
func (m *guessAndCheck) oneEvent() bool { return m.Version < guessAndCheckVersion }

var guessAndCheckKind = Kind{
	Name:     GuessAndCheck,
	Says:     "confirms a guess, the mean of the training and check parts (of a model, of the check part) or the analyst's own, where the holdout agrees; else answers from the holdout, for a token",
	Takes:    []string{ParamTokens, ParamSealed},
	Assumes:  "guesses from the training part are mostly right: each that is not spends a token and widens later intervals, and without tokens no new question is answered. The intervals themselves hold whatever is guessed; those of areas under the ROC curve and of Kendall's tau are for units that are alike",
	Variants: []Variant{{"", (*guessAndCheck)(nil)}},
	Methods: []Method{{Name: MethodGuessCheck, Formula: "|g-h| ≤ d, then n kl(g±d || x) ≤ E = ln(40k/19β) − ln Polya(j,f,w) + Σ ln(T/w), w the weight of a failure's cell. If a question varies less, n kl(p || p x/u) ≤ E + …",
		Source: "[proof](proofs/two-moments.md), after Rogers et al., arXiv 1906.09231"}},
	Version: guessAndCheckVersion,
	Oldest:  guessAndCheckOldest,
	Plan:    planGuessAndCheck,
	Read:    readGuessAndCheck,
}

// guessAndCheck answers with a guess while the holdout is near it, else from the holdout for a token (docs/proofs/two-moments.md).
// How a question is checked, and what its answers say, is said by the question itself: [Statistic].
type guessAndCheck struct {
	Head
	// Deviations is z of the narrowest margin.
	Deviations float64 `json:"deviations" doc:"how many standard deviations of training mean minus holdout mean the narrowest margin leaves room for"`
	// Sealed is how many units no check and no measured answer reads: those that a final report may be read by alone.
	Sealed int64 `json:"sealed,omitempty" doc:"how many units are sealed: no question reads them, and the final report may be read by these alone"`
}

// account is what guess_and_check remembers: with the counters of the state, what later levels pay for.
type account struct {
	Wide     int64        `json:"wide"`               // guesses that passed at the wider margin alone
	Paid     moments.Nats `json:"paid"`               // what the failures and the measured answers said, in nats of 2^-20
	Measured int64        `json:"measured,omitempty"` // measured answers
}

// accountOf is the account of a state.
func accountOf(s State) account {
	a, _ := s.Memory.(account)
	return a
}

// planGuessAndCheck plans from public facts.
func planGuessAndCheck(s Spec) (Mechanism, error) {
	if s.Training < 1 {
		return nil, wrong("mechanism", "guess_and_check takes its guesses from a training part, and there is none; use gaussian")
	}
	s, err := s.withTokens()
	if err != nil {
		return nil, err
	}
	m := &guessAndCheck{Head: s.Head(), Deviations: moments.Deviations(s.Questions), Sealed: s.sealed()}
	if m.open() < bounds.MinUnits || s.Sealed > 0 && m.Sealed < bounds.MinUnits {
		return nil, wrong(ParamSealed, "%d units leave too few on one side: %d sealed, and %d for questions; hold out more, or seal none", m.N, m.Sealed, m.open())
	}
	m.Version = guessAndCheckVersion
	promise, _ := m.Promise(State{Questions: m.Questions - 1})
	m.HalfWidth = promise.HalfWidth
	return m, nil
}

// readGuessAndCheck reads a stored one.
func readGuessAndCheck(text []byte) (Mechanism, error) {
	m, err := ReadAs[guessAndCheck](text)
	if g, ok := m.(*guessAndCheck); ok && (!(g.Deviations > 0 && g.Deviations <= 100) || g.Training < 1 || g.Tokens < 1 || g.Sealed < 0 || g.Sealed >= g.N) {
		return nil, errHead
	}
	return m, err
}

// ComparesWithTraining implements [Compares].
func (m *guessAndCheck) ComparesWithTraining() {}

// ReadMemory implements [Remembers].
func (m *guessAndCheck) ReadMemory(text []byte) (Memory, error) {
	var a account
	if err := json.Unmarshal(text, &a); err != nil {
		return nil, err
	}
	if a.Wide < 0 || a.Paid < 0 || a.Measured < 0 {
		return nil, fmt.Errorf("%d wide passes, %d measured answers and %d nats", a.Wide, a.Measured, a.Paid)
	}
	return a, nil
}

// level is E of the next question that is checked. Measured answers have no place in the urn: they are paid by what they said alone.
func (m *guessAndCheck) level(s State) float64 {
	a := accountOf(s)
	return m.urn().Level(m.checked(s), s.Tokens-a.Measured, a.Wide, a.Paid)
}

// checked is how many questions were checks, or spent without an answer.
func (m *guessAndCheck) checked(s State) int64 {
	return s.Questions - accountOf(s).Measured*m.MeasuredPrice()
}

// urn is the account of its transcripts.
func (m *guessAndCheck) urn() moments.Urn {
	return moments.Urn{Questions: m.Questions, Beta: m.openBeta(), Half: m.halves()}
}

// said is N: what the outcomes so far said.
func (m *guessAndCheck) said(s State) float64 {
	a := accountOf(s)
	return m.urn().Said(m.checked(s), s.Tokens-a.Measured, a.Wide, a.Paid)
}

// planning is what a question is planned by at a level.
func (m *guessAndCheck) planning(level float64, guess *Guess) Planning {
	return Planning{N: m.open(), Questions: m.Questions, Deviations: m.Deviations, Level: level, Tails: m.tails(guessAndCheckTilts), OneSide: m.halves(), OneEvent: m.oneEvent(), Guess: guess}
}

// plan is how the next question is checked. Margins may depend on the transcript and on the question, for the union that pays for them is over transcripts.
func (m *guessAndCheck) plan(s State, in StatisticInput) (Check, error) {
	return in.Training.Plan(m.planning(m.level(s), in.Guess))
}

// ReleaseStatistic implements [Statistics]: it compares the holdout's sums with the check, and makes the answer of what was found.
func (m *guessAndCheck) ReleaseStatistic(s State, in StatisticInput) (Output, Memory, error) {
	if in.Guess.measures() {
		return m.releaseMeasured(s, in)
	}
	c, err := m.plan(s, in)
	if err != nil {
		return Output{}, nil, err
	}
	found, err := c.Find(in.Holdout)
	if err != nil {
		return Output{}, nil, fmt.Errorf("thresholdout: %w", err)
	}
	books := accountOf(s)
	out := Output{Value: found.Value(), Source: FromTraining, Margin: found.Margin(), found: found}
	out.Interval, _ = found.Interval(m.level(s))
	switch {
	case found.Silent():
		out.Source = FromNothing
	case found.Failed():
		out.Source, out.Tokens = FromHoldout, 1
		books.Paid += c.Price(found)
	case in.Guess != nil && in.Guess.Value != nil:
		out.Source = FromGuess
	}
	if found.Wide() {
		books.Wide++
	}
	if books == accountOf(s) {
		return out, s.Memory, nil
	}
	return out, books, nil
}

// Release implements [Mechanism]: a mean is a statistic of which nothing else is known.
func (m *guessAndCheck) Release(s State, in Input, from Noise) (Output, Memory, error) {
	return m.ReleaseStatistic(s, StatisticInput{Training: in.Training, Holdout: in.Holdout, Guess: in.Guess, Noise: from})
}

// Expected implements [Guesses].
func (m *guessAndCheck) Expected(s State, training Mean, g *Guess) (value float64, _ *Interval, err error) {
	return m.ExpectedStatistic(s, StatisticInput{Training: training, Guess: g})
}

// ExpectedStatistic implements [Statistics]: the answer if the guess passes at the narrowest margins.
func (m *guessAndCheck) ExpectedStatistic(s State, in StatisticInput) (value float64, _ *Interval, err error) {
	if in.Guess.measures() {
		c, err := m.measurement(s, in)
		if err != nil {
			return 0, nil, err
		}
		found := measuredFinding{c, c.Expected()}
		i, _ := found.Interval(m.measuredLevel(s))
		return found.Value(), i, nil
	}
	c, err := m.plan(s, in)
	if err != nil {
		return 0, nil, err
	}
	found := c.Expected()
	i, _ := found.Interval(m.level(s))
	return found.Value(), i, nil
}

// Preview implements [Mechanism]: of a guess that passes at the narrowest margin, about a mean of which nothing else is known.
func (m *guessAndCheck) Preview(s State, value float64) *Interval {
	mean := Mean{N: m.Training, Sum: int64(value * float64(m.Training) * float64(grid))}
	_, i, err := m.Expected(s, mean, nil)
	if err != nil {
		return nil
	}
	return i
}

// Promise implements [Mechanism]: of a guess of one half that passes. Where the state does not say what its failures have said, it is the most that a failure about one half says.
func (m *guessAndCheck) Promise(s State) (Promise, bool) {
	if s.Tokens > 0 && s.Memory == nil {
		c, err := m.plan(s, StatisticInput{Training: Mean{N: m.Training, Sum: m.Training * grid / 2}})
		if err != nil {
			return Promise{}, false
		}
		s.Memory = account{Paid: moments.Nats(s.Tokens) * c.Dearest()}
	}
	i := m.Preview(s, 0.5)
	if i == nil {
		return Promise{}, false
	}
	return Promise{HalfWidth: max(i.High-0.5, 0.5-i.Low), Parts: i.Parts}, true
}

// alone is what the first answer of all says by itself. Its question, its guess and its margins were fixed before anything was told of the holdout, so that the theorem for one question holds at any level, with nothing united. What a later
// answer says depends on a check that earlier outcomes may have chosen.
func (m *guessAndCheck) alone(s State, o Output) (at func(level float64) (low, high float64), ok bool) {
	if s.Questions > 0 || o.found == nil {
		return nil, false
	}
	found := o.found
	if f, ok := found.(bothSides); ok {
		found = f.eachSide()
	}
	return func(level float64) (low, high float64) {
		if i, known := found.Interval(level); known {
			return i.Low, i.High
		}
		return 0, 1
	}, true
}

// bothSides is a finding whose interval's ends may be read as what both sides together can miss by.
type bothSides interface {
	// eachSide is the finding read so that each end by itself misses with probability at most e^-E.
	eachSide() Finding
}

func (f rootFinding) eachSide() Finding       { f.check.OneSide = false; return f }
func (f weightedFinding) eachSide() Finding   { f.check.OneSide = false; return f }
func (f differenceFinding) eachSide() Finding { f.check.First.OneSide = false; return f }
func (f pairFinding) eachSide() Finding       { f.check.OneSide = false; return f }

func (f quantileFinding) eachSide() Finding { // what was printed is known at the level at which it was
	if f.Failed() {
		f.check.level = f.check.FailedLevel(f.check.level)
	} else {
		f.check.level = f.check.PassLevel(f.check.level)
	}
	f.check.OneSide = false
	return f
}

func (f jointFinding) eachSide() Finding {
	f.check.Checks = slices.Clone(f.check.Checks)
	for i := range f.check.Checks {
		f.check.Checks[i].OneSide = false
	}
	return f
}

// At implements [Levels]. What an answer says of the holdout is a fact at every level.
func (m *guessAndCheck) At(s State, o Output, level float64) (low, high float64, ok bool) {
	other := *m
	if other.Head, ok = m.at(level); !ok || o.found == nil && o.last == nil {
		return 0, 0, false
	}
	if o.last != nil {
		return other.reportInterval(s, o.last).ends()
	}
	i, ok := o.found.Interval(other.levelOf(s, o.found))
	if !ok {
		return 0, 0, false
	}
	return i.ends()
}
