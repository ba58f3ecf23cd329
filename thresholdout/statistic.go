package thresholdout

import (
	"errors"
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/thresholdout/moments"
)

// A question can be about more than the mean of one row function, and still be checked as one: the root of an equation, the difference of two, a quantile, a
// number of pairs of units. It is planned from the training part's exact sums and a guess; the holdout's exact sums decide which of finitely many outcomes there is; what
// an answer says is a function of the outcome, of a level and of public facts. That is all that a mechanism that checks guesses has to know of a question, and
// all that the union over its transcripts needs. A new kind of question is a file of its own with the three types below; no mechanism has a case for it.

// Statistic is what one part, the training part or the holdout, has to say to a question that is checked as one: its exact sums, with the public facts that say
// which question it is. Both parts' are of the same type.
type Statistic interface {
	// Fits is an error where the sums are not those of so many units.
	Fits(units int64) error
	// Value is what the part itself answers, in [0,1] or in units of its own; false where it has no answer, as where no unit satisfies a condition.
	Value() (float64, bool)
	// Plan is how the question is checked, from the training part's sums. An error, which may be a [*WidthError], refuses the question: it is
	// a function of what is planned by, and so of public facts.
	Plan(by Planning) (Check, error)
}

// Planning is what a check is planned by beside the training part's sums: public facts and earlier answers.
type Planning struct {
	N          int64   // units of the holdout
	Questions  int64   // of the guarantee
	Deviations float64 // z: how many standard deviations of training minus holdout the narrowest margin leaves room for
	Level      float64 // E of the question, in nats (moments.Urn)
	Tails      moments.Tails
	OneSide    bool   // passes are read at what one of their ends alone can miss by, and failures priced by how far off they are (since version 4 of guess_and_check)
	OneEvent   bool   // matchings of units of several rows are read as one event (before version 5 of guess_and_check)
	Guess      *Guess // the analyst's own, or nil
}

// Check is how one question is checked. It is public: the holdout's sums are no part of it.
type Check interface {
	// Find compares the holdout's sums with the plan, exactly, at the level that the check was planned for. It is the only place where the holdout is looked at. An error says that the sums
	// are those of no units, or of another question.
	Find(holdout Statistic) (Finding, error)
	// Expected is the finding of a guess that passes at the narrowest margins.
	Expected() Finding
	// Passes are the findings of guesses that pass, the narrowest margins first.
	Passes() []Finding
	// Failure is a finding of a guess that is just missed by a holdout that varies as the training part does.
	Failure() Finding
	// Widest is how far, at most, an end of a failure's interval at a level is from its value; +Inf where nothing is known.
	Widest(level float64) float64
	// Price is what a failure adds to the levels of later questions: minus the logarithm of its weight among all that a failure may say.
	Price(failure Finding) moments.Nats
	// Dearest is the most that a failure may add.
	Dearest() moments.Nats
}

// Finding is all that an answer says of the holdout: an outcome of a check, one of finitely many that were public before.
type Finding interface {
	Failed() bool // it costs a token
	// Silent says that the training part has too few units, or none, of what is asked: every answer would be that the value may be anything. So the guess was not compared with the holdout,
	// and there is no other finding.
	Silent() bool
	Wide() bool // it counts as a wide pass
	Value() float64
	// Margin is how far a guess that passed may be from what the holdout has; 0 of a failure.
	Margin() float64
	// Interval is the answer's at the level E: in the value's units, missed with probability at most e^-E on each side, over all outcomes of the question together. It is
	// false where nothing is known at this level; at the level that the check was planned for it is known.
	Interval(level float64) (*Interval, bool)
}

// Statistics is a mechanism that releases such questions as one: one that checks guesses checks these as it does means, one that gives each question units of its own
// reads it by its sample.
type Statistics interface {
	// ReleaseStatistic is Mechanism.Release for a statistic.
	ReleaseStatistic(s State, in StatisticInput) (Output, Memory, error)
	// ExpectedStatistic is Guesses.Expected for a statistic.
	ExpectedStatistic(s State, in StatisticInput) (value float64, _ *Interval, err error)
}

// StatisticInput is what one such question reads. Of [Statistics.ExpectedStatistic] the holdout's sums are not looked at.
type StatisticInput struct {
	Training, Holdout Statistic // Training is nil without one, where the mechanism compares with nothing
	Guess             *Guess    // the analyst's own, or nil
	Noise             Noise     // of mechanisms that draw it
}

