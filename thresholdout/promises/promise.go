package promises

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/holdoutd/holdoutd/thresholdout/moments"
)

// Kind is what a promise bounds.
type Kind string

const (
	// SmallMean: phi is in [0,1], and its holdout mean is at most Bound <= 1/2. For a mean near 1 ask for 1-phi.
	SmallMean Kind = "small_mean"
	// Disagreement: D is in [-1,1], as of two models' losses, and the holdout mean of |D| is at most Bound <= 1. With units of several
	// rows D is the unit's mean of the rows, as it is stored.
	Disagreement Kind = "disagreement"
	// Variance: phi is in [0,1], and its variance over the holdout's units is at most Bound <= 1/4.
	Variance Kind = "variance"
)

const (
	grid    = 1 << 30 // steps of values
	squares = 1 << 60 // steps of squares
)

// Promise is a bound that the holdout is checked against, in whole steps: it either holds or is broken, without tolerance.
type Promise struct {
	Kind  Kind  `json:"kind"`
	Bound int64 `json:"bound"` // SmallMean, Disagreement: steps of 2^-30; Variance: of 2^-60
}

// New is the promise with at most this bound, rounded down to a step. An error names what is possible.
func New(kind Kind, bound float64) (Promise, error) {
	p := Promise{Kind: kind}
	if !(bound >= 0 && bound <= 1) {
		return p, fmt.Errorf("promises: a bound of %v is not between 0 and %v", bound, kind.most())
	}
	p.Bound = int64(bound * kind.steps())
	return p, p.Valid()
}

func (k Kind) steps() float64 {
	if k == Variance {
		return squares
	}
	return grid
}

// most is the largest bound that says something. Beyond, the proofs of the tails do not hold: a small mean is at most one half.
func (k Kind) most() float64 {
	switch k {
	case SmallMean:
		return 0.5
	case Disagreement:
		return 1
	case Variance:
		return 0.25
	}
	return 0
}

// Valid says what is wrong with a promise.
func (p Promise) Valid() error {
	if p.Kind.most() == 0 {
		return fmt.Errorf("promises: no kind %q; there are %q, %q and %q", p.Kind, SmallMean, Disagreement, Variance)
	}
	if p.Bound < 1 || p.bound() > p.Kind.most() {
		return fmt.Errorf("promises: a bound of %v for %s is not above 0 and at most %v", p.bound(), p.Kind, p.Kind.most())
	}
	return nil
}

func (p Promise) bound() float64 { return float64(p.Bound) / p.Kind.steps() }

// V bounds the row variance of every sample for which the promise holds: of phi, or of D.
func (p Promise) V() float64 {
	u := p.bound()
	if p.Kind == SmallMean {
		return u * (1 - u)
	}
	return u
}

// Noise is the noise of an answer whose promise holds, in units of phi or D, where a plain answer about [0,1] has noise sigma. Its price is
// that of the plain one, 1/(8 sigma^2 (n-1)): it depends on the position alone.
func (p Promise) Noise(sigma float64) float64 { return 2 * math.Sqrt(p.V()) * sigma }

// FullNoise is the noise of an answer whose promise is broken: that of its range.
func (p Promise) FullNoise(sigma float64) float64 {
	if p.Kind == Disagreement {
		return 2 * sigma
	}
	return sigma
}

// Holds checks the promise on the holdout, in integers. The sums are of the values as they are stored and released: of phi in steps of 2^-30; for
// a disagreement Sum is that of |D|: of the stored x, max(2x-1, 1-2x).
func (p Promise) Holds(s moments.Sums) (bool, error) {
	if err := p.Valid(); err != nil {
		return false, err
	}
	if p.Kind == Variance {
		return s.Steady(p.Bound)
	}
	if s.Units < 1 || s.Units > grid<<2 || s.Sum < 0 || s.Sum > s.Units*grid {
		return false, fmt.Errorf("promises: a sum of %d steps over %d units; each unit has between 0 and %d", s.Sum, s.Units, int64(grid))
	}
	return s.Sum <= s.Units*p.Bound, nil
}

// Deviations is how many standard deviations of training part minus holdout [Default] leaves room for: four, with which an honest question breaks its promise
// less than once in 30,000, and with more questions as many as make one broken in thirty guarantees.
func Deviations(questions int64) float64 {
	return max(leastDeviations, -distuv.UnitNormal.Quantile(1.0/30/float64(max(questions, 1))))
}

const leastDeviations = 4

// Default is the promise from the training part: statistic is what the training part's own is, over so many of its units, for a holdout of n. Its
// margin is Wilson's at so many standard deviations ([Deviations]). For a variance, fourth is the training part's mean fourth power of the distance from its
// mean; statistic itself where it is not known, than which it is not larger. What is so rare that the training part may have none of it can be as far
// away as the range allows: its share of the margin does not shrink with fourth. It is false where the bound says nothing, as with little training data.
func Default(kind Kind, statistic, fourth float64, n, training int64, deviations float64) (Promise, bool) {
	if n < 1 || training < 1 || !(statistic >= 0 && statistic <= 1) {
		return Promise{}, false
	}
	s := square(deviations) * (1/float64(n) + 1/float64(training))
	bound := statistic + s/2 + math.Sqrt(statistic*s+square(s/2))
	if kind == Variance {
		spread := min(max(0, fourth-square(statistic)), statistic)
		bound = statistic + s + math.Sqrt(spread*s)
	}
	if !(bound <= kind.most()) {
		return Promise{}, false
	}
	p, err := New(kind, bound)
	return p, err == nil
}
