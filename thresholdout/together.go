package thresholdout

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/thresholdout/bounds"
)

// Releases of several means as one: a vector at the price of its variance, the largest of many at the price of one. They exist
// under gaussian, whose proof bears any release with a sure bound on its information. What is asked, and so the width of an
// answer, may then depend on earlier answers; such answers draw on a share of the confidence of their own, Params.Capped, through
// bounds.Capped with one M for the whole holdout (docs/proofs/account.md).

// cappedShare of the probability of error pays for answers other than plain ones. It widens plain answers by half a percent,
// and these by about a tenth.
const cappedShare = 0.1

// mechanismShare of that is for events about the mechanism's own noise: that a selection gives much away, that noise is beyond its
// quantile. The rest is for events about the rows. The two are probabilities under two laws, so each kind has a budget of its own
// that the other never uses, whatever is asked (docs/proofs/account.md, section 4). A tenth costs vectors 0.3% of their width.
const mechanismShare = 0.1

// Choice is the outcome of [StepSelect].
type Choice struct {
	Index  int     // of the mean that was found to be the largest
	Regret float64 // its population mean is at most so much below the largest
	Bound  string
}

// Together reports whether vectors and selections can be released as one. Guarantees from before there were any cannot.
func (p Params) Together() bool { return p.Mechanism == Gaussian && p.Capped > 0 }

// VectorPrice is how many questions a vector of count means costs whose variances over the units have, for any table, at
// most the sum variance: as many as release the same information one by one, each with variance 1/4.
func (p Params) VectorPrice(count int, variance float64) int64 {
	return min(int64(count), max(1, int64(math.Ceil(4*variance*(1-1e-12)))))
}

// account is the capped account of an answer that costs price questions and has count intervals. Each question brings its part of both
// budgets.
func (p Params) account(s State, price int64, count int) bounds.Capped {
	share := p.Capped * p.beta() * float64(price) / float64(p.Questions) / float64(count)
	return bounds.Capped{N: float64(p.N), M: float64(p.Subsample), Share: (1 - mechanismShare) * share, Mechanism: mechanismShare * share,
		Released: p.releasedAtMost(s)}
}

// StepVector answers with all means at once, each with the noise of the next question. Its price is VectorPrice, paid from
// the holdout's questions: ErrNoQuestions.
func StepVector(p Params, s State, means []Mean, variance float64, from Noise) ([]Output, State, error) {
	price := p.VectorPrice(len(means), variance)
	if err := p.together(s, means, price); err != nil {
		return nil, s, err
	}
	sigma := p.sigmaOf(s)
	width, err := p.account(s, price, len(means)).HalfWidth(sigma)
	if err != nil {
		return nil, s, fmt.Errorf("thresholdout: vector: %w", err)
	}
	stream := from.Answer("vector", 0, sigma)
	outputs := make([]Output, len(means))
	for i, m := range means {
		z := int64(0)
		if sigma > 0 {
			z = noise.RoundedNormal(stream, steps(sigma, p.N))
		}
		value := m.value(z)
		outputs[i] = Output{Value: value, Source: FromHoldout, Interval: around(value, width, boundCapped, p.cappedParts(s, width))}
	}
	return outputs, p.after(s, price), nil
}

// PreviewVector is the half-width of each mean of a vector that is released next, before it is cut off at 0 and 1, and the bound
// that says so.
func (p Params) PreviewVector(s State, count int, variance float64) (halfWidth float64, bound string, err error) {
	w, err := p.account(s, p.VectorPrice(count, variance), count).HalfWidth(p.sigmaOf(s))
	return w + gridError, boundCapped, err
}

// PreviewSelection is the regret of a selection among count means that is released next, and the bound that says so.
func (p Params) PreviewSelection(s State, count int) (regret float64, bound string) {
	return p.regret(s, count), boundCapped
}

// boundCapped names the account in answers.
const boundCapped = "adaptive-hoeffding-capped"

func (p Params) cappedParts(s State, width float64) map[string]float64 {
	adaptivity := min(width, p.adaptivity(s))
	return map[string]float64{"sampling_and_noise": width - adaptivity, "adaptivity": adaptivity}
}

// StepSelect answers which of the means is the largest, by the exponential mechanism: index r with probability proportional
// to e^(eta s_r), s_r the mean. It costs one question, however many there are.
//
// The regret adds what the mechanism may give away, ln(count/share)/eta with the account's share for the mechanism, and what sampling
// may, with its share for the rows: the means of the chosen and of the best one may each be off, and one of the two is known only when
// all of count are.
func StepSelect(p Params, s State, means []Mean, from Noise) (Choice, State, error) {
	if err := p.together(s, means, 1); err != nil {
		return Choice{}, s, err
	}
	largest := slices.MaxFunc(means, func(a, b Mean) int { return cmp.Compare(a.Sum, b.Sum) }).Sum
	losses := make([]uint64, len(means))
	for i, m := range means {
		losses[i] = uint64(largest - m.Sum)
	}
	index := noise.Exponential(from.Answer("select", 0, p.sigmaOf(s)), losses, p.selectionScale(s))
	return Choice{Index: index, Regret: p.regret(s, len(means)), Bound: boundCapped}, p.after(s, 1), nil
}

// regret is that of a selection among count means that is released next.
func (p Params) regret(s State, count int) float64 {
	a := p.account(s, 1, 1)
	mechanism := math.Log(float64(count)/a.Mechanism) / p.eta(s)
	// A lower deviation of the best mean, or an upper one of any other: count one-sided events, of e^-Level each over a fresh
	// sample; Level is made for one side of two.
	sampling := 2 * math.Sqrt(a.Level(2*a.Share/float64(count))/(2*a.N))
	return min(1, mechanism+sampling+2*gridError)
}

// eta is the scale of a selection that releases no more than one plain answer with the next question's noise.
func (p Params) eta(s State) float64 {
	return float64(p.N) * float64(grid) / float64(p.selectionScale(s))
}

// selectionScale is 1/eta in steps of the sum: bounds.Selection, eta^2 (n+2)/(8n^2), is at most bounds.Information of a plain
// answer, 1/(8 sigma^2 (n-1)).
func (p Params) selectionScale(s State) uint64 {
	n := float64(p.N)
	return uint64(max(1, min(math.Ceil(steps(p.sigmaOf(s), p.N)*math.Sqrt((1+2/n)*(1-1/n))*(1+1e-12)), noise.MaxScale)))
}

// together checks a release of several means as one.
func (p Params) together(s State, means []Mean, price int64) error {
	if !p.Together() {
		return fmt.Errorf("thresholdout: the mechanism %s releases means one by one", p.Mechanism)
	}
	if len(means) == 0 {
		return fmt.Errorf("thresholdout: a release of no means")
	}
	if p.Questions-s.Questions < price {
		return ErrNoQuestions
	}
	if err := p.checkRound(s, price); err != nil {
		return err
	}
	for _, m := range means {
		if err := m.check(p.N); err != nil {
			return fmt.Errorf("thresholdout: holdout: %w", err)
		}
	}
	return nil
}
