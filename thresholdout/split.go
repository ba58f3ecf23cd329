package thresholdout

import (
	"math"

	"github.com/holdoutd/holdoutd/thresholdout/bounds"
	"github.com/holdoutd/holdoutd/thresholdout/moments"
)

// MethodSplitting is the name of its method, and of the bound that its answers name.
const MethodSplitting = "splitting"

// splitVersion is the version of its stored form. In the first an interval was Hoeffding's, as wide as the half-width for every mean.
const splitVersion = 2

var splitKind = Kind{
	Name:  Split,
	Says:  "answers every question from units that no other question reads",
	Takes: []string{ParamBounds},
	Assumes: "units are alike: drawn from one population, independently of each other. Each question reads units that none has read before. Where units differ, its interval is about " +
		"the mean of the expectations of the units that no earlier question has read",
	Variants: []Variant{{"", (*split)(nil)}},
	Methods: []Method{{Name: MethodSplitting, Formula: "sqrt(ln(2k/β)/(2 floor(n/k))): every question has a slice of its own; for means far from one half Chernoff's interval, for yes/no questions Clopper's and Pearson's on each slice is narrower",
		Source: "Hoeffding 1963, Chernoff 1952, Clopper and Pearson 1934, [proof](proofs/split.md)", Published: "yes"}},
	Version: splitVersion,
	Oldest:  GuaranteeVersion,
	Plan:    planSplit,
	Read:    ReadAs[split],
}

// split gives every question units of its own, so that earlier answers tell nothing about them. It needs units that are alike
// (docs/proofs/split.md).
type split struct{ Head }

func planSplit(s Spec) (Mechanism, error) {
	s = s.orDefault(min(DefaultQuestions, s.N))
	if s.Questions > s.N {
		return nil, wrong("questions", "%d slices of %d units: each question needs at least one unit", s.Questions, s.N)
	}
	m := &split{s.Head()}
	m.Version = splitVersion
	err := m.widen()
	return m, err
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

// interval is that of a mean of a slice; count is how many of its units say yes, where they say yes or no. All are at the same level, and Hoeffding's is the widest. Which one is taken
// depends on the question's form alone.
func (m *split) interval(value float64, count *int64) *Interval {
	i := around(value, m.HalfWidth, MethodSplitting, nil)
	if m.Version != GuaranteeVersion {
		units := m.N / m.Questions
		level := math.Log(2 * float64(m.Questions) / m.Beta())
		if count != nil {
			if low, high, err := moments.FractionInterval(units, *count, level); err == nil {
				i.Low, i.High, i.Bound = low, high, MethodCounts
			}
		} else {
			low, _ := bounds.ChernoffInterval(float64(units), max(value-gridError, 0), level)
			_, high := bounds.ChernoffInterval(float64(units), min(value+gridError, 1), level)
			i.Low, i.High, i.Bound = max(low, i.Low), min(high, i.High), MethodSplitting+"+chernoff"
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
