// Package sparse has the sparse vector technique: a stream of questions, chosen one by one, each asked whether its value is above a threshold, of which
// only those that are above cost anything (Dwork, Naor, Reingold, Rothblum and Vadhan 2009; the correct forms as sorted out by Lyu, Su and Li, arXiv
// 1603.01699). Values and thresholds are whole numbers, and all noise is two-sided geometric and exact (dp/noise).
//
// Many published forms are not private; the test of this package refutes four of them with the auditor of dp/audit.
package sparse

import (
	"errors"
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/dp/noise"
)

// Errors of this package, wrapped.
var (
	ErrSettings = errors.New("sparse: bad settings")
	ErrSpent    = errors.New("sparse: as many questions were above as were paid for")
)

// Limits of a Vector.
const (
	MaxAbove       = 1 << 20
	MaxSensitivity = 1 << 40
	MaxValue       = int64(1) << 60
)

// Vector are the settings of one run: Algorithm 1 of Lyu, Su and Li with its threshold drawn once. A run is (Threshold + Query + Release)-private, however
// many questions are asked.
type Vector struct {
	Sensitivity uint64        // of each question: how much its value changes where one row is replaced
	Above       int           // how many questions may be above, from 1 to MaxAbove; the epsilons must draw noise for 2·Above·Sensitivity
	Threshold   noise.Epsilon // of the threshold's noise, of scale Sensitivity/Threshold
	Query       noise.Epsilon // of each question's noise, of scale 2·Above·Sensitivity/Query
	// Release is of the values that are released of questions that are above, with fresh noise of scale Above·Sensitivity/Release; the zero Epsilon releases none.
	Release noise.Epsilon
	// Monotone says that replacing a row moves the values of all questions the same way: questions then need half the noise.
	Monotone bool
	// Gap releases by how much a question that is above is above the noisy threshold, at no cost (Ding, Wang, Zhang and Kifer, arXiv 1904.12773).
	Gap bool
}

// Split are the settings in which an epsilon is shared among threshold and questions so that comparisons are as sharp as can be: 1 to (2·above)^(2/3), or
// to above^(2/3) for monotone questions (Lyu, Su and Li, section 5). Nothing is released but which questions are above.
func Split(eps float64, above int, sensitivity uint64, monotone bool) Vector {
	factor := 2.0
	if monotone {
		factor = 1
	}
	share := 1 / (1 + math.Pow(factor*float64(above), 2./3))
	return Vector{Sensitivity: sensitivity, Above: above, Threshold: noise.Eps(eps * share), Query: noise.Eps(eps * (1 - share)), Monotone: monotone}
}

// Epsilon is what a run costs.
func (v Vector) Epsilon() float64 {
	total := v.Threshold.Float() + v.Query.Float()
	if v.Release != (noise.Epsilon{}) {
		total += v.Release.Float()
	}
	return total
}

// Check refuses settings that are none.
func (v Vector) Check() error {
	switch {
	case v.Sensitivity < 1 || v.Sensitivity > MaxSensitivity:
		return fmt.Errorf("%w: a sensitivity of %d, want 1 to %d", ErrSettings, v.Sensitivity, MaxSensitivity)
	case v.Above < 1 || v.Above > MaxAbove:
		return fmt.Errorf("%w: %d questions above, want 1 to %d", ErrSettings, v.Above, MaxAbove)
	}
	scale := 2 * uint64(v.Above) * v.Sensitivity // at most 2^61; noise that is drawn for it stays far below MaxValue (noise.Epsilon.Draws)
	for _, e := range []noise.Epsilon{v.Threshold, v.Query} {
		if err := e.Check(); err != nil {
			return fmt.Errorf("%w: %w", ErrSettings, err)
		}
		if !e.Draws(scale) {
			return fmt.Errorf("%w: an epsilon of %v for %d questions above of a sensitivity of %d: noise is not drawn on so fine a grid", ErrSettings, e, v.Above, v.Sensitivity)
		}
	}
	if v.Release != (noise.Epsilon{}) {
		if err := v.Release.Check(); err != nil {
			return fmt.Errorf("%w: of the release: %w", ErrSettings, err)
		}
		if !v.Release.Draws(scale) {
			return fmt.Errorf("%w: an epsilon of %v for the release: noise is not drawn on so fine a grid", ErrSettings, v.Release)
		}
	}
	return nil
}

