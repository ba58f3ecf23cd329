package thresholdout

import "github.com/holdoutd/holdoutd/thresholdout/bounds"

// Answers read at other levels. What was released does not depend on the confidence of its interval: the same values, noise and
// passes have, for every probability of error u, intervals that hold together with probability 1-u, and that get narrower as u
// grows. A p-value is the least u whose intervals exclude the null. Among all the true nulls that are ever tested, however each was
// chosen, some p-value is at most u with probability at most u: at that u, an interval of the family has missed
// (docs/proofs/p-values.md).

// MinLevel is the least level that answers are read at; smaller probabilities are not computed faithfully (MaxConfidence).
const MinLevel = 1e-9

// at is the guarantee with everything that releases depend on as it is, and intervals at another level; false where the bound
// plans its noise with its level, so that none is known for noise that is given.
func (p Params) at(level float64) (Params, bool) {
	if !(level >= MinLevel && level < 1) {
		return p, false
	}
	p.Confidence = 1 - level
	var err error
	switch {
	case p.Mechanism == Gaussian && p.Published, p.Mechanism == Naive:
		return p, false
	case p.Mechanism == Gaussian && p.Rounds > 0:
		p.HalfWidth, err = bounds.RoundsNoise(p.N, p.Questions, p.plainBeta(), p.RoundSigma)
	case p.Mechanism == Gaussian && p.Scheduled:
		p.HalfWidth, err = bounds.ScheduledNoise(p.N, p.Questions, p.plainBeta(), p.Sigma)
	case p.Mechanism == Gaussian:
		p.HalfWidth, err = bounds.GivenNoise(p.N, p.Questions, p.plainBeta(), p.Sigma)
	case p.Mechanism == Split:
		var b bounds.Bound
		b, err = bounds.Splitting(p.N, p.Questions, p.beta())
		p.HalfWidth = b.HalfWidth
	case p.Form == FormLaplace:
		p.HalfWidth = bounds.Laplace{N: p.N, Questions: p.Questions, Tokens: p.Tokens, Beta: p.beta(), Threshold: p.Threshold, Sigma: p.Sigma}.HalfWidth().HalfWidth
	}
	return p, err == nil
}

// IntervalAt is the interval of an answer of Step if those of all answers missed with probability at most level; s is the state
// before the step. At the level of the guarantee it is the answer's own. It is false for answers without an interval, under
// published bounds, and for levels not between MinLevel and 1.
func (p Params) IntervalAt(s State, o Output, level float64) (low, high float64, ok bool) {
	if o.Interval == nil {
		return 0, 0, false
	}
	p, ok = p.at(level)
	if !ok {
		return 0, 0, false
	}
	var i *Interval
	switch p.Mechanism {
	case GuessAndCheck:
		i = p.guessedAt(s, o)
	case Thresholdout:
		if width := p.HalfWidth; p.Form == FormLaplace {
			i = around(o.Value, width, "", nil)
		} else if runs := p.forcedRuns(); o.Source == FromTraining {
			i = around(o.Value, runs.Pass(s.Questions, s.Tokens), "", nil)
		} else {
			i = around(o.Value, runs.Fail(s.Questions, s.Tokens), "", nil)
		}
	case Gaussian:
		i = p.gaussianInterval(s, o.Value)
	default:
		i = around(o.Value, p.HalfWidth, "", nil)
	}
	return i.Low, i.High, true
}

// guessedAt reads an answer of guess_and_check. How far it may be from the holdout mean is a fact at every level, but for noise.
func (p Params) guessedAt(s State, o Output) *Interval {
	near := o.Interval.Parts["agreement"] + o.Interval.Parts["rounding"] // it has one of the two, or neither
	if _, noisy := o.Interval.Parts["noise"]; noisy {
		near = p.check().ReleaseError() + gridError
	}
	return p.reported(p.level(s), o.Value, near, "")
}

// VectorIntervalAt is IntervalAt for one answer of StepVector of count means with this variance.
func (p Params) VectorIntervalAt(s State, o Output, count int, variance, level float64) (low, high float64, ok bool) {
	if p, ok = p.at(level); !ok || !p.Together() {
		return 0, 0, false
	}
	width, err := p.account(s, p.VectorPrice(count, variance), count).HalfWidth(p.sigmaOf(s))
	if err != nil {
		return 0, 0, false
	}
	i := around(o.Value, width, "", nil)
	return i.Low, i.High, true
}

// Level is the probability that any interval of the guarantee misses, 1-Confidence.
func (p Params) Level() float64 { return p.beta() }
