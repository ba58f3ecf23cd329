package thresholdout

import (
	"math"

	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/thresholdout/bounds"
)

// published is constant Gaussian noise whose intervals rest on the narrowest published bound (bounds.JLNRSSGDP) instead of this
// project's own. The bound plans the noise with its level, so answers are not read at others, and it knows plain answers alone.
type published struct {
	Head
	Sigma     float64 `json:"sigma" doc:"the standard deviation of the noise"`
	Published bool    `json:"published" doc:"intervals rest on a published bound"`
}

func planPublished(s Spec) (Mechanism, error) {
	s, err := s.reach(1-s.Confidence, func(n int64, beta, w float64) (int64, error) {
		return bounds.LargestWithin(w, func(k int64) (float64, error) {
			t, err := bounds.JLNRSSGDP(n, k, beta)
			return t.HalfWidth, err
		})
	})
	if err != nil {
		return nil, err
	}
	if s.Sigma != 0 {
		return nil, wrong("sigma", "a published bound plans its own noise")
	}
	m := &published{Head: s.Head(), Published: true}
	t, err := bounds.JLNRSSGDP(m.N, m.Questions, m.Beta())
	m.Sigma, m.HalfWidth = t.Sigma, t.HalfWidth
	return m, err
}

// Release implements [Mechanism].
func (m *published) Release(s State, in Input, from Noise) (Output, Memory, error) {
	value := in.Holdout.value(noise.RoundedNormal(from.Answer("release", 0, m.Sigma), steps(m.Sigma, m.N)))
	return Output{Value: value, Source: FromHoldout, Interval: m.Preview(s, value)}, s.Memory, nil
}

// Preview implements [Mechanism].
func (m *published) Preview(_ State, value float64) *Interval {
	return around(value, m.HalfWidth, MethodPublished, map[string]float64{"sampling_and_noise": m.HalfWidth, "adaptivity": 0}) // not told apart
}

// Promise implements [Mechanism].
func (m *published) Promise(State) (Promise, bool) {
	p := Promise{HalfWidth: m.HalfWidth, Sigma: m.Sigma, Parts: map[string]float64{}}
	t, err := bounds.JLNRSSGDP(m.N, m.Questions, m.Beta())
	if err == nil && !math.IsInf(t.HalfWidth, 0) {
		p.Parts = map[string]float64{"noise": t.Noise, "sampling_and_adaptivity": t.Adaptivity}
	}
	return p, err == nil
}

// Fresh implements [Fresh]: the first answers, before anything was told.
func (m *published) Fresh(begun, _ State) (units int64, sigma float64, ok bool) {
	return m.N, m.Sigma, begun.Questions == 0
}