// Accuracy is how far from right a run of so many questions can be, with probability 1-beta: a question that is above has a value of at least its threshold
// minus comparison, one that is not has a value below its threshold plus comparison, and released values are off by less than release, which is 0 where none
// are released. A run whose questions with values above threshold minus comparison are at most Above so answers all. A third of beta is for the threshold, a
// third for the comparisons, a third for the released values; without these a half for either.
//
// Two-sided geometric noise of scale b is x or more from 0 with probability at most 2e^{-x/b}/(1+e^{-1/b}), which is below e^{-(x-1)/b}. The theorem of
// Dwork and Roth 2014 (3.28, NumericSparse) has the same form, 9c(ln k + ln(4c/beta))/epsilon, for noise that is shared otherwise, and drawn anew for the
// threshold; this is less (a test). Settings that are none have no accuracy: both are infinite.
func (v Vector) Accuracy(questions, beta float64) (comparison, release float64) {
	if v.Check() != nil || !(questions >= 1) || !(beta > 0 && beta < 1) {
		return math.Inf(1), math.Inf(1)
	}
	parts := 2.
	scale := float64(v.Above) * float64(v.Sensitivity)
	if v.Release != (noise.Epsilon{}) {
		parts = 3
		release = scale/v.Release.Float()*math.Log(parts*float64(v.Above)/beta) + 1
	}
	comparison = float64(v.Sensitivity)/v.Threshold.Float()*math.Log(parts/beta) + 1
	comparison += float64(v.wide())/v.Query.Float()*math.Log(parts*questions/beta) + 1
	return comparison, release
}

// wide is the scale of a question's noise, times Query.
func (v Vector) wide() uint64 {
	scale := uint64(v.Above) * v.Sensitivity
	if v.Monotone {
		return scale
	}
	return 2 * scale
}

// Answer is what is said of one question.
type Answer struct {
	Above bool
	Gap   int64 // above the noisy threshold, from 0; where Vector.Gap is set, and of an AdaptiveRun
	Far   bool  // of an AdaptiveRun: far above, at half the price
	Value int64 // with noise of its own; where Vector.Release is set
}

// Run is a run of questions. It is not safe for concurrent use.
type Run struct {
	vector    Vector
	stream    *noise.Stream
	threshold int64 // the noise of all thresholds
	left      int
}

// Start draws the threshold's noise. The guarantee needs a stream of a secret key that is used for nothing else.
func (v Vector) Start(s *noise.Stream) (*Run, error) {
	if err := v.Check(); err != nil {
		return nil, err
	}
	return &Run{vector: v, stream: s, threshold: v.Threshold.Laplace(s, v.Sensitivity), left: v.Above}, nil
}

// Left is how many more questions may be above.
func (r *Run) Left() int { return r.left }

// Ask answers one question by its value, a secret, and its threshold, which is public and at most MaxValue either way. A value beyond MaxValue counts as
// MaxValue: no error tells of a secret. The error wraps ErrSpent when as many were above as may be; nothing is said then.
func (r *Run) Ask(value, threshold int64) (Answer, error) {
	if r.left == 0 {
		return Answer{}, fmt.Errorf("%w: %d", ErrSpent, r.vector.Above)
	}
	if threshold > MaxValue || threshold < -MaxValue {
		return Answer{}, fmt.Errorf("%w: a threshold of %d, want at most 2^60 either way", ErrSettings, threshold)
	}
	value = min(max(value, -MaxValue), MaxValue)
	gap := plus(plus(value-threshold, r.vector.Query.Laplace(r.stream, r.vector.wide())), -r.threshold)
	if gap < 0 {
		return Answer{}, nil
	}
	r.left--
	a := Answer{Above: true}
	if r.vector.Gap {
		a.Gap = gap
	}
	if r.vector.Release != (noise.Epsilon{}) {
		a.Value = plus(value, r.vector.Release.Laplace(r.stream, uint64(r.vector.Above)*r.vector.Sensitivity))
	}
	return a, nil
}

// plus is a + b, for an a of at most 3·2^60 either way and a b of at most noise.Saturation, clamped to the former. Of values in range and noise that ever
// comes up it is the sum.
func plus(a, b int64) int64 { return max(min(a+b, 3<<60), -3<<60) }
