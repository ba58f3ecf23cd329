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

// mostCapped leaves single means a tenth: at half, they are 2% wider and vectors 5% narrower.
const mostCapped = 0.9

// capped is the share that the owner wants, or cappedShare.
func (s Spec) capped() float64 {
	if s.Capped == 0 {
		return cappedShare
	}
	return s.Capped
}

// mechanismShare of that is for events about the mechanism's own noise: that a selection gives much away, that noise is beyond its
// quantile. The rest is for events about the rows. The two are probabilities under two laws, so each kind has a budget of its own
// that the other never uses, whatever is asked (docs/proofs/account.md, section 4). A tenth costs vectors 0.3% of their width.
const mechanismShare = 0.1

// VectorPrice implements [Vectors]. It is how many questions a vector of count means costs whose variances over the units have, for any table, at
// most the sum variance: as many as release the same information one by one, each with variance 1/4.
func (m *gaussian) VectorPrice(count int, variance float64) int64 {
	return min(int64(count), max(1, int64(math.Ceil(4*variance*(1-1e-12)))))
}

// account is the capped account of a release that costs price questions and has count intervals. Each question brings its part of both
// budgets, for each run of promises that could have led to it.
func (m *gaussian) account(s State, price int64, count int) bounds.Capped {
	part, own, subsample := m.Capped, price, m.Subsample
	if m.Version != GuaranteeVersion {
		var block int
		block, own = m.charged(s, price)
		part, subsample = m.blocksShare(s), m.Subsamples[block]
	}
	share := part * m.Beta() * float64(own) / float64(m.Questions) / float64(count) / m.patterns(s, price)
	return bounds.Capped{N: float64(m.N), M: float64(subsample), Share: (1 - mechanismShare) * share, Mechanism: mechanismShare * share,
		Released: m.releasedAtMost(s)}
}

// plainNoise is the noise of a plain answer that releases as much as those at the next questions do together, of which there are price; 0 where one of them has none.
func (m *gaussian) plainNoise(s State, price int64) float64 {
	if price == 1 {
		return m.sigmaOf(s)
	}
	total := 0.0
	for range price {
		sigma := m.sigmaOf(s)
		if sigma == 0 {
			return 0
		}
		total += 1 / (sigma * sigma)
		s = m.Spend(s, 1, 0)
	}
	return 1 / math.Sqrt(total)
}

// vectorNoise is the noise of each mean of a vector. A vector releases variance/(2 sigma^2 (n-1)), a plain answer as much with variance 1/4: so it is what makes the vector release just
// what plain answers in its place would.
func (m *gaussian) vectorNoise(s State, count int, variance float64) float64 {
	if m.Version == GuaranteeVersion {
		return m.sigmaOf(s)
	}
	plain := m.plainNoise(s, m.VectorPrice(count, variance))
	if plain == 0 {
		return 0
	}
	return max(MinSigma, plain*math.Sqrt(4*min(variance, float64(count)/4)))
}

// vectorWidth is the half-width of each mean of a vector.
func (m *gaussian) vectorWidth(s State, count int, variance float64) (float64, error) {
	return m.account(s, m.VectorPrice(count, variance), count).HalfWidth(m.vectorNoise(s, count, variance))
}

// AsNumbers implements [Vectors]: where plain answers cost no more and are no wider, a vector is plain answers.
func (m *gaussian) AsNumbers(s State, count int, variance float64) bool {
	if m.Version == GuaranteeVersion || m.VectorPrice(count, variance) < int64(count) {
		return false
	}
	width, err := m.vectorWidth(s, count, variance)
	return err != nil || m.widthAt(s.Tokens) <= width
}

// ReleaseVector implements [Vectors]: all means at once.
func (m *gaussian) ReleaseVector(s State, means []Mean, variance float64, from Noise) ([]Output, error) {
	sigma := m.vectorNoise(s, len(means), variance)
	width, err := m.vectorWidth(s, len(means), variance)
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
	width, err := other.vectorWidth(s, count, variance)
	if err != nil {
		return 0, 0, false
	}
	return around(o.Value, width, "", nil).ends()
}

// PreviewVector implements [Vectors]: the half-width of each mean of a vector that is released next, before it is cut off at 0 and 1, and the bound
// that says so.
func (m *gaussian) PreviewVector(s State, count int, variance float64) (halfWidth float64, bound string, err error) {
	w, err := m.vectorWidth(s, count, variance)
	return w + gridError, boundCapped, err
}

// FreshVector implements [Vectors].
func (m *gaussian) FreshVector(begun, s State, count int, variance float64) (units int64, sigma float64, ok bool) {
	units, _, ok = m.Fresh(begun, s)
	return units, m.vectorNoise(s, count, variance), ok
}

// PreviewSelection implements [Selections]: the regret of a selection among count means that is released next for so many questions, and the bound that says so.
func (m *gaussian) PreviewSelection(s State, count int, price int64) (regret float64, bound string) {
	return m.regret(s, count, price), boundCapped
}

// boundCapped names the account in answers.
const boundCapped = "adaptive-hoeffding-capped"

// ReleaseSelection implements [Selections]: which of the means is the largest, by the exponential mechanism: index r with probability proportional
// to e^(eta s_r), s_r the mean.
//
// The regret adds what the mechanism may give away, ln(count/share)/eta with the account's share for the mechanism, and what sampling
// may, with its share for the rows: the means of the chosen and of the best one may each be off, and one of the two is known only when
// all of count are.
func (m *gaussian) ReleaseSelection(s State, means []Mean, price int64, from Noise) (Choice, error) {
	largest := slices.MaxFunc(means, func(a, b Mean) int { return cmp.Compare(a.Sum, b.Sum) }).Sum
	losses := make([]uint64, len(means))
	for i, mean := range means {
		losses[i] = uint64(largest - mean.Sum)
	}
	index := noise.Exponential(from.Answer("select", 0, m.plainNoise(s, price)), losses, m.selectionScale(s, price))
	return Choice{Index: index, Regret: m.regret(s, len(means), price), Bound: boundCapped}, nil
}

// regret is that of a selection among count means that is released next for so many questions.
func (m *gaussian) regret(s State, count int, price int64) float64 {
	a := m.account(s, price, 1)
	mechanism := math.Log(float64(count)/a.Mechanism) / m.eta(s, price)
	// A lower deviation of the best mean, or an upper one of any other: count one-sided events, of e^-Level each over a fresh
	// sample; Level is made for one side of two.
	sampling := 2 * math.Sqrt(a.Level(2*a.Share/float64(count))/(2*a.N))
	return min(1, mechanism+sampling+2*gridError)
}

// eta is the scale of a selection that releases no more than plain answers to the next questions, of which there are price.
func (m *gaussian) eta(s State, price int64) float64 {
	return float64(m.N) * float64(grid) / float64(m.selectionScale(s, price))
}

// selectionScale is 1/eta in steps of the sum: bounds.Selection, eta^2 (n+2)/(8n^2), is at most bounds.Information of a plain
// answer, 1/(8 sigma^2 (n-1)), of that noise.
func (m *gaussian) selectionScale(s State, price int64) uint64 {
	n := float64(m.N)
	return uint64(max(1, min(math.Ceil(steps(m.plainNoise(s, price), m.N)*math.Sqrt((1+2/n)*(1-1/n))*(1+1e-12)), noise.MaxScale)))
}
