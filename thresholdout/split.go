package thresholdout

import (
	"math"

	"github.com/holdoutd/holdoutd/thresholdout/bounds"
	"github.com/holdoutd/holdoutd/thresholdout/moments"
)

// MethodSplitting is the name of its method, and of the bound that its answers name.
const MethodSplitting = "splitting"

// Versions of its stored form. In the first an interval was Hoeffding's, as wide as the half-width for every mean; in the second it was made of means, by Chernoff or by counts. Since the third
// a question is read by its own sample (splitsample.go), but with published bounds; since the fourth by [moments.BestTilts].
const (
	splitMeansVersion  = 2
	splitSampleVersion = 3
	splitVersion       = 4
)

var splitKind = Kind{
	Name:  Split,
	Says:  "answers every question from units that no other question reads",
	Takes: []string{ParamBounds},
	Assumes: "units are alike: drawn from one population, independently of each other. Each question reads units that none has read before. Where units differ, the interval of a share of all units, where each is a row, or of a quantile, " +
		"is about the mean of the expectations of the units that no earlier question has read; of other values, as of a share under a condition, it is not proved",
	Variants: []Variant{
		{"", (*splitSample)(nil)},
		{"with published bounds", (*split)(nil)},
	},
	Methods: []Method{{Name: MethodSplitting, Formula: "sqrt(ln(2k/β)/(2 floor(n/k))): every question has a slice of its own. Narrower ones: far from one half Chernoff's, for yes/no questions Clopper's and Pearson's, for values that vary less that of the slice's own moments",
		Source: "Hoeffding 1963, Chernoff 1952, Clopper and Pearson 1934, [proof](proofs/split.md)", Published: "yes"}},
	Version: splitVersion,
	Oldest:  GuaranteeVersion,
	Plan:    planSplit,
	Read:    readSplit,
}

// readSplit reads either form, by its version.
func readSplit(text []byte) (Mechanism, error) {
	m, err := ReadAs[split](text)
	if err != nil || m.Common().Version < splitSampleVersion {
		return m, err
	}
	return ReadAs[splitSample](text)
}

// split gives every mean units of its own, so that earlier answers tell nothing about them. It needs units that are alike
// (docs/proofs/split.md). What is asked is released mean by mean.
type split struct{ Head }

func planSplit(s Spec) (Mechanism, error) {
	s = s.orDefault(min(DefaultQuestions, s.N))
	if s.Questions > s.N {
		return nil, wrong("questions", "%d slices of %d units: each question needs at least one unit", s.Questions, s.N)
	}
	m := &split{s.Head()}
	m.Version = splitMeansVersion
	if err := m.widen(); err != nil || s.Published {
		return m, err
	}
	m.Version = splitVersion
	return &splitSample{*m}, nil
}

// widen plans the half-width for the confidence.
func (m *split) widen() error {
	b, err := bounds.Splitting(m.N, m.Questions, m.Beta())
	m.HalfWidth = b.HalfWidth
	return err
}

// Slice implements [Slices].
func (m *split) Slice(s State) (from, to int64) {
	size := m.N / m.Questions
	return s.Questions * size, (s.Questions + 1) * size
}

// Release implements [Mechanism].
func (m *split) Release(s State, in Input, _ Noise) (Output, Memory, error) {
	out := Output{Value: in.Holdout.value(0), Source: FromHoldout}
	if in.Binary && in.Holdout.Sum%grid == 0 {
		count := in.Holdout.Sum / grid
		out.count = &count
	}
	out.Interval = m.interval(out.Value, out.count)
	return out, s.Memory, nil
}

// level is E of every question: each end misses with probability at most e^-E.
func (m *split) level() float64 { return math.Log(2 * float64(m.Questions) / m.Beta()) }

// boundSlice is the bound of a mean of which no more is known than its range.
const boundSlice = MethodSplitting + "+chernoff"

// chernoffOf is Chernoff's interval of a mean of so many units, for every number that the value may have been rounded from.
func chernoffOf(units int64, value, level float64) (low, high float64) {
	low = bounds.ChernoffLow(float64(units), max(value-gridError, 0), level)
	high = bounds.ChernoffHigh(float64(units), min(value+gridError, 1), level)
	return low, high
}

// interval is that of a mean of a slice; count is how many of its units say yes, where they say yes or no. All are at the same level, and Hoeffding's is the widest. Which one is taken
// depends on the question's form alone.
func (m *split) interval(value float64, count *int64) *Interval {
	i := around(value, m.HalfWidth, MethodSplitting, nil)
	if m.Version != GuaranteeVersion {
		units, level := m.N/m.Questions, m.level()
		if count != nil {
			if low, high, err := moments.FractionInterval(units, *count, level); err == nil {
				i.Low, i.High, i.Bound = low, high, MethodCounts
			}
		} else {
			low, high := chernoffOf(units, value, level)
			i.Low, i.High, i.Bound = max(low, i.Low), min(high, i.High), boundSlice
		}
	}
	i.Parts = map[string]float64{"sampling": max(i.High-value, value-i.Low)}
	if m.Version == GuaranteeVersion {
		i.Parts["sampling"] = m.HalfWidth
	}
	return i
}

// Preview implements [Mechanism]: of a mean of which no more is known.
func (m *split) Preview(_ State, value float64) *Interval {
	return m.interval(value, nil)
}

// Promise implements [Mechanism].
func (m *split) Promise(State) (Promise, bool) {
	return Promise{HalfWidth: m.HalfWidth, Parts: map[string]float64{"sampling": m.HalfWidth}}, true
}

// At implements [Levels].
func (m *split) At(_ State, o Output, level float64) (low, high float64, ok bool) {
	h, ok := m.at(level)
	other := &split{h}
	if !ok || other.widen() != nil {
		return 0, 0, false
	}
	return other.interval(o.Value, o.count).ends()
}

// Fresh implements [Fresh]: of units that no question read before, always.
func (m *split) Fresh(_, s State) (units int64, sigma float64, ok bool) {
	from, to := m.Slice(s)
	return to - from, 0, true
}
