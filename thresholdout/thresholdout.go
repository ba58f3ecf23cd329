// Package thresholdout holds the mechanisms that release the mean of a row function over a holdout without
// leaking much about it: pure functions from exact sums, a small state and keyed noise to a value, an interval,
// a debit and the next state.
//
// An owner says what he wants, a [Spec]; [Plan] makes the [Guarantee] of it, which is stored and never planned again. Each answer
// is one [Step]: it does no I/O and keeps nothing, so that a service can make the next [State] durable before it releases the
// answer, and can run the step again after a crash. Sums are exact integers, noise is drawn exactly (package dp/noise), comparisons
// are done in integers: no rounding of floating point depends on a secret.
//
// A mechanism is one file and one line of the table in table.go. It is a [Mechanism], with the abilities that it has beside: to release
// several means as one, to take guesses, and so on (mechanism.go). Nobody outside of its file asks for its name.
//
// What the intervals promise is in docs/GUARANTEES.md, why they hold in docs/proofs/, the formulas in package
// thresholdout/bounds.
package thresholdout

import "errors"

// Name names a mechanism, as in the API.
type Name string

const (
	Gaussian      Name = "gaussian"
	GuessAndCheck Name = "guess_and_check"
	Thresholdout  Name = "thresholdout"
	Split         Name = "split"
	Naive         Name = "naive"

	// Cells answers questions about declared cells alone.
	Cells Name = "cells"

	// Ladder is a leaderboard: its questions are submissions, and its steps StepLadder's.
	Ladder Name = "ladder"

	// Auto lets Plan choose a mechanism; a Guarantee never has it.
	Auto Name = "auto"
)

// Errors of Step. All are decided by the state alone, before a sum is looked at.
var (
	ErrNoQuestions = errors.New("thresholdout: no questions left")
	ErrNoTokens    = errors.New("thresholdout: no tokens left")
	ErrNoRounds    = errors.New("thresholdout: no rounds left")
)

// Mean is an exact mean of a row function: Sum/(N*2^30), 0 <= Sum <= N*2^30.
type Mean struct {
	Sum int64
	N   int64
}

// Interval is a two-sided interval in [0,1] with the bound that made it and the parts of its half-width.
type Interval struct {
	Low, High float64
	Bound     string             // the theorem that it rests on, for example "adaptive-hoeffding" or "guess-and-check"
	Parts     map[string]float64 // for display: sampling_and_noise, adaptivity, threshold, agreement, …
}

// Source says which part of the data a released value is near to.
type Source string

const (
	FromHoldout  Source = "holdout"
	FromTraining Source = "training"
	FromGuess    Source = "guess" // the analyst's own
	FromNothing  Source = "none"  // nothing was compared, and no value is released
)

// Output is one released value.
type Output struct {
	Value    float64   // a multiple of 2^-30 in [0,1]
	Interval *Interval // nil where no valid bound is known
	Source   Source
	Tokens   int64 // tokens spent by this answer: 0 or 1

	// Margin, of a guess that passed, is how far it was allowed to be from the holdout mean.
	Margin float64

	// Promise is what the answer says of its question's promise; nil where there was none.
	Promise *Kept

	count *int64      // of split, of a yes/no mean: how many units say yes
	found Finding     // of guess_and_check: all that the answer says of the holdout
	last  *lastAnswer // of a last answer: what it is read from

	compared *compared // of thresholdout, of a mean: how it was compared
}

// Choice is the outcome of [StepSelect].
type Choice struct {
	Index  int     // of the mean that was found to be the largest
	Regret float64 // its population mean is at most so much below the largest
	Bound  string
}

// Standing is what a board shows after a submission.
type Standing struct {
	Loss     float64   // of the best submission so far, as the board shows it
	Best     bool      // this submission is the best
	Interval *Interval // of the shown submission's loss in the population; nil for a ladder without a proof
}
