package thresholdout

import (
	"math"

	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/thresholdout/bounds"
)

// laplace is Thresholdout in its Laplace form (arXiv 1506.02629, figure 1).
type laplace struct {
	Head
	Comparison
	Parts map[string]float64 `json:"parts" doc:"what half_width is made of"` // of HalfWidth
}

const boundLaplace = "thresholdout-laplace"

func planLaplace(h Head, c Comparison) Mechanism {
	m := &laplace{Head: h, Comparison: c}
	w := m.bound().HalfWidth()
	m.HalfWidth, m.Parts = w.HalfWidth, map[string]float64{"threshold_and_noise": w.Sample, "sampling_and_adaptivity": w.Posterior}
	return m
}

func (m *laplace) bound() bounds.Laplace {
	return bounds.Laplace{N: m.N, Questions: m.Questions, Tokens: m.Tokens, Beta: m.Beta(), Threshold: m.Threshold, Sigma: m.Sigma}
}

// Release implements [Mechanism]: gamma ~ Lap(2 sigma) is redrawn only after a
// token, eta ~ Lap(4 sigma) for each comparison, xi ~ Lap(sigma) for each release. Scales are rounded up to whole steps of
// the sum's grid, which only adds noise.
func (m *laplace) Release(s State, in Input, from Noise) (Output, Memory, error) {
	gamma := noise.DiscreteLaplace(from.Threshold(s.Tokens), m.scale(2))
	eta := noise.DiscreteLaplace(from.Answer("compare", s.Tokens, m.Sigma), m.scale(4))
	if !in.beyond(steps(m.Threshold, m.N), gamma, eta) {
		value := in.Training.value(0)
		return Output{Value: value, Source: FromTraining, Interval: around(value, m.HalfWidth, boundLaplace, m.Parts)}, s.Memory, nil
	}
	xi := noise.DiscreteLaplace(from.Answer("release", s.Tokens, m.Sigma), m.scale(1))
	value := in.Holdout.value(xi)
	return Output{Value: value, Source: FromHoldout, Tokens: 1, Interval: around(value, m.HalfWidth, boundLaplace, m.Parts)}, s.Memory, nil
}

func (m *laplace) scale(times float64) uint64 {
	return uint64(max(1, min(math.Ceil(steps(times*m.Sigma, m.N)), noise.MaxScale)))
}

// Preview implements [Mechanism].
func (m *laplace) Preview(_ State, value float64) *Interval {
	return around(value, m.HalfWidth, boundLaplace, nil)
}

// Promise implements [Mechanism].
func (m *laplace) Promise(State) (Promise, bool) {
	return Promise{HalfWidth: m.HalfWidth, Sigma: m.Sigma, Parts: m.Parts}, true
}

// At implements [Levels].
func (m *laplace) At(_ State, o Output, level float64) (low, high float64, ok bool) {
	h, ok := m.at(level)
	if !ok {
		return 0, 0, false
	}
	return around(o.Value, (&laplace{Head: h, Comparison: m.Comparison}).bound().HalfWidth().HalfWidth, "", nil).ends()
}
