package thresholdout

import (
	"fmt"
	"math"
	"slices"

	"github.com/holdoutd/holdoutd/thresholdout/bounds"
	"github.com/holdoutd/holdoutd/thresholdout/moments"
	"github.com/holdoutd/holdoutd/thresholdout/promises"
)

// A question about one mean can bear a promise: a bound on the holdout itself, by which its variance is small. The mechanism checks it exactly. While it
// holds, the answer has less noise and a narrower interval at the price of any other; a broken one costs a token beside, and is answered as if there
// were none (docs/proofs/promises.md). This file is what questions, sessions and the mechanism gaussian have in common; the formulas are in package promises.

// Promises is a mechanism whose questions can bear promises, as far as its guarantee has tokens for broken ones. Its other answers need no token.
type Promises interface {
	// PreviewPledge is the interval of the next answer if it bore the pledge, the pledge held, and it were this value.
	PreviewPledge(s State, p Pledge, value float64) *Interval
}

// PledgeKind is what a promise bounds of a row function with values x in [0,1].
type PledgeKind string

const (
	AtMost       PledgeKind = "at_most"      // the holdout mean of x, of at most 1/2
	AtLeast      PledgeKind = "at_least"     // the holdout mean of 1-x, of at most 1/2
	Disagreement PledgeKind = "disagreement" // the holdout mean of |2x-1|
	Variance     PledgeKind = "variance"     // the variance of x over the holdout's units, of at most 1/4
)

// PledgeKinds are all kinds, in the order in which they are shown.
func PledgeKinds() []PledgeKind { return []PledgeKind{AtMost, AtLeast, Disagreement, Variance} }

// Pledge is a promise as a question bears it.
type Pledge struct {
	Kind  PledgeKind
	Bound int64 // in steps of 2^-30; of Variance, of 2^-60
}

// NewPledge is the promise with this bound, in [0,1], rounded up to a step, so that what is exactly as large holds. An error says what is possible.
func NewPledge(kind PledgeKind, bound float64) (Pledge, error) {
	p := Pledge{Kind: kind}
	if !(bound >= 0 && bound <= 1) {
		return p, fmt.Errorf("thresholdout: a promise of %v is not between 0 and 1", bound)
	}
	switch kind {
	case Variance:
		p.Bound = int64(math.Ceil(bound * float64(grid) * float64(grid)))
	case Disagreement:
		p.Bound = min(int64(math.Ceil(bound*float64(grid)))+distanceSlack, grid)
	default:
		p.Bound = int64(math.Ceil(bound * float64(grid)))
	}
	return p, p.own().Valid()
}

// own is what package promises calls the kind.
func (k PledgeKind) own() promises.Kind {
	switch k {
	case AtMost, AtLeast:
		return promises.SmallMean
	case Disagreement:
		return promises.Disagreement
	case Variance:
		return promises.Variance
	}
	return ""
}

func (p Pledge) own() promises.Promise { return promises.Promise{Kind: p.Kind.own(), Bound: p.Bound} }

// Value is the bound as a number in [0,1].
func (p Pledge) Value() float64 {
	if p.Kind == Variance {
		return float64(p.Bound) / float64(grid) / float64(grid)
	}
	return float64(p.Bound) / float64(grid)
}

// PledgeSums are the exact sums of a row function over one part that decide about pledges beside its mean. What is nil was not summed.
type PledgeSums struct {
	Squares   *moments.Wide // of x², in steps of 2^-60: for Variance
	Distances *int64        // of |2x-1|, a row function of its own, in steps of 2^-30: for Disagreement
}

// distanceSlack is by how many steps a unit's |2x-1| can be above what was summed of it: x is rounded once or twice, and so is |2x-1|. The sum must stay
// below the bound by so much, so that what was promised holds of the very values that are averaged.
const distanceSlack = 4

