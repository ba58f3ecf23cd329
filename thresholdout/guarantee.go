package thresholdout

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/holdoutd/holdoutd/thresholdout/moments"
)

// GuaranteeVersion is the version of the stored form of a guarantee, of mechanisms whose [Kind] names no later one.
const GuaranteeVersion = 1

// Head is what every guarantee says, whatever its mechanism. All scales are in units of the row function's [0,1].
type Head struct {
	Version    int     `json:"version" doc:"of this form"` // of the stored form
	Mechanism  Name    `json:"mechanism"`
	N          int64   `json:"n" doc:"units of the holdout"`              // units of the holdout
	Training   int64   `json:"training" doc:"units of the training part"` // units of the training part, 0 without one
	Questions  int64   `json:"questions"`
	Tokens     int64   `json:"tokens,omitempty" doc:"how many guesses may be wrong; a measured answer takes one too"`  // how many guesses may be wrong
	Rounds     int64   `json:"rounds,omitempty" doc:"in how many batches the questions are asked; absent: one by one"` // in how many batches the questions are asked; 0 is one by one
	Confidence float64 `json:"confidence" doc:"the probability that all intervals together hold"`                      // 1-beta, for all questions together

	// HalfWidth is that of every answer, where all are alike. Of guess_and_check it is the widest that a guess passes with at the
	// narrowest width before any token is spent, of a ladder the widest that an interval of the board can become; 0 where it is not planned.
	HalfWidth float64 `json:"half_width,omitempty" doc:"of every answer, where all are alike; of guess_and_check, of a guess that passes; of ladder, the widest that the interval of the board can become"`
}

// Common implements [Mechanism] for those who embed a Head.
func (h *Head) Common() Head { return *h }

// tails are those of a version: since one of them every tilt counts.
func (h *Head) tails(since int) moments.Tails {
	if h.Version < since {
		return moments.FirstTilts
	}
	return moments.BestTilts
}

// Beta is the probability that any interval of the guarantee misses, 1-Confidence.
func (h *Head) Beta() float64 { return 1 - h.Confidence }

// Guarantee is a mechanism with every number that it needs, fixed at creation by [Plan] and stored as JSON: the members of [Head], then
// those of its mechanism. A stored one is used as it is, and none is ever changed: the fields here are a copy of the mechanism's. The
// zero Guarantee is none.
type Guarantee struct {
	Head
	own      Mechanism
	slices   Slices // own, if it is one; these two are asked for at every step
	compares bool
}

// of is the guarantee of a planned mechanism.
func of(m Mechanism) Guarantee {
	g := Guarantee{Head: m.Common(), own: m}
	g.slices, _ = m.(Slices)
	_, g.compares = m.(Compares)
	return g
}

// Own is the mechanism with its own numbers, to be asked for what it can do.
func (g Guarantee) Own() Mechanism { return g.own }

// MarshalJSON writes the stored form; without a mechanism it is the head alone, which UnmarshalJSON refuses.
func (g Guarantee) MarshalJSON() ([]byte, error) {
	if g.own == nil {
		return json.Marshal(g.Head)
	}
	return json.Marshal(g.own)
}

// UnmarshalJSON reads the stored form. It refuses a version and a mechanism that it does not know, and numbers that no guarantee has.
func (g *Guarantee) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*g = Guarantee{}
		return nil
	}
	var head Head
	if err := json.Unmarshal(text, &head); err != nil {
		return fmt.Errorf("thresholdout: guarantee: %w", err)
	}
	kind, ok := KindOf(head.Mechanism)
	known := max(GuaranteeVersion, kind.Version)
	oldest := known
	if kind.Oldest != 0 {
		oldest = kind.Oldest
	}
	if head.Version < oldest || head.Version > known {
		return &VersionError{What: "the guarantee", Got: head.Version, Known: known}
	}
	if !ok || kind.Read == nil {
		return fmt.Errorf("thresholdout: a guarantee of the mechanism %q, which this program does not know", head.Mechanism)
	}
	if err := head.check(); err != nil {
		return err
	}
	m, err := kind.Read(text)
	if err != nil {
		return fmt.Errorf("thresholdout: guarantee of %s: %w", head.Mechanism, err)
	}
	*g = of(m)
	return nil
}

// ReadAs reads the stored form of a mechanism of type T.
func ReadAs[T any, M interface {
	*T
	Mechanism
}](text []byte) (Mechanism, error) {
	m := M(new(T))
	if err := json.Unmarshal(text, m); err != nil {
		return nil, err
	}
	return m, nil
}

