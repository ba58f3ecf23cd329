package thresholdout

import (
	"fmt"
	"math"
	"slices"

	"github.com/holdoutd/holdoutd/thresholdout/moments"
)

// Measured answers: about where the holdout's own mean is, whatever was guessed (docs/proofs/measured.md). A check asks whether the guess is near enough, and leaves as much room as a thousand questions need. A
// measured answer has a share of the probability of error of its own, as large as that of several checks, and its price in them; and what it says is priced by how surprising it is. It takes a token, for it shows what a
// wrong guess shows.

// Measures is a mechanism that gives such answers.
type Measures interface {
	Statistics
	// MeasuredPrice is how many questions a measured answer costs: it has as many questions' shares of the probability of error.
	MeasuredPrice() int64
}

// Measurable is a [Statistic] that can be measured.
type Measurable interface {
	Statistic
	// Measure is how it is measured, from the training part's sums. An error, which may be a [*WidthError], is a function of what is planned by, and so of public facts.
	Measure(by Planning) (Measurement, error)
}

// Measurement is how one question is measured. It is public.
type Measurement struct{ moments.Measurement }

// measuredParts is into how many measured answers, at least, the probability of error would go: ten of them take a quarter of it, and leave the rest for checks and a report.
const measuredParts = 40

// BoundMeasured is the bound of a measured answer about a mean over all units of which no more is known than its range; BoundMeasuredTwoMoments of others.
const (
	BoundMeasured           = "measured"
	BoundMeasuredTwoMoments = "measured-two-moments"
)

// Measures reports whether a question can be measured.
func (g Guarantee) Measures() bool { _, ok := g.own.(Measures); return ok }

// MeasuredPrice is how many questions a measured answer costs, beside its token; 0 of a mechanism without.
func (g Guarantee) MeasuredPrice() int64 {
	if m, ok := g.own.(Measures); ok {
		return m.MeasuredPrice()
	}
	return 0
}

// priceOf is how many questions an answer costs that is asked with this guess.
func (g Guarantee) priceOf(guess *Guess) (int64, error) {
	switch {
	case !guess.measures():
		return 1, nil
	case !g.Measures():
		return 0, g.cannot("measures nothing")
	}
	return g.MeasuredPrice(), nil
}

// measures says that the question is to be measured.
func (g *Guess) measures() bool { return g != nil && g.Measure }

// MeasuredPrice implements [Measures].
func (m *guessAndCheck) MeasuredPrice() int64 {
	return (m.Questions + measuredParts - 1) / measuredParts
}

// measuredLevel is that of each end of a measured answer: ln(2/(beta s)) + N, s the share of so many of k questions. The level of a check has the share of one, or half of it.
func (m *guessAndCheck) measuredLevel(s State) float64 {
	level := m.level(s) - math.Log(float64(m.MeasuredPrice()))
	if m.halves() {
		level -= math.Ln2
	}
	return level
}

// isMeasured says that an answer was measured.
func isMeasured(f Finding) bool { _, ok := f.(measuredFinding); return ok }

// levelOf is that at which an answer is read that found so.
func (m *guessAndCheck) levelOf(s State, f Finding) float64 {
	if isMeasured(f) {
		return m.measuredLevel(s)
	}
	return m.level(s)
}

// measurement is how the next question is measured.
func (m *guessAndCheck) measurement(s State, in StatisticInput) (Measurement, error) {
	training, ok := in.Training.(Measurable)
	if !ok {
		return Measurement{}, fmt.Errorf("thresholdout: sums of a %T are not measured", in.Training)
	}
	return training.Measure(m.planning(m.measuredLevel(s), in.Guess))
}

// releaseMeasured is ReleaseStatistic of a question that is measured.
func (m *guessAndCheck) releaseMeasured(s State, in StatisticInput) (Output, Memory, error) {
	c, err := m.measurement(s, in)
	if err != nil {
		return Output{}, nil, err
	}
	sums, err := sumsOf(in.Holdout)
	if err != nil {
		return Output{}, nil, err
	}
	if c.Silent() { // there may be no unit in question: it takes no token, as a check of it takes none, and says nothing that is to be paid
		found := measuredFinding{c, c.Expected()}
		out := Output{Value: found.Value(), Source: FromNothing, found: found}
		out.Interval, _ = found.Interval(m.measuredLevel(s))
		return out, s.Memory, nil
	}
	offset := int64(in.Noise.Answer("measure", 0, float64(c.Half)).Below(uint64(2*c.Half))) - c.Half
	cell, err := c.Locate(sums, offset)
	if err != nil {
		return Output{}, nil, fmt.Errorf("thresholdout: %w", err)
	}
	found := measuredFinding{c, cell}
	out := Output{Value: found.Value(), Source: FromHoldout, Tokens: 1, found: found}
	out.Interval, _ = found.Interval(m.measuredLevel(s))
	return out, m.measured(s, c.Price(cell)), nil
}

// measured is what is remembered after a measured answer that said so much.
func (m *guessAndCheck) measured(s State, said moments.Nats) Memory {
	books := accountOf(s)
	books.Measured++
	books.Paid += said
	return books
}