// holds checks the pledge against exact sums of the holdout, in integers and without tolerance.
func (p Pledge) holds(mean Mean, beside PledgeSums) (bool, error) {
	sums := moments.Sums{Units: mean.N, Sum: mean.Sum}
	switch p.Kind {
	case AtLeast:
		sums.Sum = mean.N*grid - mean.Sum
	case Disagreement:
		if beside.Distances == nil || *beside.Distances < 0 || *beside.Distances > mean.N*grid {
			return false, fmt.Errorf("thresholdout: a promise without the sum that it is about")
		}
		sums.Sum = *beside.Distances + mean.N*distanceSlack
		if sums.Sum > mean.N*grid { // more than any bound
			return false, p.own().Valid()
		}
	case Variance:
		if beside.Squares == nil {
			return false, fmt.Errorf("thresholdout: a promise without the sum of squares that it is about")
		}
		sums.Squares = *beside.Squares
	}
	return p.own().Holds(sums)
}

// noise is the standard deviation of the noise of x where the pledge holds and a plain answer has sigma.
func (p Pledge) noise(sigma float64) float64 {
	scaled := p.own().Noise(sigma)
	if p.Kind == Disagreement { // of 2x-1
		scaled /= 2
	}
	return scaled
}

// clip brings a noisy mean of x to what the pledge allows.
func (p Pledge) clip(value float64) float64 {
	u := p.Value()
	switch p.Kind {
	case AtMost:
		return min(value, u)
	case AtLeast:
		return max(value, 1-u)
	case Disagreement:
		return min(max(value, (1-u)/2), (1+u)/2)
	}
	return value
}

// interval is that of the mean of x in the population, where the pledge held and a plain answer is value ± width.
func (p Pledge) interval(value, width float64) (low, high float64) {
	own := p.own()
	switch p.Kind {
	case AtLeast:
		low, high = own.Interval(1-value, width)
		low, high = 1-high, 1-low
	case Disagreement:
		low, high = own.Interval(2*value-1, width)
		low, high = (1+low)/2, (1+high)/2
	default:
		low, high = own.Interval(value, width)
	}
	return max(0, low-gridError), min(1, high+gridError)
}

// Borne is a pledge that a question bears, with what the holdout says to it.
type Borne struct {
	Pledge Pledge
	Sums   PledgeSums
}

// Kept is what an answer says of its question's pledge.
type Kept struct {
	Pledge  Pledge
	Checked bool // false where no tokens were left: the answer is plain
	Held    bool
}

// TakesPromises reports whether questions can bear promises.
func (g Guarantee) TakesPromises() bool {
	_, ok := g.own.(Promises)
	return ok && g.Tokens > 0
}

// ChecksPromises reports whether a promise would be checked in this state: while there are tokens.
func (g Guarantee) ChecksPromises(s State) bool { return g.TakesPromises() && s.Tokens < g.Tokens }

// PreviewPledge is the interval that the next answer would get if it bore this pledge, the pledge held, and it were this value; nil where no pledge
// is checked.
func (g Guarantee) PreviewPledge(s State, p Pledge, value float64) *Interval {
	if !g.ChecksPromises(s) {
		return nil
	}
	return g.own.(Promises).PreviewPledge(s, p, value)
}

// PledgeTraining is what the training part says to a question that could bear a pledge.
type PledgeTraining struct {
	Mean Mean
	PledgeSums
	Higher *Higher // of x³ and x⁴, where they are known: they make the margin of a variance narrower
}

// leastGain is by what part an interval must be narrower for a pledge to be taken by default: it is broken by accident less than once in 30,000 questions, which widens all
// later intervals by a third.
const leastGain = 0.05

// DefaultPledge is the pledge that the training part suggests for the next question: the one with the narrowest interval about the training part's mean. It is
// false where a plain answer is as good, and where none would be checked. It is a function of public facts.
func (g Guarantee) DefaultPledge(s State, t PledgeTraining) (best Pledge, ok bool) {
	if !g.ChecksPromises(s) || t.Mean.N < 1 {
		return Pledge{}, false
	}
	value := float64(t.Mean.Sum) / float64(t.Mean.N) / float64(grid)
	plain := g.Preview(s, value)
	if plain == nil {
		return Pledge{}, false
	}
	narrowest := (1 - leastGain) * (plain.High - plain.Low)
	for _, kind := range PledgeKinds() {
		p, known := g.defaultOf(kind, t)
		if !known || (kind == Disagreement || kind == Variance) && 2*p.noise(g.HalfWidth) >= narrowest { // its interval is no shorter
			continue
		}
		if i := g.PreviewPledge(s, p, value); i != nil && i.High-i.Low < narrowest {
			best, ok, narrowest = p, true, i.High-i.Low
		}
	}
	return best, ok
}

