package thresholdout

import (
	"fmt"

	"github.com/holdoutd/holdoutd/thresholdout/moments"
)

// Last answers: those that nothing is chosen after, in a batch fixed beforehand or in the last round. They are exact, and each may have the best interval for
// a fixed question that the sample itself gives (docs/proofs/final-batch.md). No outcome is paid for, and no margin is needed.

// Lasts is a mechanism that gives such answers.
type Lasts interface {
	// Last says whether the answers in this state are last ones, all that are chosen before the first of them is seen.
	Last(s State) bool
	// ReleaseLast is what one statistic says; it has the shares of the probability of error of so many plain answers, any number above 0. The
	// interval is one of [Levels] too.
	ReleaseLast(s State, in LastInput) (Output, error)
	// ExpectedLast is the answer if the holdout were as the training part is; nil where no training part is.
	ExpectedLast(s State, training LastStatistic, shares float64) (Output, error)
	// WidestLast is how far, at most, an end of an answer's interval is from its value, where its bound is this; +Inf where nothing is known.
	WidestLast(s State, bound string, shares float64) float64
}

// LastInput is what one last answer reads.
type LastInput struct {
	Training, Holdout LastStatistic // Training is nil without one
	Shares            float64
}

// LastStatistic is a [Statistic] that has an interval of its own where nothing is chosen after.
type LastStatistic interface {
	Statistic
	// ReadLast is what the holdout's own sums say, planned from the training part's, which may be nil, and public facts.
	ReadLast(training LastStatistic, by LastPlanning) (Reading, error)
	// ExpectLast is that of a holdout that is as this part is.
	ExpectLast(by LastPlanning) (Reading, error)
}

// LastPlanning is what a last answer is planned by beside the training part's sums.
type LastPlanning struct {
	N         int64   // units of the holdout
	Questions int64   // of the guarantee
	Level     float64 // at which the answer is read
	Tails     moments.Tails
	OneEvent  bool // as of [Planning]
	Chernoff  bool // a mean of which no more is known than its range has Chernoff's interval; false: Hoeffding's, which is cut elsewhere
}

// Reading is a last answer. Its intervals are of a fixed question: at the level E each end misses with probability at most e^-E over a fresh
// sample. What is said at a lower level is within what is said at a higher one.
type Reading struct {
	Value    float64
	Interval func(level float64) (low, high float64)
	Bound    string                                  // "" is that of plain answers
	Sample   func(level float64) (low, high float64) // where Interval knows no more than the range: what the sample says of itself, to cut it
	Whole    bool                                    // it is the mean over all units of a function with values in [0,1], so that what cuts a plain answer's interval cuts this one
}

// StepLast answers with all statistics of one question at once, which cost price questions together and share what those have of the probability of error.
func StepLast(g Guarantee, s State, in []LastInput, price int64) ([]Output, State, error) {
	m, ok := g.own.(Lasts)
	if !ok || !m.Last(s) {
		return nil, s, g.cannot("has no last answers in this state")
	}
	if len(in) == 0 || price < 1 {
		return nil, s, fmt.Errorf("thresholdout: %d last answers for %d questions", len(in), price)
	}
	if err := g.pays(s, price); err != nil {
		return nil, s, err
	}
	outputs := make([]Output, len(in))
	from, to := g.Slice(s)
	for i, x := range in {
		if err := x.Holdout.Fits(to - from); err != nil {
			return nil, s, fmt.Errorf("thresholdout: holdout: %w", err)
		}
		if x.Training != nil {
			if err := x.Training.Fits(g.Training); err != nil {
				return nil, s, fmt.Errorf("thresholdout: training: %w", err)
			}
		}
		x.Shares = lastShares(price, len(in))
		var err error
		if outputs[i], err = m.ReleaseLast(s, x); err != nil {
			return nil, s, err
		}
	}
	return outputs, g.Spend(s, price, 0), nil
}

// lastShares are those of each of count statistics of a question that costs so many.
func lastShares(price int64, count int) float64 { return float64(price) / float64(count) }

// Last reports whether the answers in this state are last ones.
func (g Guarantee) Last(s State) bool {
	m, ok := g.own.(Lasts)
	return ok && m.Last(s)
}

// Alone is the interval of an answer that is read by its own sample, as that of this one question, where nothing had been told of its units at the state before: at the level E each of its ends
// misses with probability at most e^-E, if the question was fixed beforehand. What is said at a lower level is within what is said at a higher one, or an end at any higher level misses with no more than e^-E (of a check of weights, two-moments.md, section 7). It is false for every other answer, but the first of all of a
// mechanism that checks guesses, whose outcome says as much.
func (g Guarantee) Alone(begun, s State, o Output) (at func(level float64) (low, high float64), ok bool) {
	if m, is := g.own.(*guessAndCheck); is {
		return m.alone(s, o)
	}
	if _, _, fresh := g.FreshNoise(begun, s); !fresh || o.last == nil {
		return nil, false
	}
	return o.last.Interval, true
}

// HasLast reports whether there is a state in which answers are last ones.
func (g Guarantee) HasLast() bool {
	_, ok := g.own.(Lasts)
	return ok && g.Rounds > 0 || g.AllLast()
}

// AllLast reports whether all answers are last ones: those of a batch fixed beforehand, or of a single question.
func (g Guarantee) AllLast() bool { return g.Last(State{}) }

// ExpectedLast is what one of count statistics of a question of this price would say if the holdout were as the training part is.
func (g Guarantee) ExpectedLast(s State, training LastStatistic, price int64, count int) (Output, error) {
	m, ok := g.own.(Lasts)
	if !ok || !m.Last(s) {
		return Output{}, g.cannot("has no last answers in this state")
	}
	if err := training.Fits(g.Training); err != nil {
		return Output{}, fmt.Errorf("thresholdout: training: %w", err)
	}
	return m.ExpectedLast(s, training, lastShares(price, count))
}