// measuredProspects are the ways in which a measured answer can come out: one.
func (m *guessAndCheck) measuredProspects(s State, in ProspectInput) ([]Prospect, error) {
	c, err := m.measurement(s, StatisticInput{Training: in.Training, Guess: in.Guess})
	if err != nil {
		return nil, err
	}
	found, level := measuredFinding{c, c.Expected()}, m.measuredLevel(s)
	p := Prospect{Outcome: Output{found: found}.Outcome(), Questions: m.MeasuredPrice(), Value: found.Value(), memory: s.Memory, planned: func() (*Interval, float64) {
		i, _ := found.Interval(level)
		return i, c.Widest(level)
	}}
	if found.Failed() {
		p.Tokens, p.memory = 1, m.measured(s, c.Price(c.Typical()))
	}
	return []Prospect{p}, nil
}

// measuredFinding is the [Finding] of a measured answer.
type measuredFinding struct {
	how Measurement
	moments.Cell
}

// Failed implements [Finding]: it costs a token, unless nothing is said.
func (f measuredFinding) Failed() bool { return !f.Silent() }

// Silent implements [Finding].
func (f measuredFinding) Silent() bool { return f.how.Silent() }

// Wide implements [Finding].
func (f measuredFinding) Wide() bool { return false }

// Value implements [Finding].
func (f measuredFinding) Value() float64 { return f.how.Value(f.Cell) }

// Margin implements [Finding].
func (f measuredFinding) Margin() float64 { return 0 }

// Interval implements [Finding]. The holdout's sums are not among its arguments.
func (f measuredFinding) Interval(level float64) (*Interval, bool) {
	low, high := f.how.Interval(f.Cell, level)
	bound := BoundMeasuredTwoMoments
	if f.how.OneChain() {
		bound = BoundMeasured
	}
	return intervalOf(f.Value(), low, high, float64(f.how.Half)/float64(grid), fromRounding, bound), true
}

// Measure implements [Measurable].
func (r RootSums) Measure(by Planning) (Measurement, error) {
	guess, err := by.guessed(r.mean())
	if err != nil {
		return Measurement{}, err
	}
	training := r.training(guess)
	c, err := moments.PlanWith(training, by.N, by.Deviations)
	if err != nil {
		return Measurement{}, err
	}
	m, err := measureBy(training, c, by)
	if err != nil || c.Partial || c.Binary {
		return m, err
	}
	// Where the planned variance is next to nothing to say, nothing is said of it, and no share is split.
	c.Ranks = slices.Clone(c.Ranks)
	c.Ranks[0].Variance = c.Ranks[1].Variance
	silent, err := measureBy(training, c, by)
	if err == nil && silent.planned(by.Level) < m.planned(by.Level) {
		return silent, nil
	}
	return m, nil
}

// Measure implements [Measurable].
func (m Mean) Measure(by Planning) (Measurement, error) {
	guess, err := by.guessed((m.Sum + m.N/2) / m.N)
	if err != nil {
		return Measurement{}, err
	}
	training := m.training(guess)
	c, err := moments.PlanWith(training, by.N, by.Deviations)
	if err != nil {
		return Measurement{}, err
	}
	return measureBy(training, c, by)
}

// planned is the half-width where the holdout has just what the guess is.
func (m Measurement) planned(level float64) float64 {
	return halfWidth(measuredFinding{m, m.Expected()}, level)
}

// measureBy is a measurement at the half-width that the analyst asks for, if he does: in the widest cells with which a holdout that has just what the guess is gets it, for those say least. All of it is public.
func measureBy(training moments.Training, c moments.Check, by Planning) (Measurement, error) {
	at := func(resolution float64) (Measurement, error) {
		m, err := moments.Measure(training, c, resolution)
		return Measurement{m}, err
	}
	own := by.Guess
	if own == nil || own.HalfWidth == 0 {
		return at(moments.Resolution)
	}
	if !(own.HalfWidth > 0 && own.HalfWidth <= 1) {
		return Measurement{}, fmt.Errorf("thresholdout: half_width %v is not between 0 and 1", own.HalfWidth)
	}
	best, err := at(moments.FinestResolution)
	if err != nil {
		return Measurement{}, err
	}
	if least := best.planned(by.Level); least > own.HalfWidth {
		usual, err := at(moments.Resolution)
		if err != nil {
			return Measurement{}, err
		}
		return Measurement{}, &WidthError{HalfWidth: own.HalfWidth, Least: least + gridError, Planned: usual.planned(by.Level)}
	}
	fine, coarse := moments.FinestResolution, moments.CoarsestResolution
	for range resolutionSteps {
		mid := math.Sqrt(fine * coarse)
		m, err := at(mid)
		if err != nil {
			return Measurement{}, err
		}
		if m.planned(by.Level) <= own.HalfWidth {
			best, fine = m, mid
		} else {
			coarse = mid
		}
	}
	return best, nil
}

// resolutionSteps halve the logarithm of a resolution to a part in some thousands.
const resolutionSteps = 12