// defaultOf is the default pledge of a kind; false where the training part says too little.
func (g Guarantee) defaultOf(kind PledgeKind, t PledgeTraining) (Pledge, bool) {
	n := float64(t.Mean.N)
	mean := float64(t.Mean.Sum) / n / float64(grid)
	statistic, fourth := 0.0, 0.0
	switch kind {
	case AtMost:
		statistic = mean
	case AtLeast:
		statistic = 1 - mean
	case Disagreement:
		if t.Distances == nil {
			return Pledge{}, false
		}
		statistic = min(float64(*t.Distances)/n/float64(grid)+distanceSlack/float64(grid), 1)
	case Variance:
		if t.Squares == nil {
			return Pledge{}, false
		}
		_, statistic = moments.Sums{Units: t.Mean.N, Sum: t.Mean.Sum, Squares: *t.Squares}.Moments()
		fourth = statistic
		if t.Higher != nil {
			fourth = t.Higher.central(mean, statistic, n)
		}
	}
	p, ok := promises.Default(kind.own(), statistic, fourth, g.N, t.Mean.N, promises.Deviations(g.Questions))
	return Pledge{kind, p.Bound}, ok
}

// DefaultBroken is for how many broken promises a guarantee of gaussian has tokens where its owner leaves it open. That there are any makes answers a third of a percent wider at 1,000
// questions, half a percent at a hundred and 1.4% at one; how many there are changes no width before one is broken. The first widens later answers by a fourth, and so does the second by a tenth.
const DefaultBroken = 2

// planBroken plans the tokens for broken promises: those that the owner names, or as many as are planned by default where promises are possible.
func (s Spec) planBroken() (int64, error) {
	var why error
	switch {
	case s.Published:
		why = wrong(ParamTokens, "tokens of gaussian are for broken promises, and no published bound knows of promises")
	case s.Sigma != 0:
		why = wrong(ParamTokens, "tokens of gaussian are for broken promises, which are not planned for a noise of your own; leave sigma out")
	case s.Rounds != 0:
		why = wrong(ParamTokens, "tokens of gaussian are for broken promises, which are not planned for rounds; leave rounds out")
	case s.N < bounds.PromisedUnits:
		why = wrong(ParamTokens, "tokens of gaussian are for broken promises, and %d units are too few for any; at least %d are needed", s.N, int64(bounds.PromisedUnits))
	case s.Tokens > bounds.MostPromiseTokens:
		why = wrong(ParamTokens, "%d broken promises; at most %d are planned", s.Tokens, int64(bounds.MostPromiseTokens))
	case s.Tokens > 0 && s.Questions > 0 && s.Tokens > s.Questions:
		why = wrong(ParamTokens, "%d is not between 1 and the number of questions, %d", s.Tokens, s.Questions)
	}
	switch {
	case why == nil && s.Tokens > 0:
		return s.Tokens, nil
	case why != nil && s.Tokens > 0:
		return 0, why
	case why != nil || s.HalfWidth != 0: // a half-width that is asked for is that of every answer, and each broken promise widens later ones
		return 0, nil
	case s.Questions == 1: // whose answer is exact
		return 0, nil
	}
	return DefaultBroken, nil
}

