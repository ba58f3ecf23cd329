package thresholdout

import (
	"cmp"
	"errors"
)

// splitSample is split since its third version. The units of a slice are read by one question, which is fixed before them, and by no other. So each question may have the interval that
// its own sample gives, like the answers of a last round (docs/proofs/split.md, section 3): what is the root of an equation, a difference, a quantile or a statistic of pairs costs
// one slice, whatever it is made of.
type splitSample struct{ split }

// slicePlanning is what a question of a slice is planned by.
func (m *splitSample) slicePlanning() LastPlanning {
	return LastPlanning{N: m.N / m.Questions, Questions: m.Questions, Level: m.level(), Tails: m.tails(splitVersion), Chernoff: true}
}

// ReleaseStatistic implements [Statistics].
func (m *splitSample) ReleaseStatistic(s State, in StatisticInput) (Output, Memory, error) {
	holdout, ok := in.Holdout.(LastStatistic)
	if !ok {
		return Output{}, nil, otherStatistic(nil, in.Holdout)
	}
	training, _ := in.Training.(LastStatistic)
	r, err := holdout.ReadLast(training, m.slicePlanning())
	if err != nil {
		return Output{}, nil, err
	}
	out := Output{Value: r.Value, Source: FromHoldout, last: &lastAnswer{r, 1}}
	out.Interval = m.sampleInterval(out.last)
	return out, s.Memory, nil
}

// ExpectedStatistic implements [Statistics]: the answer if the slice were as the training part is.
func (m *splitSample) ExpectedStatistic(_ State, in StatisticInput) (value float64, _ *Interval, err error) {
	training, ok := in.Training.(LastStatistic)
	if !ok {
		return 0, nil, errors.New("thresholdout: split foresees no answer without a training part")
	}
	r, err := training.ExpectLast(m.slicePlanning())
	if err != nil {
		return 0, nil, err
	}
	return r.Value, m.sampleInterval(&lastAnswer{r, 1}), nil
}

// sampleInterval reads an answer at the guarantee's level.
func (m *splitSample) sampleInterval(a *lastAnswer) *Interval {
	i := &Interval{Bound: cmp.Or(a.Bound, boundSlice)}
	i.Low, i.High = a.Interval(m.level())
	i.Parts = map[string]float64{"sampling": max(i.High-a.Value, a.Value-i.Low)}
	return i
}

// At implements [Levels].
func (m *splitSample) At(s State, o Output, level float64) (low, high float64, ok bool) {
	if o.last == nil {
		return m.split.At(s, o, level)
	}
	h, ok := m.at(level)
	if !ok {
		return 0, 0, false
	}
	return (&splitSample{split{h}}).sampleInterval(o.last).ends()
}
