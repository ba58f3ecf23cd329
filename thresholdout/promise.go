package thresholdout

import (
	"math"

	"github.com/holdoutd/holdoutd/thresholdout/bounds"
)

// Promise is what a guarantee says beforehand of one answer.
type Promise struct {
	HalfWidth float64            // around a mean of one half, where intervals are widest; before it is cut off at 0 and 1
	Sigma     float64            // the noise of all answers, or the largest; 0 without
	Parts     map[string]float64 // of HalfWidth, which they add up to
}

// Promised is what the guarantee says of its last answer when so many tokens are spent, from public facts alone; false for mechanisms
// without intervals. Where all answers are alike, and for guess_and_check without tokens spent, its half-width is HalfWidth. An answer of
// guess_and_check or thresholdout is taken to be one that agrees with training.
func (p Params) Promised(tokens int64) (Promise, bool) {
	last := State{Questions: p.Questions - 1, Tokens: min(tokens, p.Questions-1)}
	if p.Rounds > 0 {
		last.Rounds = p.Rounds - 1
	}
	switch {
	case p.Mechanism == Gaussian && p.Published:
		return p.publishedPromise()
	case p.Mechanism == Gaussian:
		adaptivity := min(p.HalfWidth, p.adaptivity(last))
		promise := Promise{HalfWidth: p.HalfWidth, Sigma: p.Sigma, Parts: map[string]float64{"sampling_and_noise": p.HalfWidth - adaptivity, "adaptivity": adaptivity}}
		if p.Rounds > 0 {
			promise.Sigma = p.RoundSigma[0]
		}
		return promise, true
	case p.Mechanism == Split:
		return Promise{HalfWidth: p.HalfWidth, Parts: map[string]float64{"sampling": p.HalfWidth}}, true
	case p.Mechanism == GuessAndCheck:
		width, near := p.planned(last, grid/2), float64(p.margin(grid/2, 0))/float64(grid)
		return Promise{HalfWidth: width, Sigma: p.Sigma, Parts: map[string]float64{"disagreement": near, "sampling_and_adaptivity": width - near}}, true
	case p.Mechanism == Thresholdout && p.Form == FormLaplace:
		return Promise{HalfWidth: p.HalfWidth, Sigma: p.Sigma, Parts: p.Parts}, true
	case p.Mechanism == Thresholdout:
		runs := p.forcedRuns()
		u, sampling := runs.ComparisonNoise(), runs.Sampling(last.Questions, last.Tokens)
		return Promise{HalfWidth: runs.Pass(last.Questions, last.Tokens), Sigma: p.Sigma,
			Parts: map[string]float64{"threshold": p.Threshold, "noise": u, "sampling_and_adaptivity": sampling}}, true
	}
	return Promise{}, false
}

func (p Params) publishedPromise() (Promise, bool) {
	t, err := bounds.JLNRSSGDP(p.N, p.Questions, p.beta())
	if err != nil || math.IsInf(t.HalfWidth, 0) {
		return Promise{HalfWidth: p.HalfWidth, Sigma: p.Sigma, Parts: map[string]float64{}}, err == nil
	}
	return Promise{HalfWidth: p.HalfWidth, Sigma: p.Sigma, Parts: map[string]float64{"noise": t.Noise, "sampling_and_adaptivity": t.Adaptivity}}, true
}
