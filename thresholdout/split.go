package thresholdout

import "github.com/holdoutd/holdoutd/thresholdout/bounds"

// MethodSplitting is the name of its method, and of the bound that its answers name.
const MethodSplitting = "splitting"

var splitKind = Kind{
	Name:  Split,
	Says:  "answers every question from units that no other question reads",
	Takes: []string{ParamBounds},
	Assumes: "units are alike: drawn from one population, independently of each other. Each question reads units that none has read before. Where units differ, its interval is about " +
		"the mean of the expectations of the units that no earlier question has read",
	Variants: []Variant{{"", (*split)(nil)}},
	Methods: []Method{{Name: MethodSplitting, Formula: "sqrt(ln(2k/β)/(2 floor(n/k))): every question has a slice of its own",
		Source: "Hoeffding 1963, [proof](proofs/split.md); for yes/no questions Clopper and Pearson 1934 on each slice is narrower", Published: "yes"}},
	Plan: planSplit,
	Read: ReadAs[split],
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
	out.Interval = around(out.Value, m.HalfWidth, MethodSplitting, map[string]float64{"sampling": m.HalfWidth})
	return out, s.Memory, nil
}

// Preview implements [Mechanism].
func (m *split) Preview(_ State, value float64) *Interval {
	return around(value, m.HalfWidth, MethodSplitting, nil)
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
	return around(o.Value, other.HalfWidth, "", nil).ends()
}

// Fresh implements [Fresh]: of units that no question read before, always.
func (m *split) Fresh(_, s State) (units int64, sigma float64, ok bool) {
	from, to := m.Slice(s)
	return to - from, 0, true
}
