package thresholdout

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/holdoutd/holdoutd/thresholdout/moments"
)

// Guess is an analyst's own guess of a row function's mean, for a mechanism that takes guesses.
type Guess struct {
	Value     *float64 // in [0,1]; nil is the training mean
	HalfWidth float64  // in [0,1], to be checked at; 0 is the planned widths
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

// guessAndCheckVersion is the version of its stored form. The first had planned cells or noise for failures, and no memory of what failures had said; it was
// never released, and is refused.
const guessAndCheckVersion = 2

var guessAndCheckKind = Kind{
	Name:     GuessAndCheck,
	Says:     "confirms a guess, the training mean or the analyst's own, where the holdout agrees; else answers from the holdout, for a token",
	Takes:    []string{ParamTokens},
	Assumes:  "guesses from the training part are mostly right: each that is not spends a token and widens later intervals, and without tokens no new question is answered. The intervals themselves hold whatever is guessed",
	Variants: []Variant{{"", (*guessAndCheck)(nil)}},
	Methods: []Method{{Name: MethodGuessCheck, Formula: "|g-h| ≤ d, then n kl(g±d || x) ≤ E = ln(2k/β) − ln Polya(j,f,w) + Σ ln(c T); of a question that varies less, n kl(p || p x/u) ≤ E + …",
		Source: "proofs [1](proofs/guess-and-check.md), [2](proofs/two-moments.md), after Rogers et al., arXiv 1906.09231"}},
	Version: guessAndCheckVersion,
	Plan:    planGuessAndCheck,
	Read:    readGuessAndCheck,
}

// guessAndCheck answers with a guess while the holdout is near it, else from the holdout for a token (docs/proofs/guess-and-check.md,
// docs/proofs/two-moments.md). How a question is checked, and what its answers say, is in package moments.
type guessAndCheck struct {
	Head
	// Deviations is z of the narrowest margin.
	Deviations float64 `json:"deviations" doc:"how many standard deviations of training mean minus holdout mean the narrowest margin leaves room for"`
}

// account is what guess_and_check remembers: with the counters of the state, what later levels pay for.
type account struct {
	Wide int64        `json:"wide"` // guesses that passed at the wider margin alone
	Paid moments.Nats `json:"paid"` // what the failures said, in nats of 2^-20
}

// accountOf is the account of a state.
func accountOf(s State) account {
	a, _ := s.Memory.(account)
	return a
}

// verdict is all that an answer says of the holdout.
type verdict struct {
	check   moments.Check
	outcome moments.Outcome
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
	m := &guessAndCheck{Head: s.Head(), Deviations: moments.Deviations(s.Questions)}
	m.Version = guessAndCheckVersion
	promise, _ := m.Promise(State{Questions: m.Questions - 1})
	m.HalfWidth = promise.HalfWidth
	return m, nil
}

// readGuessAndCheck reads a stored one.
func readGuessAndCheck(text []byte) (Mechanism, error) {
	m, err := ReadAs[guessAndCheck](text)
	if g, ok := m.(*guessAndCheck); ok && (!(g.Deviations > 0 && g.Deviations <= 100) || g.Training < 1 || g.Tokens < 1) {
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
	if a.Wide < 0 || a.Paid < 0 {
		return nil, fmt.Errorf("%d wide passes and %d nats", a.Wide, a.Paid)
	}
	return a, nil
}

// level is E of the next question.
func (m *guessAndCheck) level(s State) float64 {
	a := accountOf(s)
	return moments.Urn{Questions: m.Questions, Beta: m.Beta()}.Level(s.Questions, s.Tokens, a.Wide, a.Paid)
}

// ofMean is how a mean is checked of which nothing is known but the training mean: its variance is at most that of a 0/1 variable, and the check says
// nothing of it.
func (m *guessAndCheck) ofMean(training Mean, guess int64) (moments.Check, error) {
	p := float64(training.Sum) / float64(training.N) / float64(grid)
	v := p * (1 - p)
	c, err := moments.PlanWith(moments.Training{All: training.N, Units: training.N, Mean: p, Second: v, Fourth: max(0, v*(1-3*v)),
		Guess: float64(guess) / float64(grid), Binary: true}, m.N, m.Deviations)
	c.Binary = false // it need not be: the exact tail is for what is 0/1 by its form
	return c, err
}

// ofRoot is how the root of an equation is checked.
func (m *guessAndCheck) ofRoot(s State, in RootInput, guess int64) (moments.Check, error) {
	c, err := moments.PlanWith(in.training(guess), m.N, m.Deviations)
	if err != nil || c.Partial || c.Binary {
		return c, err
	}
	// Where the planned variance is next to nothing to say, the check says nothing of it: then no share of the level is split.
	silent := c
	silent.Ranks = slices.Clone(c.Ranks)
	silent.Ranks[0].Variance = silent.Ranks[1].Variance
	if level := m.level(s); m.width(silent, level) <= m.width(c, level) {
		return silent, nil
	}
	return c, nil
}

// width is the half-width of a guess that passes at the narrowest margin.
func (m *guessAndCheck) width(c moments.Check, level float64) float64 {
	low, high := c.Interval(moments.Outcome{Rank: 1}, level)
	v := float64(c.Guess) / float64(grid)
	return max(high-v, v-low)
}

// guessed is the guess in steps: the analyst's own, or the training part's.
func guessed(own *Guess, training int64) (int64, error) {
	switch {
	case own == nil || own.Value == nil:
		return training, nil
	case !(*own.Value >= 0 && *own.Value <= 1):
		return 0, fmt.Errorf("thresholdout: guess %v is not within 0 and 1", *own.Value)
	}
	return int64(math.Floor(*own.Value*float64(grid) + 0.5)), nil
}

// narrowed is the check at the half-width that the analyst asks for, if he does: one rank. All of it is public.
func (m *guessAndCheck) narrowed(s State, c moments.Check, own *Guess) (moments.Check, error) {
	if own == nil || own.HalfWidth == 0 {
		return c, nil
	}
	if !(own.HalfWidth > 0 && own.HalfWidth <= 1) {
		return c, fmt.Errorf("thresholdout: half_width %v is not between 0 and 1", own.HalfWidth)
	}
	level := m.level(s)
	at, ok := c.WithHalfWidth(own.HalfWidth, level)
	if !ok {
		none := c
		none.Ranks = []moments.Rank{c.Ranks[0]}
		none.Ranks[0].Away = 0
		return c, &WidthError{HalfWidth: own.HalfWidth, Least: m.width(none, level) + gridError, Planned: m.width(c, level)}
	}
	return at, nil
}

// meanCheck is how the next question is checked if it is a mean.
func (m *guessAndCheck) meanCheck(s State, training Mean, own *Guess) (moments.Check, error) {
	guess, err := guessed(own, (training.Sum+training.N/2)/training.N)
	if err != nil {
		return moments.Check{}, err
	}
	c, err := m.ofMean(training, guess)
	if err != nil {
		return c, err
	}
	return m.narrowed(s, c, own)
}

// rootCheck is how the next question is checked if it is a root.
func (m *guessAndCheck) rootCheck(s State, in RootInput) (moments.Check, error) {
	guess, err := guessed(in.Guess, in.Training.mean())
	if err != nil {
		return moments.Check{}, err
	}
	c, err := m.ofRoot(s, in, guess)
	if err != nil {
		return c, err
	}
	return m.narrowed(s, c, in.Guess)
}

// interval is that of an answer: a function of what was found, of the level and of public facts. The holdout's sums are not among its arguments.
func (v verdict) interval(level float64) *Interval {
	low, high := v.check.Interval(v.outcome, level)
	value, near, reason := v.check.Value(v.outcome), v.margin(), "agreement"
	if v.outcome.Failed() {
		near, reason = 0.5/float64(v.check.Cells), "rounding"
	}
	bound := BoundTwoMoments
	if v.check.OneChain() {
		bound = MethodGuessCheck
	}
	half := max(high-value, value-low)
	near = min(near, half) // a side that is cut off at 0 or 1
	return &Interval{Low: low, High: high, Bound: bound, Parts: map[string]float64{reason: near, "sampling_and_adaptivity": half - near}}
}

// margin is how far a guess that passed may be from the holdout's mean.
func (v verdict) margin() float64 {
	if v.outcome.Failed() {
		return 0
	}
	return float64(v.check.Ranks[v.outcome.Rank-1].Away) / float64(grid)
}

// answer compares the holdout's sums with the margins, and makes the answer of what was found.
func (m *guessAndCheck) answer(s State, c moments.Check, sums moments.Sums, own *Guess) (Output, Memory, error) {
	o, err := c.Outcome(sums)
	if err != nil {
		return Output{}, nil, fmt.Errorf("thresholdout: %w", err)
	}
	v, books := &verdict{c, o}, accountOf(s)
	out := Output{Value: c.Value(o), Interval: v.interval(m.level(s)), Source: FromTraining, Margin: v.margin(), said: v}
	switch {
	case o.Failed():
		out.Source, out.Tokens = FromHoldout, 1
		books.Paid += c.Price()
	case own != nil && own.Value != nil:
		out.Source = FromGuess
	}
	if o.Wide() {
		books.Wide++
	}
	if books == accountOf(s) {
		return out, s.Memory, nil
	}
	return out, books, nil
}

// Release implements [Mechanism]. Margins may depend on the transcript and on the question, for the union that pays for them is over transcripts.
func (m *guessAndCheck) Release(s State, in Input, _ Noise) (Output, Memory, error) {
	c, err := m.meanCheck(s, in.Training, in.Guess)
	if err != nil {
		return Output{}, nil, err
	}
	// The squares are not asked about. They are as large as they can be.
	sums := moments.Sums{Units: in.Holdout.N, Sum: in.Holdout.Sum}
	sums.Squares.AddSums(in.Holdout.Sum, grid)
	return m.answer(s, c, sums, in.Guess)
}

// ReleaseRoot implements [Equations].
func (m *guessAndCheck) ReleaseRoot(s State, in RootInput) (Output, Memory, error) {
	c, err := m.rootCheck(s, in)
	if err != nil {
		return Output{}, nil, err
	}
	return m.answer(s, c, in.Holdout.Sums, in.Guess)
}

// Expected implements [Guesses].
func (m *guessAndCheck) Expected(s State, training Mean, g *Guess) (value float64, _ *Interval, err error) {
	c, err := m.meanCheck(s, training, g)
	return m.passing(s, c, err)
}

// ExpectedRoot implements [Equations].
func (m *guessAndCheck) ExpectedRoot(s State, in RootInput) (value float64, _ *Interval, err error) {
	c, err := m.rootCheck(s, in)
	return m.passing(s, c, err)
}

// passing is the answer if the guess passes at the narrowest margin.
func (m *guessAndCheck) passing(s State, c moments.Check, err error) (float64, *Interval, error) {
	if err != nil {
		return 0, nil, err
	}
	v := verdict{c, moments.Outcome{Rank: 1}}
	return c.Value(v.outcome), v.interval(m.level(s)), nil
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

// Promise implements [Mechanism]: of a guess of one half that passes. Where the state does not say what its failures have said, it is what a failure about one half says.
func (m *guessAndCheck) Promise(s State) (Promise, bool) {
	if s.Tokens > 0 && s.Memory == nil {
		c, err := m.ofMean(Mean{N: m.Training, Sum: m.Training * grid / 2}, grid/2)
		if err != nil {
			return Promise{}, false
		}
		s.Memory = account{Paid: moments.Nats(s.Tokens) * c.Price()}
	}
	i := m.Preview(s, 0.5)
	if i == nil {
		return Promise{}, false
	}
	return Promise{HalfWidth: max(i.High-0.5, 0.5-i.Low), Parts: i.Parts}, true
}

// At implements [Levels]. What an answer says of the holdout is a fact at every level.
func (m *guessAndCheck) At(s State, o Output, level float64) (low, high float64, ok bool) {
	other := *m
	if other.Head, ok = m.at(level); !ok || o.said == nil {
		return 0, 0, false
	}
	return o.said.interval(other.level(s)).ends()
}
