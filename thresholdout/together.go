package thresholdout

import (
	"cmp"
	"math"
	"slices"

	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/thresholdout/bounds"
)

// Releases of several means as one: a vector at the price of its variance, the largest of many at the price of one. They exist
// under gaussian, whose proof bears any release with a sure bound on its information. What is asked, and so the width of an
// answer, may then depend on earlier answers; such answers draw on a share of the confidence of their own, gaussian.Capped, through
// bounds.Capped with one M for the whole holdout (docs/proofs/account.md).

// cappedShare of the probability of error pays for answers other than plain ones. It widens plain answers by half a percent,
// and these by about a tenth.
const cappedShare = 0.1

// mechanismShare of that is for events about the mechanism's own noise: that a selection gives much away, that noise is beyond its
// quantile. The rest is for events about the rows. The two are probabilities under two laws, so each kind has a budget of its own
// that the other never uses, whatever is asked (docs/proofs/account.md, section 4). A tenth costs vectors 0.3% of their width.
const mechanismShare = 0.1

// VectorPrice implements [Vectors]. It is how many questions a vector of count means costs whose variances over the units have, for any table, at
// most the sum variance: as many as release the same information one by one, each with variance 1/4.
func (m *gaussian) VectorPrice(count int, variance float64) int64 {
	return min(int64(count), max(1, int64(math.Ceil(4*variance*(1-1e-12)))))
}

// account is the capped account of an answer that costs price questions and has count intervals. Each question brings its part of both
// budgets, for each run of promises that could have led to it.
func (m *gaussian) account(s State, price int64, count int) bounds.Capped {
	share := m.Capped * m.Beta() * float64(price) / float64(m.Questions) / float64(count) / m.patterns(s, price)
	return bounds.Capped{N: float64(m.N), M: float64(m.Subsample), Share: (1 - mechanismShare) * share, Mechanism: mechanismShare * share,
		Released: m.releasedAtMost(s)}
}

// ReleaseVector implements [Vectors]: all means at once, each with the noise of the next question.
func (m *gaussian) ReleaseVector(s State, means []Mean, variance float64, from Noise) ([]Output, error) {
	sigma := m.sigmaOf(s)
	width, err := m.account(s, m.VectorPrice(len(means), variance), len(means)).HalfWidth(sigma)
	if err != nil {
		return nil, err
	}
	stream := from.Answer("vector", 0, sigma)
	outputs := make([]Output, len(means))
	for i, mean := range means {
		z := int64(0)
		if sigma > 0 {
			z = noise.RoundedNormal(stream, steps(sigma, m.N))
		}
		value := mean.value(z)
		outputs[i] = Output{Value: value, Source: FromHoldout, Interval: around(value, width, boundCapped, m.parts(s, width))}
	}
	return outputs, nil
}

// VectorAt implements [Vectors].
func (m *gaussian) VectorAt(s State, o Output, count int, variance, level float64) (low, high float64, ok bool) {
	other := *m // the account needs no half-width of plain answers
	if other.Head, ok = m.at(level); !ok {
		return 0, 0, false
	}
	width, err := other.account(s, m.VectorPrice(count, variance), count).HalfWidth(m.sigmaOf(s))
	if err != nil {
		return 0, 0, false
	}
	return around(o.Value, width, "", nil).ends()
}

// PreviewVector implements [Vectors]: the half-width of each mean of a vector that is released next, before it is cut off at 0 and 1, and the bound
// that says so.
func (m *gaussian) PreviewVector(s State, count int, variance float64) (halfWidth float64, bound string, err error) {
	w, err := m.account(s, m.VectorPrice(count, variance), count).HalfWidth(m.sigmaOf(s))
	return w + gridError, boundCapped, err
}

// PreviewSelection implements [Selections]: the regret of a selection among count means that is released next, and the bound that says so.
func (m *gaussian) PreviewSelection(s State, count int) (regret float64, bound string) {
	return m.regret(s, count), boundCapped
}

// boundCapped names the account in answers.
const boundCapped = "adaptive-hoeffding-capped"

// ReleaseSelection implements [Selections]: which of the means is the largest, by the exponential mechanism: index r with probability proportional
// to e^(eta s_r), s_r the mean.
//
// The regret adds what the mechanism may give away, ln(count/share)/eta with the account's share for the mechanism, and what sampling
// may, with its share for the rows: the means of the chosen and of the best one may each be off, and one of the two is known only when
// all of count are.
func (m *gaussian) ReleaseSelection(s State, means []Mean, from Noise) (Choice, error) {
	largest := slices.MaxFunc(means, func(a, b Mean) int { return cmp.Compare(a.Sum, b.Sum) }).Sum
	losses := make([]uint64, len(means))
	for i, mean := range means {
		losses[i] = uint64(largest - mean.Sum)
	}
	index := noise.Exponential(from.Answer("select", 0, m.sigmaOf(s)), losses, m.selectionScale(s))
	return Choice{Index: index, Regret: m.regret(s, len(means)), Bound: boundCapped}, nil
}

// regret is that of a selection among count means that is released next.
func (m *gaussian) regret(s State, count int) float64 {
	a := m.account(s, 1, 1)
	mechanism := math.Log(float64(count)/a.Mechanism) / m.eta(s)
	// A lower deviation of the best mean, or an upper one of any other: count one-sided events, of e^-Level each over a fresh
	// sample; Level is made for one side of two.
	sampling := 2 * math.Sqrt(a.Level(2*a.Share/float64(count))/(2*a.N))
	return min(1, mechanism+sampling+2*gridError)
}

// eta is the scale of a selection that releases no more than one plain answer with the next question's noise.
func (m *gaussian) eta(s State) float64 {
	return float64(m.N) * float64(grid) / float64(m.selectionScale(s))
}

// selectionScale is 1/eta in steps of the sum: bounds.Selection, eta^2 (n+2)/(8n^2), is at most bounds.Information of a plain
// answer, 1/(8 sigma^2 (n-1)).
func (m *gaussian) selectionScale(s State) uint64 {
	n := float64(m.N)
	return uint64(max(1, min(math.Ceil(steps(m.sigmaOf(s), m.N)*math.Sqrt((1+2/n)*(1-1/n))*(1+1e-12)), noise.MaxScale)))
}

// cap plans the account of answers that are not plain: M for what all answers but the last release.
func (m *gaussian) cap() {
	last := State{Questions: m.Questions - 1}
	if m.Rounds > 0 {
		last.Rounds = m.Rounds - 1
	}
	share := (1 - mechanismShare) * m.Capped * m.Beta() / float64(m.Questions)
	m.Subsample = int64(bounds.CappedM(float64(m.N), share, m.releasedAtMost(last)))
}
