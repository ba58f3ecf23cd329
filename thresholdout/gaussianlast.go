package thresholdout

import (
	"cmp"
	"math"

	"github.com/holdoutd/holdoutd/thresholdout/bounds"
)

// Last implements [Lasts]: in the last round, where answers have no noise, and of a single question. The last of several that are asked one by one is exact too, but may be asked while
// others are in flight, so that it is not known which one it is when its rows are read.
func (m *gaussian) Last(s State) bool {
	return m.Rounds > 0 && s.Rounds == m.Rounds-1 || m.LastExact && m.Questions == 1
}

// lastLevel is the level of a last answer with so many plain answers' shares, read as own reads it. A plain answer of the last round is
// missed on one side with probability at most e^(-2nW²) over a fresh sample (Hoeffding), W its half-width: any event of such a probability has its share.
func (m *gaussian) lastLevel(s State, own *gaussian, shares float64) float64 {
	n := float64(m.N)
	level := func(w float64) float64 { return 2 * n * w * w }
	return bounds.ShareLevel(n, level(own.HalfWidth), level(m.HalfWidth), m.releasedAtMost(s), shares)
}

// ReleaseLast implements [Lasts].
func (m *gaussian) ReleaseLast(s State, in LastInput) (Output, error) {
	r, err := in.Holdout.ReadLast(in.Training, m.lastPlanning(s, in.Shares))
	if err != nil {
		return Output{}, err
	}
	return m.last(s, r, in.Shares), nil
}

// ExpectedLast implements [Lasts].
func (m *gaussian) ExpectedLast(s State, training LastStatistic, shares float64) (Output, error) {
	r, err := training.ExpectLast(m.lastPlanning(s, shares))
	if err != nil {
		return Output{}, err
	}
	return m.last(s, r, shares), nil
}

func (m *gaussian) lastPlanning(s State, shares float64) LastPlanning {
	return LastPlanning{N: m.N, Questions: m.Questions, Level: m.lastLevel(s, m, shares), Tails: m.tails(gaussianVersion)}
}

func (m *gaussian) last(s State, r Reading, shares float64) Output {
	out := Output{Value: r.Value, Source: FromHoldout, last: &lastAnswer{r, shares}}
	out.Interval = m.lastInterval(s, m, out.last)
	return out
}

// cutBySample cuts the interval of an answer about which the training part says nothing, by bets on any variance. In a batch there is no noise to have the share that each question brings for
// events about it, and nothing was released, so that an event about the rows is as rare as over a fresh sample: that share pays. It is a hundredth of the question's.
func (m *gaussian) cutBySample(s State, a *lastAnswer, i *Interval) {
	c := m.account(s, 1, 1)
	if c.Released > 0 || !(c.Mechanism > 0) {
		return
	}
	if low, high := a.Sample(math.Log(2 / c.Mechanism)); low > i.Low || high < i.High {
		i.Low, i.High = max(low, i.Low), min(high, i.High)
		i.Bound += "+" + MethodSample
	}
}

// lastAnswer is what a last answer is read from at any level.
type lastAnswer struct {
	Reading
	shares float64
}

// lastInterval is that of a last answer, for a guarantee whose own level is own's.
func (m *gaussian) lastInterval(s State, own *gaussian, a *lastAnswer) *Interval {
	level := m.lastLevel(s, own, a.shares)
	i := &Interval{Bound: cmp.Or(a.Bound, m.bound())}
	i.Low, i.High = a.Interval(level)
	if a.Whole && a.shares >= 1 { // a plain answer's cut has a share of its own, of one question
		m.cut(s, a.Value, i)
		if a.Sample != nil {
			m.cutBySample(s, a, i)
		}
	}
	half := max(i.High-a.Value, a.Value-i.Low)
	adaptivity := 0.0
	if level > 0 {
		adaptivity = half * min(1, math.Sqrt(m.releasedAtMost(s)/level)) // the level is about (sqrt L + sqrt I)²
	}
	i.Parts = map[string]float64{"sampling_and_noise": half - adaptivity, "adaptivity": adaptivity}
	return i
}