// StepStatistic is Step for a question that is checked as one.
func StepStatistic(g Guarantee, s State, in StatisticInput) (Output, State, error) {
	m, ok := g.own.(Statistics)
	if !ok {
		return Output{}, s, g.cannot("checks no statistics")
	}
	price, err := g.priceOf(in.Guess)
	if err != nil {
		return Output{}, s, err
	}
	if err := g.pays(s, price); err != nil {
		return Output{}, s, err
	}
	from, to := g.Slice(s)
	if err := in.Holdout.Fits(to - from); err != nil {
		return Output{}, s, fmt.Errorf("thresholdout: holdout: %w", err)
	}
	if err := g.fitsTraining(in.Training); err != nil {
		return Output{}, s, err
	}
	out, memory, err := m.ReleaseStatistic(s, in)
	if err != nil {
		return Output{}, s, err
	}
	next := g.Spend(s, price, out.Tokens)
	next.Memory = memory
	return out, next, nil
}

// fitsTraining refuses a statistic that is not the training part's. A mechanism that compares with nothing may do without one.
func (g Guarantee) fitsTraining(training Statistic) error {
	if training == nil && !g.UsesTraining() {
		return nil
	}
	if training == nil {
		return errors.New("thresholdout: training: there are no sums")
	}
	if err := training.Fits(g.Training); err != nil {
		return fmt.Errorf("thresholdout: training: %w", err)
	}
	return nil
}

// ChecksStatistics reports whether a statistic can be released as one question.
func (g Guarantee) ChecksStatistics() bool { _, ok := g.own.(Statistics); return ok }

// ChecksClusters reports whether an area under the ROC curve of units of several rows is released as one question: by guess_and_check since its version 4.
func (g Guarantee) ChecksClusters() bool {
	m, ok := g.own.(*guessAndCheck)
	return ok && m.halves()
}

// ExpectedStatistic is [Guarantee.Expected] for a statistic: in says what the training part has and the analyst guesses.
func (g Guarantee) ExpectedStatistic(s State, in StatisticInput) (value float64, _ *Interval, err error) {
	m, ok := g.own.(Statistics)
	if !ok {
		return 0, nil, g.cannot("checks no statistics")
	}
	if err := g.fitsTraining(in.Training); err != nil {
		return 0, nil, err
	}
	return m.ExpectedStatistic(s, in)
}

// guessed is the guess in steps: the analyst's own, or the training part's.
func (by Planning) guessed(training int64) (int64, error) {
	own := by.Guess
	switch {
	case own == nil || own.Value == nil:
		return training, nil
	case !(*own.Value >= 0 && *own.Value <= 1):
		return 0, fmt.Errorf("thresholdout: guess %v is not within 0 and 1", *own.Value)
	}
	return int64(math.Floor(*own.Value*float64(grid) + 0.5)), nil
}

// widthCheck is a check that can be planned for a half-width.
type widthCheck interface {
	Check
	// narrowed is the check with one rank whose interval at the level lies within the half-width of the guess; false where no guess can pass.
	narrowed(halfWidth, level float64) (Check, bool)
	// exact is the finding of a guess that passes with no margin at all: none has a narrower interval.
	exact() Finding
}

// within is a check at the half-width that the analyst asks for, if he does. All of it is public.
func within(c widthCheck, by Planning) (Check, error) {
	own := by.Guess
	if own == nil || own.HalfWidth == 0 {
		return c, nil
	}
	if !(own.HalfWidth > 0 && own.HalfWidth <= 1) {
		return nil, fmt.Errorf("thresholdout: half_width %v is not between 0 and 1", own.HalfWidth)
	}
	at, ok := c.narrowed(own.HalfWidth, by.Level)
	if !ok {
		return nil, &WidthError{HalfWidth: own.HalfWidth, Least: halfWidth(c.exact(), by.Level) + gridError, Planned: halfWidth(c.Expected(), by.Level)}
	}
	return at, nil
}

// otherStatistic is the error of a check that is given the sums of another kind of question.
func otherStatistic(check Check, holdout Statistic) error {
	return fmt.Errorf("thresholdout: sums of a %T for %T", holdout, check)
}

// halfWidth is how far an interval reaches from the answer's value, on its farther side.
func halfWidth(f Finding, level float64) float64 {
	i, ok := f.Interval(level)
	return halfOf(f.Value(), i, ok)
}

// halfOf is halfWidth of an interval that is at hand.
func halfOf(value float64, i *Interval, ok bool) float64 {
	if !ok {
		return 1
	}
	return max(i.High-value, value-i.Low)
}

// intervalOf is an interval whose half-width has two parts: near, for this reason, and the rest.
func intervalOf(value, low, high, near float64, reason, bound string) *Interval {
	half := max(high-value, value-low)
	near = min(near, half) // a side that is cut off at 0 or 1
	return &Interval{Low: low, High: high, Bound: bound, Parts: map[string]float64{reason: near, "sampling_and_adaptivity": half - near}}
}

// Names of the parts of a half-width that a check's own margins, or cells, are.
const (
	fromAgreement = "agreement"
	fromRounding  = "rounding"
)