// VersionError is a stored form of another version than this program reads.
type VersionError struct {
	What       string // "the guarantee", "the mechanism's state"
	Got, Known int
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("thresholdout: %s has version %d; this program reads version %d", e.What, e.Got, e.Known)
}

var errHead = errors.New("thresholdout: a guarantee with numbers that none has")

// check refuses a head with which sums and budgets would mean nothing.
func (h *Head) check() error {
	if h.N < 1 || h.N > MaxUnits || h.Training < 0 || h.Questions < 1 || h.Tokens < 0 || h.Rounds < 0 || h.Rounds > h.Questions ||
		!(h.Confidence > 0 && h.Confidence < 1) {
		return fmt.Errorf("%w: %+v", errHead, h)
	}
	return nil
}

// UsesTraining reports whether a Step looks at the training part.
func (g Guarantee) UsesTraining() bool { return g.compares }

// Compared is the guarantee for a question that is compared with so many units, where that is more than the training part that it was planned for: as where there
// is a check part, and a question is compared with both. What is planned for each question follows the sums that it is given.
func (g Guarantee) Compared(units int64) Guarantee {
	g.Training = max(g.Training, units)
	return g
}

// Together reports whether vectors and selections can be released as one.
func (g Guarantee) Together() bool {
	_, vectors := g.own.(Vectors)
	_, selections := g.own.(Selections)
	return vectors && selections
}

// TakesGuesses reports whether a question can bring a guess, or a half-width to check it at.
func (g Guarantee) TakesGuesses() bool { _, ok := g.own.(Guesses); return ok }

// TakesSubmissions reports whether questions are submissions to a board: their steps are StepLadder's.
func (g Guarantee) TakesSubmissions() bool { _, ok := g.own.(Submissions); return ok }

// DeclaredCells is how many cells questions are about; false for a mechanism whose questions are about anything.
func (g Guarantee) DeclaredCells() (int64, bool) {
	m, ok := g.own.(Celled)
	if !ok {
		return 0, false
	}
	return m.DeclaredCells(), true
}

// Sliced reports whether each question has units of its own.
func (g Guarantee) Sliced() bool { return g.slices != nil }

// Slice is the range of holdout units that the next answer reads.
func (g Guarantee) Slice(s State) (from, to int64) {
	if g.slices != nil {
		return g.slices.Slice(s)
	}
	if m, ok := g.own.(*guessAndCheck); ok {
		return m.reads(s)
	}
	return 0, g.N
}

// FreshNoise reports whether an answer in this state says the holdout mean of units of which nothing had been told at the state before,
// begun, with how many units and how much noise.
func (g Guarantee) FreshNoise(begun, s State) (units int64, sigma float64, ok bool) {
	if m, is := g.own.(Fresh); is {
		return m.Fresh(begun, s)
	}
	return 0, 0, false
}

// Promised is what the guarantee says of its last answer when so many tokens are spent, from public facts alone; false for mechanisms
// without intervals. Where all answers are alike, and for guess_and_check without tokens spent, its half-width is HalfWidth. An answer of
// a mechanism that compares is taken to be one that agrees with training.
func (g Guarantee) Promised(tokens int64) (Promise, bool) {
	last := State{Questions: g.Questions - 1, Tokens: min(tokens, g.Questions-1)}
	if g.Rounds > 0 {
		last.Rounds = g.Rounds - 1
	}
	return g.own.Promise(last)
}

// Preview is the interval that the next answer would get if it were released now and were this value; nil where there is none.
func (g Guarantee) Preview(s State, value float64) *Interval { return g.own.Preview(s, value) }

// Expected is the value and the interval of the next answer if its guess passes, from public facts alone; err is a
// [*WidthError] if its half-width cannot pass. It is for mechanisms that take guesses.
func (g Guarantee) Expected(s State, training Mean, guess *Guess) (value float64, _ *Interval, err error) {
	m, ok := g.own.(Guesses)
	if !ok {
		return 0, nil, g.cannot("takes no guess")
	}
	if err := training.check(g.Training); err != nil {
		return 0, nil, fmt.Errorf("thresholdout: training: %w", err)
	}
	return m.Expected(s, training, guess)
}

// cannot says what a mechanism is not able to do.
func (g Guarantee) cannot(what string) error {
	return fmt.Errorf("thresholdout: the mechanism %s %s", g.Mechanism, what)
}
