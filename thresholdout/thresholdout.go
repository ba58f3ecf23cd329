// Package thresholdout holds the mechanisms that release the mean of a row function over a holdout without
// leaking much about it: pure functions from exact sums, a small state and keyed noise to a value, an interval,
// a debit and the next state.
//
// A holdout has one mechanism and one guarantee, [Params], fixed when it is made by [New]. Each answer is one [Step]:
// it does no I/O and keeps nothing, so that a service can make the next [State] durable before it releases the answer, and can
// run the step again after a crash. Sums are exact integers, noise is drawn exactly (package dp/noise), comparisons are done
// in integers: no rounding of floating point depends on a secret.
//
// What the intervals promise is in docs/GUARANTEES.md, why they hold in docs/proofs/, the formulas in package
// thresholdout/bounds.
package thresholdout

import "errors"

// Mechanism names a mechanism, as in the API.
type Mechanism string

const (
	Gaussian      Mechanism = "gaussian"
	GuessAndCheck Mechanism = "guess_and_check"
	Thresholdout  Mechanism = "thresholdout"
	Split         Mechanism = "split"
	Naive         Mechanism = "naive"

	// Leaderboard is the Ladder with a fixed step as the mechanism of a holdout: its steps are StepLadder's.
	Leaderboard Mechanism = "ladder"

	// Auto lets New choose gaussian or guess_and_check; Params that New returned never have it.
	Auto Mechanism = "auto"
)

// Form is the published form of Thresholdout.
type Form string

const (
	// FormGaussian is Science 2015 (doi 10.1126/science.aaa9375): Gaussian noise in every comparison and release; interval
	// by forced runs (docs/proofs/adaptive-hoeffding.md).
	FormGaussian Form = "gaussian"
	// FormLaplace is NIPS 2015 (arXiv 1506.02629, figure 1): Laplace noise, the threshold noise redrawn only after an
	// overfit; interval by the tanh transfer bound (docs/proofs/tanh-transfer.md).
	FormLaplace Form = "laplace"
)

// Errors of Step. All are decided by the state alone, before a sum is looked at.
var (
	ErrNoQuestions = errors.New("thresholdout: no questions left")
	ErrNoTokens    = errors.New("thresholdout: no tokens left")
	ErrNoRounds    = errors.New("thresholdout: no rounds left")
)

// Params is the guarantee of a holdout: the mechanism with every number that it needs, fixed at creation and
// stored as JSON. All scales are in units of the row function's [0,1]. Make it with New, which fills what is left
// zero and validates. Stored Params are used as they are; New leaves what it has filled once as it is.
type Params struct {
	Mechanism  Mechanism `json:"mechanism"`
	N          int64     `json:"n"`        // units of the holdout
	Training   int64     `json:"training"` // units of the training part, 0 without one
	Questions  int64     `json:"questions"`
	Tokens     int64     `json:"tokens,omitempty"` // thresholdout, guess_and_check: how many guesses may be wrong
	Confidence float64   `json:"confidence"`       // 1-beta, for all questions together

	Sigma     float64 `json:"sigma,omitempty"`     // the noise's standard deviation (Laplace form: its scale), or the schedule's s
	Scheduled bool    `json:"scheduled,omitempty"` // gaussian: sigma_j = s(1-u_j), thresholdout/bounds.ScheduledSigma

	// Rounds, of gaussian, is in how many batches the questions are asked, each chosen before any of its answers is seen;
	// 0 is one by one. Round r has at most RoundSize(r) questions, with noise RoundSigma[r]; the last has none.
	Rounds     int64     `json:"rounds,omitempty"`
	RoundSigma []float64 `json:"round_sigma,omitempty"`

	// Published, of gaussian, says that intervals rest on a published bound (bounds.JLNRSSGDP) instead of this project's own.
	Published bool `json:"published,omitempty"`

	// Capped, of gaussian, is the share of the probability of error that pays for answers that are not plain, and Subsample the M
	// of their account (see together.go). 0 has none.
	Capped    float64 `json:"capped,omitempty"`
	Subsample int64   `json:"subsample,omitempty"`

	// HalfWidth is that of every answer, where all are alike: gaussian, split, and thresholdout's Laplace form. For
	// guess_and_check it is the widest that a guess passes with at the narrowest width before any disagreement, for a ladder the
	// widest that an interval of the board can become.
	HalfWidth float64            `json:"half_width,omitempty"`
	Parts     map[string]float64 `json:"parts,omitempty"` // of HalfWidth, thresholdout's Laplace form

	Form      Form    `json:"form,omitempty"`
	Preset    string  `json:"preset,omitempty"`    // PresetScience2015
	Threshold float64 `json:"threshold,omitempty"` // thresholdout: T; ladder: eta, the board's step, a whole number of units of N

	Widths int   `json:"widths,omitempty"` // guess_and_check: at how many widths a guess is checked
	Cells  int64 `json:"cells,omitempty"`  // guess_and_check: a failure tells the midpoint of one of so many cells; 0: noise Sigma
}

// State is what a mechanism remembers between questions.
type State struct {
	Questions int64 `json:"questions"` // answered so far
	Tokens    int64 `json:"tokens"`    // spent so far; also the epoch of the threshold noise

	// Rounds are those that are over, and InRound is how many questions the present one has had.
	Rounds  int64 `json:"rounds,omitempty"`
	InRound int64 `json:"in_round,omitempty"`

	Board *Board `json:"board,omitempty"` // ladder

	// Wide is how many guesses passed at a wider width than the narrowest, which later widths pay for.
	Wide int64 `json:"wide,omitempty"`
}

// Mean is an exact mean of a row function: Sum/(N*2^30), 0 <= Sum <= N*2^30.
type Mean struct {
	Sum int64
	N   int64
}

// Interval is a two-sided interval in [0,1] with the bound that made it and the parts of its half-width.
type Interval struct {
	Low, High float64
	Bound     string             // "adaptive-hoeffding", "adaptive-hoeffding-scheduled", "adaptive-hoeffding-rounds", "adaptive-hoeffding-capped", "jlnrss-gdp", "thresholdout-forced-runs", "thresholdout-laplace", "guess-and-check", "guess-and-check-gaussian", "splitting", "ladder-steps"
	Parts     map[string]float64 // e.g. sampling_and_noise, adaptivity, threshold, agreement
}

// Source says which part of the data a released value is near to.
type Source string

const (
	FromHoldout  Source = "holdout"
	FromTraining Source = "training"
	FromGuess    Source = "guess" // the analyst's own
)

// Output is one released value.
type Output struct {
	Value    float64   // a multiple of 2^-30 in [0,1]
	Interval *Interval // nil where no valid bound is known
	Source   Source
	Tokens   int64 // tokens spent by this answer: 0 or 1
}