// planPromised plans the schedule of noise and the half-widths before and after broken promises.
func planPromised(s Spec) (Mechanism, error) {
	tokens := s.Tokens
	s, err := s.reach((1-s.Confidence)*(1-s.capped()), func(n int64, beta, w float64) (int64, error) {
		return bounds.LargestWithin(w, func(k int64) (float64, error) {
			p, err := bounds.PromisedSchedule(n, k, beta, min(tokens, k), true)
			if err != nil {
				return 0, err
			}
			return p.Widths[len(p.Widths)-1], nil
		})
	})
	if err != nil {
		return nil, err
	}
	s.Tokens = min(tokens, s.Questions)
	m := newGaussian(s)
	m.Scheduled, m.LastExact = true, true
	p, err := bounds.PromisedSchedule(m.N, m.Questions, m.plainBeta(), m.Tokens, true)
	if err != nil {
		return nil, err
	}
	m.Sigma, m.Widths, m.HalfWidth = p.Scale, p.Widths[1:], p.Widths[0]
	if widest := p.Widths[m.Tokens]; s.HalfWidth != 0 && widest > s.HalfWidth {
		return nil, wrong(ParamHalfWidth, "%d questions about %d units get ±%.4g after %d broken promises, not ±%v; ask for fewer questions or tokens, or a wider interval", m.Questions, m.N, widest, m.Tokens, s.HalfWidth)
	}
	m.divide()
	return m, nil
}

// checkWidths refuses a stored guarantee whose promises would mean nothing.
func (m *gaussian) checkWidths() error {
	if m.Tokens == 0 {
		if m.Widths != nil {
			return errHead
		}
		return nil
	}
	if m.Version == GuaranteeVersion || int64(len(m.Widths)) != m.Tokens || !m.LastExact || m.N < bounds.PromisedUnits || !slices.IsSorted(m.Widths) || m.Widths[0] < m.HalfWidth {
		return errHead
	}
	return nil
}

// widthAt is the half-width of an answer when so many promises are broken, its own among them.
func (m *gaussian) widthAt(broken int64) float64 {
	if broken == 0 || m.Widths == nil {
		return m.HalfWidth
	}
	return m.Widths[min(broken, m.Tokens)-1]
}

// patterns is by what the share of an interval outside the account of plain answers is divided: how many runs of held and broken promises there can be up to the last of
// the price's positions, over the share of those with as many broken ones. 1 without promises.
func (m *gaussian) patterns(s State, price int64) float64 {
	if m.Widths == nil {
		return 1
	}
	most, err := bounds.PromisedPatterns(min(s.Questions+price, m.Questions), min(s.Tokens, m.Tokens), m.Tokens)
	if err != nil {
		return math.Inf(1)
	}
	return most
}

// releasePromised answers a question with a pledge while there are tokens. The check is part of the answer: both outcomes are debited with it. A broken pledge counts before
// its own answer does.
func (m *gaussian) releasePromised(s State, in Input, from Noise) (Output, Memory, error) {
	p := in.Promise.Pledge
	held, err := p.holds(in.Holdout, in.Promise.Sums)
	if err != nil {
		return Output{}, nil, err
	}
	kept := &Kept{Pledge: p, Checked: true, Held: held}
	if !held {
		s.Tokens++
		out := m.releasePlain(s, in, from)
		out.Tokens, out.Promise = 1, kept
		return out, s.Memory, nil
	}
	value := p.clip(in.Holdout.noisy(from, p.noise(m.sigmaOf(s))))
	return Output{Value: value, Source: FromHoldout, Interval: m.PreviewPledge(s, p, value), Promise: kept}, s.Memory, nil
}

// PreviewPledge implements [Promises].
func (m *gaussian) PreviewPledge(s State, p Pledge, value float64) *Interval {
	value = p.clip(value)
	low, high := p.interval(value, m.widthAt(s.Tokens))
	half := max(high-value, value-low)
	adaptivity := min(half, p.noise(m.adaptivity(s)))
	return &Interval{Low: low, High: high, Bound: MethodPromised,
		Parts: map[string]float64{"sampling_and_noise": half - adaptivity, "adaptivity": adaptivity}}
}

// central is the mean fourth power of the distance from the mean, of n units with this mean and variance of values in [0,1].
func (h Higher) central(mean, variance, n float64) float64 {
	third, fourth := h.Third.Float()/n, h.Fourth.Float()/n
	central := fourth - 4*mean*third + 6*mean*mean*(variance+mean*mean) - 3*mean*mean*mean*mean
	return min(max(central, variance*variance), variance)
}
